import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { NcclAlgorithm, Protocol } from '../../tuning/names.js';
import type { Controlled, Fact, Term } from './question.js';

/**
 * Words of questions as data: phrases of a language of their own, in which `|` separates alternatives, `(…)?` is optional and a
 * space stands for spaces, hyphens and underlines. Phrases match whole words.
 */

/** Calls by their names, those of PyTorch and nccl-tests too; then by the workloads that consist of them. */
export const collectivePhrases: readonly (readonly [ScheduledCollective, string])[] = [
  ['AllReduce', 'all ?reduces?( perf)?|psum'],
  ['AllGather', 'all ?gathers?( perf| into tensor)?|allgatherv?'],
  ['ReduceScatter', 'reduce ?scatters?( perf| tensor)?'],
  ['AllToAll', 'all ?to ?all ?v?s?( perf| single)?|all ?2 ?all ?v?|a2a|moe dispatch'],
  [
    'SendRecv',
    '(nccl ?)?send ?(/|,|&|\\+|and)? ?(nccl ?)?recvs?( perf)?|send ?(and|/|,|&|\\+)? ?(recv|receive)s?( perf)?|isend|irecv|p2p(?=[\\s_-]channels?)|p2p (messages?|sends?|traffic|communication|ops?)|point to point|peer to peer messages?',
  ],
  ['Broadcast', 'broad ?casts?( perf)?|bcasts?'],
  ['Gather', 'gathers?( perf)?'],
  ['Scatter', 'scatters?( perf)?'],
  ['Reduce', 'reduce( perf)?|reduces'],
];

/** Workloads that mostly wait for one kind of call. */
export const workloadPhrases: readonly (readonly [ScheduledCollective, string])[] = [
  ['AllToAll', 'moe|mixture of experts|expert parallel(ism)?|deepep|expert dispatch'],
  ['AllGather', 'fsdp2?|zero ?3|zero stage ?3|fully sharded|zero 2|sharded data parallel'],
  ['SendRecv', 'pipeline parallel(ism)?|pipeline stages?|pp stages?'],
  [
    'AllReduce',
    'ddp|distributeddataparallel|distributed data parallel|data parallel(ism)?|tensor parallel(ism)?|tp ?(=|size)? ?\\d+|gradient (sync\\w*|averag\\w*|all ?reduce)|gradients|horovod',
  ],
];

const DATA = '(messages?|message sizes?|sizes?|data( sizes?)?|payloads?|buffers?|tensors?|packets?|transfers?)';

/** Sizes that words stand for, bytes. */
export const sizePhrases: readonly (readonly [readonly number[], string])[] = [
  [
    [8, 2 ** 10, 2 ** 16],
    `(small|tiny|short|little|smaller|few byte)( enough)? (nccl )?${DATA}|small (all ?reduces?|calls?|collectives?)|latency (bound|sensitive|limited)`,
  ],
];

export const algorithmPhrases: readonly (readonly [NcclAlgorithm, string])[] = [
  ['NVLSTree', 'nvls ?tree'],
  ['NVLS', 'nvls|nv ?link sharp|nvsharp'],
  ['CollNetDirect', 'coll ?net ?direct'],
  ['CollNetChain', 'coll ?net ?chain'],
  ['CollNetDirect', 'coll ?net|(ib )?sharp|in network (reduction|computing)|switch reduction'],
  ['PAT', 'pat'],
  ['Tree', '(double )?(binary )?trees?'],
  ['Ring', 'rings?'],
];

export const protocolPhrases: readonly (readonly [Protocol, string])[] = [
  ['LL128', 'll ?128'],
  ['LL', 'll'],
  ['Simple', 'simple'],
];

/** Features, parts and figures by their names. */
export const termPhrases: readonly (readonly [Term, string])[] = [
  ['busbw', 'bus ?bw|bus ?bandwidth|bus b/w'],
  ['algbw', 'alg ?bw|algo? ?bw|algorithm ?bandwidth|algorithmic bandwidth'],
  ['channel', 'channels?|ctas?|grid ?(size|dim)|thread blocks?|number of (sms|blocks)|sms?'],
  ['pxn', 'pxn'],
  ['gdr', 'gdr|gdrdma|gpu ?direct( rdma)?|rdma to (the )?gpu|nvidia peer ?mem|peermem|dma ?buf'],
  ['shm', 'shm|shared memory|host memory|bounce buffers?'],
  ['p2p', 'p2p|peer to peer|peer access|peer2peer'],
  ['rail', 'rail optimi[sz]ed|rails?|cross(es|ed|ing)? (nics?|rails?)|crossnic'],
  ['nvswitch', 'nv ?switch(es)?'],
  ['nvlink', 'nv ?links?|nv ?link bridges?|sxm'],
  ['pcie', 'pci ?e?( express)?|pci( bus)?|root complex|root ports?'],
  [
    'nics',
    'nics?|hcas?|network (cards?|adapters?|interfaces?|devices?|ports?)|mlx5|connect ?x ?\\d?|cx ?[5678]|ib (cards?|ports?|devices?)|ports?|net ?devs?|efa',
  ],
  ['sockets', 'tcp( ?/? ?ip)?|sockets?|net/socket|without rdma'],
  ['chunk', 'chunks?( ?size)?|slices?|chunk bytes'],
  ['path', 'phb|pix|pxb|sys|nvb|node paths?'],
];

/** Things that people want to set, by their words; algorithms, protocols and features are found by their names. */
export const controlPhrases: readonly (readonly [Controlled, string])[] = [
  [
    'interface',
    '(network |socket |ethernet |bootstrap )?interfaces?|ifname|eth\\d|ens\\w+|ib\\d|bond\\d|docker\\d|ip address(es)?',
  ],
  ['queuePairs', 'queue pairs?|qps?|qps per connection'],
  ['trafficClass', 'traffic class(es)?|dscp|tos|service level|qos|priority'],
  ['gid', 'gid( index)?|roce ?v?[12]|roce version'],
  ['timeout', '(ib |infini ?band |rdma |retry )?time ?outs?( of (ib|rdma))?|retry (count|counts)|retries'],
  ['relaxedOrdering', 'relaxed ordering'],
  ['adaptiveRouting', 'adaptive routing'],
  ['merge', '(merge|merging|bond(ing|ed)?|dual ports?|two ports?) ?(of )?(the |both )?(nics?|ports?|cards?)?|lag'],
  ['topologyFile', '(custom |own |my )?topolog(y|ies)( file| xml)?|topo file|xml file'],
  ['ringOrder', '(ring |rank )?(order|sequence|permutation)( of (the )?(rings?|gpus|ranks))?|ring topology|next rank'],
  [
    'sockets',
    'tcp( sockets?)?|sockets?|plain ethernet|instead of (infini ?band|ib|rdma|roce)|(disable|turn off|without|avoid) (infini ?band|ib|rdma|roce)',
  ],
  ['infiniband', 'infini ?band|ib|rdma|roce|verbs'],
  ['threads', '(?<!proxy )threads( per block)?|thread block size|block size'],
  ['buffer', 'buff?er ?sizes?|buff?sizes?|size of (the )?(communication |internal )?buff?ers?'],
  ['memory', '(gpu|device) memory|memory (usage|consumption|footprint)|vram'],
  ['cpuAffinity', 'cpu affinity|affinity|cpu cores?|core binding|pin(ning)? (to )?(the )?(cpu|cores?)'],
  ['plugin', '(net(work)?|tuner|custom|aws|ofi|external) ?plug ?ins?|plug ?ins?'],
  ['registration', '(user )?buffer registration|registered buffers?|register (user )?buffers?'],
  ['rackNvlink', 'mnnvl|multi ?node nvlink|nvlink (domain|across nodes)|imex'],
  ['log', 'log(s|ging| file| level)?|debug output|verbos\\w+'],
  ['subset', '(all|only some|some|a subset of|specific|certain|particular) (of the )?(nics?|hcas?|cards?|adapters?)'],
];

const BUSBW = 'bus ?bw|bus ?bandwidth';
const ALGBW = 'alg ?bw|alg ?bandwidth|algorithm(ic)? bandwidth';
const DIFFERS = 'lower|less|smaller|half|different|higher|bigger|larger|equal|same|differ\\w*|twice|double';

/** Facts, by the words that ask for them; the first that is found is told first. */
export const factPhrases: readonly (readonly [Fact, string])[] = [
  [
    'algorithmNeeds',
    '(only|just) (the )?(ring|tree)s?( algorithms?)? .{0,20}(applicable|available|possible|supported|usable|works?|used) .{0,20}(without|if|when)|(ring|tree)s?( algorithms?)? .{0,20}(the )?only .{0,20}(algorithm|one|choice|option)|(which|what) (algorithms?|algos?) .{0,30}(need|require|work|available|applicable|supported|possible)\\w*( \\w+){0,3} (without |an? |no )?(nv ?switch|sharp|nv ?link)',
  ],
  [
    'flatRings',
    'flat rings?|(rings?|all ?reduce|trees?) .{0,40}hierarch\\w+|hierarch\\w+ .{0,30}(rings?|all ?reduce|algorithms?)|(2|two) ?(d|dimensional|level) (rings?|all ?reduce)|(intra|inter) ?node .{0,30}(handled |treated )?differently',
  ],
  [
    'switchLevels',
    '(level|layer|tier)s? ?(1|2|one|two)? (of )?(the )?nv ?switch(es)?|(l1|l2|(first|second) (level|layer|tier)) nv ?switch(es)?|nv ?switch(es)? (level|layer|tier)s?|(which|what|choose|select|pick|identify|assign)\\w* (of )?(the |a |each |single |different )*nv ?switch(es)?( is| for|$)|nv ?switch .{0,20}(each|per|every) channel',
  ],
  [
    'pairsDiffer',
    '(between|for|with) (nodes?|hosts?|servers?|machines?) ?#?\\d+ ?(and|&|\\+|to) ?#?\\d+ .{0,60}(between |for |with )?(nodes?|hosts?|servers?|machines?)? ?#?\\d+ ?(and|&|\\+|to) ?#?\\d+|(fabric|network|switch|routing) (issue|problem)? ?or (is it )?(a |an )?nccl|(some|certain|other|different|good|bad|slow|fast) pairs? of (nodes?|hosts?|servers?|machines?)|(good|fast|other) (pair|machine|node|host|server|set|one)s? .{0,60}(bad|slow|poor) (pair|machine|node|host|server|set|one)s?|(bad|slow) (pair|machine|node|host|server|set)s? .{0,60}(good|fast|other)',
  ],
  [
    'sizeGrows',
    '(larger|bigger|large|big) .{0,30}(size|message|buffer)s? .{0,20}(better|higher|faster|more)|(better|higher|lower|faster|slower) (for|with|at|on) (the )?(larger|bigger|smaller|large|small) (size|message|buffer)s?|(small|smaller) .{0,20}(size|message|buffer)s? .{0,20}(slow|slower|low|lower|worse|less|poor)|(bandwidth|busbw|algbw|throughput) .{0,20}(grow|increas|depend|var|chang)\\w+ (with|on|as) .{0,15}sizes?',
  ],
  [
    'severalRings',
    '(is|are|use|uses|using|than) (a |the )?(single|double|two) rings?|(single|double) rings? (topolog|by default|is|are|or)\\w*|what (do|does) .{0,15}rings mean|why .{0,20}(need|use|build|make|create|have|are there|does nccl) .{0,15}(several|multiple|many|more than one|\\d+|two|four) rings|(meaning|purpose) of .{0,15}(several|multiple|\\d+) rings',
  ],
  [
    'linkPorts',
    'uses? (all|every|each|more) (of )?(the )?nv ?links?|(single|one|only one) nv ?link .{0,30}(channel|ring)|(which|what) nv ?link (port|link|lane)s?|nv ?links? ports? .{0,30}(channel|ring|used)|(balance|spread|distribut)\\w* .{0,30}(ports|nv ?links?)',
  ],
  [
    'reversed',
    '(not |n.t )?reverse[sd]? .{0,20}(ring|peer|order|channel|direction)s?|(ring|channel)s? .{0,30}reverse[sd]?|opposite direction|half of the rings',
  ],
  [
    'severalNics',
    'multi ?nics?|(multiple|several|more than one) (nics?|network cards?|hcas?)|(two|both|all) (nics?|network cards?|interfaces?|ports) (on|over|with|for) (ethernet|tcp|sockets?)|(support|use|aggregate|combine) .{0,10}(multiple|several|two) (nics?|network cards?|interfaces?)',
  ],
  [
    'payload',
    '(total ?bw|max ?bw|system total|nv ?smi|nvidia smi|nv ?link s) .{0,80}(nv ?links?|\\d+ ?gb/s)|(nv ?links?|nvidia smi) .{0,60}(total ?bw|max ?bw)|(20|25) ?gb/s (and not|instead of|rather than|not) (20|25)|(raw|signal|theoretical|nominal) .{0,20}nv ?link .{0,40}(effective|payload|real|nccl (counts|takes|assumes))',
  ],
  [
    'withoutNvlink',
    '(disabl\\w+|turn(ed|ing)? off|avoid\\w*|bypass\\w*|skip\\w*|not (to )?us(e|ing)|instead of) (the )?nv ?links?|p2p (with|over|through|via|on|by) (the )?pci ?e?|force .{0,20}pci ?e?( bus)?',
  ],
  [
    'channelIsBlock',
    '(sms?|multi ?processors?|ctas?|thread ?blocks?) .{0,60}(channels?|max ctas|nchannels)|channels? .{0,40}(sms?|multi ?processors?|ctas?|thread ?blocks?)|nccl max ctas .{0,60}nccl max nchannels|nccl max nchannels .{0,60}nccl max ctas',
  ],
  [
    'fewerChannels',
    '(not|n.t) (\\w+ ){0,2}(all|every) (of )?(the )?channels|fewer channels .{0,30}(small|size|data)|(small|little|less|not large) .{0,30}fewer channels|channels .{0,30}when (the )?(data|size|message)\\w* .{0,20}(small|not large)|(subset|part|some|few|all) of (the |its |\\d+ )?channels|split .{0,30}(across|over|among) .{0,15}channels',
  ],
  ['bond', 'bond(s|ed|ing)?( \\d)?|lacp|link aggregation|lag ports?|mlx5 bond \\d|bond\\d'],
  [
    'queuePairs',
    '(channels?|connections?|rings?) .{0,40}(qps?|queue ?pairs?)( numbers?)?|(qps?|queue ?pairs?) .{0,40}(channels?|connections?|rings?)|how many (qps?|queue ?pairs?)',
  ],
  [
    'gpuOrder',
    'orders? .{0,20}(cuda visible devices|gpus|devices|gpu (ids|numbers|indices))|cuda visible devices .{0,40}(order|differ\\w*|matter|affect)|(which|what) gpus (does|will|would) nccl (pick|choose|use|select)|pick (the )?(best )?gpus',
  ],
  [
    'll128Safe',
    'll ?128 .{0,40}(only|by default|safe\\w*|unsafe|corrupt\\w*|wrong results?|out of bounds)|(why|reason|only) .{0,30}ll ?128 .{0,30}(volta|ampere|hopper|nv ?link|disabled|default)|(safe|risk\\w*|danger\\w*) .{0,30}ll ?128',
  ],
  ['graceLinks', 'c2c|chip to chip|gpu ?direct .{0,20}(gh200|gb200|gb300|grace)|(gh200|gb200|gb300|grace) .{0,40}gpu ?direct'],
  [
    'factorOfNvls',
    '(correction |bus ?bw |bus bandwidth )?(factor|formula)s? (of|for|with|in|when using) (the )?(nvls|nvlink sharp|sharp|in network)|(nvls|nvlink sharp|sharp) .{0,40}(factor|formula)|(factor|formula) .{0,40}(nvls|nvlink sharp)',
  ],
  [
    'factor',
    `(correction |bus ?bw |bus bandwidth |scaling )?factor|2 ?[*x]? ?\\( ?(n|p|nranks|ranks) ?- ?1 ?\\)|\\( ?(n|p|nranks|ranks) ?- ?1 ?\\) ?/ ?(n|p|nranks|ranks)|2 ?[*x] ?(n|nranks) ?- ?1|nranks ?- ?1|formulas?|how (is|are|do|does|to|can i|do i) .{0,40}(calculat|comput|deriv|defin|measur)\\w*|(how|where) .{0,20}(${BUSBW}) com(e|es) from`,
  ],
  [
    'zero',
    `(is|are) (the |my |our )?(${BUSBW}|${ALGBW}|bandwidth|bw) (always |only |just |all )?(0|zero)(?![.\\d])|(${BUSBW}|${ALGBW}|bandwidth|bw|it|column|value|results?|everything) (is|are|was|shows?|reports?|displays?|gives?|prints?|of|=|being|always|says) (only |just |always |as |all )?(0|zero|zeros|0\\.0+)(?![.\\d])|(zero|0|0\\.0+) (${BUSBW}|bandwidth|gb/s)`,
  ],
  [
    'units',
    '(bits?|bytes?) or (in )?(bits?|bytes?)|gb/s or g(b|bit)(ps|/s)|gb/s or gib/s|gigabits? or gigabytes?|what units?|which units?|units? (of|is|are)|gib or gb|gb or gib|1000 or 1024|1024 or 1000',
  ],
  [
    'direction',
    'uni ?directional|bi ?directional|both directions|one direction|each direction|full duplex|half duplex|per direction',
  ],
  [
    'algbwVersus',
    `(${ALGBW}) .{0,40}(${DIFFERS}) .{0,20}(${BUSBW})|(${BUSBW}) .{0,40}(${DIFFERS}) .{0,20}(${ALGBW})|which (one )?(should|to) .{0,30}(${ALGBW}|${BUSBW})|(${BUSBW}) or (${ALGBW})|(${ALGBW}) or (${BUSBW})`,
  ],
  [
    'sizeColumn',
    '(does|is) (the )?(message |buffer |data )?size .{0,40}(send|recv|receive|per (rank|gpu)|total|input|output|mean)|what (is|does) (the )?(size|count) (column|field|mean|in)|(size|count) (column|field|in nccl ?tests?) mean',
  ],
  ['inPlace', 'in place|out of place'],
  ['wrongColumn', '#wrong|wrong column'],
  [
    'oneRank',
    '(on|with|using|for|only|just) (a |only |just |exactly )?(single|one|1) (gpu|rank|process)( only| alone)?(?! (per|of|in|on|each|node|and|vs|to))|-g 1|one rank alone',
  ],
  [
    'firstCall',
    '(first|initial) (nccl )?(call|iteration|all ?reduce|collective|operation|communication)|warm ?up|cold start|init(iali[sz]ation)? (time|takes|is (so |very )?slow)',
  ],
  ['deterministic', 'determinis\\w+|reproducib\\w+|bit ?wise|bit exact|run to run'],
  [
    'bothNetworks',
    '(nv ?links?) and (the )?(network|nics?|infini ?band|ib|pci ?e?)|both (the )?(nv ?links?|pci ?e?) and|(pci ?e?|network|infini ?band) and (the )?nv ?links?|nv ?links? as well as|mix\\w* (of )?(pci ?e?|nv ?links?)',
  ],
  [
    'twoCommunicators',
    '(two|several|multiple|many|more than one|different|2) (nccl )?(communicators?|process groups?) .{0,30}(concurrent\\w*|parallel|same time|simultaneous\\w*|overlap\\w*|deadlock|at once|streams?)|(concurrent|parallel|simultaneous)\\w* .{0,20}communicators?',
  ],
  [
    'mixedGpus',
    '(different|mixed|mixing|mix|heterogeneous|various) (types? of |kinds? of |models? of |generations? of |nvidia )?(gpus?|cards?|architectures?)|heterogen\\w+ (gpus?|clusters?)',
  ],
  ['ethernet', '(support|supports|work|works) .{0,20}(ethernet|roce|tcp|without infini ?band)|without infini ?band'],
  [
    'memory',
    '(how much|what|which|extra|additional|so much) (gpu |device )?(memory|vram)|(memory|vram) (usage|consumption|footprint|overhead)',
  ],
];

const CALLS =
  '(nccl ?)?(all ?reduce|all ?gather|reduce ?scatter|all ?to ?all|broadcast|bcast|reduce|gather|scatter|send ?/?recv)s?';

/** Facts about systems around NCCL, before those of `factPhrases`. */
export const systemFactPhrases: readonly (readonly [Fact, string])[] = [
  [
    'openPorts',
    'port range|range of ports|(specific|fixed|certain|tcp|ephemeral) ports|port numbers?|firewalls?( \\w+)?|iptables|security groups?|ports? .{0,30}(open|opened|allowed|listen\\w*|blocked|free)|(open|allow|listen(s|ing)? on|block(s|ed)?|need) .{0,20}ports?( \\d{4,5})?( open)?|port \\d{4,5}',
  ],
  [
    'frontend',
    '(front ?end|management|storage|mgmt|admin|control plane|out of band) (network|ethernet|nics?|interfaces?|cards?|lan|fabric|ports?|traffic)',
  ],
  [
    'parallelism',
    '(tensor|data|pipeline|expert|context|sequence|model) parallel\\w* .{0,90}(tensor|data|pipeline|expert|context|sequence|model) parallel\\w*|(tp|dp|pp|ep|cp) ?(=|size|degree|of)? ?\\d* .{0,60}(tp|dp|pp|ep|cp)( ?(=|size|degree|of)? ?\\d+)?( (inside|within|in|across|over|between|inter|intra))?( traffic)?|(tp|dp|pp|ep|cp) (traffic|groups?|communicators?|ranks?)|(tensor|data|pipeline|expert) parallel\\w* (groups?|traffic|ranks?|inside|within|across)',
  ],
  [
    'lostRank',
    '(gpus?|ranks?|process(es)?|nodes?|hosts?|workers?|peers?) (is |are |has |have |gets? |suddenly )*(dies|died|dying|die|crash\\w*|killed|lost|disappear\\w*|fails?|failed|fell off|falls off|goes away|preempted|oom killed)( the bus)?|(kill|los(e|es|ing)|crash of|death of|failure of) (a |one |the |some )*(rank|process|node|host|worker|gpu|peer)s?|fault tolera\\w+|(rank|node|gpu|process) failures?',
  ],
  ['peerMemory', '(nvidia |nv )?peer ?mem(ory)?|nv ?peer ?mem|dma ?buf'],
  [
    'perRail',
    '(bandwidth|busbw|throughput|traffic|speed|load|gb/s|gbps|data|much) .{0,25}(per|of (a|each|one)|(on|over|for|through) (a|each|every|one)|each) (single )?(rail|nic|port|hca|card)s?( \\w+)?|(per|each|every) (rail|nic|hca) (bandwidth|busbw|throughput|traffic|speed|load|carr\\w+)|slow(er)? (nic|rail|hca|card)s?|(nic|rail|hca)s?( \\d+)?( (of|for|at|on) (gpu|rank) ?\\d+)? (is|are|looks|seems) (very |much |too )?slow(er)?',
  ],
  ['mtu', 'mtu|jumbo( frames?)?'],
  [
    'search',
    'topo ?compute|topo(logy)? search\\w*|graph search|search(es|ed|ing)? .{0,30}(graph|channels?|rings?|topolog\\w+|paths?)|(graph|ring|tree|channel)s? .{0,20}search\\w*|n ?channels .{0,30}(calculat|comput|determin)\\w+|(single|global|one) .{0,20}graph .{0,40}(all|every|machines|nodes)|same ?channels?',
  ],
  [
    'subnets',
    'vlans?|(same|single|one|different|separate|several|per rail) (ip )?subnets?|subnets? .{0,30}(same|single|one|different|separate|matter)|arp( \\w+)?|rp filter',
  ],
  [
    'farNetwork',
    '(network|link|cross|wan|long ?distance|switch|propagation|data ?cent(er|re)) .{0,20}(latency|delay|rtt) .{0,90}(drop|lower|decreas|bandwidth|busbw|affect|impact|slow)\\w*|(bandwidth|busbw|throughput) .{0,60}(network|link|cross|wan|propagation) .{0,20}(latency|delay|rtt)|(between|across|over|two|several) data ?cent(er|re)s|long ?haul|wan|rtt',
  ],
  [
    'logTrees',
    '(what|how|mean\\w*|read|understand|interpret|explain) .{0,60}trees? ?\\[?\\d?\\]? ?(line|log|\\[|-?\\d+/)|trees \\[\\d+\\] -?\\d+/-?\\d+|(log|debug|output) .{0,40}trees? .{0,30}(mean|format|number)|(mean\\w*|format) .{0,30}(of|in) (the )?(tree|ring|channel)s? (line|log|output|print)',
  ],
  [
    'logWays',
    'via (p2p|shm|net)|p2p/(ipc|cumem|direct|indirect)|(direct|indirect) pointer|net/ib/\\d|(what|mean\\w*|differ\\w*) .{0,40}(gdrdma|cumem|ipc) .{0,30}(log|output|mean|line|print)?',
  ],
  [
    'singleTree',
    '(single|one|1) (binary )?trees? .{0,40}(half|50 ?%|bandwidth|bw|instead|enough|not)|(why|what|purpose|reason|advantage|benefit) .{0,40}(double|two|2|dual) (binary )?trees|double (binary )?trees? .{0,60}(why|instead|single|one tree|bandwidth|work|built|build|benefit|advantage)',
  ],
  [
    'treeInNode',
    '(combin|mix|join)\\w* .{0,30}(trees? and rings?|rings? and trees?)|(how many|number of) (nodes|gpus|trees|children) .{0,30}(in|of|per|each) .{0,15}trees?|graph (file|xml|txt) .{0,80}(tree|chain)|(understand|structure of|shape of|how) .{0,30}(the )?trees? .{0,20}(topolog\\w+|structure|built|constructed|organi[sz]ed|implemented|connect\\w*|reduction)|(2|two|n|double|dual) ?trees?( |,|\\?|$)|rings? .{0,20}under the hood|(intra ?node|within (a|the|one) node|inside (a|the) node|single node) .{0,40}(chain|trees?)|trees? .{0,40}(intra ?node|within (a|the|one) node|inside (a|the) node).{0,30}(chain|ring|structure|used|look)?|(why|is) .{0,30}chain .{0,40}(tree|intra|node)|trees? .{0,20}chain',
  ],
  [
    'shmSize',
    '/?dev/shm|shm ?size|ipc ?=? ?host|no space left|bus error|shared memory .{0,30}(container|docker|pod|kubernetes|too small|size|space)|(docker|container|pod|kubernetes) .{0,40}(shm|shared memory)',
  ],
  [
    'virtualMachine',
    '(inside|in|on|under|within|with|from) (a |an |the |my |our )?(\\w+ )?(vms?|virtual machines?|containers?|docker|pods?|hypervisors?|kvm|vmware|proxmox|wsl2?|lxc|qemu|passthrough)|(virtuali[sz]ed|virtual) (machines?|environments?|gpus?|topolog\\w+)|(without|no|missing|hid\\w+|empty) /?sys(fs)?( class)?(?! (path|link|between))|virtual ?topology|gpu pass ?through|sr iov',
  ],
  ['acs', 'acs|iommu|access control services?|vt ?d|amd vi|ats'],
  [
    'geforce',
    '(geforce|consumer|gaming|desktop|rtx ?[2345]0[6789]0|[2345]090) .{0,60}(p2p|peer|slow|nv ?link|support|shm|shared memory)|(p2p|peer to peer|peer access) .{0,60}(geforce|consumer|gaming|rtx ?[2345]0[6789]0|[2345]090)',
  ],
  [
    'pcieRate',
    '(pci ?e?|x16|lanes?) .{0,60}(theoretical\\w*|nominal|max\\w*|only|actual\\w*|real|effective|less than|lower than|half).{0,40}(bandwidth|speed|rate|gb/s)?|(theoretical|max\\w*|real|effective|nominal) .{0,30}pci ?e?( bandwidth| speed| rate)?',
  ],
  [
    'idleLink',
    'lstopo|link (speed|width) .{0,40}(downgrad\\w+|lower|idle)|(downgraded|2\\.5 ?gt) .{0,20}(link|pci|speed)|gen ?1 .{0,40}(idle|instead|but|why|only)',
  ],
  [
    'callWays',
    `(${CALLS}) .{0,40}implement\\w*|implement\\w* .{0,40}(${CALLS})|exact algorithms? .{0,40}(${CALLS})|explain .{0,60}(${CALLS}) algorithms?`,
  ],
  [
    'peerOverCpu',
    '(x86|intel|amd|epyc|xeon) .{0,20}cpus? .{0,60}(p2p|peer)|(p2p|peer) .{0,60}(phb|sys|root complex|host bridge|numa|sockets)|(phb|sys|numa|sockets) .{0,40}(p2p|peer to peer|peer access)',
  ],
  [
    'pathNames',
    '(phb|pix|pxb|sys|node) .{0,30}(instead of|rather than|and not|not|versus|vs) (phb|pix|pxb|sys|node)|(recogni[sz]e|report|show|detect|say|print)s? (it as |as )?(phb|pix|pxb|sys)',
  ],
  [
    'roce',
    'roce ?(v?2)? .{0,60}(config\\w*|settings?|set ?up|slow|tun\\w+|variables?|differ\\w*|versus|vs|or|same|as fast|lossless|pfc|ecn|gid|dscp|variable|performance|bandwidth|problem|need\\w*|drop\\w*|work\\w*)|(config\\w*|settings?|set ?up|tun\\w+|lossless|pfc|ecn|dscp|versus|vs|infini ?band) .{0,40}roce|pfc|ecn|priority flow control',
  ],
  [
    'socketsUsed',
    '(only|just|one|single|always) .{0,20}(eth|ens|eno|bond|ib)\\w*\\d|(which|what|how|why) .{0,50}(network )?interfaces? .{0,40}(use|chosen|choose|select|pick|socket|bootstrap)\\w*|(several|multiple|two|more|all|both) (socket )?interfaces|bootstrap .{0,30}(interface|eth|network|use)|net/socket|falls? back to (tcp|sockets?)|using network socket|sockets? (instead|rather|although|even)|nsocks|socket nthreads|(tcp|sockets?|ethernet).{1,60}(improve|faster|optimi[sz]\\w+|saturat\\w+|fill|full|increase|tun\\w+)|(improve|optimi[sz]e|speed up|increase|tune) .{0,60}(tcp|sockets?)',
  ],
  [
    'chunks',
    'chunk ?(size|count|s|steps?)? .{0,60}(slice|step|buffer|comput\\w+|calculat\\w+|determin\\w+|decid\\w+|size|pipelin\\w+|loop)|(slice|chunk) ?(steps?|size)|nccl steps|(how|what|why) .{0,50}(chunks?|slices?)( |$)|pipelin\\w+ .{0,40}(chunk|slice|ring|data|buffer)|(split|cut|divid|partition)\\w* .{0,30}(data|buffer|message)s? .{0,30}(chunk|channel|slice|loop)\\w*',
  ],
  [
    'smallLatency',
    '(what (makes|causes|determines)|why|reduce|lower|improve|minimi[sz]e|optimi[sz]e|cause|high|where) .{0,40}latenc(y|ies) .{0,40}(small|tiny|short|8 ?b|come|consist|high|made|nccl)?|(small|tiny|short) (messages?|sizes?|data|calls?|tensors?|all ?reduces?) .{0,40}(latency|slow|overhead|inefficient|faster)|(overhead) .{0,30}(small|tiny|short)|launch overhead|kernel launch',
  ],
  [
    'proxyThreads',
    'proxy .{0,40}(thread|cpu|process|progress)|(100|full|high|higher|much) ?%? .{0,10}cpu( usage| load| utili[sz]ation)?|cpu (usage|load|utili[sz]ation|cores?) .{0,40}(nccl|need|proxy|thread|high|100)|busy (wait|poll)\\w*|(does|do|is|are) .{0,20}cpus? .{0,20}(involved|used|needed|matter)',
  ],
  [
    'unequalHosts',
    '(different|unequal|uneven|not the same|non ?uniform|asymmetric|odd|mixed) (number|count|amount)s? of (gpus|nics|cards|ranks|devices)|(uneven|unequal|asymmetric|non ?uniform) .{0,20}(gpus|nodes|hosts|ranks|distribution|layout)',
  ],
  [
    'overlap',
    '(overlap\\w*|concurrent\\w*|in parallel|alongside|at the same time|compete\\w*|contention|interfer\\w*) .{0,40}(comput\\w+|gemm|matmul|kernels?)|(comput\\w+|gemm|matmul|kernels?) .{0,40}(overlap\\w*|slower|compete\\w*|contention|interfer\\w*)|slow\\w* (down )?.{0,20}(comput\\w+|gemm|matmul|kernels?)|(steal|occup|consum|tak)\\w* .{0,20}(sms|multi ?processors)',
  ],
  [
    'sharedGpu',
    'duplicate gpu|(same|one|single) gpu .{0,40}(ranks|processes|several|multiple|two|share\\w*)|(two|several|multiple|2|many) (ranks|processes) .{0,30}(same|one|single|a) gpu|mig|mps',
  ],
];

/** Ideas that questions are made of. */
export const conceptPhrases = {
  why: 'why|how come|reasons?|causes?|what makes|explain|because of what|how is it (possible|that)|what explains',
  what: 'what|which|whats|tell me|show( me)?|give me|list',
  howMany: 'how many|number of|how much|count of',
  is: 'is|are|does|do|will|would|can|could|should|did|am|has|have',
  expect:
    'expect(ed|ing|ation)?s?|should (i|we|it|this|you|they|one|be|get|reach|see|have)|supposed|target|baseline|typical(ly)?|normal(ly)?|theoretical(ly)?|peak|maximum|max|ideal|achiev\\w+|reach(able|ed)?|possible|best case|upper bound|realistic|predict(ed|ion)?|estimate[sd]?|would (i|we) (get|see)|can (i|we) (get|expect|reach)|do (i|we) get|get on|(would|will|could|can|does) .{1,25} (get|reach|achieve|deliver)',
  theory: 'theoretical(ly)?|line rate|wire speed|ideal|speed of light|hardware limit|nominal|spec(ification)?s?',
  bandwidth:
    'bandwidths?|bw|b/w|throughput|speeds?|perf(ormance)?|busbw|algbw|bus bandwidth|rates?|gb/s|gbps|fast|numbers?|results?',
  speed: 'bandwidths?|bw|b/w|throughput|speeds?|performance|busbw|algbw|fast(er)?|slow(er)?|latency',
  off: 'disabl(e|es|ed|ing)|(turn|switch)(ed|ing)? (\\w+ ){0,3}?off|avoid(ing)?|prevent(ing)?|exclud(e|ing)|stop(ping)?|deactivat(e|ing)|blacklist|skip|bypass|not (to )?use|without',
  time: 'how long|times?|latenc(y|ies)|durations?|takes?|micro ?seconds?|milli ?seconds?|delay|how quick(ly)?|cost of',
  good: 'good|ok(ay)?|fine|normal|reasonable|expected|as expected|healthy|acceptable|right|correct|bad|poor|terrible|sane|too (low|slow|high)|low|plausible|make sense|makes sense|wrong|a problem|enough|optimal|meet|meets|match(es)?|seems?|looks?',
  slow: 'slow(er|est|ly)?|low(er)?|poor|bad|only|just|drops?|dropped|degrad\\w+|half|less than|below|under|worse|not (reach|reaching|achieve|getting|get|saturat\\w+|utiliz\\w+)|cannot (reach|achieve|get|saturate)|can t (reach|get|achieve|saturate)|far from|fall(s|ing)? short|underperform\\w*|stuck at|capped at|so little|limited to|disappoint\\w+|weak|lower than',
  exceed:
    'exceed(s|ed|ing)?|higher than|more than|above|over (the )?(nics?|network|line|link|limit|theoretical|maximum|speed)|beyond|greater than|faster than|larger than|bigger than|beats?|surpass(es)?|twice|double|better than',
  network:
    'networks?|line rate|wire|infini ?band|ib|ro ?ce|ethernet|fabric|inter ?connect|nics?|link speeds?|hcas?|slingshot|hdr|ndr|edr|port speed',
  within: 'within a (node|host|server|machine)|intra ?node|single node|one node|in a node',
  between: 'between (nodes|hosts|servers|machines)|inter ?node|across (nodes|hosts|servers|machines)|multi ?node',
  improve:
    'improve(s|d|ment)?|help(s|ed)?|optimi[sz]\\w+|tun(e|ed|ing)|speed (it )?up|faster|boost|fix(es)?|rais(e|ing)|increas(e|es|ing)|gain(s)?|recommend\\w*|best (settings?|configuration|config|options?|values?|variables?)|which (settings?|variables?|env\\w*|options?)|what (settings?|variables?|env\\w*|options?|should (i|we) (set|change|do|buy|upgrade))|make it|get more|worth|what can (i|we) do|how (to|can (i|we)|do (i|we)|should (i|we)) (get|reach|increase|improve|make|speed|achieve|fix|optimi[sz]e|maximi[sz]e|tune)|maximi[sz]e|buy|upgrade the',
  limit:
    'limit(s|ed|ing|ation)?|bottle ?necks?|bound(s|ed)?|cap(s|ped)?|constrain\\w*|saturat\\w+|hold(s|ing)? (it |us )?back|weakest|slowest|critical|where (does|is) the time|spent|throttl\\w+',
  flips:
    'flips?|cross ?over( points?)?|thresholds?|(which|what) (message )?sizes?|(from|at|for|up to) (which|what) (message )?sizes?|changes? the choice|switch(es|ed|ing)? (over|points?|from|between|to)|when (does|do|will|is)|cut ?off|range of sizes|all sizes',
  choose:
    'choos(e|es|ing)|chose|chosen|choice|pick(s|ed)?|select(s|ed|ion|ing)?|decid(e|es|ed)|prefer(s|red)?|take(s)?|use(s|d)?|using|algorithms?|algos?|protocols?|instead of|rather than|and not|over|versus|vs',
  otherTool:
    'ib (write|send|read) (bw|lat)|perf ?test|iperf\\d?|nv ?bandwidth|p2p ?bandwidth ?latency ?test|memory bandwidth|hbm|images?/s|images? per sec\\w*|tokens?/s|tokens? per sec\\w*|(step|iteration|training) times?|t?flops|osu (\\w+ )?(bw|latency)|memcpy',
  used: 'use[ds]?|using|in use|enabled?|enabling|active|activated|available|supported?|support|work(s|ing)?|possible|on|kick(s)? in|turned on|engaged|effective|utili[sz]ed|being used|get|uses|applied|present|there',
  negation:
    'no|not|never|without|missing|disabled|off|unused|instead|isn t|aren t|doesn t|don t|won t|can t|cannot|didn t|lack(s|ing)?|absent|idle|fails? to use|unavailable|zero|0|unable',
  order:
    'order(ed|ing)?|sequence|go(es)? through|visit(s)?|path of the ring|ring path|neighbou?rs?|topolog(y|ies) of the ring|permutation|arranged?',
  nodes: 'nodes?|hosts?|servers?|machines?|boxes',
  countsAs:
    'counts?( as)?|see(s|n)?|detect(s|ed)?|think(s)?|treat(s|ed)?|report(s|ed)?|show(s|n)? (up )?as|say(s)?|split(s)?|appear(s)?',
  connected:
    'connect(s|ed|ion|ions)?|talk(s)?|communicat(e|es|ion)|reach(es)?|transports?|link(ed)?|path (between|from)|exchange|via|route[sd]?',
  scale:
    'scal(e|es|ing|ability)|more (nodes|gpus|hosts|servers|machines|ranks)|(the )?number of (nodes|gpus|hosts|ranks|servers|machines|workers|processes)|(increas|grow)\\w* (nearly |almost |about )?linear(ly)?|linear(ly)? (increas|grow|with)\\w*|add(ing)? (more )?(nodes|hosts|servers|machines|gpus)|nodes? (increase|grow)s?|(nodes|gpus|cluster|node count) (increases?|grows?)|larger clusters?|(grow|go|going) from|as (i|we) add|multi ?node (training )?(is )?slower|slower (on|with|than|across) (a |the )?(two|2|multiple|several|multi|single|one|1)',
  oneNode:
    'single node|one node|1 node|one host|one machine|one server|a single (machine|server|host|node)|single (machine|server|host)|intra ?node|within a node',
  mean: 'mean(s|ing|t)?|definition|define[ds]?|stand(s)? for|difference between|differ(s|ent)? from|what (exactly )?(is|are) (an? |the )?|how (is|are) .{0,20}(calculated|computed|defined)|formula|explain the (term|difference|meaning)',
  hang: 'hang(s|ing)?|hung|stuck (at|in|during|on)|stuck|dead ?lock(s|ed)?|freez(e|es|ing)|frozen|never (finishes|returns|completes|ends)|blocks? forever|waits? forever|stall(s|ed|ing)?',
  observe:
    '(how|where) (can|do|could|should|would) (i|we|one|you) (see|print( out)?|find out|tell|know|log|check|get nccl to print|view|verify|determine)|is there (a|any) (log|flag|indicator|way to (see|know|print|tell|find out))|print(s|ed|ing)? (out )?(which|what|the)|how to (see|print|know|tell|find out|check|log)|(which|what) (variable|setting|log) shows',
  control:
    '(how (can|do|does|could|should|would|might|to|shall|must)( (i|we|one|you|someone|nccl|it|a user))? (\\w+ ){0,1}?|can (i|we|you|one) (\\w+ )?|(is it|it is) possible to |(want|need|like|trying|try|tried|wish) to )(force|set|control|change|select|specify|limit|restrict|exclude|disable|enable|turn on|turn off|turn|switch on|switch off|switch|choose|configure|use|make|tell nccl|get nccl|let nccl|increase|raise|reduce|lower|decrease|pin|bind|avoid|prevent|stop|pick|override|adjust|blacklist|skip|bypass|constrain|define|assign|allow|modify|customi[sz]e|fix|manually \\w+|keep|deactivate|activate|provide|pass|supply)|(is|are) there (a|an|any|some) ([\\w-]+ ){0,3}?(way|variable|option|setting|env|flag|knob|parameter|method|possibility)s?( \\w+){0,2}? (to|for|that (controls?|sets?|limits?|disables?|enables?|forces?))|(which|what) ([\\w-]+ ){0,2}?(variables?|vars?|settings?|options?|flags?|knobs?|parameters?|env)( \\w+){0,2}? (to|do (i|we)|controls?|sets?|limits?|selects?|determines?|disables?|enables?|forces?|should|can (i|we))',
  optionAsked:
    '(option|variable|setting|flag|parameter|env\\w*)s? (is |are |really |actually )*(doing|does|do|means?|mean)|when (would|should|do) (you|i|we|one) .{0,20}(use|set|want|need)|(purpose|meaning) of|user facing|intended',
  dips: 'dips?|sudden(ly)?|notch|glitch(es)?|hump|spikes?|jump(s|ed)?|fluctuat\\w+|valley|non ?monotonic(ally)?|(drops?|dropped|falls?|fell|decreas\\w+|worse|slower|lower) (at|around|from|between|for|when( the)? (size|message)\\w*)',
  aware:
    '(is|are) (nccl )?aware of|(does|can|could|will|would) (the )?(current version of )?(nccl|it|pxn) (know|detect|discover|recogni[sz]e|see|select|choose|pick|find|consider|support|handle|understand)|how does (nccl|pxn|it) (know|detect|discover)|topology aware(ness)?|awareness|(not|doesn t|does not) (consider|know|detect|look at)',
  outside:
    'network topology|inter ?node topology|rails?|rail optimi[sz]\\w+|subnets?|ip (subnet|address(es)?)|switch(es)? topology|other (host|node|server|machine)s?|remote (nics?|hosts?|nodes?)|right (ib |network )?(card|nic|hca|adapter)s?|reachab\\w+|communicate with|leaf|spine|fabric',
  broken:
    'dies|died|dying|killed|kill|errors?|crash(es|ed|ing)?|segfaults?|fails?|failed|failure|timed? ?out|timeouts?|watchdog|unhandled|invalid usage|system error|remote error|exception|core dump|abort(s|ed)?|wrong results?|corrupt\\w*|nan|install(ation|ing)?|compile|build|import|version mismatch',
  upgrade:
    'upgrad(e|es|ed|ing)|updat(e|ed|ing)|new(er)? version|older version|versions?|regress(ion|ed|ions)?|downgrad\\w+|release notes?|change[ds]? (between|from|in|since)|what changed|changed|since|after (going|moving|switching)|mov(e|ing) (from|to)|switch(ing)? (from|to)',
  does: 'do|does|effect(s)?|mean(s)?|control(s)?|affect(s)?|impact(s)?|for|influence(s)?|limit(s)?|bound(s)?|matter(s)?|change(s)?|set(ting|s)?|default|value|help(s)?|about|happens?',
  memory: 'memory|oom|footprint|vram|hbm|allocat\\w+|gib of gpu|buffers?',
} as const;
export type Concept = keyof typeof conceptPhrases;

/** Plain words of English that say nothing by themselves here. A question in another language has few of them. */
const plainWords = new Set(
  `unstable majority feature implemented worker origin logic configure execution subset experiment behaviour effort advice a about above add after again against all almost alone along already also although always am among an and another any anyone
  anything are around as ask at away back be because been before began being below better between big both bound but by came can
  cannot case check clear come compare comparison could count current day default despite did didn differ different do does
  doesn doing don done down due during each either else end enough even ever every everything example far few first flap
  flapping for found from full further gave get getting give given go goes going gone good got great had half happen happy has
  have he hello help her here hey hi high higher how however i idea if im in instead into is isn it its itself just keep kind
  know last late later least less let like little ll long look lot low lower made make many matter may maybe me mean might mine
  more most much must my myself near need neither never new next no none nor normal not nothing now number of off often on once
  one or other otherwise our out over own part people per please possible pretty problem put question quite rather reason right
  run running said same saw say second see seem seen set setup several shall she should show shown similar since so some someone
  something sometimes somewhere sort still such sure take taken tell than thank that the their them then there these they thing
  think third this those though three through thus time to today together too total tried true try turn two type under unless
  unlike until up upon us use user using value ve very via want was way we well went were weren what whatever when where whether
  which while who whole why will with within without wonder work would wrong yes yet you your cluster gpu node host server
  machine system box nccl test benchmark train job model tensor data size message buffer large small huge tiny medium byte float
  float32 fp16 bf16 fp32 fp8 rank process device card hardware software setting config configuration variable environment env
  option parameter flag version driver cuda torch pytorch vllm sglang deepspeed megatron nvidia h100 h200 h800 h20 a100 a800
  v100 b200 b300 gb200 gb300 l40s rtx dgx hgx aws azure p4d p5 measure measurement observe result output log report average avg
  across theory practice reality kernel stream graph call operation op ops collective communication comm communicator traffic
  topology topo matrix physical connection infiniband roce ethernet switch leaf spine fabric intra inter multi single dual
  double quad local remote direct equal pair socket cpu numa core memory generation gen lane x8 x16 x4 slot port fast slow quick
  latency bandwidth throughput speed performance utilization usage efficiency overhead percent cost side real actual iteration
  step parallel parallelism shard gradient bucket layer batch inference serving llama gpt params weights token mpi slurm mpirun
  srun docker container kubernetes pod vm cloud instance bare metal according achieve adequate applied applies applicable appear
  assume avoid aware based become beginning behave behavior behaviour believe benefit bit bring build built calculate carry
  carries cause certain choose chosen close closer combine confirm confused confusing consider consists contain correspond
  curious decrease deep depend detail determine determinant difference doubt drop dropped easy effect equivalent estimate exist expect
  explain explanation extra fact fail fall feel fewer figure final fine follow force gain gap general guide handle hear hence
  hope identify important include increase indicate info information inside interested involve issue known larger lead 
  limiting longer main manage max maximum mention min minimum mode move multiple obtain obvious occupied occupies occupy occur
  okay open outside overall pass path perform place plan planned plus point poor present prevent previous print produce proper
  provide purpose reach read ready reasonable receive recent recommend reference regard related relation relationship relevant
  remain require rise rule send sense separate shared significant situation smaller solution solve somehow source specific
  specified specify split start state suggest suggestion suppose support surprised surprising therefore thought tool top
  transfer transferred unclear understand unexpected utilize var vary varies verify versus volume wait write smi io crossed
  duplicate optimized revised ib net worse hurt interface`.split(/\s+/),
);

/** Plain words that name a thing or a quantity: an answer to another question may leave them out only if it reads them. */
const weighedWords = new Set(
  `kernel graph driver parallel parallelism shard bucket serving container kubernetes pod vm docker mpi slurm mpirun srun memory
  slot port core cpu numa socket switch leaf spine utilization usage efficiency overhead cost slow low latency layer bandwidth
  throughput speed performance faster slower time fp8`.split(/\s+/),
);

/** True for a plain word of English in any of its forms. */
export const isPlain = (word: string): boolean => word.endsWith('ly') || formsOf(word).some((form) => plainWords.has(form));

export const isWeighed = (word: string): boolean => formsOf(word).some((form) => weighedWords.has(form));

/** A word, and what it may be a form of: `uses`, `used`, `using` of `use`. */
function formsOf(word: string): string[] {
  const stem = /^(.{3,}?)(?:e?s|e?d|ing|ly)$/.exec(word)?.[1];
  const short = /^(.{3,})[sd]$/.exec(word)?.[1];
  return [word, ...(stem === undefined ? [] : [stem, `${stem}e`]), ...(short === undefined ? [] : [short])];
}
