import type { ScheduledCollective } from '../../schedule/schedule.js';
import { ncclVariables } from '../../nccl-variables.js';
import { familyOf, gpuModels } from '../../topology/catalogue/gpus.js';
import { findMachine, machines } from '../../topology/catalogue/machines.js';
import { nicModels } from '../../topology/catalogue/nics.js';
import { coveredVersions } from '../../versions/version.js';
import { ncclInTorch } from '../../versions/torch.js';
import { numbersIn, phraseTable, Words } from './phrases.js';
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
  /** All calls that are named, each once, in order. */
  readonly collectives: readonly ScheduledCollective[];
  /** True if the collective is named by a workload, such as FSDP. */
  readonly isWorkload: boolean;
  readonly ways: readonly PartialWay[];
  readonly terms: ReadonlySet<Term>;
  readonly ranks: readonly number[];
  /** GPUs of a host that a job uses: a list of three or more, or of CUDA_VISIBLE_DEVICES. */
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
  readonly pcie: { readonly generation?: 3 | 4 | 5; readonly lanes?: 4 | 8 };
}

type Counted = 'nodes' | 'gpus' | 'channels' | 'nics' | 'ranks';

/** GPUs of a model: its id, or the beginning of several (`h100`), and their number if one stands before it. */
export interface NamedGpus {
  readonly model: string;
  readonly count?: number;
}

/** Takes all names and numbers out of a question. */
export function takeEntities(words: Words): Entities {
  const variables = takeVariables(words);
  const versions = takeVersions(words);
  const machine = takeMachine(words);
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
  const { rates, ratio } = takeRates(words);
  const times = takeTimes(words);
  const sizes = takeSizes(words);
  const { collective, collectives, isWorkload } = takeCollective(words);
  const gpuList = takeGpuList(words);
  const { ranks, nic, channel } = takeIds(words);
  const { counts, perNode, comparesNodes, gpuCounts } = takeCounts(words);
  if (gpuNames.length === 1 && gpuNames[0]?.count !== undefined) counts.gpus ??= gpuNames[0].count;
  if (nicCount !== undefined) {
    counts.nics ??= nicCount;
    perNode.add('nics');
  }
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
    figures: new Set([...rates, ...times.map(({ value }) => value)]).size,
    beyond,
    gpuModels: gpuNames,
  };
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

/** Spellings of machines that are told apart from other words, the longest first. */
const machineNames = machines
  .flatMap(({ name, aliases }) => [name, ...aliases].map((each) => [each.replaceAll('-', '[ -]?'), name] as const))
  .filter(
    ([pattern, name]) =>
      /^(?:dgx|hgx|aws|azure|gcp|oci|gh200|gb[23]00|ac922|coreweave|nebius|lambda|polaris|perlmutter)/.test(name) &&
      // A GPU by itself, without the machine.
      !/^(?:gb200|gb300|gh200|h800|h20)$/.test(pattern),
  )
  .sort((a, b) => b[0].length - a[0].length);

function takeMachine(words: Words): string | undefined {
  let found: string | undefined;
  words.take(/\b(gb[23]00)[ -]?nvl[ -]?(\d+)(?:x\d)?\b/, ([, model = '', size = '']) => {
    found ??= findMachine(`${model}-nvl${size}`.toLowerCase())?.name;
    return found !== undefined;
  });
  for (const [pattern, name] of machineNames)
    words.take(new RegExp(`(?<![\\w-])${pattern}(?![\\w-])`), () => {
      found ??= name;
      return true;
    });
  return found;
}

const NUMBER = '\\d{1,6}|one|a single|single|two|dual|three|four|quad|five|six|seven|eight|sixteen';

/** Spellings of GPUs: of a model, or of several that differ by their form (`h100`). */
const gpuSpellings = gpuModels
  .flatMap((model) => [model.id, model.name.toLowerCase(), ...model.aliases].map((spelling) => [spelling, model] as const))
  .concat(gpuModels.flatMap((model) => (model.id.includes('-') ? [[familyOf(model), model] as const] : [])))
  .filter(([spelling]) => !/^(?:rtx|grace)$/.test(spelling))
  .sort((a, b) => b[0].length - a[0].length);

/** `8 x A40`, `4 RTX 4090`, `H100 PCIe`, `A100-SXM4-80GB`. */
function takeGpuModels(words: Words): NamedGpus[] {
  const found: NamedGpus[] = [];
  for (const [spelling, model] of gpuSpellings)
    words.take(
      new RegExp(
        `(?<![\\w.-])(?:(${NUMBER})\\s*(?:x|×|\\*)?[\\s-]*)?(?:nvidia[ -]|tesla[ -]|geforce[ -])*${spelling.replaceAll(/[ -]/g, '[ -]?')}s?(?:[ -](?:\\d{2,3} ?gb|hbm\\d?e?))*(?:[ -]?(sxm|pcie|nvl)\\d?)?(?:[ -](?:\\d{2,3} ?gb))?(?:[ -](?:gpus?|cards?))?(?![\\w])`,
        'i',
      ),
      ({ 0: text, 1: digits, 2: form, index, input }) => {
        const named = /sxm|pcie|nvl/.test(spelling) ? model.id : familyOf(model);
        const own = form === undefined ? named : `${familyOf(model)}-${form.toLowerCase()}`;
        const id = gpuModels.some((each) => each.id === own) ? own : named;
        const isOfNodes = /^[ -]*(?:nodes?|hosts?|servers?|machines?|box(?:es)?|systems?|instances?|clusters?)\b/i.test(
          input.slice(index + text.length),
        );
        const count = digits === undefined || isOfNodes ? undefined : countOf(digits);
        if (!found.some(({ model: other }) => other === id || other.startsWith(`${id}-`)))
          found.push({ model: id, ...(count === undefined ? {} : { count }) });
        // The number is one of nodes: it is counted later.
        return !isOfNodes || digits === undefined;
      },
    );
  return found;
}

function countOf(digits: string): number {
  return numberWords[digits.toLowerCase().replace(/^a /, '')] ?? Number(digits);
}

const CARD_NOUN =
  '(?:nics?|ports?|hcas?|ib|infini ?band|ethernet|roce|cx-?[5-8]|connect-?x-?[5-8]?|mellanox|(?:network |ib )?cards?|adapters?|efa|hdr|ndr|edr|xdr|bluefield)';
const NETWORK_NOUN = `(?:${CARD_NOUN}|links?|networks?|networking|rdma|fabric|interconnects?|rails?)`;

/** Generations of InfiniBand, Gb/s. */
const infiniBand: Readonly<Record<string, number>> = { fdr: 56, edr: 100, hdr: 200, ndr: 400, xdr: 800 };

/** Network cards that a text states: `8 x 100 Gb/s NICs`, `NDR`, `two ConnectX-6`. None of these is a measurement. */
function takeNics(words: Words): { readonly nicMbps: number | undefined; readonly nicCount: number | undefined } {
  let nicMbps: number | undefined;
  let nicCount: number | undefined;
  const UNIT = '(?:g|gb|gbe|gbit|gbps|gb/s|gbit/s|gigabit)(?:/s)?';
  const COUNT = `(?:(${NUMBER})(?:[ -]*(?:x|×|\\*)[ -]*|[ -]+))?(?:of )?`;
  const take = (count: string | undefined, mbps: number): true => {
    nicMbps ??= mbps;
    if (count !== undefined) nicCount ??= countOf(count);
    return true;
  };
  // `4 x 200G NICs`, `one 100GbE port`; the noun may miss behind a number of cards: `8x400G`.
  words.take(
    new RegExp(
      `(?<![\\w.])${COUNT}(\\d{2,4})\\s?${UNIT}[ -](?:per |each |of |a |our |my |the )*(?:single[ -]port |dual[ -]port |mellanox |nvidia )*(?=${NETWORK_NOUN}\\b)`,
    ),
    ([text, count, digits]) => {
      // Bytes are written GB/s and are no speed of a port, unless it is too large to be one.
      if (/GB(?:\/s|ps)/.test(text) && Number(digits) < 100) return false;
      return take(count, Number(digits) * 1000);
    },
  );
  words.take(
    new RegExp(`(?<![\\w.])(${NUMBER})\\s?[x×*]\\s?(\\d{2,4})\\s?(?:g|gb|Gb|gbe|Gbit|gbps|Gbps|Gb/s)(?![\\w/])`),
    ([text, count, digits]) => (/GB/.test(text) ? false : take(count, Number(digits) * 1000)),
  );
  words.take(new RegExp(`(?<![\\w.])${COUNT}(\\d{2,4}) ?(?:gbe|gige|g ethernet)\\b`), ([, count, digits]) =>
    take(count, Number(digits) * 1000),
  );
  words.take(new RegExp(`(?<![\\w.])${COUNT}(fdr|edr|hdr|ndr|xdr)(?: ?(100|200|400|800))?\\b`), ([, count, name = '', digits]) =>
    take(count, digits === undefined ? (infiniBand[name.toLowerCase()] ?? 0) * 1000 : Number(digits) * 1000),
  );
  // `2 ConnectX-6 200Gb/s`, `InfiniBand at 400 Gb/s`.
  words.take(
    new RegExp(
      `(?<![\\w.])(?:(${NUMBER})[ -]*(?:x|×|\\*)?[ -]*)?(?:mellanox |nvidia )?(?:connect-?x|cx)[ -]?([5-8])(?: ?(?:dx|lx|ex|vpi))?s?\\b(?:[ ,(-]*(?:at )?(\\d{2,3}) ?(?:g|gb|gbe|gbps|gb/s)\\b)?`,
    ),
    ([, count, number = '', digits]) => {
      const model = nicModels.find(({ id }) => id === `connectx-${number}`);
      if (digits !== undefined) return take(count, Number(digits) * 1000);
      // The model alone says which speed it can have, not which it has.
      if (count === undefined || model === undefined) return false;
      return take(count, model.speedMbps);
    },
  );
  words.take(
    new RegExp(
      `(?<=\\b(?:infini ?band|ib|roce|ethernet|nics?|hcas?|efa)(?: ?(?:at|of|is|are|with|,|\\())? ?)(\\d{2,4}) ?(?:gbe|gbps|gbit/s|gb/s|g)\\b`,
    ),
    ([text, digits]) => (/GB(?:\/s|ps)/.test(text) ? false : take(undefined, Number(digits) * 1000)),
  );
  return { nicMbps, nicCount };
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
      ranks.push(...numbersIn(text));
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

interface Counts {
  readonly counts: Partial<Record<Counted, number>>;
  readonly perNode: Set<Counted>;
  readonly comparesNodes: boolean;
  readonly gpuCounts: readonly number[];
}

function takeCounts(words: Words): Counts {
  const counts: Partial<Record<Counted, number>> = {};
  const perNode = new Set<Counted>();
  const gpus = new Set<number>();
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
      ([, digits = '', per]) => {
        // `Does one SM correspond to one channel` counts nothing.
        if (name === 'channels' && /^one$/i.test(digits) && !words.has(/\b(?:only|just)\b/g)) return true;
        const count = countOf(digits);
        if (name === 'nodes' && (counts.nodes ?? count) !== count) comparesNodes = true;
        counts[name] ??= count;
        if (name === 'gpus') gpus.add(count);
        if (per !== undefined) perNode.add(name);
        return true;
      },
    );
  return { counts, perNode, comparesNodes, gpuCounts: gpus.size > 1 ? [...gpus] : [] };
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
    else if (!ways.some((other) => other.algorithm === way.algorithm && other.protocol === way.protocol)) ways.push(way);
    end = to;
  }
  return { ways, terms };
}
