import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { NcclAlgorithm, Protocol } from '../../tuning/names.js';
import type { Controlled, Term } from './question.js';

/**
 * Words of questions as data: phrases of a language of their own, in which `|` separates alternatives, `(…)?` is optional and a
 * space stands for spaces, hyphens and underlines. Phrases match whole words.
 */

/** Words behind the verb `reduce`. */
const REDUCED =
  '(the|my|our|its|this|that|it|them|bus ?bw|bus|bandwidth|bw|busbw|algbw|performance|throughput|latency|time|speed|overhead|traffic|memory|usage)(?![a-z0-9])';

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
  ['Reduce', `(reduce( perf)?|reduces)(?! ${REDUCED})`],
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
  ['channel', 'channels?|ctas?|grids?( ?(size|dim))?|thread blocks?|number of (sms|blocks)|sms?'],
  ['pxn', 'pxn'],
  ['gdr', 'gdr|gdrdma|gpu ?direct( rdma)?|rdma to (the )?gpu|nvidia peer ?mem|peermem|dma ?buf'],
  ['shm', 'shm|shared memory|host memory|bounce buffers?'],
  ['p2p', 'p2p|peer to peer|peer access|peer2peer'],
  ['rail', 'rail optimi[sz]ed|rails?|cross(es|ed|ing)? (nics?|rails?)|crossnic'],
  ['nvswitch', 'nv ?switch(es)?'],
  ['nvlink', 'nv ?link(s|ed)?|nv ?link bridges?|sxm'],
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
  [
    'peerChannels',
    'channels? (per|for (a|each|one|every)|of (a|each|one|every)) (net(work)? )?peer|per peer channels?|n ?channels ?per ?(net ?)?peer',
  ],
  ['buffer', 'buff?er ?sizes?|buff?sizes?|size of (the )?(communication |internal )?buff?ers?'],
  ['memory', '(gpu|device) memory|memory (usage|consumption|footprint)|vram'],
  ['cpuAffinity', 'cpu affinity|affinity|cpu cores?|core binding|pin(ning)? (to )?(the )?(cpu|cores?)'],
  ['plugin', '(net(work)?|tuner|custom|aws|ofi|external) ?plug ?ins?|plug ?ins?'],
  ['registration', '(user )?buffer registration|registered buffers?|register (user )?buffers?'],
  ['rackNvlink', 'mnnvl|multi ?node nvlink|nvlink (domain|across nodes)|imex'],
  ['log', 'log(s|ging| file| level)?|debug output|verbos\\w+'],
  ['subset', '(all|only some|some|a subset of|specific|certain|particular) (of the )?(nics?|hcas?|cards?|adapters?)'],
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
  slow: '(reduc|lower|degrad|hurt)\\w* (the |my |our )?(\\w+ )?(bandwidth|bw|busbw|algbw|bus ?bandwidth|performance|throughput|speed)|slow(er|est|ly)?|low(er)?|poor|bad|only|just|drops?|dropped|degrad\\w+|half|less than|below|under|worse|not (reach|reaching|achieve|getting|get|saturat\\w+|utiliz\\w+)|cannot (reach|achieve|get|saturate)|can t (reach|get|achieve|saturate)|far from|fall(s|ing)? short|underperform\\w*|stuck at|capped at|so little|limited to|disappoint\\w+|weak|lower than',
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
    '(how (can|do|does|could|should|would|might|to|shall|must)( (i|we|one|you|someone|nccl|it|a user))? (\\w+ ){0,1}?|can (i|we|you|one) (\\w+ )?|(is it|it is) possible to |(want|need|like|trying|try|tried|wish) to )(force|set|control|change|select|specify|limit|restrict|exclude|disable|enable|turn on|turn off|turn|switch on|switch off|switch|choose|configure|use|make|tell nccl|get (?:nccl|more|fewer|less)|let nccl|increase|raise|reduce|lower|decrease|pin|bind|avoid|prevent|stop|pick|override|adjust|blacklist|skip|bypass|constrain|define|assign|allow|modify|customi[sz]e|fix|manually \\w+|keep|deactivate|activate|provide|pass|supply)|(is|are) there (a|an|any|some) ([\\w-]+ ){0,3}?(way|variable|option|setting|env|flag|knob|parameter|method|possibility)s?( \\w+){0,2}? (to|for|that (controls?|sets?|limits?|disables?|enables?|forces?))|(which|what) ([\\w-]+ ){0,2}?(variables?|vars?|settings?|options?|flags?|knobs?|parameters?|env)( \\w+){0,2}? (to|do (i|we)|controls?|sets?|limits?|selects?|determines?|disables?|enables?|forces?|should|can (i|we))',
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
  necessary cable qsfp dac joined bridge bridged attached plugged stacked duplicate optimized revised ib net worse hurt interface`.split(
    /\s+/,
  ),
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
