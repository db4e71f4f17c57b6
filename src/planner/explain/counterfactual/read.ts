import type { Entities } from '../grammar/entities.js';
import { countOf, NUMBER, numbersIn, phrasePattern } from '../grammar/phrases.js';
import type { Counterfactual } from './counterfactual.js';

/** Changes that a question supposes, and the cluster that it is about. */
export interface Supposed {
  /** To be compared with the cluster as it is. */
  readonly changes: readonly Counterfactual[];
  /** To be applied before the question is answered. */
  readonly setting: readonly Counterfactual[];
  /** Patterns whose words were read so. */
  readonly read: readonly string[];
}

/** `what if`, `if we`, `how much does … cost`, `would … help`. */
const supposing = phrasePattern(
  'what (if|about)|what happens( to .{1,30})? (if|when|with|without)|what (would|will) (happen|change|it be)|what changes|if|suppos(e|ing)|assum(e|ing)|imagine|how (much|bad|many) .{0,40}(cost|costs|lose|loses|lost|hurt|hurts|slower|faster|worse|better|affect|affects|change|changes|drop|drops|gain|gains|matter|matters|bring|brings|save|saves)|(effect|impact|cost|benefit|penalty) of|los(e|ing)|would|upgrad(e|ing)|replac(e|ing)|switch(ing)? (to|from)|mov(e|ing) (to|from)|instead( of)?|worth|should (i|we)|(does|do|will|can) .{0,40}(help|hurt|matter|affect|change|impact|make a difference|gain|improve)|with and without|compared? (to|with)|versus|vs|better than|faster than',
);
/** Verbs that change something by themselves: `disabling PXN`, `without PXN`. */
const OFF =
  'without|disabl(e|es|ed|ing)|turn(s|ed|ing)? off|turning .{1,12} off|switch(ed|ing)? off|no|los(e|es|ing)|removing|remove';
const IS_OFF =
  '((is|are|was|were|gets?|be|being|goes) )?(turned |switched )?(off|disabled|missing|unavailable|not (available|used|working|enabled)|broken|down|lost|removed)';
const ON = 'enabl(e|es|ed|ing)|turn(s|ed|ing)? on|switch(ed|ing)? on|forc(e|es|ed|ing)|with|using|only|use';

/** Other parts are supposed: cards, links. `should I expect` supposes none. */
const supposingParts =
  /\bwhat (?:if|about|happens|changes)\b|\bif (?:i|we|you|it|the|our|my|there)\b.{0,40}\b(?:had|were|was|upgrad\w*|use[ds]?|go|went|move[ds]?|buy|bought|replace[ds]?|add(?:ed)?)\b|\b(?:upgrad|replac)\w+|\b(?:switch|mov)\w* (?:to|from)\b|\binstead\b|\bworth\b|\bhow (?:much|many) .{0,30}(?:faster|slower|worse|better|gain|lose|cost)|\bhow would\b|\bwould .{0,40}(?:help|faster|slower|gain)|\b(?:effect|impact|cost|benefit) of\b/;

/** Another machine is supposed in place of the given one. */
const comparesMachines =
  /\b(?:what if|instead of|replac\w+|upgrad\w+|switch\w* (?:to|from)|mov\w+ (?:to|from)|(?:faster|slower|better|worse|more|less) than|compar\w+|versus|vs)\b/;
const isComparison = /\b(?:or|between|and|difference)\b/;

/** A list of GPUs that is compared with the others: `slower than on the pair 0,2`. */
const comparesList =
  /\b(?:than|versus|vs\.?|instead of|compared (?:to|with)|or) (?:(?:on|with|using|by|for|only|just|the|a|an|nv-? ?link\w*|bonded|bridged|same) )*(?:pairs?|gpus?|devices?)(?: of(?: gpus?)?)? ?[(#]*\d/;

const asksForEffect =
  /\bwhy (?:do|does|did|would)\b.{0,120}\b(?:(?<!all[\s_-])reduc\w*|lower\w*|decreas\w*|degrad\w*|increas\w*|rais\w*|hurt\w*|drop\w*|slow\w*|improv\w*|help\w*|speed\w*)/;

interface Rule {
  readonly pattern: RegExp;
  readonly make: (match: RegExpExecArray, entities: Entities) => Counterfactual | undefined;
  /** True for phrases that suppose something by themselves; others need `what if` or the like. */
  readonly isPlain?: true;
}

/** GPUs that NVLinks join without switches. */
const MOST_JOINED_DIRECTLY = 4;

const variable = (name: string, value: string | null): Counterfactual => ({ kind: 'variable', name, value });
const NICS = '(nics?|hcas?|mlx5 \\d+|network cards?|adapters?|ib ports?|ports?|rails?|cables?)';
const MANY = '(a|an|one|two|three|four|\\d+|single|another|some)';
const OF_ALL = '(?:of (?:the|our|my|its|all)?(?: ?\\d+)? ?)?';

const DOWN = '(?:down|degraded|inactive|broken|dead|lost|fail(?:s|ed)?|missing|disabled|bad|off|dies|died)\\b';

const manyWords: Readonly<Record<string, number>> = {
  a: 1,
  an: 1,
  one: 1,
  single: 1,
  another: 1,
  some: 1,
  two: 2,
  three: 3,
  four: 4,
};

/** Features by name, and the variables that switch them. */
const features: readonly { readonly name: string; readonly off?: Counterfactual; readonly on?: Counterfactual }[] = [
  { name: 'pxn', off: variable('NCCL_PXN_DISABLE', '1'), on: variable('NCCL_PXN_DISABLE', '0') },
  { name: 'nvls|nv ?link sharp', off: variable('NCCL_NVLS_ENABLE', '0'), on: variable('NCCL_NVLS_ENABLE', '1') },
  {
    name: 'p2p|peer to peer|peer access|peer2peer',
    off: variable('NCCL_P2P_DISABLE', '1'),
    on: variable('NCCL_P2P_LEVEL', 'SYS'),
  },
  { name: 'shm|shared memory', off: variable('NCCL_SHM_DISABLE', '1') },
  { name: 'll ?128', off: variable('NCCL_PROTO', '^LL128'), on: variable('NCCL_PROTO', 'LL128') },
  { name: 'pat', off: variable('NCCL_PAT_ENABLE', '0'), on: variable('NCCL_PAT_ENABLE', '1') },
  { name: 'sharp|coll ?net|in network (reduction|computing)', on: variable('NCCL_COLLNET_ENABLE', '1') },
  { name: 'gdr|gdrdma|gpu ?direct( rdma)?|rdma', off: { kind: 'without', what: 'gdr' } },
  { name: 'nv ?links?|nv ?switch(es)?|nv ?link bridges?', off: { kind: 'without', what: 'nvlink' } },
  { name: 'simple( protocol)?', on: variable('NCCL_PROTO', 'Simple') },
  { name: 'rings?( only)?', on: variable('NCCL_ALGO', 'Ring'), off: variable('NCCL_ALGO', '^Ring') },
  { name: '(binary |double )?trees?( only)?', on: variable('NCCL_ALGO', 'Tree'), off: variable('NCCL_ALGO', '^Tree') },
];

const GPU_NUMBERS = '(?:gpus?|devices?) ?#?(\\d+(?:(?: ?(?:,|and|&) ?)+(?:gpu )?#?\\d+)*)';

const rules: readonly Rule[] = [
  {
    pattern: new RegExp(
      `(?<!\\b(?:(?:nv-? ?)?links?|nics?|ports?|lanes?) of (?:the )?)\\b${GPU_NUMBERS} (?:is|are|were|was|has|have|goes|go|gets|get|being)? ?(?:missing|down|dead|gone|broken|lost|removed|absent|disabled|fail(?:s|ed)?|dies|died|unavailable|fell off|fallen off|off the bus)\\b`,
      'g',
    ),
    isPlain: true,
    make: ([, list]) => ({ kind: 'gpus-out', gpus: [...new Set(numbersIn(list))] }),
  },
  {
    pattern: new RegExp(
      `\\b(?:without|los(?:e|es|ing)|remov(?:e|es|ing)|exclud(?:e|es|ing)|leav(?:e|es|ing) out) ${GPU_NUMBERS}`,
      'g',
    ),
    isPlain: true,
    make: ([, list]) => ({ kind: 'gpus-out', gpus: [...new Set(numbersIn(list))] }),
  },
  {
    pattern: phrasePattern(
      `(?:${MANY} )?${OF_ALL}(?:[a-z]+ )?${NICS}(?: #?(\\d+))?(?: (?:of|on|in) (?:a|one|the|each|every) (?:host|node|server|machine))? (?:is|are|goes|go|gets|was|were|has|have)? ?(?:down|fail(?:s|ed|ing)?|dead|broken|lost|missing|dies|die|unplugged|flap(?:s|ping)|offline|disabled|breaks?|not working)`,
    ),
    isPlain: true,
    make: ([, many, , number]) => nicsDown(many, number),
  },
  {
    pattern: phrasePattern(
      `(?:without|remov(?:e|es|ed|ing)|disabl(?:e|es|ed|ing)|tak(?:e|es|ing) out) (?:the )?${NICS} ?#?(\\d+)`,
    ),
    isPlain: true,
    make: ([, , number]) => nicsDown('one', number),
  },
  {
    pattern: phrasePattern(
      `(?:fail(?:ure|ed|ing)?|los(?:s|e|es|ing)|dead|broken|downed|missing) (?:of )?(?:${MANY} )?(?:\\w+ )?${NICS}(?: ?#?(\\d+))?|(?:${MANY} )?(?:\\w+ )?${NICS} failures?`,
    ),
    isPlain: true,
    make: ([, one, , number, other]) => nicsDown(one ?? other, number),
  },
  {
    pattern: phrasePattern(`(?:one|1) ${NICS} (?:less|fewer)|(?:one|1) (?:less|fewer) ${NICS}`),
    isPlain: true,
    make: () => ({ kind: 'nics-down', count: 1 }),
  },
  {
    pattern: phrasePattern(
      `(?:only|with only|just|use|using|with) (?:${MANY}|\\d+) (?:of (?:the|our|my) )?(?:\\w+ )?${NICS}|${NICS} instead of`,
    ),
    make: ([text], { counts }) => {
      const count = counts.nics ?? (/\b(?:one|a single|1)\b/.test(text) ? 1 : undefined);
      return count === undefined ? undefined : { kind: 'nics', count };
    },
  },
  {
    pattern: phrasePattern(
      `(?:twice|double|2x|two times|doubling) (?:as many |the (?:number of )?|of )?${NICS}|second ${NICS}|another ${NICS}|(?:add(?:ing)?|more) (?:more )?${NICS}`,
    ),
    make: () => ({ kind: 'nics-doubled' }),
  },
  {
    pattern: new RegExp(
      `\\b(?:(${NUMBER})|an?|some|the) (?:of (?:the|its|our) )?(?:${NUMBER} )?nv-?\\s?links? (?:of|on|at|from) gpu ?#?(\\d+)[^?.;]{0,20}?${DOWN}|\\bgpu ?#?(\\d+) (?:has|had|lost|loses|runs with|shows) (?:only )?(?:(${NUMBER})|an?) (?:less |fewer |dead |inactive |broken |bad )?nv-?\\s?links?(?: (?:${DOWN}|less|fewer))?|\\b(?:nv-?\\s?)?link (?:#?\\d+ )(?:of|on) gpu ?#?(\\d+)[^?.;]{0,20}?${DOWN}|(?<!\\b(?:${NUMBER}|an?) of the )\\b(${NUMBER}|an?) nv-?\\s?links?[^?.;]{0,20}?${DOWN}`,
      'g',
    ),
    isPlain: true,
    make: ([, one, gpu, otherGpu, other, linkGpu, last]) => ({
      kind: 'nvlinks-down',
      count: countOf((one ?? other ?? last ?? 'one').replace(/^an?$/, 'one')),
      gpu: Number(gpu ?? otherGpu ?? linkGpu ?? 0),
    }),
  },
  {
    pattern:
      /\b(?:half|some) (?:of )?(?:the |my |our )?nv-?\s?links?\b|(?<!\b(?:one|1|two|three|four|\d+|an?|single) (?:of the )?)\bnv-?\s?links? (?:is|are|goes|go|were) (?:down|degraded|inactive|broken)\b/g,
    make: () => ({ kind: 'nvlinks-halved' }),
  },
  {
    pattern: phrasePattern(
      `(?:over|with|using|on|through|fall(?:s|ing)? back to|only) (?:plain )?(?:tcp|sockets?|tcp sockets|ethernet without rdma|tcp ?/? ?ip)|(?:without|no) (?:rdma|infini ?band|ib|ibverbs)`,
    ),
    isPlain: true,
    make: () => ({ kind: 'sockets' }),
  },
  {
    pattern: phrasePattern('over ?subscri(?:bed|ption)|blocking (?:factor|fabric)|over ?committed (?:fabric|spine|switch)'),
    isPlain: true,
    make: (_, { ratio }) => ({ kind: 'oversubscription', ratio: ratio ?? 2 }),
  },
  {
    pattern: phrasePattern('cuda ?graphs?( launch)?|graph capture|graph mode|captured (?:in|into) (?:a )?graph'),
    isPlain: true,
    make: () => ({ kind: 'graph-launch' }),
  },
];

/** One NIC that is or does something: `one NIC runs at`, `mlx5_3 is`. */
const oneNic =
  /\b(?:(?:one|1|a single|a) (?:[a-z]+ )?(?:nics?|hcas?|port|(?:network )?cards?|rail)|(?:link|slot) of [a-z]+\d*_\d+|mlx5_\d+) (?:(?:of|on|in) (?:a|one|the) (?:host|node|server) )?(?:is|are|has|runs?|only|goes|falls|trains?|negotiate[sd]?|gets)\b/;

function nicsDown(many = 'one', number?: string): Counterfactual {
  if (number !== undefined) return { kind: 'nic-down', nic: Number(number) };
  return { kind: 'nics-down', count: manyWords[many] ?? Math.max(1, Number(many) || 1) };
}

function isNicDown({ kind }: Counterfactual): boolean {
  return kind === 'nics-down' || kind === 'nic-down';
}

/**
 * Reads the changes that a question supposes.
 *
 * @param text of the question, in lower case
 * @param isAboutCause true for a question why something is so: features that are missing then are facts
 */
export function readSupposed(text: string, entities: Entities, isAboutCause: boolean): Supposed {
  supposing.lastIndex = 0;
  const supposes = supposing.test(text);
  const supposesParts = supposingParts.test(text);
  const changes: Counterfactual[] = [];
  const setting: Counterfactual[] = [];
  const read: string[] = [];
  const add = (change: Counterfactual) => {
    if (!changes.some((other) => JSON.stringify(other) === JSON.stringify(change))) changes.push(change);
  };
  for (const { pattern, make, isPlain } of rules) {
    if (isPlain !== true && !supposes) continue;
    pattern.lastIndex = 0;
    const match = pattern.exec(text);
    const change = match === null ? undefined : make(match, entities);
    if (change !== undefined) read.push(pattern.source);
    // `only 5 GB/s over TCP` says how it is.
    if (change?.kind === 'sockets' && entities.measured !== undefined && !supposesParts) setting.push(change);
    else if (change !== undefined) add(change);
  }
  const isFact = !supposesParts && (entities.measured !== undefined || /\bexpect|\bnormal\b|\bwhat (?:bus|bandwidth)/.test(text));
  for (const change of comparedFeatures(text)) add(change);
  for (const change of !isAboutCause || supposes || isFact ? featureChanges(text, supposes || isFact) : [])
    if (change.kind !== 'without') add(change);
    else if (isFact) setting.push(change);
    else if (!isAboutCause || supposes) add(change);
  const { counts, perNode, nicMbps, nvlinks, pcie, machine, gpuModels, gpuList, variables } = entities;
  if (gpuList.length > 0 && !changes.some(({ kind }) => kind === 'gpus-out'))
    (comparesList.test(text) ? changes : setting).push({ kind: 'gpu-list', gpus: gpuList });
  // `NCCL_IB_HCA=mlx5_0,mlx5_1` leaves two NICs, whatever the machine has.
  const selected = variables.find(({ name, value }) => name === 'NCCL_IB_HCA' && /^=?[a-z]/i.test(value ?? ''))?.value;
  // `what if one NIC runs at x8` is about that NIC, `a NIC of 200 Gb/s in each host` about all.
  const ofOne = supposes && oneNic.test(text) ? ({ isOneNic: true } as const) : {};
  // Hardware is what the question is about, unless the question compares it with what there is.
  const hardware: Counterfactual[] = [
    ...(pcie.generation === undefined ? [] : [{ kind: 'pcie', generation: pcie.generation, ...ofOne } as const]),
    ...(pcie.lanes === undefined ? [] : [{ kind: 'pcie-lanes', lanes: pcie.lanes, ...ofOne } as const]),
    ...(typeof selected === 'string' ? [{ kind: 'nics', count: selected.split(',').length } as const] : []),
    ...(typeof selected === 'string' ||
    counts.nics === undefined ||
    !(perNode.has('nics') || /\beach (?:with|has|have|having)\b/.test(text)) ||
    changes.some(isNicDown)
      ? []
      : [{ kind: 'nics', count: counts.nics } as const]),
    ...(nicMbps === undefined ? [] : [{ kind: 'nic-speed', mbps: nicMbps, ...ofOne } as const]),
    // On more GPUs, links lead to switches.
    ...(nvlinks === undefined || !((counts.gpus ?? gpuModels[0]?.count ?? 8) <= MOST_JOINED_DIRECTLY)
      ? []
      : [{ kind: 'nvlinks', count: nvlinks } as const]),
  ];
  const [variant] = entities.variants;
  const machines: Counterfactual[] = [
    ...(machine === undefined ? [] : [{ kind: 'machine', name: machine } as const]),
    ...(machine === undefined ? gpuModels.map((gpus): Counterfactual => ({ kind: 'gpu-model', ...gpus })) : []),
  ];
  const isMeasured = entities.measured !== undefined && machines.length === 1;
  if ((!isMeasured && comparesMachines.test(text)) || (machines.length > 1 && isComparison.test(text)))
    for (const each of machines) add(each);
  else if (machines.length === 1) setting.push(...machines);
  if (supposesParts && entities.measured === undefined) for (const each of hardware) add(each);
  else setting.push(...hardware);
  if (variables.some(({ value }) => value === null))
    for (const { name, value } of variables) if (value === null) add({ kind: 'variable', name, value });
  // `why does NCCL_X=8 reduce the bandwidth` asks for the effect.
  if (asksForEffect.test(text)) {
    read.push(asksForEffect.source);
    for (const { name, value } of variables)
      if (typeof value === 'string' && !variables.some((other) => other.name === name && other.value !== value))
        add({ kind: 'variable', name, value });
  }
  // Numbers of nodes and GPUs say which cluster is meant; they are compared only if the question says so.
  const sized: Counterfactual[] = [
    ...(counts.nodes === undefined || variant?.state.kind === 'nodes' ? [] : [{ kind: 'nodes', count: counts.nodes } as const]),
    ...(counts.gpus === undefined || entities.gpuCounts.length > 0
      ? []
      : [{ kind: perNode.has('gpus') || /\beach\b/.test(text) ? 'gpus' : 'ranks', count: counts.gpus } as const]),
  ];
  const comparesSize =
    supposes &&
    /\bwhat (?:if|happens|changes|about)\b|\bif (?:i|we|you) (?:add|go|scale|grow|use|move|had)\b|\bscale\b|\bgo(?:ing)? to\b/.test(
      text,
    );
  if (comparesSize && changes.length === 0) changes.push(...sized);
  // `on one host` is the place of the change then.
  else if (!changes.some(isNicDown)) setting.push(...sized);
  const isMachine = ({ kind }: Counterfactual) => kind === 'machine' || kind === 'gpu-model';
  if (changes.length + setting.length > 0)
    read.push(supposing.source, supposingParts.source, comparesMachines.source, OFF, IS_OFF, ON, MOVES);
  return { changes, setting: [...setting.filter(isMachine), ...setting.filter((each) => !isMachine(each))], read };
}

const OR = '(?:or|and|vs\\.?|versus|/|,|compared (?:to|with)|than)';

/** A figure that moves with a feature: `drops when PXN is enabled`. */
const MOVES =
  '(?:drop(?:s|ped)?|fall(?:s|en)?|fell|decreas\\w+|degrad\\w+|declin\\w+|lower|slower|worse|faster|higher|better|improv\\w+|increas\\w+|rises?)';

/** Features that a question compares with their absence: `NVLS on or off`, `with and without PXN`, `P2P or SHM`. */
function comparedFeatures(text: string): Counterfactual[] {
  if (text.search(peerOrMemory) >= 0) return [variable('NCCL_P2P_DISABLE', '1')];
  return features.flatMap(({ name, off, on }) => {
    const isCompared = [
      `${MOVES} .{0,40}(?:when|if|after|with|without|once|by) (?:i |we |you )?(?:(?:enabl|disabl|us|turn|switch)(?:e|es|ed|ing) (?:on |off )?)?(?:the )?(?:${name})`,
      `(?:${name}) (?:is |being |set )?(?:turned |switched )?(?:on|enabled|active) ?${OR} ?(?:with |when )?(?:it )?(?:turned |switched )?(?:off|disabled|inactive|not)`,
      `(?:${name}) (?:is |being )?(?:turned |switched )?(?:off|disabled) ?${OR} ?(?:turned |switched )?(?:on|enabled)`,
      `(?:with|using) ?(?:and|or|vs\\.?|versus|/) ?without (?:using |the )?(?:${name})`,
      `(?:with|using) (?:${name}) ?${OR} ?(?:without|not|no)`,
      `without (?:${name}) ?${OR} ?with`,
      `(?:${name}) (?:or not|vs\\.? (?:no|non|without)|versus (?:no|without))`,
      `(?:turn|switch)(?:ing)? (?:${name}) on (?:and|or) off|(?:enabl|disabl)(?:e|ing) (?:and|or) (?:disabl|enabl)(?:e|ing) (?:${name})`,
    ].some((phrases) => phrasePattern(phrases).test(text));
    const change = off ?? on;
    return isCompared && change !== undefined ? [change] : [];
  });
}

const PEER = '(?:p2p|peer to peer|peer access|direct (?:access|copies))';
const HOST_MEMORY = '(?:shm|shared memory|host memory|bounce buffers?)';
const BETWEEN =
  '(?: (?:transport|mode|enabled|disabled))?(?: (?:is|are|be|being|much|far|so|a lot|slightly))*(?: (?:slower|faster|better|worse|lower|higher))?';
const peerOrMemory = phrasePattern(
  `${PEER}${BETWEEN} ?${OR} (?:the |using |with )?${HOST_MEMORY}|${HOST_MEMORY}${BETWEEN} ?${OR} (?:the |using |with )?${PEER}`,
);

const MAY = 'does|do|did|would|could|will|can|should';
const EFFECT =
  'help|helpful|matter|give|bring|gain|yield|buy|save|add|cost|pay off|improve|hurt|any use|difference|benefits?|gains?|effects?|impact|value|advantages?';

function featureChanges(text: string, supposes: boolean): Counterfactual[] {
  // `is NCCL using RDMA without GPUDirect` asks what is.
  if (/\bis (?:it possible that )?nccl (?:is )?using\b/.test(text)) return [];
  return features.flatMap(({ name, off, on }) => {
    const named = (before: string) => phrasePattern(`(${before})(?: (?:the|nccl|nccl s|using|use of|my|our))? (${name})`);
    const isWorth = [
      `(?:${MAY}) (?:(?:the|our|my|using|use of|having) )*(?:${name}) (?:(?:actually|really|even|still|ever|much|any|be|be of|of|make|us|me|a|here) )*(?:${EFFECT})`,
      `(?:is|are) (?:it )?(?:(?:the|using|having) )*(?:${name}) (?:really )?worth|worth (?:it )?(?:(?:to|the|using|use|having) )*(?:${name})`,
      `(?:${EFFECT}) of (?:(?:the|our|using|having) )*(?:${name})`,
    ].some((phrases) => phrasePattern(phrases).test(text));
    if (isWorth) return [off ?? on].flatMap((change) => change ?? []);
    const isOff = named(OFF).test(text) || phrasePattern(`(${name}) ${IS_OFF}`).test(text);
    // `no` and `without` alone describe what is.
    const isSupposedOff = isOff && (supposes || named('without|disabling|turning off|removing|losing').test(text));
    if (isSupposedOff && off !== undefined) return [off];
    const isOn =
      named(ON).test(text) || phrasePattern(`(${name}) (is|are|was|were) (turned |switched )?(on|enabled|forced)`).test(text);
    const forces = named('enabl(e|es|ed|ing)|turn(s|ed|ing)? on|forc(e|es|ed|ing)|only').test(text);
    return isOn && on !== undefined && (forces || (supposes && /\bwhat if\b/.test(text))) && !isOff ? [on] : [];
  });
}
