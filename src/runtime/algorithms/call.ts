import { callKinds } from '../device/kernels/call-kinds.js';
import { operatorNames, typeOfCode, type DataType, type OperatorName } from '../device/types.js';
import type { ScheduledCollective } from '../../planner/schedule/schedule.js';
import { callTraits, derivedCalls, type CallKind, type CallName, type DerivedCall } from './call-traits.js';
import { InternalError } from '../../errors.js';
import { defined } from '../../defined.js';

export type { CallKind, DerivedCall, MeetingCall } from './call-traits.js';

/** Routes of data in collectives. A call's code contains the index in this list: append only. */
export const algorithms = [
  'direct',
  'ring',
  'tree',
  'pat',
  'pairs',
  'nvls',
  'hierarchical',
  'nvlstree',
  'collnet',
  'collnetchain',
] as const;
/** Name of an algorithm; docs/notes/algorithms.md describes each. */
export type Algorithm = (typeof algorithms)[number];
/** In a call's code, in place of an algorithm: a program of the caller's own carries the call out. */
const PROGRAM = 15;

/** Description of a call. The ranks of a communicator must make equal calls in the same order. */
export interface Call {
  readonly kind: CallKind;
  /** Ignored for a barrier. */
  readonly type: DataType;
  /** Ignored except for a reduction. */
  readonly operator: OperatorName;
  /** Root, for kinds that have one. For allGatherV and reduceScatterV: the partsHash() of their counts. */
  readonly root: number;
  /**
   * Number of elements as NCCL counts them: of the input, except for reduceScatter and scatter, which count the output, and
   * allToAll, which counts the elements for one rank. V forms: of all ranks together; allToAllV has none.
   */
  readonly count: number;
  readonly algorithm: Algorithm | 'program';
  /** The program's call, if a call of this kind carries it out. */
  readonly derived?: DerivedCall | undefined;
}

/** Details of V forms, premulSum, calls with a limit, and calls shared by engine threads. Absent on the hot paths. */
export interface CallDetails {
  /**
   * V forms: number of elements of each rank's part of the longer array, and where it begins. For allToAllV: of each rank's
   * part of the input.
   */
  readonly counts?: readonly number[];
  readonly displacements?: readonly number[];
  /** allToAllV: the same for the output. */
  readonly recvCounts?: readonly number[];
  readonly recvDisplacements?: readonly number[];
  /** premulSum: factor of this rank's input; representable in the type. */
  readonly scalar?: number | bigint;
  /** Time limit of this call alone, milliseconds: ranks report their waits often enough for it. */
  readonly limitMs?: number;
  /** The part of each rank's block that this call is about, if engine threads share the call; the same on all ranks. */
  readonly share?: Share;
}

/** One of several equal parts. */
export interface Share {
  readonly index: number;
  readonly of: number;
}

const kinds = Object.keys(callKinds) as CallKind[];

const kindsOfSchedules: Readonly<Partial<Record<ScheduledCollective, CallKind>>> = {
  AllReduce: 'allReduce',
  AllGather: 'allGather',
  ReduceScatter: 'reduceScatter',
  Broadcast: 'broadcast',
  Reduce: 'reduce',
  AllToAll: 'allToAll',
  Gather: 'gather',
  Scatter: 'scatter',
};

/** The kind of call that a schedule is of; undefined for messages around a circle. */
export function callKindOf(collective: ScheduledCollective): CallKind | undefined {
  return kindsOfSchedules[collective];
}

/** True if an operator of the program's own combines, in a call of another kind. Without a root, `root` is its whole count. */
function isOwnReduction({ derived }: Call): boolean {
  return derived !== undefined && callTraits[derived].combines === true;
}

/** Text of the operator. */
function operatorText(call: Call): string {
  return isOwnReduction(call) ? 'own operator' : call.operator;
}

/** Number of elements of the program's call, as far as known: a gather has the root in its place. */
function wholeCount(call: Call): number {
  return isOwnReduction(call) && call.kind !== 'gather' ? call.root : call.count;
}

/** All of a call except its root and count, as a number: kind | type << 4 | operator << 8 | algorithm << 12 | derived << 16. */
export function encodeCall(call: Call): number {
  const { kind } = call;
  const type = kind === 'barrier' ? 0 : call.type.code;
  const operator = callTraits[nameOf(call)].combines === true && !isOwnReduction(call) ? operatorNames.indexOf(call.operator) : 0;
  const derived = call.derived === undefined ? 0 : derivedBits(call.derived);
  return callKinds[kind] | (type << 4) | (operator << 8) | algorithmBits(call.algorithm) | derived;
}

/** The bits of a code that encode the program's call. */
export function derivedBits(name: DerivedCall): number {
  return derivedCalls.indexOf(name) << 16;
}

/** The program's call in a code, if another kind of call carries it out. */
export function derivedOf(code: number): DerivedCall | undefined {
  const name = derivedCalls[(code >>> 16) & 31];
  return name === '' ? undefined : name;
}

/** True for the barrier of a meeting call. */
export function isMeeting(code: number): boolean {
  const name = derivedOf(code);
  return name !== undefined && callTraits[name].meets === true;
}

/** Name of the program's call. */
export function nameOf({ kind, derived }: Call): CallName {
  return derived ?? kind;
}

/** Name of the program's call, by its code and root. */
export function callName(code: number, root: number): string {
  const call = readCall(code, root, 0);
  return call === undefined ? 'call' : programCall(call);
}

function programCall(call: Call): string {
  return call.derived === 'device call' ? deviceCallIn(call.root).name : nameOf(call);
}

/** Calls of programs on arrays of devices. */
export type DeviceCall = Exclude<CallKind, 'barrier'> | 'close';

/** The program's call, of which the root of an exchange has the code. */
function deviceCallIn(root: number): { readonly name: string; readonly text: string } {
  const call = readCall(root, 0, 0);
  if (call === undefined) return { name: 'call', text: 'call on devices' };
  if (call.kind === 'barrier') return { name: 'close', text: 'close of a device' };
  return { name: call.kind, text: `${call.kind} of ${call.type.name} on devices` };
}

/** Decodes a code made by `encodeCall`. */
export function decodeCall(code: number, root: number, count: number): Call {
  const call = readCall(code, root, count);
  if (call === undefined) throw new InternalError('INTERNAL', `0x${code.toString(16)} is not the code of a call`);
  return call;
}

/** Decodes a code that another rank sent; undefined if it is not the code of a call. */
export function readCall(code: number, root: number, count: number): Call | undefined {
  const kind = kinds.find((name) => callKinds[name] === kindOf(code));
  const type = typeOfCode(typeCodeOf(code));
  const operator = operatorNames[operatorOf(code)];
  const algorithm = ((code >> 12) & 15) === PROGRAM ? 'program' : algorithmOf(code);
  if (kind === undefined || type === undefined || operator === undefined || algorithm === undefined) return undefined;
  const derived = derivedOf(code);
  return { kind, type, operator, root, count, algorithm, ...(derived === undefined ? {} : { derived }) };
}

/** Kind of call in a code; see callKinds. */
export function kindOf(code: number): number {
  return code & 15;
}

/** Code of the element type in a code. */
export function typeCodeOf(code: number): number {
  return (code >> 4) & 15;
}

/** Index in operatorNames of a code's operator. */
export function operatorOf(code: number): number {
  return (code >> 8) & 15;
}

/** The bits of a code that stand for an algorithm. */
export function algorithmBits(algorithm: Call['algorithm']): number {
  return (algorithm === 'program' ? PROGRAM : algorithms.indexOf(algorithm)) << 12;
}

export function algorithmOf(code: number): Algorithm | undefined {
  return algorithms[(code >> 12) & 15];
}

/**
 * Text of a call, such as `allReduce of 1024 float32 (sum, ring)`.
 * @param counts of a V form, if known; otherwise the text has their hash
 */
export function describeCall(call: Call, counts?: readonly number[]): string {
  const { algorithm } = call;
  const name = nameOf(call);
  const traits = callTraits[name];
  if (traits.meets === true) return name;
  if (name === 'device call') return deviceCallIn(call.root).text;
  if (name === 'window close') return `${name} (window ${call.root})`;
  const count = traits.uneven === 'own' ? '' : `${wholeCount(call)} `;
  const elements = traits.uncounted === true ? '' : ` of ${count}${call.type.name}`;
  const isRooted = traits.root !== undefined && (!isOwnReduction(call) || call.kind === 'gather');
  const root = isRooted ? ` ${traits.root} rank ${call.root}` : '';
  const parts =
    traits.uneven === 'agreed'
      ? ` in parts ${counts === undefined ? `#${(call.root >>> 0).toString(16).padStart(8, '0')}` : `of ${listed(counts)}`}`
      : '';
  return `${name}${elements}${root}${parts} (${traits.combines === true ? `${operatorText(call)}, ` : ''}${algorithm})`;
}

/** Arguments of a call by name: operator and root only for kinds that have them. */
export function callArguments(call: Call): Record<string, string | number> {
  const { kind, type, root, algorithm } = call;
  const { combines, root: rooted } = callTraits[nameOf(call)];
  const count = wholeCount(call);
  return {
    ...(kind === 'barrier' ? {} : { count, type: type.name, bytes: count * type.bytes }),
    ...(combines === true ? { operator: operatorText(call) } : {}),
    ...(rooted === undefined || (isOwnReduction(call) && kind !== 'gather') ? {} : { root }),
    algorithm,
  };
}

/** Most counts that a text lists. */
const LISTED = 8;

function listed(counts: readonly number[]): string {
  return `${counts.slice(0, LISTED).join(', ')}${counts.length > LISTED ? ', …' : ''}`;
}

/**
 * Text of the first difference between the counts of two ranks: `their counts differ first for rank 1: 2 on rank 0, 3 on rank 4`.
 */
export function describeDifference(
  rank: number,
  counts: readonly number[],
  otherRank: number,
  otherCounts: readonly number[],
): string | undefined {
  const part = counts.findIndex((count, i) => count !== otherCounts[i]);
  if (part < 0) return undefined;
  return `their counts differ first for rank ${part}: ${defined(counts[part])} on rank ${rank}, ${defined(otherCounts[part])} on rank ${otherRank}`;
}

/** True if ranks agree about a number of elements. */
export function hasCount(call: Call): boolean {
  const { uncounted, uneven } = callTraits[nameOf(call)];
  return uncounted !== true && uneven !== 'own';
}

/** Names of a call's arguments in messages. The algorithm follows from the others. */
const argumentNames = { count: 'the number of elements', type: 'the type', operator: 'the operator', root: 'the root' };

/** Text of the arguments in which calls of one name differ: `; they differ in the type and the root`. Empty for other names. */
export function describeArguments(calls: readonly Call[]): string {
  if (new Set(calls.map(programCall)).size > 1) return '';
  const given = calls.map(callArguments);
  const differing = Object.entries(argumentNames).filter(([name]) => new Set(given.map((each) => each[name])).size > 1);
  return differing.length === 0 ? '' : `; they differ in ${differing.map(([, name]) => name).join(' and ')}`;
}

/** Hash of the counts of a V form (32 bits, FNV-1a), by which ranks detect different counts. */
export function partsHash(counts: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const count of counts) {
    hash = Math.imul(hash ^ (count | 0), 0x01000193);
    hash = Math.imul(hash ^ Math.floor(count / 2 ** 32), 0x01000193);
  }
  return hash >>> 0;
}
