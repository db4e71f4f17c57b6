import { nearestName } from '../../../suggest.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { type NcclAlgorithm, algorithms, type Collective, type Protocol } from '../../tuning/names.js';
import type { Topic } from './answer.js';

/** A parsed question. Ranks are those of the communicator; sizes are bytes. */
export type Question =
  | { readonly about: 'pxn' | 'rails' }
  | { readonly about: 'limits'; readonly collective?: ScheduledCollective; readonly bytes?: number }
  | {
      readonly about: 'channels';
      readonly expected: number | undefined;
      /** Of send and receive, and calls made of them. */
      readonly ofPairs?: true;
    }
  | { readonly about: 'variable'; readonly variable: string }
  | { readonly about: 'rings'; readonly channel: number | undefined }
  | { readonly about: 'nic'; readonly rank: number | undefined; readonly nic: number | undefined }
  | { readonly about: 'connection'; readonly from: number; readonly to: number }
  | { readonly about: 'gdr'; readonly rank: number | undefined }
  | {
      readonly about: 'choice';
      readonly collective: Collective;
      readonly bytes: number;
      /** The choice that the question assumes, and the one that it compares with: an algorithm, a protocol, or both. */
      readonly claimed: PartialWay | undefined;
      readonly instead: PartialWay | undefined;
    }
  | { readonly about: 'time'; readonly collective: ScheduledCollective; readonly bytes: number }
  | { readonly about: 'absence'; readonly collective: Collective; readonly what: PartialWay }
  | { readonly about: 'flips'; readonly collective: Collective | undefined }
  | { readonly about: 'help'; readonly collective: Collective; readonly sizes: readonly number[] };

/** An algorithm, a protocol or both, as a question names them. */
export interface PartialWay {
  readonly algorithm?: NcclAlgorithm;
  readonly protocol?: Protocol;
}

/** Examples of questions, one for each topic, with its subject. */
export const questionForms: readonly { readonly about: Topic; readonly example: string; readonly purpose: string }[] = [
  { about: 'limits', example: 'what limits', purpose: 'the links and rules that bound bandwidth' },
  { about: 'limits', example: 'what limits send/recv', purpose: 'where the time of a call goes' },
  { about: 'channels', example: 'why 24 channels', purpose: 'how the number and speed of channels came about' },
  { about: 'channels', example: 'how many send/recv channels', purpose: 'channels of messages between pairs, and for each peer' },
  { about: 'rings', example: 'why this ring order', purpose: 'why rings visit the GPUs as they do' },
  { about: 'nic', example: 'why does GPU 3 use NIC 5', purpose: 'which NIC a GPU uses, and what else it could' },
  {
    about: 'connection',
    example: 'how are 0 and 5 connected',
    purpose: 'peer-to-peer, shared memory or network between two ranks',
  },
  { about: 'choice', example: 'why Tree and not Ring at 4M for all_reduce', purpose: 'what each algorithm would take at a size' },
  { about: 'time', example: 'how long does alltoall take at 64M', purpose: "a call's time: NCCL's belief and the simulation" },
  { about: 'absence', example: 'why no NVLS', purpose: 'why an algorithm or protocol is not used' },
  { about: 'gdr', example: 'why no GDR', purpose: 'whether NICs reach the memory of GPUs directly' },
  { about: 'pxn', example: 'why PXN', purpose: 'which GPUs send through another GPU to its NIC' },
  { about: 'flips', example: 'which size changes the choice', purpose: 'sizes from which another algorithm or protocol is used' },
  { about: 'rails', example: 'which rails are crossed', purpose: 'channels that arrive by another NIC than they left by' },
  { about: 'variable', example: 'what does NCCL_CROSS_NIC do', purpose: 'a variable of NCCL, and what it is here' },
  { about: 'help', example: 'what would help all_reduce 1G', purpose: 'single changes, tried and ranked by what they gain' },
];

/** Sizes of `what would help` where none is named. */
const usualHelpSizes: readonly number[] = [4 * 2 ** 20, 128 * 2 ** 20, 2 ** 30];
/** The size of a question about a choice that names none. */
const USUAL_CHOICE_BYTES = 128 * 2 ** 20;

/**
 * Reads a question in free words: only names, numbers and a few keywords count. Misspelt words are read as the nearest known ones
 * if the question is not understood otherwise.
 *
 *     parseQuestion('Why Tree and not Ring at 4 MiB?')
 *     // { about: 'choice', collective: 'AllReduce', bytes: 4194304, claimed: { algorithm: 'Tree' }, instead: {
 * algorithm: 'Ring' } }
 *
 * @returns undefined for a question that cannot be answered; `nearestForms` then lists similar ones that can
 */
export function parseQuestion(text: string): Question | undefined {
  const [variable] = /\bNCCL_[A-Z0-9_]+/i.exec(text) ?? [];
  if (variable !== undefined) return { about: 'variable', variable: variable.toUpperCase() };
  return understand(text) ?? understand(corrected(text));
}

/** Forms that have most in common with a question that is not understood, the nearest first. */
export function nearestForms(text: string, most = 3): readonly string[] {
  const words = new Set(corrected(text).match(/[a-z0-9_]+/g) ?? []);
  const scored = questionForms.map(({ example, purpose, about }) => {
    const known = new Set(`${example} ${purpose} ${about}`.toLowerCase().match(/[a-z0-9_]+/g) ?? []);
    return { example, score: [...words].filter((word) => !fillers.has(word) && known.has(word)).length };
  });
  return scored
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ example }) => example);
}

const collectiveWords: readonly (readonly [RegExp, Collective])[] = [
  [/\ball[ _-]?reduces?\b/, 'AllReduce'],
  [/\ball[ _-]?gathers?\b/, 'AllGather'],
  [/\breduce[ _-]?scatters?\b/, 'ReduceScatter'],
  [/\b(broadcast|bcast)s?\b/, 'Broadcast'],
  [/\breduce\b/, 'Reduce'],
];

/** Messages between pairs, for which NCCL has no model. */
const pairsWords: readonly (readonly [RegExp, ScheduledCollective])[] = [
  [/\ball[ _-]?to[ _-]?alls?\b/, 'AllToAll'],
  [/\bsend[ _-]?(and |\/|, ?)?[ _-]?(recv|receive)s?\b|\bpeer[ -]to[ -]peer messages?\b|\bp2p channels?\b/, 'SendRecv'],
  [/(?<!all[ _-]?)\bgathers?\b/, 'Gather'],
  [/(?<!reduce[ _-]?)\bscatters?\b/, 'Scatter'],
];

const algorithmWords: Readonly<Record<string, NcclAlgorithm>> = {
  ...Object.fromEntries(algorithms.map((algorithm) => [algorithm.toLowerCase(), algorithm])),
  trees: 'Tree',
  rings: 'Ring',
  collnet: 'CollNetDirect',
  sharp: 'CollNetDirect',
};
const protocolWords: Readonly<Record<string, Protocol>> = { ll: 'LL', ll128: 'LL128', simple: 'Simple' };

/** Words that determine the topic of a question, tried in this order. */
const topicWords = {
  time: /\b(how long|time|times|duration|takes?|latency)\b/,
  help: /\b(what if|help|helps|improve|faster|upgrade|gain|gains|speed ?up|better)\b/,
  flips:
    /\b(flips?|crossover|thresholds?|which sizes?|what sizes?|from which size|changes? the choice|switch(es)? (over|point)s?)\b/,
  gdr: /\b(gdr|gpu ?direct|rdma)\b/,
  pxn: /\bpxn\b/,
  rails: /\b(rails?|cross(es|ed|ing)?[ _-]?nics?)\b/,
  channels: /\bchannels?\b/,
  order: /\b(order|sequence)\b/,
  limits: /\b(limits?|limited|limiting|bottlenecks?|bounds?|slow|slower|slowest|bandwidth|bw)\b/,
  nic: /\b(nics?|hcas?|mlx5(_\d+)?|network (device|card)s?|nets?)\b/,
  connection: /\b(connect|connected|connection|between|transports?|p2p|shm|peer)\b/,
} as const;

function understand(question: string): Question | undefined {
  const text = question
    .toLowerCase()
    .replace(/nvlink sharp/g, 'nvls')
    .replace(/nvls[ _-]tree/g, 'nvlstree')
    .replace(/collnet[ _-](direct|chain)/g, 'collnet$1');
  const named = collectiveWords.find(([words]) => words.test(text))?.[1];
  // Removed so that their parts are not matched again: `reduce` in all_reduce, `8` in 8M.
  const rest = collectiveWords.reduce((left, [words]) => left.replace(words, ' '), text);
  const { sizes, text: plain } = takeSizes(rest);
  const ways = waysIn(plain);
  const negated = /\b(no|not|never|without|missing|disabled|off|unused|instead|isn't|aren't|doesn't|don't|0)\b/.test(plain);
  const ranks = ranksIn(plain);
  const nic = numberAfter(plain, /\b(?:nics?|hcas?|nets?|mlx5|network devices?)[ _#/-]*(\d+)/);
  const [first] = ways;
  const collective = named ?? (first?.algorithm === 'PAT' ? 'AllGather' : 'AllReduce');

  if (topicWords.rails.test(plain) && !topicWords.help.test(plain)) return { about: 'rails' };
  const pairs = named === undefined ? pairsWords.find(([words]) => words.test(text))?.[1] : undefined;
  if (pairs !== undefined && !topicWords.time.test(plain)) {
    if (topicWords.channels.test(plain))
      return { about: 'channels', expected: numberAfter(plain.replaceAll('p2p', ''), /(\d+)[^\d]*\bchannels?\b/), ofPairs: true };
    if (topicWords.limits.test(plain))
      return { about: 'limits', collective: pairs, ...(sizes[0] === undefined ? {} : { bytes: sizes[0] }) };
  }
  if (pairs !== undefined || (topicWords.time.test(plain) && ways.length === 0 && !topicWords.help.test(plain)))
    return { about: 'time', collective: pairs ?? collective, bytes: sizes[0] ?? USUAL_CHOICE_BYTES };
  if (topicWords.help.test(plain)) return { about: 'help', collective, sizes: sizes.length === 0 ? usualHelpSizes : sizes };
  if (topicWords.flips.test(plain)) return { about: 'flips', collective: named };
  if (topicWords.gdr.test(plain)) return { about: 'gdr', rank: ranks[0] };
  if (topicWords.pxn.test(plain)) return { about: 'pxn' };
  if (topicWords.channels.test(plain)) {
    const isNvls = first?.algorithm === 'NVLS' || first?.algorithm === 'NVLSTree';
    if (isNvls && negated) return { about: 'absence', collective, what: first };
    return { about: 'channels', expected: numberAfter(plain, /(\d+)[^\d]*\bchannels?\b/) };
  }
  if (topicWords.order.test(plain)) return { about: 'rings', channel: numberAfter(plain, /\b(?:ring|channel)s?[ #]*(\d+)/) };
  if (topicWords.nic.test(plain)) return { about: 'nic', rank: ranks[0], nic };
  const [from, to] = ranks;
  if (from !== undefined && to !== undefined && sizes.length === 0) return { about: 'connection', from, to };
  if (topicWords.limits.test(plain) && first === undefined)
    return { about: 'limits', ...(named === undefined ? {} : { collective: named }) };
  const [bytes] = sizes;
  if (first !== undefined && negated && ways.length === 1 && bytes === undefined)
    return { about: 'absence', collective, what: first };
  if (first !== undefined || bytes !== undefined || named !== undefined) {
    const onlyDenied = ways.length === 1 && negated;
    return {
      about: 'choice',
      collective,
      bytes: bytes ?? USUAL_CHOICE_BYTES,
      claimed: onlyDenied ? undefined : first,
      instead: onlyDenied ? first : ways[1],
    };
  }
  if (/\brings?\b/.test(plain)) return { about: 'rings', channel: undefined };
  return undefined;
}

/** Sizes with a unit, or a number of bytes; and the text without them. */
function takeSizes(text: string): { readonly sizes: readonly number[]; readonly text: string } {
  const units: Readonly<Record<string, number>> = { k: 10, m: 20, g: 30, t: 40 };
  const sizes: number[] = [];
  const left = text.replace(
    /(?<![\w.])(\d+(?:\.\d+)?)\s?(?:([kmgt])i?(?:b|bytes?)?|bytes?|b)(?!\w)/g,
    (_, digits: string, unit: string | undefined) => {
      sizes.push(Math.floor(Number(digits) * 2 ** (unit === undefined ? 0 : (units[unit] ?? 0))));
      return ' ';
    },
  );
  return { sizes: sizes.filter((bytes) => Number.isSafeInteger(bytes) && bytes > 0), text: left };
}

/** Algorithms and protocols in the order in which they are named; a protocol after an algorithm belongs to it. */
function waysIn(text: string): PartialWay[] {
  const ways: PartialWay[] = [];
  let open = false;
  for (const word of text.match(/[a-z0-9]+/g) ?? []) {
    const algorithm = algorithmWords[word];
    const protocol = protocolWords[word];
    const last = ways.at(-1);
    if (algorithm !== undefined) ways.push({ algorithm });
    else if (protocol !== undefined && open && last !== undefined) ways[ways.length - 1] = { ...last, protocol };
    else if (protocol !== undefined) ways.push({ protocol });
    open = algorithm !== undefined;
  }
  return ways;
}

/** Numbers that name GPUs or ranks: `gpu 3`, `ranks 0 and 5`, `between 0 and 5`, `0 -> 5`. */
function ranksIn(text: string): number[] {
  const lists =
    text.match(
      /\b(?:gpus?|ranks?|between|are|from)[ #]*\d+(?:\s*(?:,|and|to|with|->|-|gpu|rank|\s)+\s*\d+)?|\d+\s*(?:->|to|and)\s*(?:gpu |rank )?\d+/g,
    ) ?? [];
  return lists.flatMap((words) => (words.match(/\d+/g) ?? []).map(Number));
}

function numberAfter(text: string, pattern: RegExp): number | undefined {
  const digits = pattern.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Words of questions that mean nothing by themselves, and are not misspelt names. */
const fillers = new Set([
  'why',
  'what',
  'which',
  'does',
  'this',
  'that',
  'with',
  'when',
  'where',
  'there',
  'many',
  'these',
  'those',
  'from',
  'have',
  'here',
  'would',
  'could',
  'should',
  'will',
  'used',
  'uses',
  'only',
  'than',
  'then',
  'into',
  'over',
  'more',
  'less',
  'just',
  'like',
  'about',
  'and',
  'not',
  'the',
  'for',
  'use',
  'has',
  'how',
  'are',
]);

const vocabulary = [
  'channels',
  'channel',
  'order',
  'rails',
  'crossed',
  'limits',
  'bottleneck',
  'flips',
  'choice',
  'connected',
  'between',
  'help',
  'faster',
  'size',
  'ring',
  'rings',
  'tree',
  'nvls',
  'nvlstree',
  'collnet',
  'simple',
  'll128',
  'gpudirect',
  'allreduce',
  'all_reduce',
  'allgather',
  'all_gather',
  'reducescatter',
  'reduce_scatter',
  'broadcast',
  'reduce',
  'nic',
  'rank',
  'ranks',
];

/** The text with misspelt words replaced by the nearest known ones. */
function corrected(text: string): string {
  return text
    .toLowerCase()
    .replace(/[a-z_]{4,}/g, (word) =>
      fillers.has(word) || vocabulary.includes(word) ? word : (nearestName(word, vocabulary) ?? word),
    );
}
