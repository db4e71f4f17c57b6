import type { Fact } from './question.js';

/** Facts whose words ask for them even beside figures. */
export const surelyAsked: ReadonlySet<Fact> = new Set([
  'algorithmNeeds',
  'flatRings',
  'switchLevels',
  'pairsDiffer',
  'sizeGrows',
  'severalRings',
  'linkPorts',
  'reversed',
  'severalNics',
  'payload',
  'withoutNvlink',
  'channelIsBlock',
  'fewerChannels',
  'bond',
  'queuePairs',
  'gpuOrder',
  'll128Safe',
  'graceLinks',
  'singleTree',
  'logTrees',
  'logWays',
  'acs',
  'shmSize',
  'chunks',
  'idleLink',
  'sharedGpu',
  'proxyThreads',
  'socketsUsed',
  'callWays',
  'treeInNode',
  'pathNames',
  'peerOverCpu',
  'openPorts',
  'frontend',
  'parallelism',
  'lostRank',
  'peerMemory',
  'perRail',
  'mtu',
  'search',
  'subnets',
  'farNetwork',
  'bufferSizes',
  'copyEngines',
  'perCall',
  'geforceRdma',
  'rackNeeds',
  'patNodes',
]);

/** Facts about what no variable sets. */
export const unsettable: ReadonlySet<Fact> = new Set(['treeInNode', 'callWays', 'proxyThreads', 'openPorts']);

/** Facts about parts that a question may name as missing. */
export const rulesOfNccl: ReadonlySet<Fact> = new Set(['algorithmNeeds', 'flatRings', 'switchLevels', 'perCall']);

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
    'geforceRdma',
    '(gpu ?direct( rdma)?|gdr|rdma) .{0,50}(geforce|consumer|gaming|rtx ?[2345]0[6789]0|[2345]090)|(geforce|consumer|gaming|rtx ?[2345]0[6789]0|[2345]090) .{0,50}(gpu ?direct( rdma)?|gdr|rdma)',
  ],
  [
    'rackNeeds',
    '(mnnvl|multi ?node nvlink|nvlink domain) .{0,60}(0|not|no|missing|fall\\w*|need\\w*|require\\w*|why|cu ?mem( enable)?|imex|net/ib|disabled|used|work\\w*)|(why|need\\w*|require\\w*|cu ?mem( enable)?|imex|not|no) .{0,60}(mnnvl|multi ?node nvlink)( \\d)?|nccl cu ?mem enable .{0,60}(mnnvl|rack|nvl ?72|net/ib)',
  ],
  [
    'patNodes',
    '(pat|pat algorithm) .{0,60}(gpus?|ranks?|process(es)?) (per|in|of|on|a) (a |each |one )?(node|host)|when (is|does|will|would) .{0,20}pat( .{0,20}(used|chosen|taken|selected))?|pat .{0,40}(support\\w*|intra ?node|full topolog\\w+)|support\\w* .{0,30}pat',
  ],
  [
    'bufferSizes',
    '(nccl ?)?(ll ?(128 ?)?)?buff(er)? ?sizes? .{0,90}(requirements?|align\\w*|multiples?|powers?|valid|allowed|legal|restrict\\w+|constraints?|rules?|hangs?|corrupt\\w*|wrong)|(requirements?|align\\w*|multiples?|valid|allowed|restrict\\w+|constraints?|rules?) .{0,90}(nccl ?)?(ll ?(128 ?)?)?buff(er)? ?sizes?',
  ],
  [
    'copyEngines',
    'copy engines?|ce (collectives?|based)|cta policy( ?=? ?(zero|2))?|zero cta|-r ?2|-x ?2|symmetric (windows?|memory|registration|buffers?) .{0,60}(copy|drop\\w*|slow\\w*|fast\\w*)',
  ],
  [
    'perCall',
    `(nvls|nvlink sharp|sharp|tree|ring|ll128|ctas?|channels?|qps?|queue pairs?|algo\\w*|protocols?|settings?|variables?|control\\w*) .{0,60}((only|just) (for|in|with|on) (the |a |one |single )*(${CALLS})|(${CALLS}) (only|alone)|(per|by|for each|for every|of each) (collective|operation|communicator|call|function|process group))|(per|by|for each|for every) (collective|operation|communicator|call|function|process group) .{0,60}(nvls|ctas?|channels?|qps?|algo\\w*|protocols?|settings?|variables?|control\\w*)`,
  ],
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
