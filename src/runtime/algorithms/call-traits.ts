import { callKinds } from '../device/kernels/call-kinds.js';

/** A kind of call that engines carry out, by the name of its method: allReduce, allGatherV … */
export type CallKind = keyof typeof callKinds;

/** Traits of calls, from which checks, texts and the ways of data are read. */
interface CallTraits {
  /** An operator combines elements. */
  readonly combines?: true;
  /** Each rank combines the inputs of the ranks before it. */
  readonly scans?: true;
  /** Data go from the root to the others, or from the others to the root. */
  readonly root?: 'from' | 'to';
  /** The input has a block for each rank. */
  readonly divides?: true;
  /** The output has a block of each rank. */
  readonly gathers?: true;
  /** Blocks differ in length: all ranks know all lengths, or each rank only those of its own blocks. */
  readonly uneven?: 'agreed' | 'own';
  /** Without elements that ranks count: a barrier, objects, calls that meet. */
  readonly uncounted?: true;
  /** It needs all ranks over the bootstrap network, and begins with a barrier of its name. */
  readonly meets?: true;
}

/** Kinds of calls that engines carry out. A new one needs its code in callKinds, and a schedule (docs/architecture.md). */
const kindTraits = {
  allReduce: { combines: true },
  broadcast: { root: 'from' },
  barrier: { uncounted: true },
  reduce: { combines: true, root: 'to' },
  allGather: { gathers: true },
  reduceScatter: { combines: true, divides: true },
  allToAll: { divides: true, gathers: true },
  gather: { root: 'to', gathers: true },
  scatter: { root: 'from', divides: true },
  allGatherV: { gathers: true, uneven: 'agreed' },
  reduceScatterV: { combines: true, divides: true, uneven: 'agreed' },
  allToAllV: { divides: true, gathers: true, uneven: 'own' },
  scan: { combines: true, scans: true },
  exscan: { combines: true, scans: true },
} as const satisfies Record<CallKind, CallTraits>;

/**
 * Calls that engines carry out as calls of another kind; errors name the program's call. A call's code contains the index in this
 * table: append only.
 */
const derivedTraits = {
  '': {},
  gatherV: { root: 'to', gathers: true, uneven: 'own' },
  scatterV: { root: 'from', divides: true, uneven: 'own' },
  broadcastObject: { root: 'from', uncounted: true },
  allGatherObject: { uncounted: true },
  gatherObject: { uncounted: true },
  scatterObjects: { root: 'from', uncounted: true },
  // Reductions by an operator of the program's own.
  allReduce: kindTraits.allReduce,
  reduce: kindTraits.reduce,
  reduceScatter: kindTraits.reduceScatter,
  scan: kindTraits.scan,
  exscan: kindTraits.exscan,
  // Barriers of calls over the bootstrap network, which give them a place among the collectives.
  split: { uncounted: true, meets: true },
  stream: { uncounted: true, meets: true },
  grow: { uncounted: true, meets: true },
  window: { uncounted: true, meets: true },
  program: { uncounted: true, meets: true },
  reduceObject: { uncounted: true },
  allReduceObject: { uncounted: true },
  graph: { uncounted: true, meets: true },
  // The barrier at the end of a window. Its root is the window's number.
  'window close': { uncounted: true },
  // Exchanges within a call on arrays of devices, which their root encodes.
  'device call': { uncounted: true },
} as const satisfies Record<string, CallTraits>;

export type DerivedCall = Exclude<keyof typeof derivedTraits, ''>;
export const derivedCalls = Object.keys(derivedTraits) as (DerivedCall | '')[];
/** A call over the bootstrap network that needs all ranks. */
export type MeetingCall = {
  [Name in DerivedCall]: (typeof derivedTraits)[Name] extends { readonly meets: true } ? Name : never;
}[DerivedCall];
/** A kind of call of a program, by the name of its method. */
export type CallName = CallKind | DerivedCall;

export const callTraits: Readonly<Record<CallName, CallTraits>> = { ...derivedTraits, ...kindTraits };

/** By code of the kind. A kind's code is in the lowest bits of a call's code. */
const byCode: readonly CallTraits[] = Array.from({ length: 16 }, (_, code) => {
  const entry = Object.entries(callKinds).find(([, kind]) => kind === code);
  return entry === undefined ? {} : kindTraits[entry[0] as CallKind];
});
/** Codes of the kinds with a trait, as bits: one test for a call of any kind. */
function kindsWith(has: (traits: CallTraits) => boolean): number {
  return byCode.reduce((bits, traits, code) => bits | (has(traits) ? 1 << code : 0), 0);
}
function testOf(has: (traits: CallTraits) => boolean): (code: number) => boolean {
  const bits = kindsWith(has);
  return (code) => ((bits >> (code & 15)) & 1) !== 0;
}

/** True if the call moves data from its root to the others. */
export const isFromRoot = testOf(({ root }) => root === 'from');
/** True if the call moves data from the others to its root. */
export const isToRoot = testOf(({ root }) => root === 'to');
/** True if an operator combines elements of several ranks. */
export const combines = testOf((traits) => traits.combines === true);
export const isScan = testOf(({ scans }) => scans === true);
/** True if the input has a block for each rank. */
export const divides = testOf((traits) => traits.divides === true);
/** True if the output has a block of each rank. */
export const gathers = testOf((traits) => traits.gathers === true);
/** True if blocks differ in length. */
export const isUneven = testOf(({ uneven }) => uneven !== undefined);
/** True if all ranks must give the same lengths of blocks. */
export const hasCommonCounts = testOf(({ uneven }) => uneven === 'agreed');
