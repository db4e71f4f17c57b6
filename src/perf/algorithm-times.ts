import { algorithms, type Algorithm, type CallKind } from '../runtime/algorithms/call.js';
import { isOfAggregators } from '../runtime/algorithms/choose-algorithm.js';
import { carriesOut } from '../runtime/algorithms/traits.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import type { Explanation } from '../runtime/communicator/explain.js';
import { float32 } from '../runtime/device/types.js';
import { clockCost, median } from './clock.js';
import { type Arguments, type Collective, collectives, type Shape } from './collectives.js';
import { Buffers } from './measure.js';

/** Kinds of calls that are compared, under perf's names. */
const timedKinds: Readonly<Partial<Record<CallKind, string>>> = {
  allReduce: 'all_reduce',
  reduce: 'reduce',
  broadcast: 'broadcast',
  allGather: 'all_gather',
  reduceScatter: 'reduce_scatter',
  allToAll: 'alltoall',
  gather: 'gather',
  scatter: 'scatter',
};

export interface TimingOptions {
  /** Bytes of the longer array of a call, ascending. */
  readonly sizes: readonly number[];
  /** Number of rounds among the algorithms of a cell. */
  readonly rounds: number;
  /** Length of a candidate's turn, milliseconds; at least a few calls. */
  readonly turnMs: number;
  /** True if the ranks' own choice is a candidate, too. */
  readonly withChoice: boolean;
}

/** Result of a candidate in a cell. */
export interface AlgorithmTime {
  readonly kind: CallKind;
  readonly ranks: number;
  /** Of the longer array. */
  readonly size: number;
  /** Bytes by which an algorithm is chosen: the call's count times its elements' size. */
  readonly bytes: number;
  /** True if the ranks chose by themselves, or this algorithm was forced. */
  readonly chosen: boolean;
  /** The candidate's own explanation of its calls. */
  readonly algorithm: Algorithm;
  readonly protocol: Explanation['protocol'];
  readonly us: number;
}

/** Report of a rank that fails. */
export interface Failure {
  readonly error: string;
}

/** One kind of call at one size, for which the algorithms are compared. */
interface Cell {
  readonly kind: CallKind;
  readonly collective: Collective;
  readonly size: number;
  readonly shape: Shape;
}

/** An algorithm with its communicator. */
interface Candidate {
  /** Undefined for the ranks' own choice. */
  readonly algorithm: Algorithm | undefined;
  readonly comm: Communicator;
}

/** A size at which no algorithm takes one phase, or one message, any more. */
const WARM_BYTES = 128 * 1024;
/** Warm-up of a candidate, milliseconds: for its first cell of a kind, and for each further one. */
const WARM_KIND_MS = 100;
const WARM_CELL_MS = 40;
/** Calls after which V8 has compiled them. */
const WARM_CALLS = 30_000;
const FEWEST_SAMPLES = 3;
const MOST_SAMPLES = 1000;
/**
 * Drop candidates that take this many times the best time in two rounds: their times need not be more exact. Memory alone makes
 * a factor of three.
 */
const HOPELESS = 4;

/** The cells of a comparison among `nRanks` ranks. */
export function timedCells(nRanks: number, sizes: readonly number[]): Cell[] {
  return (Object.entries(timedKinds) as [CallKind, string][]).flatMap(([kind, name]) => {
    const collective = collectives.find((one) => one.name === name);
    if (collective === undefined) return [];
    const cells = sizes.map((size) => ({ kind, collective, size, shape: shapeOf(collective, size, nRanks) }));
    // Rounding to whole blocks may leave nothing of small sizes, or the same as of the size before.
    return cells.filter(({ shape: { count } }, i) => count > (cells[i - 1]?.shape.count ?? 0));
  });
}

/**
 * Compares the algorithms in every collective and size: float sums out of place, arrays in shared memory, the blocking API. All
 * ranks call it with the same options, and all get the same result.
 *
 * Each algorithm has a communicator of its own on the same memory and arrays, and they take turns of some milliseconds, so that
 * placement of pages and cores is the same for all. A sample is the slowest rank's time of one call behind a barrier; an
 * algorithm's time is the lowest of its turns' medians.
 */
export async function timeAlgorithms(
  comm: Communicator,
  options: TimingOptions,
  tell: (result: AlgorithmTime) => void,
): Promise<void> {
  const candidates = await enter(comm, options.withChoice);
  const cells = timedCells(comm.nRanks, options.sizes);
  const warmShape = (collective: Collective): Shape => shapeOf(collective, WARM_BYTES, comm.nRanks);
  const buffers = new Buffers(
    comm,
    'shared',
    Math.max(...[...cells.map(({ shape }) => shape), ...cells.map(({ collective }) => warmShape(collective))].map(bytesOf)),
  );
  const timer = new SampleTimer(comm);
  const argumentsOf = (shape: Shape): Arguments => ({
    ...buffers.views(float32, shape, false),
    operator: 'sum',
    root: 0,
    options: { type: 'float32' as const },
  });
  let warmKind: CallKind | undefined;
  for (const { kind, collective, size, shape } of cells) {
    const here = candidates.filter(({ algorithm }) => algorithm === undefined || carriesOut(algorithm, kind, comm.nRanks));
    if (kind !== warmKind)
      for (const one of here) timer.warmUp(one.comm, collective, argumentsOf(warmShape(collective)), WARM_KIND_MS);
    warmKind = kind;
    const call = argumentsOf(shape);
    for (const array of [call.send, call.recv]) array.fill(1 as never);
    const times = timeCandidates(timer, here, collective, call, options);
    const bytes = shape.count * float32.bytes;
    for (const [index, one] of here.entries()) {
      const { algorithm, protocol } = one.comm.explain(kind, bytes);
      tell({
        kind,
        ranks: comm.nRanks,
        size,
        bytes,
        chosen: one.algorithm === undefined,
        algorithm,
        protocol,
        us: times[index] ?? Infinity,
      });
    }
  }
  buffers.free();
  for (const one of candidates) await one.comm.close();
}

/** A communicator of the same ranks for each algorithm. */
async function enter(comm: Communicator, withChoice: boolean): Promise<Candidate[]> {
  const candidates: Candidate[] = withChoice ? [{ algorithm: undefined, comm: await comm.stream() }] : [];
  for (const algorithm of algorithms) {
    if (isOfAggregators(algorithm)) continue;
    // On one host, it is a slower *direct*.
    if (algorithm !== 'hierarchical') candidates.push({ algorithm, comm: await comm.stream({ algorithm }) });
  }
  return candidates;
}

/** The time of each candidate in one cell, µs. */
function timeCandidates(
  timer: SampleTimer,
  candidates: readonly Candidate[],
  collective: Collective,
  call: Arguments,
  { rounds, turnMs }: TimingOptions,
): number[] {
  const samples = candidates.map(({ comm }) => {
    const callMs = timer.warmUp(comm, collective, call, WARM_CELL_MS);
    return Math.max(FEWEST_SAMPLES, Math.min(MOST_SAMPLES, Math.floor(turnMs / callMs)));
  });
  const lowest = candidates.map(() => Infinity);
  for (let round = 0; round < rounds; round++) {
    const best = Math.min(...lowest);
    for (let turn = 0; turn < candidates.length; turn++) {
      // Each round begins with another candidate, so that none always follows the same one.
      const index = (round + turn) % candidates.length;
      const candidate = candidates[index];
      if (candidate === undefined || (round >= 2 && (lowest[index] ?? 0) > HOPELESS * best)) continue;
      lowest[index] = Math.min(
        lowest[index] ?? Infinity,
        timer.run(candidate.comm, collective, call, samples[index] ?? FEWEST_SAMPLES),
      );
    }
  }
  return lowest.map((ms) => ms * 1e3);
}

/** Timer of candidates: every rank gets the same times. */
class SampleTimer {
  readonly #comm: Communicator;
  readonly #times: Float64Array;
  readonly #elapsed: Float64Array;
  /** Cost of reading the clock at the fastest rank: all subtract the same, so that they drop the same candidates. */
  readonly #clockMs: number;

  /** @param comm communicator whose barrier starts calls; not a candidate's */
  constructor(comm: Communicator) {
    this.#comm = comm;
    this.#times = comm.alloc(Float64Array, MOST_SAMPLES);
    this.#elapsed = comm.alloc(Float64Array, 1).fill(clockCost() * 1e3);
    comm.allReduceSync(this.#elapsed, this.#elapsed, 'min');
    this.#clockMs = this.#elapsed[0] ?? 0;
  }

  /** Makes calls until V8 has compiled them, or the time is over; returns the last interval between two calls, milliseconds. */
  warmUp(comm: Communicator, collective: Collective, call: Arguments, limitMs: number): number {
    let spentMs = 0;
    let callMs = 0;
    for (
      let made = 0, calls = 1;
      made < WARM_CALLS && spentMs < limitMs;
      made += calls, calls = Math.min(2 * calls, MOST_SAMPLES)
    ) {
      const start = performance.now();
      this.#sample(comm, collective, call, calls);
      this.#elapsed[0] = performance.now() - start;
      // All ranks must stop at the same call.
      this.#comm.allReduceSync(this.#elapsed, this.#elapsed, 'max');
      spentMs += this.#elapsed[0];
      callMs = this.#elapsed[0] / calls;
    }
    return callMs;
  }

  /** Median of the samples, milliseconds. */
  run(comm: Communicator, collective: Collective, call: Arguments, samples: number): number {
    const times = this.#sample(comm, collective, call, samples);
    this.#comm.allReduceSync(times, times, 'max');
    return Math.max(1e-6, median(times) - this.#clockMs);
  }

  #sample(comm: Communicator, collective: Collective, call: Arguments, samples: number): Float64Array {
    const times = this.#times.subarray(0, samples);
    for (let i = 0; i < samples; i++) {
      this.#comm.barrierSync();
      const start = performance.now();
      collective.runSync(comm, call);
      times[i] = performance.now() - start;
    }
    return times;
  }
}

function shapeOf(collective: Collective, size: number, nRanks: number): Shape {
  return collective.shape(Math.floor(size / float32.bytes), nRanks, float32.bytes);
}

/** The longer array. */
function bytesOf({ sendCount, recvCount }: Shape): number {
  return Math.max(sendCount, recvCount) * float32.bytes;
}
