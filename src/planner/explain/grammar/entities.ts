import type { ScheduledCollective } from '../../schedule/schedule.js';
import { ncclVariables } from '../../nccl-variables.js';
import { machines } from '../../topology/catalogue/machines.js';
import { coveredVersions } from '../../versions/version.js';
import { ncclInTorch } from '../../versions/torch.js';
import { Words, phraseTable } from './phrases.js';
import type { Measured, PartialWay, Term, VariableInQuestion } from './question.js';
import { algorithmPhrases, collectivePhrases, protocolPhrases, termPhrases, workloadPhrases } from './vocabulary.js';

/** All that a question names by number or name. */
export interface Entities {
  readonly variables: readonly VariableInQuestion[];
  readonly measured: Measured | undefined;
  /** Speed of a network card, Mb/s. */
  readonly nicMbps: number | undefined;
  readonly sizes: readonly number[];
  readonly collective: ScheduledCollective | undefined;
  /** True if the collective is named by a workload, such as FSDP. */
  readonly isWorkload: boolean;
  readonly ways: readonly PartialWay[];
  readonly terms: ReadonlySet<Term>;
  readonly ranks: readonly number[];
  readonly nic: number | undefined;
  readonly channel: number | undefined;
  /** Numbers with a noun behind: `2 nodes`, `16 channels`. */
  readonly counts: Readonly<Partial<Record<Counted, number>>>;
  readonly isPerNode: boolean;
  /** True if two numbers of nodes are named. */
  readonly comparesNodes: boolean;
  readonly versions: readonly string[];
  readonly machine: string | undefined;
  readonly ratio: number | undefined;
  readonly pcie: { readonly generation?: 3 | 4 | 5; readonly lanes?: 4 | 8 };
}

type Counted = 'nodes' | 'gpus' | 'channels' | 'nics' | 'ranks';

/** Takes all names and numbers out of a question. */
export function takeEntities(words: Words): Entities {
  const variables = takeVariables(words);
  const versions = takeVersions(words);
  const machine = takeMachine(words);
  const nicMbps = takeNicSpeed(words);
  const pcie = takePcie(words);
  const { rates, ratio } = takeRates(words);
  const times = takeTimes(words);
  const sizes = takeSizes(words);
  const { collective, isWorkload } = takeCollective(words);
  const { ranks, nic, channel } = takeIds(words);
  const { counts, isPerNode, comparesNodes } = takeCounts(words);
  const { ways, terms } = takeNames(words);
  const [rate] = rates;
  const kind = terms.has('busbw') ? 'busbw' : terms.has('algbw') ? 'algbw' : 'bandwidth';
  return {
    variables,
    versions,
    machine,
    nicMbps,
    pcie,
    ratio,
    measured: rate === undefined ? times[0] : { kind, value: rate },
    sizes,
    collective,
    isWorkload,
    ways,
    terms,
    ranks,
    nic,
    channel,
    counts,
    isPerNode,
    comparesNodes,
  };
}

/** `NCCL_X=3`, `NCCL_X set to 3`, `unset NCCL_X`; also without the prefix, where NCCL has such a variable. */
function takeVariables(words: Words): VariableInQuestion[] {
  const found: VariableInQuestion[] = [];
  const pattern =
    /(?:\b(unset(?:ting)?|removing|without|no longer set(?:ting)?|not set(?:ting)?)\s+)?(?<![\w/.])((?:NCCL_)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|NCCL_[A-Z0-9]+)\b(?:\s*(?:=|\b(?:is|set|to|set to|is set to|equals|being|at|of)\b)+\s*('[^']*'|"[^"]*"|[\w^:,./-]*[\w/]))?/gi;
  words.take(pattern, ([, unset, written = '', value]) => {
    const name = nameOfVariable(written);
    if (name === undefined) return false;
    const text = value?.replace(/^['"]|['"]$/g, '');
    const isValue = text !== undefined && !/^(?:be|do|the|a|an|in|this|that|it|not|what|and|or|set|help|off|on|0x)$/i.test(text);
    found.push({ name, value: unset === undefined ? (isValue ? text : undefined) : null });
    return true;
  });
  return found;
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

const machineNames = new Map(
  machines.flatMap(({ name, aliases }) => [name, ...aliases].map((each) => [each.replaceAll('-', '[ -]?'), name] as const)),
);

function takeMachine(words: Words): string | undefined {
  let found: string | undefined;
  for (const [pattern, name] of [...machineNames].sort((a, b) => b[0].length - a[0].length)) {
    if (!/^(?:dgx|hgx|aws|azure|gcp|oci|gh200|gb[23]00|ac922|coreweave|nebius|lambda|polaris|perlmutter)/.test(name)) continue;
    words.take(new RegExp(`(?<![\\w-])${pattern}(?![\\w-])`), () => {
      found ??= name;
      return true;
    });
  }
  return found;
}

const NETWORK_NOUN =
  '(?:nics?|ports?|links?|hcas?|ib|infini ?band|ethernet|roce|cx-?[5-8]|connect-?x-?[5-8]?|mellanox|networks?|networking|cards?|adapters?|rdma|efa|hdr|ndr|edr|xdr|fabric|interconnects?|rails?)';

/** Generations of InfiniBand, Gb/s. */
const infiniBand: Readonly<Record<string, number>> = { fdr: 56, edr: 100, hdr: 200, ndr: 400, xdr: 800 };

/** `400G NIC`, `400 Gb/s InfiniBand`, `NDR`: the speed of a network card, not a measurement. */
function takeNicSpeed(words: Words): number | undefined {
  let mbps: number | undefined;
  words.take(new RegExp(`(?<![\\w.])(\\d+)\\s?x\\s?(?=\\d+\\s?g)`), () => true);
  words.take(
    new RegExp(
      `(?<![\\w.])(\\d{2,4})\\s?(?:g|gb|gbe|gbit|gbps|gb/s|gbit/s|gigabit)(?:/s)?[ -](?:per |each |of |a |our |my |the )*(?:single[ -]port |dual[ -]port )*(?=${NETWORK_NOUN}\\b)`,
    ),
    ([text, digits]) => {
      // Bytes are written GB/s and are no speed of a port, unless it is too large to be one.
      if (/GB(?:\/s|ps)/.test(text) && Number(digits) < 100) return false;
      mbps ??= Number(digits) * 1000;
      return true;
    },
  );
  words.take(/\b(fdr|edr|hdr|ndr|xdr)\b/, ([, name = '']) => {
    mbps ??= (infiniBand[name.toLowerCase()] ?? 0) * 1000;
    return true;
  });
  return mbps;
}

function takePcie(words: Words): Entities['pcie'] {
  let generation: 3 | 4 | 5 | undefined;
  let lanes: 4 | 8 | undefined;
  words.take(/\b(?:pci-?e?\s*)?gen(?:eration)?\s?-?([345])\b|\bpci-?e\s*([345])(?:\.0)?\b/, ([, one, other]) => {
    generation = Number(one ?? other) as 3 | 4 | 5;
    return true;
  });
  words.take(/(?<![\w.])x([48])\b(?!\s*(?:nics?|gpus?|h\d|a\d))/, ([, digits]) => {
    lanes = Number(digits) as 4 | 8;
    return true;
  });
  return { ...(generation === undefined ? {} : { generation }), ...(lanes === undefined ? {} : { lanes }) };
}

/** GB/s by unit. Bits are told from bytes by the letter b. */
function takeRates(words: Words): { readonly rates: number[]; readonly ratio: number | undefined } {
  const rates: number[] = [];
  words.take(
    /(?<![\w.])~?(\d+(?:[.,]\d+)?)\s?([kmgt])(i?)(b|bytes?|bits?)?\s?(?:\/\s?s(?:ec(?:ond)?)?|ps|\sper\s(?:second|sec|s)|p)(?![\w])/,
    ([text, digits = '', prefix = '', binary, unit = 'b']) => {
      const isBits = /bits?$/i.test(unit) || (unit === 'b' && /[kmgt]i?b/i.test(text)) || /[KMGT]bps|[kmgt]bps\b/.test(text);
      const isBytes = /^B/.test(unit) || /bytes?$/i.test(unit);
      const base = binary === '' ? 1000 : 1024;
      const exponent = { k: 1, m: 2, g: 3, t: 4 }[prefix.toLowerCase()] ?? 3;
      const value = (Number(digits.replace(',', '.')) * base ** exponent) / 1e9;
      rates.push(isBits && !isBytes ? value / 8 : value);
      return true;
    },
  );
  // `ours is 830`: a bandwidth without its unit, at the end of a sentence.
  if (rates.length === 0)
    words.take(
      /\b(?:ours|mine|(?:we|i) (?:only |just )?(?:get|got|see|reach|measure|have)|(?:busbw|bandwidth) (?:is|of))(?: is| are)?(?: only| about| around| just)? (\d{2,4}(?:\.\d+)?)\+?(?=\s*(?:[.,;?!]|$))/i,
      ([, digits]) => {
        rates.push(Number(digits));
        return true;
      },
    );
  let ratio: number | undefined;
  words.take(/(?<![\w.])(\d{1,2})\s?:\s?1\b/, ([, digits]) => {
    ratio = Number(digits);
    return true;
  });
  return { rates, ratio };
}

function takeTimes(words: Words): Measured[] {
  const found: Measured[] = [];
  words.take(
    /(?<![\w.])~?(\d+(?:\.\d+)?)\s?(us|µs|μs|usec|micro ?seconds?|ms|msec|milli ?seconds?|s|sec|secs|seconds?)(?![\w/])/,
    ([, digits = '', unit = '']) => {
      const lower = unit.toLowerCase();
      const scale = /^(?:us|µ|μ|micro)/.test(lower) ? 1 : /^m/.test(lower) ? 1e3 : 1e6;
      found.push({ kind: 'time', value: Number(digits) * scale });
      return true;
    },
  );
  return found;
}

const prefixes: Readonly<Record<string, number>> = { k: 10, m: 20, g: 30, t: 40 };

/** Sizes with a unit, or numbers of elements; `70B` of a model's parameters is neither. */
function takeSizes(words: Words): number[] {
  const sizes: number[] = [];
  words.take(/(?<![\w.])\d+(?:\.\d+)?\s?[bm]\s?(?:-?\s?(?:param(?:eter)?s?|model|llama|llm))/, () => true);
  words.take(
    /(?<![\w.])(\d+(?:\.\d+)?)\s?(k|m|g|million|billion)?\s?(?:(?:float(?:32|s)?|fp32|bf16|fp16|half|float16|double)\s?)?(elements|floats|numbers|values|entries)(?!\w)/,
    ([text, digits = '', prefix = '']) => {
      const scale = { k: 1e3, m: 1e6, g: 1e9, million: 1e6, billion: 1e9 }[prefix.toLowerCase()] ?? 1;
      sizes.push(Math.floor(Number(digits) * scale) * (/16|half/i.test(text) ? 2 : /double/i.test(text) ? 8 : 4));
      return true;
    },
  );
  words.take(/(?<![\w.])(\d+(?:\.\d+)?)\s?-?(?:([kmgt])i?(?:b|bytes?)?|bytes?|b)(?![\w/])/, ([, digits = '', prefix]) => {
    sizes.push(Math.floor(Number(digits) * 2 ** (prefix === undefined ? 0 : (prefixes[prefix.toLowerCase()] ?? 0))));
    return true;
  });
  return sizes.filter((bytes) => Number.isSafeInteger(bytes) && bytes > 0);
}

const collectiveTable = phraseTable(collectivePhrases);
const workloadTable = phraseTable(workloadPhrases);

function takeCollective(words: Words): Pick<Entities, 'collective' | 'isWorkload'> {
  let collective: ScheduledCollective | undefined;
  let isWorkload = false;
  let place = Infinity;
  for (const { name, pattern } of collectiveTable)
    words.take(pattern, ({ index }) => {
      if (index < place) [collective, place] = [name, index];
      return true;
    });
  for (const { name, pattern } of workloadTable)
    words.take(pattern, () => {
      if (collective === undefined) [collective, isWorkload] = [name, true];
      return true;
    });
  return { collective, isWorkload };
}

function takeIds(words: Words): Pick<Entities, 'ranks' | 'nic' | 'channel'> {
  const ranks: number[] = [];
  let nic: number | undefined;
  let channel: number | undefined;
  words.take(/\b(?:nics?|hcas?|nets?|mlx5|network devices?|port|rail)[ _#/-]*(\d+)(?!\s?(?:gb|g\b|x))/, ([, digits]) => {
    nic ??= Number(digits);
    return true;
  });
  words.take(/\b(?:rings?|channels?)[ #]*(\d+)\b/, ([, digits]) => {
    channel ??= Number(digits);
    return true;
  });
  words.take(
    /(?<!\d[ -]?)\b(?:gpu|rank)[ #]*\d+(?=\s+nic\b)|\b(?:gpus?|ranks?|between|are)[ #]*\d+(?:\s*(?:,|and|to|with|->|-|gpu|rank|\s)+\s*\d+)?(?!\d|\s?(?:nodes?|hosts?|gpus?|servers?|nics?|channels?|ranks?|machines?|x\b))|(?<!\w)\d+\s*(?:->|to|and)\s*(?:gpu |rank )?\d+(?!\s?(?:nodes?|hosts?|gpus?|servers?|nics?|channels?|ranks?|machines?))\b/,
    ([text]) => {
      ranks.push(...(text.match(/\d+/g) ?? []).map(Number));
      return true;
    },
  );
  return { ranks, nic, channel };
}

const numberWords: Readonly<Record<string, number>> = {
  one: 1,
  single: 1,
  two: 2,
  dual: 2,
  three: 3,
  four: 4,
  quad: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  sixteen: 16,
};

const countedNouns: readonly (readonly [Counted, string])[] = [
  ['nodes', 'nodes?|hosts?|servers?|machines?|boxes|instances?'],
  ['channels', 'channels?|ctas?|sms|thread blocks?|blocks'],
  ['nics', 'nics?|hcas?|network cards?|(?:ib |nic )?ports?|adapters?|rails?'],
  ['gpus', '(?:x\\s)?(?:[a-z]+\\d+\\s)?gpus?|h100s?|a100s?|h200s?|v100s?|b200s?|cards'],
  ['ranks', 'ranks?|processes'],
];

function takeCounts(words: Words): Pick<Entities, 'counts' | 'isPerNode' | 'comparesNodes'> {
  const counts: Partial<Record<Counted, number>> = {};
  const numbers = `\\d{1,6}|${Object.keys(numberWords).join('|')}`;
  let isPerNode = false;
  let comparesNodes = false;
  for (const [name, noun] of countedNouns)
    words.take(
      new RegExp(
        `(?<![\\w.])(${numbers})[ -]*(?:x[ -]?)?(?:(?:different|separate|of the|of our|of|more|ring|tree|compute|gpu|nvidia|h100|a100|h200|b200|dgx|hgx)[ -])*(?:${noun})\\b(\\s(?:per|each|a|in each|on each|\\/)\\s?(?:nodes?|hosts?|servers?|machines?)?)?`,
      ),
      ([, digits = '', per]) => {
        const count = numberWords[digits.toLowerCase()] ?? Number(digits);
        if (name === 'nodes' && (counts.nodes ?? count) !== count) comparesNodes = true;
        counts[name] ??= count;
        if (per !== undefined) isPerNode = true;
        return true;
      },
    );
  return { counts, isPerNode, comparesNodes };
}

const algorithmTable = phraseTable(algorithmPhrases);
const protocolTable = phraseTable(protocolPhrases);
const termTable = phraseTable(termPhrases);

/** Algorithms and protocols in the order in which they are named; a protocol right after an algorithm belongs to it. */
function takeNames(words: Words): Pick<Entities, 'ways' | 'terms'> {
  const found: { readonly at: number; readonly end: number; readonly way: PartialWay }[] = [];
  const terms = new Set<Term>();
  for (const { name, pattern } of algorithmTable)
    words.take(pattern, ({ index, 0: text }) => {
      found.push({ at: index, end: index + text.length, way: { algorithm: name } });
      return true;
    });
  for (const { name, pattern } of protocolTable)
    words.take(pattern, ({ index, 0: text }) => {
      // `I'll` is no protocol.
      if (name === 'LL' && /['’]ll/i.test(words.written.slice(Math.max(0, index - 1), index + 2))) return false;
      found.push({ at: index, end: index + text.length, way: { protocol: name } });
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
    else ways.push(way);
    end = to;
  }
  return { ways, terms };
}
