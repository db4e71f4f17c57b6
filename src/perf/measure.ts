import type { NumericArray } from '../runtime/device/types.js';
import type { Arguments, Collective, MeasuredCommunicator, Shape } from './collectives.js';
import { countWrong, TestData } from './data.js';
import type { Average, PerfOptions } from './options.js';
import type { PerfOperator } from './types.js';
import type { ElementType } from './types.js';

/** One half of a row. */
export interface Case {
  readonly collective: Collective;
  readonly type: ElementType;
  readonly operator: PerfOperator | undefined;
  readonly root: number;
  readonly shape: Shape;
  readonly send: NumericArray;
  readonly recv: NumericArray;
  /** Arguments of the call; made once, so that the timed loop allocates nothing. */
  readonly call: Arguments;
}

/** The two buffers of a rank, made once for the largest size, and the cases' views of them. */
export class Buffers {
  readonly #comm: MeasuredCommunicator;
  readonly #memory: PerfOptions['memory'];
  readonly #send: Float64Array;
  readonly #recv: Float64Array;

  /** @param maxBytes of the larger of a case's buffers */
  constructor(comm: MeasuredCommunicator, memory: PerfOptions['memory'], maxBytes: number) {
    const length = Math.ceil(maxBytes / Float64Array.BYTES_PER_ELEMENT);
    this.#comm = comm;
    this.#memory = memory;
    this.#send = memory === 'shared' ? comm.alloc(Float64Array, length) : new Float64Array(length);
    this.#recv = memory === 'shared' ? comm.alloc(Float64Array, length) : new Float64Array(length);
  }

  /** Send and receive buffers of this rank: in place both views are of the receive buffer. */
  views(type: Pick<ElementType, 'array' | 'bytes'>, shape: Shape, inPlace: boolean): { send: NumericArray; recv: NumericArray } {
    const { rank } = this.#comm;
    const view = (buffer: Float64Array, first: number, count: number) =>
      new type.array(buffer.buffer, buffer.byteOffset + first * type.bytes, count);
    const recv = view(this.#recv, inPlace ? rank * shape.recvOffset : 0, shape.recvCount);
    if (!inPlace) return { send: view(this.#send, 0, shape.sendCount), recv };
    const send = view(this.#recv, rank * shape.sendOffset, shape.sendCount);
    const same = send.byteOffset === recv.byteOffset && send.length === recv.length;
    return { send: same ? recv : send, recv };
  }

  free(): void {
    if (this.#memory !== 'shared') return;
    this.#comm.free(this.#send);
    this.#comm.free(this.#recv);
  }
}

/** Longest warm-up of a case by time, milliseconds. */
const LONGEST_WARM_UP_MS = 500;

/**
 * Runs a case `iterations` times, and again for `leastMs` and until that gets no faster: V8 compiles in the background, and once
 * more what is called often. Rank 0 decides for all. Returns the time of an iteration in rank 0's fastest round, milliseconds.
 */
export async function warmUpUntilSteady(
  comm: MeasuredCommunicator,
  one: Case,
  { iterations, leastMs }: { readonly iterations: number; readonly leastMs: number },
  options: PerfOptions,
): Promise<number> {
  const begunMs = performance.now();
  let bestMs = Infinity;
  while (true) {
    const ms = await timeIterations(comm, one, iterations, options);
    const pastMs = performance.now() - begunMs;
    const goesOn = pastMs < leastMs || (ms < 0.95 * bestMs && pastMs < LONGEST_WARM_UP_MS);
    bestMs = Math.min(bestMs, ms);
    const [iterationMs = 0] = await gather(comm, goesOn ? Infinity : bestMs / iterations);
    if (Number.isFinite(iterationMs)) return iterationMs;
  }
}

/** Times of one call, microseconds. */
interface CallTime {
  readonly meanUs: number;
  /** Mean of the fastest block of calls. */
  readonly minUs: number;
}

/** Most blocks of consecutive calls whose times are compared. */
const BLOCKS = 10;

/**
 * The time of one call at this rank: the mean of `iterations` consecutive calls, as in nccl-tests, and that of their fastest
 * tenth. Ranks start together, behind a barrier.
 */
export async function timeCase(
  comm: MeasuredCommunicator,
  one: Case,
  iterations: number,
  options: PerfOptions,
): Promise<CallTime> {
  const data = new TestData(one.type, one.operator, comm.nRanks, 0);
  data.fill(one.send, comm.rank, 0);
  // Repeated sums in place would leave the type's range: zeros stay.
  if (one.send === one.recv) fillBytes(one.recv, 0);
  if (options.api === 'sync') callSync(comm, one);
  else await call(comm, one);
  // A promise ends a turn of the event loop later at some ranks: the others would wait for them in the first calls.
  if (options.api === 'sync') comm.barrierSync();
  else await comm.barrier();
  const blocks = Math.min(BLOCKS, iterations);
  let totalMs = 0;
  let minMs = Infinity;
  for (let block = 0; block < blocks; block++) {
    const calls = Math.floor(((block + 1) * iterations) / blocks) - Math.floor((block * iterations) / blocks);
    const ms = await timeIterations(comm, one, calls, options);
    totalMs += ms;
    minMs = Math.min(minMs, ms / calls);
  }
  const { aggregate } = options;
  return { meanUs: (totalMs * 1e3) / (iterations * aggregate), minUs: (minMs * 1e3) / aggregate };
}

/**
 * Milliseconds of consecutive iterations. Warm-ups run this, too: another loop of the same calls would be compiled anew.
 */
export async function timeIterations(
  comm: MeasuredCommunicator,
  one: Case,
  iterations: number,
  options: PerfOptions,
): Promise<number> {
  return options.api === 'sync' ? timeSync(comm, one, iterations, options) : timePromise(comm, one, iterations, options);
}

function timeSync(comm: MeasuredCommunicator, one: Case, iterations: number, { aggregate, blocking }: PerfOptions): number {
  let excluded = 0;
  const start = performance.now();
  for (let i = 0; i < iterations; i++) {
    for (let j = 0; j < aggregate; j++) {
      callSync(comm, one);
      if (blocking === 1) comm.barrierSync();
    }
    if (blocking === 3) {
      const before = performance.now();
      comm.barrierSync();
      excluded += performance.now() - before;
    }
  }
  return performance.now() - start - excluded;
}

async function timePromise(
  comm: MeasuredCommunicator,
  one: Case,
  iterations: number,
  { aggregate, blocking }: PerfOptions,
): Promise<number> {
  let excluded = 0;
  const start = performance.now();
  for (let i = 0; i < iterations; i++) {
    if (blocking === 0 && aggregate > 1) await Promise.all(Array.from({ length: aggregate }, () => call(comm, one)));
    else {
      for (let j = 0; j < aggregate; j++) {
        await call(comm, one);
        if (blocking === 1) await comm.barrier();
      }
    }
    if (blocking === 3) {
      const before = performance.now();
      await comm.barrier();
      excluded += performance.now() - before;
    }
  }
  return performance.now() - start - excluded;
}

/** Runs a case once on fresh numbers; the wrong elements of all ranks. */
export async function checkCase(comm: MeasuredCommunicator, one: Case, api: PerfOptions['api'], round: number): Promise<number> {
  const { collective, shape, root } = one;
  const data = new TestData(one.type, one.operator, comm.nRanks, round);
  fillBytes(one.recv, 0xff);
  data.fill(one.send, comm.rank, 0);
  if (api === 'sync') callSync(comm, one);
  else await call(comm, one);
  const segments = collective.expected(shape, { rank: comm.rank, nRanks: comm.nRanks, root });
  const wrong = await gather(comm, countWrong(one.recv, segments, data));
  return wrong.reduce((sum, count) => sum + count, 0);
}

/** One number of each rank, by rank. */
export async function gather(comm: MeasuredCommunicator, value: number): Promise<Float64Array> {
  const values = new Float64Array(comm.nRanks);
  values[comm.rank] = value;
  await comm.allReduce(values);
  return values;
}

/** The ranks' times as one. */
export function average(times: Float64Array, which: Average): number {
  switch (which) {
    case 'rank0':
      return times[0] ?? 0;
    case 'avg':
      return times.reduce((sum, time) => sum + time, 0) / times.length;
    case 'min':
      return Math.min(...times);
    case 'max':
      return Math.max(...times);
  }
}

function callSync(comm: MeasuredCommunicator, one: Case): void {
  one.collective.runSync(comm, one.call);
}

function call(comm: MeasuredCommunicator, one: Case): Promise<void> {
  return one.collective.run(comm, one.call);
}

/** The same byte everywhere: 0xff is -1, NaN, or the largest number. */
function fillBytes(array: NumericArray, byte: number): void {
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).fill(byte);
}
