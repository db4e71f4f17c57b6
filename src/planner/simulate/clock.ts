import type { Move, ScheduledConnection, Worker } from '../schedule/schedule.js';
import { Batches } from './batches.js';
import { Fifos, type SliceInProgress, type WireUse } from './fifos.js';
import type { Timing } from './timing.js';
import { Waits } from './waits.js';

/** Times at which workers were done. */
interface Finished {
  readonly endUs: Float64Array;
  /** Time in which each connection's messages used its share of a NIC or of PCI links. */
  readonly wireUs: Float64Array;
}

/** Called with each slice, for a timeline. */
export type SliceListener = (slice: {
  readonly worker: number;
  readonly move: Move;
  readonly startUs: number;
  readonly endUs: number;
  readonly bytes: number;
  /** Times at which its bytes were on the links of each connection that it sends to. */
  readonly wires: readonly WireUse[];
}) => void;

/**
 * Executes workers in time. A slice starts when its data have arrived and the FIFOs it writes to have room. Workers are a Kahn
 * network, so times do not depend on the order of computation: the clock runs each worker as far as it can, then wakes those that
 * wait for it, without a queue of events.
 *
 * @throws RangeError if workers wait for each other
 */
export function runClock(
  workers: readonly Worker[],
  connections: readonly ScheduledConnection[],
  timing: Timing,
  listen?: SliceListener,
): Finished {
  return new Clock(workers, connections.length, timing, listen).run();
}

class Clock {
  readonly #workers: readonly Worker[];
  /** Costs, copied because timings have objects of several shapes, which are slow to read in a loop. */
  readonly #copyRate: Float64Array;
  readonly #cutsThrough: boolean;
  readonly #slices: number;
  readonly #leastBytes: number;
  readonly #operandCost: number;
  readonly #sumCost: number;
  readonly #sliceUs: number;
  readonly #copySliceUs: number;
  readonly #listen: SliceListener | undefined;
  readonly #fifos: Fifos;
  readonly #batches: Batches;
  readonly #waits: Waits;
  /** Workers that may go on; a stack. */
  readonly #runnable: Int32Array;
  #nRunnable: number;
  readonly #isRunnable: Uint8Array;
  readonly #moves: readonly Iterator<Move>[];
  /** The move that each worker is about, and its slices that are done. */
  readonly #current: (Move | undefined)[];
  readonly #slicesDone: Int32Array;
  /** Of that move: its cost by that of a copy, which has two operands and no sum, and the time of a slice besides its bytes. */
  readonly #factor: Float64Array;
  readonly #overheadUs: Float64Array;
  /** Time at which each worker is done with its last slice. */
  readonly #endUs: Float64Array;
  /** Fields begin as fractions, so that the engine stores them as such from the start. */
  readonly #slice: SliceInProgress = {
    worker: 0,
    bytes: 0.5,
    startUs: 0.5,
    endUs: 0.5,
    overheadUs: 0.5,
    completeUs: 0.5,
    rate: 0.5,
    notifyUs: 0.5,
  };

  constructor(workers: readonly Worker[], nConnections: number, timing: Timing, listen: SliceListener | undefined) {
    const wake = (worker: number) => {
      if (this.#isRunnable[worker] === 1) return;
      this.#isRunnable[worker] = 1;
      this.#runnable[this.#nRunnable++] = worker;
    };
    this.#workers = workers;
    this.#copyRate = timing.copyRate;
    this.#cutsThrough = timing.cutsThrough;
    this.#slices = timing.slicing.slices;
    this.#leastBytes = timing.slicing.leastBytes;
    this.#operandCost = timing.operandCost;
    this.#sumCost = timing.sumCost;
    this.#sliceUs = timing.sliceUs;
    this.#copySliceUs = timing.copySliceUs;
    this.#listen = listen;
    this.#fifos = new Fifos(nConnections, timing, wake);
    this.#batches = new Batches(workers, wake);
    this.#waits = new Waits(wake);
    this.#runnable = Int32Array.from(workers, (_, worker) => workers.length - 1 - worker);
    this.#nRunnable = workers.length;
    this.#isRunnable = new Uint8Array(workers.length).fill(1);
    this.#moves = workers.map(({ moves }) => moves()[Symbol.iterator]());
    this.#current = workers.map(() => undefined);
    this.#slicesDone = new Int32Array(workers.length);
    this.#factor = new Float64Array(workers.length);
    this.#overheadUs = new Float64Array(workers.length);
    this.#endUs = new Float64Array(workers.length);
  }

  run(): Finished {
    while (this.#nRunnable > 0) {
      const worker = this.#runnable[--this.#nRunnable] ?? 0;
      this.#isRunnable[worker] = 0;
      this.#runWorker(worker);
    }
    const stuck = this.#workers[this.#current.findIndex((move) => move !== undefined)];
    if (stuck !== undefined)
      throw new RangeError(`the schedule deadlocks: rank ${stuck.rank} on channel ${stuck.channel} never goes on`);
    return { endUs: this.#endUs, wireUs: this.#fifos.wireUs };
  }

  /** Does moves of a worker until they end, or one has to wait. */
  #runWorker(worker: number): void {
    for (;;) {
      const move = this.#moveOf(worker);
      if (move === undefined) {
        this.#batches.end(worker, this.#endUs[worker] ?? 0);
        return;
      }
      if (!this.#doMove(worker, move)) return;
      this.#current[worker] = undefined;
      if (move.local !== undefined) this.#waits.end(worker, this.#endUs[worker] ?? 0);
    }
  }

  /** The move that a worker is about, or its next one. */
  #moveOf(worker: number): Move | undefined {
    const current = this.#current[worker];
    if (current !== undefined) return current;
    const next = this.#moves[worker]?.next();
    if (next === undefined || next.done === true) return undefined;
    this.#beginMove(worker, next.value);
    return (this.#current[worker] = next.value);
  }

  /** Does the slices of a move. @returns false if one has to wait; the worker is then woken */
  #doMove(worker: number, move: Move): boolean {
    const { local, batch = 0, receive, send, bytes } = move;
    const opened = batch > 0 ? this.#batches.begin(worker, batch, this.#endUs[worker] ?? 0) : 0;
    if (opened === undefined) return false;
    const over = local === undefined ? 0 : this.#waits.over(local.after, worker);
    if (over === undefined) return false;
    const ready = Math.max(opened, over);
    const slices = this.#slices;
    const copyRate = this.#copyRate[worker] ?? 0;
    const factor = this.#factor[worker] ?? 1;
    const sliceBytes = Math.max(Math.ceil(bytes / slices), this.#leastBytes);
    const slice = this.#slice;
    const fifos = this.#fifos;
    let free = this.#endUs[worker] ?? 0;
    slice.worker = worker;
    slice.overheadUs = this.#overheadUs[worker] ?? 0;
    for (let number = this.#slicesDone[worker] ?? 0; number < slices; number++) {
      const size = Math.max(0, Math.min(sliceBytes, bytes - number * sliceBytes));
      if (size === 0 && number > 0) break;
      this.#slicesDone[worker] = number;
      slice.bytes = size;
      slice.startUs = Math.max(free, ready);
      slice.completeUs = 0;
      slice.rate = copyRate;
      slice.notifyUs = 0;
      if (!fifos.awaitMessages(receive, slice) || !fifos.awaitSlots(send, slice)) return false;
      const work = size === 0 ? 0 : Math.max(size / slice.rate, (size / copyRate) * factor);
      const { startUs, overheadUs } = slice;
      slice.endUs = Math.max(
        startUs + overheadUs + slice.notifyUs + work,
        this.#cutsThrough ? slice.completeUs + Math.min(overheadUs, work) : 0,
      );
      this.#endSlice(move, slice);
      free = slice.endUs;
      this.#endUs[worker] = free;
    }
    return true;
  }

  /** Computes the costs of a move once, because a worker may go on with it several times. */
  #beginMove(worker: number, { receive, input, send, output, local, ranges }: Move): void {
    const sources = receive.length + (input >= 0 ? 1 : 0) + (local === undefined ? 0 : local.adds.length);
    const targets = send.length + (output >= 0 ? 1 : 0) + (local === undefined ? 0 : local.writes.length);
    const touches = input >= 0 || output >= 0 || local !== undefined || ranges !== undefined;
    const isMemory = this.#workers[worker]?.serves !== undefined;
    this.#factor[worker] = 1 + this.#operandCost * (sources + targets - 2) + this.#sumCost * Math.max(0, sources - 1);
    this.#overheadUs[worker] = isMemory ? 0 : touches ? this.#copySliceUs : this.#sliceUs;
    this.#slicesDone[worker] = 0;
  }

  /** Moves the messages of a slice whose times are known. */
  #endSlice(move: Move, slice: SliceInProgress): void {
    const wires: WireUse[] | undefined = this.#listen === undefined ? undefined : [];
    this.#fifos.take(move.receive, slice);
    this.#fifos.put(move.send, slice, wires);
    const { worker, startUs, endUs, bytes } = slice;
    this.#listen?.({ worker, move, startUs, endUs, bytes, wires: wires ?? [] });
  }
}
