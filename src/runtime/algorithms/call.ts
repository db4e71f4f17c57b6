import { callKinds } from '../device/kernels/call-kinds.js';
import { operatorNames, typeOfCode, type DataType, type OperatorName } from '../device/types.js';
import { InternalError, InvalidUsageError } from '../../errors.js';

/** A kind of call, by the name of its method: allReduce, allGatherV … */
export type CallKind = keyof typeof callKinds;

/** How a collective moves its data. A call's code holds the place in this list: append only. */
export const algorithms = ['direct', 'ring', 'tree', 'pat', 'pairs', 'nvls'] as const;
/** The name of an algorithm; docs/notes/algorithms.md tells of each. */
export type Algorithm = (typeof algorithms)[number];

/** What a rank asked for. Ranks of a communicator must ask for the same, in the same order. */
export interface Call {
  readonly kind: CallKind;
  /** Of no meaning for a barrier. */
  readonly type: DataType;
  /** Of no meaning except for a reduction. */
  readonly operator: OperatorName;
  /** Of calls with a root. Of allGatherV and reduceScatterV: what partsHash() gives of their counts. */
  readonly root: number;
  /**
   * Elements, as NCCL counts them: of the input, except for reduceScatter and scatter, which count the output, and
   * allToAll, which counts what goes to one rank. V forms: of all ranks together; allToAllV has none.
   */
  readonly count: number;
  readonly algorithm: Algorithm;
}

/** What only V forms, premulSum and calls that engine threads share have. Absent on the hot paths. */
export interface CallDetails {
  /**
   * V forms: elements of each rank's part of the longer array, and where it begins there. Of allToAllV: of each rank's
   * part of the input.
   */
  readonly counts?: readonly number[];
  readonly displacements?: readonly number[];
  /** allToAllV: the same of the output. */
  readonly recvCounts?: readonly number[];
  readonly recvDisplacements?: readonly number[];
  /** premulSum: what this rank's input is multiplied with; the type can hold it. */
  readonly scalar?: number | bigint;
  /** Which part of each rank's block of data this is about, where others deal with the rest; the same on all ranks. */
  readonly share?: Share;
}

/** One of so many equal parts. */
export interface Share {
  readonly index: number;
  readonly of: number;
}

const kinds = Object.keys(callKinds) as CallKind[];

/** What of a kind of call is part of what ranks must agree on. */
interface Shape {
  readonly reduces: boolean;
  /** How a message names the root, for kinds that have one. */
  readonly root?: 'from' | 'to';
  readonly uneven: boolean;
}

const plain: Shape = { reduces: false, uneven: false };
const shapes: Readonly<Record<CallKind, Shape>> = {
  allReduce: { reduces: true, uneven: false },
  broadcast: { reduces: false, root: 'from', uneven: false },
  barrier: plain,
  reduce: { reduces: true, root: 'to', uneven: false },
  allGather: plain,
  reduceScatter: { reduces: true, uneven: false },
  allToAll: plain,
  gather: { reduces: false, root: 'to', uneven: false },
  scatter: { reduces: false, root: 'from', uneven: false },
  allGatherV: { reduces: false, uneven: true },
  reduceScatterV: { reduces: true, uneven: true },
  allToAllV: plain,
};

/** All of a call except its root and count, as a number: kind | type << 4 | operator << 8 | algorithm << 12. */
export function encodeCall(call: Call): number {
  const { kind } = call;
  const type = kind === 'barrier' ? 0 : call.type.code;
  const operator = shapes[kind].reduces ? operatorNames.indexOf(call.operator) : 0;
  return callKinds[kind] | (type << 4) | (operator << 8) | algorithmBits(call.algorithm);
}

/** The call that `encodeCall` made the code of. */
export function decodeCall(code: number, root: number, count: number): Call {
  const call = readCall(code, root, count);
  if (call === undefined) throw new InternalError('INTERNAL', `0x${code.toString(16)} is not the code of a call`);
  return call;
}

/** The call of a code that another rank sent; undefined for a number that is the code of no call. */
export function readCall(code: number, root: number, count: number): Call | undefined {
  const kind = kinds.find((name) => callKinds[name] === kindOf(code));
  const type = typeOfCode(typeCodeOf(code));
  const operator = operatorNames[operatorOf(code)];
  const algorithm = algorithmOf(code);
  if (kind === undefined || type === undefined || operator === undefined || algorithm === undefined) return undefined;
  return { kind, type, operator, root, count, algorithm };
}

/** The kind of call that a code is of; see callKinds. */
export function kindOf(code: number): number {
  return code & 15;
}

/** The code of the type of a code's elements. */
export function typeCodeOf(code: number): number {
  return (code >> 4) & 15;
}

/** The place of a code's operator in operatorNames. */
export function operatorOf(code: number): number {
  return (code >> 8) & 15;
}

/** What of a code stands for an algorithm. */
export function algorithmBits(algorithm: Algorithm): number {
  return algorithms.indexOf(algorithm) << 12;
}

export function algorithmOf(code: number): Algorithm | undefined {
  return algorithms[(code >> 12) & 15];
}

/** Whether a call of this code gives the others what its root has. */
export function isFromRoot(code: number): boolean {
  return kindOf(code) === callKinds.broadcast || kindOf(code) === callKinds.scatter;
}

/** Whether a call of this code gives its root what the others have. */
export function isToRoot(code: number): boolean {
  return kindOf(code) === callKinds.gather || kindOf(code) === callKinds.reduce;
}

/** Whether a call of this code divides what is sent into equal parts, one for each rank. */
export function isDivided(code: number): boolean {
  const kind = kindOf(code);
  return kind === callKinds.scatter || kind === callKinds.allToAll || kind === callKinds.reduceScatter;
}

/** Whether all ranks must give the same counts of parts for a call of this code. */
export function hasCommonCounts(code: number): boolean {
  return kindOf(code) === callKinds.allGatherV || kindOf(code) === callKinds.reduceScatterV;
}

/**
 * A call as a person reads it: `allReduce of 1024 float32 (sum, ring)`.
 * @param counts of a V form, where they are known; else their hash stands for them
 */
export function describeCall(call: Call, counts?: readonly number[]): string {
  const { kind, algorithm } = call;
  const shape = shapes[kind];
  const elements =
    kind === 'barrier' ? '' : kind === 'allToAllV' ? ` of ${call.type.name}` : ` of ${call.count} ${call.type.name}`;
  const root = shape.root === undefined ? '' : ` ${shape.root} rank ${call.root}`;
  const parts = shape.uneven
    ? ` in parts ${counts === undefined ? `#${(call.root >>> 0).toString(16).padStart(8, '0')}` : `of ${listed(counts)}`}`
    : '';
  return `${kind}${elements}${root}${parts} (${shape.reduces ? `${call.operator}, ` : ''}${algorithm})`;
}

/** What a call was given, by name: of operator and root, what its kind has. */
export function callArguments({ kind, type, operator, root, count, algorithm }: Call): Record<string, string | number> {
  const { reduces, root: rooted } = shapes[kind];
  return {
    ...(kind === 'barrier' ? {} : { count, type: type.name, bytes: count * type.bytes }),
    ...(reduces ? { operator } : {}),
    ...(rooted === undefined ? {} : { root }),
    algorithm,
  };
}

/** So many counts are easily read. */
const LISTED = 8;

function listed(counts: readonly number[]): string {
  return `${counts.slice(0, LISTED).join(', ')}${counts.length > LISTED ? ', …' : ''}`;
}

/** Where the counts of two ranks differ first: `their counts differ first for rank 1: 2 on rank 0, 3 on rank 4`. */
export function describeDifference(
  rank: number,
  counts: readonly number[],
  otherRank: number,
  otherCounts: readonly number[],
): string | undefined {
  const part = counts.findIndex((count, i) => count !== otherCounts[i]);
  if (part < 0) return undefined;
  return `their counts differ first for rank ${part}: ${counts[part] ?? 0} on rank ${rank}, ${otherCounts[part] ?? 0} on rank ${otherRank}`;
}

/** A hash of the counts of a V form (32 bits, FNV-1a), by which ranks notice that theirs differ. */
export function partsHash(counts: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const count of counts) {
    hash = Math.imul(hash ^ (count | 0), 0x01000193);
    hash = Math.imul(hash ^ Math.floor(count / 2 ** 32), 0x01000193);
  }
  return hash >>> 0;
}

/** The error for a kind of call that an algorithm does not have. */
export function unsupported(code: number, algorithm: Algorithm): InvalidUsageError {
  const kind = kinds.find((name) => callKinds[name] === kindOf(code)) ?? 'this call';
  return new InvalidUsageError(
    'UNSUPPORTED',
    `the algorithm ${algorithm} cannot carry out ${kind} here; leave TCCL_ALGO unset, or use ranks of one host that share memory`,
  );
}

/** What a rank called, with the counts of a V form where they are known. */
export interface Called {
  readonly rank: number;
  readonly call: Call;
  readonly counts?: readonly number[] | undefined;
  /** Which of its calls on the communicator it is. */
  readonly number?: number | undefined;
}

/** The error for two ranks that met in one operation but called different things; `rank` of it is the second's. */
export function callMismatch(mine: Called, theirs: Called): InvalidUsageError {
  const { rank, call, counts } = mine;
  const [mineText, theirText] = [describeCall(call, counts), describeCall(theirs.call, theirs.counts)];
  if (mineText === theirText) {
    const why =
      mine.number === theirs.number
        ? 'what its message says of the call was damaged on the way'
        : `its message says that this is its call number ${String(theirs.number)}, and rank ${rank} is at number ${String(mine.number)}: it left out or added calls, or the message was damaged on the way`;
    return new InvalidUsageError('CALL_MISMATCH', `rank ${theirs.rank} called ${theirText}, as rank ${rank} did, but ${why}`, {
      rank: theirs.rank,
      ranks: [rank, theirs.rank],
    });
  }
  const difference =
    counts === undefined || theirs.counts === undefined
      ? undefined
      : describeDifference(rank, counts, theirs.rank, theirs.counts);
  return new InvalidUsageError(
    'CALL_MISMATCH',
    `rank ${rank} called ${mineText} where rank ${theirs.rank} called ${theirText}; ` +
      `${difference === undefined ? '' : `${difference}; `}all ranks of a communicator must make the same calls in the same order`,
    { rank: theirs.rank, ranks: [rank, theirs.rank] },
  );
}
