import type { ScheduledCollective } from '../../schedule/schedule.js';
import { ncclVariables } from '../../nccl-variables.js';
import { coveredVersions } from '../../versions/version.js';
import { ncclInTorch } from '../../versions/torch.js';
import type { Counterfactual } from '../counterfactual/counterfactual.js';
import { takeRates, takeSizes, takeTimes } from './figures.js';
import { type NamedGpus, type PcieInQuestion, takeGpuModels, takeMachine, takeNics, takeNvlinks, takePcie } from './hardware.js';
import { forcedIn, type Place, variantsIn } from './variants.js';
import { countOf, NUMBER, numbersIn, phraseTable, Words } from './phrases.js';
import type { FigureOfCall, Measured, Mention, PartialWay, Term, VariableInQuestion, Variant } from './question.js';
import { algorithmPhrases, collectivePhrases, protocolPhrases, sizePhrases, termPhrases, workloadPhrases } from './vocabulary.js';

/** All that a question names by number or name. */
export interface Entities {
  readonly variables: readonly VariableInQuestion[];
  readonly measured: Measured | undefined;
  /** Speed of a network card, Mb/s. */
  readonly nicMbps: number | undefined;
  readonly sizes: readonly number[];
  readonly collective: ScheduledCollective | undefined;
  /** All calls that are named, each once, in order. */
  readonly collectives: readonly ScheduledCollective[];
  /** True if the collective is named by a workload, such as FSDP. */
  readonly isWorkload: boolean;
  readonly ways: readonly PartialWay[];
  readonly terms: ReadonlySet<Term>;
  readonly ranks: readonly number[];
  /** GPUs of a host that a job uses: a list of three or more, a pair, or CUDA_VISIBLE_DEVICES. */
  readonly gpuList: readonly number[];
  readonly nic: number | undefined;
  readonly channel: number | undefined;
  /** Numbers with a noun behind: `2 nodes`, `16 channels`. */
  readonly counts: Readonly<Partial<Record<Counted, number>>>;
  /** Nouns whose number is one of each host: `4 NICs per node`. */
  readonly perNode: ReadonlySet<Counted>;
  /** True if two numbers of nodes are named. */
  readonly comparesNodes: boolean;
  /** Numbers of GPUs that are named, where there are several. */
  readonly gpuCounts: readonly number[];
  /** `4 GPUs per node x 2 nodes`, where several are named. */
  readonly layouts: readonly { readonly gpus: number; readonly nodes: number }[];
  /** Number of measured figures. */
  readonly figures: number;
  /** The least number in `more than 2 nodes`, `from 3 nodes on`. */
  readonly beyond: { readonly of: 'nodes' | 'gpus'; readonly least: number } | undefined;
  /** Models of GPUs that are named, each once. */
  readonly gpuModels: readonly NamedGpus[];
  readonly versions: readonly string[];
  readonly machine: string | undefined;
  readonly ratio: number | undefined;
  readonly pcie: PcieInQuestion;
  /** NVLinks of a GPU, or between two. */
  readonly nvlinks: number | undefined;
  readonly variants: readonly Variant[];
  readonly figuresOfCalls: readonly FigureOfCall[];
  readonly mentions: readonly Mention[];
}

type Counted = 'nodes' | 'gpus' | 'channels' | 'nics' | 'ranks';

/** Takes all names and numbers out of a question. */
export function takeEntities(words: Words): Entities {
  const written = words.written;
  const flaggedGpus = takeFlags(words);
  const variables = takeVariables(words);
  const versions = takeVersions(words);
  words.take(software, () => true, 'software');
  words.take(/(?<![\w.])\d+(?:\.\d+)?\s?(?:%|percent\b)/, () => true, 'number');
  words.take(/(?<![\w/.])(?:eth|en[ops]\w*|ib|bond|docker|wlan|br-)\d\w*/, () => true, 'interface');
  // Networks beside that of the data: their speed is none of the NICs.
  words.take(
    /(?<![\w.])(?:\d+\s?x?\s?)?\d+\s?(?:g|gb|gbe|gbps|gbit|gb\/s|gbit\/s)\s+(?:front-?\s?end|management|storage|mgmt|admin)(?:\s+(?:ethernet|network|nics?|cards?|ports?|lan))?/,
    () => true,
    'interface',
  );
  // A port of a cable may be several NICs, so cables count none and have the speed of none.
  words.take(
    new RegExp(
      `(?<![\\w.])(?:(?:${NUMBER}|an?)\\s+)?(?:\\d+\\s?g[a-z/]*\\s+)?(?:qsfp\\w*|osfp|dac|aoc)(?:\\s+(?:cables?|dacs?))?\\b`,
    ),
    () => true,
    'interface',
  );
  // `two HGX A100` are hosts.
  let boxes: number | undefined;
  words.take(
    new RegExp(`(?<![\\w.])(${NUMBER})[ -]*(?:x[ -]*)?(?=(?:nvidia )?[dh]gx\\b(?![^.,]{0,20}\\bgpus?\\b))`),
    ([text, digits = '']) => {
      boxes ??= countOf(digits);
      words.mention('count', text, { kind: 'nodes', count: countOf(digits) });
      return true;
    },
  );
  const machine = takeMachine(words);
  // Instances of clouds that the catalogue lacks: `p3dn.24xlarge`.
  words.take(/\b[a-z]\d[a-z]*\.(?:\d*xlarge|metal)\b/, () => true, 'word');
  // GPUs of a switch or socket are a part of a host.
  words.take(
    new RegExp(
      `(?:\\beach|\\bper (?:pci-?e? )?(?:switch|socket|cpu|numa node))\\s*(?:connecting|connects|connected to|having|holding|of which has)\\s+(?:${NUMBER})\\s*gpus?(?:\\s*(?:and|\\+|,|&)\\s*(?:${NUMBER})\\s*(?:x\\s*)?(?:\\d+\\s*g[a-z]*(?:/s)?\\s*)?(?:nics?|hcas?|network cards?|adapters?))?`,
    ),
    () => true,
  );
  const layouts = layoutsIn(words);
  const beyond = takeBeyond(words);
  const gpuNames = takeGpuModels(words);
  const { nicMbps, nicCount } = takeNics(words);
  const pcie = takePcie(words);
  const nvlinks = takeNvlinks(words);
  const { rates, ratio } = takeRates(words);
  const times = takeTimes(words);
  const sizes = takeSizes(words);
  if (sizes.length === 0) sizes.push(...sizesInWords(words));
  const { collective, collectives, isWorkload } = takeCollective(words);
  const gpuList = takeGpuList(words);
  const { ranks, nic, channel } = takeIds(words);
  const { counts, perNode, comparesNodes, gpuCounts, places } = takeCounts(words);
  if (flaggedGpus !== undefined) counts.gpus ??= flaggedGpus;
  if (boxes !== undefined) counts.nodes ??= boxes;
  if (gpuNames.length === 1 && gpuNames[0]?.count !== undefined) counts.gpus ??= gpuNames[0].count;
  if (nicCount !== undefined) {
    counts.nics ??= nicCount;
    perNode.add('nics');
  }
  const { ways, terms, named } = takeNames(words);
  const [rate] = rates;
  const variants = variantsIn(written, rates, [...places, ...named, ...forcedIn(written)]);
  const figuresOfCalls =
    collectives.length > 1 && rates.length === collectives.length
      ? collectives.map((name, index) => ({ collective: name, value: rates[index]?.value ?? 0 }))
      : [];
  for (const [text] of words.written.matchAll(/(?<![\w.#-])\d+(?:\.\d+)?(?: ?[a-z]+)?/gi)) words.mention('number', text);
  const kind = terms.has('busbw') ? 'busbw' : terms.has('algbw') ? 'algbw' : 'bandwidth';
  return {
    variables,
    versions,
    machine,
    nicMbps,
    pcie,
    ratio,
    measured: rate === undefined ? times[0] : { kind, value: rate.value },
    sizes,
    collective,
    collectives,
    isWorkload,
    ways,
    terms,
    ranks,
    gpuList,
    nic,
    channel,
    counts,
    perNode,
    comparesNodes,
    gpuCounts,
    layouts: layouts.length > 1 ? layouts : [],
    figures: new Set([...rates, ...times].map(({ value }) => value)).size,
    beyond,
    gpuModels: gpuNames,
    nvlinks,
    variants,
    figuresOfCalls,
    mentions: words.mentions,
  };
}

/** Programs with their versions, which plans do not depend on. */
const software =
  /\b(?:cuda|driver|ubuntu|debian|centos|rhel|rocky|python|mlnx_ofed|ofed|hpc-?x|open ?mpi|gcc|kernel|firmware|fw|tensorflow|vllm|sglang|megatron|nemo|deepspeed|cudnn|docker|kubernetes|libfabric|aws-ofi-nccl|doca)[ :-]*(?:toolkit |version |driver )?v?\d+(?:[.-]\d+)*\b/;

/**
 * Takes flags of nccl-tests: `-e 8G` stays as the size; others change no plan.
 *
 * @returns GPUs of a process, `-g 2`
 */
function takeFlags(words: Words): number | undefined {
  words.take(
    /(?<!\S)(?:-[bfnwtcdomuzpN]|-np|-[RxaGDJY](?=[ =]?\d)|--(?:minbytes|stepfactor|iters|warmup_iters|check|datatype|op|ntasks-per-node))[ =]?[\w.]+/,
    () => true,
  );
  let gpus: number | undefined;
  words.take(/(?<!\S)(?:-g|--ngpus)[ =]?(\d+)/, ([, digits]) => {
    gpus = Number(digits);
    return gpus > 1;
  });
  return gpus === 1 ? undefined : gpus;
}

const sizeTable = phraseTable(sizePhrases);

/** Sizes for `small messages`. */
function sizesInWords(words: Words): readonly number[] {
  const found = sizeTable.find(({ pattern }) => words.has(pattern));
  return found?.name ?? [];
}

/** `NCCL_X=3`, `NCCL_X set to 3`, `unset NCCL_X`; also without the prefix, where NCCL has such a variable. */
function takeVariables(words: Words): VariableInQuestion[] {
  const found: VariableInQuestion[] = [];
  const pattern =
    /(?:\b(unset(?:ting)?|removing|without|no longer set(?:ting)?|not set(?:ting)?)\s+)?(?<![\w/.])((?:NCCL_)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|NCCL_[A-Z0-9]+)\b(?:\s*(?:=|\b(?:is|set|to|set to|is set to|equals|being|at|of)\b)+\s*('[^']*'|"[^"]*"|[\w^:,./-]*[\w/]))?(?:\s*(?:,|\/|or|and|vs\.?|versus|to)\s*(\d+)(?=\s*(?:[?.,;!]|$|for|is|are|in|on|help|make|give|better|faster|slower)))?/gi;
  words.take(pattern, ([, unset, written = '', value, other]) => {
    const name = nameOfVariable(written);
    if (name === undefined) return false;
    const text = value?.replace(/^['"]|['"]$/g, '');
    const isValue = text !== undefined && !/^(?:be|do|the|a|an|in|this|that|it|not|what|and|or|set|help|off|on|0x)$/i.test(text);
    found.push({ name, value: unset === undefined ? (isValue ? text : undefined) : null });
    if (isValue && other !== undefined) found.push({ name, value: other });
    return true;
  });
  // `crossNic=2`, `cross nic = 2`, `what does cross nic do`.
  words.take(
    /(?<![\w/.-])([a-z]{2,}(?:[ -]?[A-Z][a-z0-9]+|[ -][a-z0-9]+){1,3})\s*=\s*(\d+)\b|\b(?:does|of) (?:the )?([a-z]{2,}(?:[ -]?[A-Z][a-z0-9]+|[ -][a-z0-9]+){1,3}?)(?= (?:do|mean|control|set)\b|\s*\?|$)/g,
    ([, written, value, asked = '']) => {
      const name = nameOfWords(written ?? asked);
      if (name === undefined) return false;
      found.push({ name, value });
      return true;
    },
  );
  return found;
}

/** The variable whose name has these words: `crossNic`, `cross nic`. */
function nameOfWords(written: string): string | undefined {
  const words = written.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').split(/[ -]+/);
  for (let first = 0; first < words.length - 1; first++) {
    const name = `NCCL_${words.slice(first).join('_').toUpperCase()}`;
    if (ncclVariables.has(name)) return name;
  }
  return undefined;
}

function nameOfVariable(written: string): string | undefined {
  const upper = written.toUpperCase();
  if (upper.startsWith('NCCL_')) return upper;
  // A name without prefix is a variable only if it is spelled as one: PXN_DISABLE, not all_reduce.
  return written === upper && ncclVariables.has(`NCCL_${upper}`) ? `NCCL_${upper}` : undefined;
}

function takeVersions(words: Words): string[] {
  const found: string[] = [];
  words.take(/\b(?:py)?torch\s*(?:==|version|v)?\s*(\d\.\d{1,2}(?:\.\d+)?(?:\+cu\d+)?)\b/, ([, torch = '']) => {
    try {
      found.push(ncclInTorch(torch));
      return true;
    } catch {
      return false;
    }
  });
  words.take(
    /\b(?:nccl\s*(?:version\s*)?|version\s*|v)?(2\.\d{1,2}(?:\.\d{1,2})?)(?![\d.]*\s*(?:[kmgtµu]i?b?\b|s\b|%|x\b|times|gb|mb))(?:-\d)?(?:\+cuda[\d.]+)?\b/,
    ([, text = '']) => {
      const version = coveredFor(text);
      if (version === undefined) return false;
      found.push(version);
      return true;
    },
  );
  return found;
}

/** The covered version of a text such as `2.27`, which stands for the newest of 2.27. */
function coveredFor(text: string): string | undefined {
  if (coveredVersions.includes(text)) return text;
  return text.split('.').length === 2 ? coveredVersions.find((version) => version.startsWith(`${text}.`)) : undefined;
}

/** `4 GPUs per node x 2 nodes`, `2 nodes with 4 GPUs each`. They stay in the text. */
function layoutsIn(words: Words): { readonly gpus: number; readonly nodes: number }[] {
  const found: { readonly gpus: number; readonly nodes: number }[] = [];
  const NODES = '(?:nodes?|hosts?|servers?|machines?)';
  words.take(
    new RegExp(
      `(${NUMBER})\\s*gpus?\\s*(?:per|/|a|on each|in each)\\s*${NODES}\\s*(?:[x×*,]|on|and|with)?\\s*(${NUMBER})\\s*${NODES}|(${NUMBER})\\s*${NODES}\\s*(?:with|of|[x×*,])\\s*(${NUMBER})\\s*gpus?(?: each)?`,
    ),
    ([, gpus, nodes, otherNodes, otherGpus]) => {
      found.push({ gpus: countOf(gpus ?? otherGpus ?? ''), nodes: countOf(nodes ?? otherNodes ?? '') });
      return false;
    },
  );
  return found;
}

/** `more than 2 nodes`, `beyond 16 GPUs`, `from 3 nodes on`, `4+ nodes`. */
function takeBeyond(words: Words): Entities['beyond'] {
  let beyond: Entities['beyond'];
  const NOUN = '(nodes?|hosts?|servers?|machines?|gpus?|ranks?)';
  const use = (digits: string, noun: string, more: number) => {
    beyond ??= { of: /^(?:gpu|rank)/i.test(noun) ? 'gpus' : 'nodes', least: countOf(digits) + more };
    return true;
  };
  words.take(
    new RegExp(
      `(?:\\b(?:(?:more|greater|larger|bigger) than|beyond|above|past|exceed(?:s|ing)?)|>(?!=))\\s*(${NUMBER})\\s*(?:[a-z]\\w+ )?${NOUN}\\b`,
    ),
    ([, digits = '', noun = '']) => use(digits, noun, 1),
  );
  words.take(
    new RegExp(
      `(?:\\bat least|>=|≥)\\s*(${NUMBER})\\s*${NOUN}\\b|(?:\\b(?:starting )?from )(${NUMBER})\\s*${NOUN} (?:on(?:wards?)?|upwards?|up|or more)\\b|\\b(${NUMBER})(?:\\+| or more| and more)\\s*${NOUN}\\b`,
    ),
    ([, one, oneNoun, two, twoNoun, three, threeNoun]) =>
      use(one ?? two ?? three ?? '', oneNoun ?? twoNoun ?? threeNoun ?? '', 0),
  );
  return beyond;
}

const collectiveTable = phraseTable(collectivePhrases);
const workloadTable = phraseTable(workloadPhrases);

function takeCollective(words: Words): Pick<Entities, 'collective' | 'collectives' | 'isWorkload'> {
  const found: { readonly name: ScheduledCollective; readonly at: number }[] = [];
  for (const { name, pattern } of collectiveTable)
    words.take(pattern, ({ index }) => {
      found.push({ name, at: index });
      return true;
    });
  // `the other collectives` beside an all-to-all are those of rings.
  if (found.some(({ name }) => name === 'AllToAll' || name === 'SendRecv'))
    words.take(/\b(?:the |all |most )?other (?:collectives?|operations?|calls?|ops?|tests?)\b/, ({ index }) => {
      found.push({ name: 'AllReduce', at: index });
      return true;
    });
  const collectives = [...new Set(found.sort((a, b) => a.at - b.at).map(({ name }) => name))];
  let [collective] = collectives;
  let isWorkload = false;
  for (const { name, pattern } of workloadTable)
    words.take(pattern, () => {
      if (collective === undefined) [collective, isWorkload] = [name, true];
      return true;
    });
  return { collective, collectives, isWorkload };
}

function takeGpuList(words: Words): number[] {
  const list: number[] = [];
  const AND = '\\s*(?:,|and|&)\\s*(?:and\\s+)?(?:gpu\\s*)?';
  for (const pattern of [
    new RegExp(`\\b(?:cuda|hip|nvidia)_visible_devices\\s*(?:=|is|set to|to)?\\s*(\\d+(?:\\s*,\\s*\\d+)*)`, 'i'),
    new RegExp(`\\b(?:gpus?|devices?)[ #]*(\\d+(?:${AND}\\d+){2,})`, 'i'),
    new RegExp(`\\bpairs?\\s*(?:of\\s*)?(?:gpus?\\s*)?[(#]*(\\d+(?:${AND}|\\s*[-+/]\\s*)\\d+)\\b`, 'i'),
  ])
    words.take(pattern, ([, digits = '']) => {
      list.push(...numbersIn(digits));
      return true;
    });
  return [...new Set(list)];
}

function takeIds(words: Words): Pick<Entities, 'ranks' | 'nic' | 'channel'> {
  const ranks: number[] = [];
  let nic: number | undefined;
  let channel: number | undefined;
  words.take(
    /\b(?:nics?|hcas?|nets?|mlx5|network devices?|port|rail)[ _#/-]*(\d{1,3})(?![\d.]*\s?(?:gb|g\b|x|%))(?!\d)/,
    ([, digits]) => {
      nic ??= Number(digits);
      return true;
    },
    'id',
  );
  words.take(
    /\b(?:rings?|channels?)[ #]*(\d+)\b(?!\.\d|\s?(?:gb|%))/,
    ([, digits]) => {
      channel ??= Number(digits);
      return true;
    },
    'id',
  );
  words.take(
    /(?<!\d[ -]?)\b(?:gpu|rank)[ #]*\d+(?=\s+nic\b)|\b(?:gpus?|ranks?|between|are)[ #]*\d+(?:\s*(?:,|and|to|with|->|-|gpu|rank|\s)+\s*\d+)?(?!\d|\s?(?:nodes?|hosts?|gpus?|servers?|nics?|channels?|ranks?|machines?|x\b))|(?<!\w)\d+\s*(?:->|to|and)\s*(?:gpu |rank )?\d+(?!\s?(?:nodes?|hosts?|gpus?|servers?|nics?|channels?|ranks?|machines?))\b/,
    ([text]) => {
      ranks.push(...numbersIn(text));
      return true;
    },
    'id',
  );
  return { ranks, nic, channel };
}

const countedNouns: readonly (readonly [Counted, string])[] = [
  ['nodes', 'nodes?|hosts?|servers?|machines?|boxes|instances?'],
  ['channels', 'channels?|ctas?|sms|thread blocks?|blocks'],
  [
    'nics',
    '(?:(?:ib|infiniband|roce|network) )?(?:nics?|hcas?)|(?:ib|infiniband|roce|network) cards?|(?:ib |nic )?ports?|adapters?|rails?',
  ],
  ['gpus', '(?:x\\s)?(?:[a-z]+\\d+\\s)?gpus?|h100s?|a100s?|h200s?|v100s?|b200s?|cards'],
  ['ranks', 'ranks?|processes'],
];

interface Counts {
  readonly counts: Partial<Record<Counted, number>>;
  readonly perNode: Set<Counted>;
  readonly comparesNodes: boolean;
  readonly gpuCounts: readonly number[];
  readonly places: readonly Place[];
}

function takeCounts(words: Words): Counts {
  const counts: Partial<Record<Counted, number>> = {};
  const perNode = new Set<Counted>();
  const gpus = new Set<number>();
  const places: Place[] = [];
  let comparesNodes = false;
  // `8 vs 4 GPUs`, `with 7 GPUs slower than with 8`: the noun stands once.
  words.take(
    new RegExp(
      `(?<![\\w.])(${NUMBER})\\s*(?:gpus?)?\\s*(?:vs\\.?|versus|to|or|and|compared (?:to|with)|(?:is |are )?(?:slower|faster|worse|better|lower|higher) than)\\s*(?:with |on |for )*(${NUMBER})(?=\\s*(?:gpus?\\b|[?.,]|$))`,
    ),
    ([text, one = '', other = '']) => {
      if (!/gpu/i.test(text) && !words.has(/\bgpus?\b/g)) return false;
      gpus.add(countOf(one)).add(countOf(other));
      return true;
    },
  );
  for (const [name, noun] of countedNouns)
    words.take(
      new RegExp(
        `(?<![\\w.])(${NUMBER})[ -]*(?:x[ -]?)?(?:(?:different|separate|of the|of our|of|more|ring|tree|compute|gpu|nvidia|[a-z]{1,3}\\d{1,4}[a-z]?|dgx|hgx)[ -]+)*(?:${noun})\\b(\\s(?:(?:per|a|(?:in|on|of|for) (?:each|every|one))\\s(?:nodes?|hosts?|servers?|machines?)|each\\b)|\\s?\\/\\s?(?:nodes?|hosts?|servers?))?`,
      ),
      ({ 0: text, 1: digits = '', 2: per, index }) => {
        // `Does one SM correspond to one channel` counts nothing.
        if (name === 'channels' && /^one$/i.test(digits) && !words.has(/\b(?:only|just)\b/g)) return true;
        const count = countOf(digits);
        if (name === 'nodes' && (counts.nodes ?? count) !== count) comparesNodes = true;
        counts[name] ??= count;
        if (name === 'gpus') gpus.add(count);
        if (per !== undefined) perNode.add(name);
        const state = stateOf(name, count, per !== undefined);
        if (state !== undefined) places.push({ at: index, state });
        words.mention('count', text, state);
        return true;
      },
    );
  return { counts, perNode, comparesNodes, gpuCounts: gpus.size > 1 ? [...gpus] : [], places };
}

function stateOf(name: Counted, count: number, isPerNode: boolean): Counterfactual | undefined {
  switch (name) {
    case 'nodes':
    case 'nics':
      return { kind: name, count };
    case 'gpus':
    case 'ranks':
      return { kind: isPerNode ? 'gpus' : 'ranks', count };
    case 'channels':
      return undefined;
  }
}

const algorithmTable = phraseTable(algorithmPhrases);
const protocolTable = phraseTable(protocolPhrases);
const termTable = phraseTable(termPhrases);

/** Algorithms and protocols in the order in which they are named; a protocol right after an algorithm belongs to it. */
function takeNames(words: Words): Pick<Entities, 'ways' | 'terms'> & { readonly named: readonly Place[] } {
  const found: { readonly at: number; readonly end: number; readonly way: PartialWay }[] = [];
  const terms = new Set<Term>();
  for (const { name, pattern } of algorithmTable)
    words.take(pattern, ({ index, 0: text }) => {
      found.push({ at: index, end: index + text.length, way: { algorithm: name } });
      words.mention('way', text, { kind: 'variable', name: 'NCCL_ALGO', value: name });
      return true;
    });
  for (const { name, pattern } of protocolTable)
    words.take(pattern, ({ index, 0: text }) => {
      // `I'll` is no protocol.
      if (name === 'LL' && /['’]ll/i.test(words.written.slice(Math.max(0, index - 1), index + 2))) return false;
      found.push({ at: index, end: index + text.length, way: { protocol: name } });
      words.mention('way', text, { kind: 'variable', name: 'NCCL_PROTO', value: name });
      return true;
    });
  for (const { name, pattern } of termTable)
    words.take(pattern, () => {
      terms.add(name);
      return true;
    });
  found.sort((a, b) => a.at - b.at);
  const ways: PartialWay[] = [];
  let end = -1;
  for (const { at, end: to, way } of found) {
    const last = ways.at(-1);
    const follows = last?.algorithm !== undefined && last.protocol === undefined && way.protocol !== undefined && at - end <= 1;
    if (follows) ways[ways.length - 1] = { ...last, ...way };
    else if (!ways.some((other) => other.algorithm === way.algorithm && other.protocol === way.protocol)) ways.push(way);
    end = to;
  }
  const named = found.flatMap(({ at, way: { algorithm } }): Place[] =>
    algorithm === undefined ? [] : [{ at, state: { kind: 'variable', name: 'NCCL_ALGO', value: algorithm } }],
  );
  return { ways, terms, named };
}
