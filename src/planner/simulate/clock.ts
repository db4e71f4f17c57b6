import type { ScheduledConnection, Move, Worker } from '../schedule/schedule.js';
import { Batches } from './batches.js';

/** Costs of an execution, by connection and by worker. Times in µs, rates in bytes per µs. */
export interface Timing {
  /** Rate at which a worker writes into a connection. */
  readonly writeRate: Float64Array;
  /** Rate at which a worker reads from a connection. */
  readonly readRate: Float64Array;
  /** Rate of the NIC behind a connection; infinite without one. */
  readonly wireRate: Float64Array;
  /** Additional time of a NIC for each message, by connection. */
  readonly stepUs: Float64Array;
  /** Additional time of a slice's sender, by connection: it notifies the proxy of a NIC. */
  readonly sendUs: Float64Array;
  /** Time from the last sent byte until the receiver sees it. */
  readonly latencyUs: Float64Array;
  /** Time that a connection's sender waits for a credit after the receiver is done. */
  readonly creditUs: Float64Array;
  /** Rate at which a worker copies within its GPU, and reads received data. */
  readonly copyRate: (worker: number) => number;
  /** Additional time of each slice for a worker; one that touches input or output, and one that only forwards data. */
  readonly copySliceUs: number;
  readonly sliceUs: number;
  /** Cost of each further operand of a move, relative to a copy. */
  readonly operandCost: number;
  /** The same for each sum, beyond what any operand costs. */
  readonly sumCost: number;
  /** True if a receiver may begin with the first bytes of a slice (LL, LL128); with Simple it waits for all of it. */
  readonly cutsThrough: boolean;
  /** Slices that a connection holds; a power of two. */
  readonly slots: number;
  readonly slicing: Slicing;
}

/** Number of slices of a chunk, and their least size in bytes. */
interface Slicing {
  readonly slices: number;
  readonly leastBytes: number;
}

/** Times at which workers were done. */
export interface Finished {
  readonly endUs: Float64Array;
  /** Times of the last worker. */
  readonly busyUs: Float64Array;
  readonly slices: number;
  /** Time in which each connection's messages used its share of a NIC. */
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
  readonly wires: readonly { readonly connection: number; readonly startUs: number; readonly endUs: number }[];
}) => void;

/**
 * Executes workers in time. A slice starts when its data have arrived and the FIFOs it writes to have room. Workers are a Kahn
 * network, so times do not depend on the order of computation: the clock runs each worker as far as it can, then wakes those that
 * wait for it, without a queue of events.
 */
export function runClock(
  workers: readonly Worker[],
  connections: readonly ScheduledConnection[],
  timing: Timing,
  listen?: SliceListener,
): Finished {
  const {
    writeRate,
    readRate,
    wireRate,
    stepUs,
    sendUs,
    latencyUs,
    creditUs,
    operandCost,
    sumCost,
    cutsThrough,
    slots,
    slicing,
  } = timing;
  const mask = slots - 1;
  const count = connections.length;
  const sent = new Int32Array(count);
  const taken = new Int32Array(count);
  const firstArrival = new Float64Array(count * slots);
  const lastArrival = new Float64Array(count * slots);
  const freedAt = new Float64Array(count * slots);
  const wireFree = new Float64Array(count);
  const receiver = new Int32Array(count).fill(-1);
  const sender = new Int32Array(count).fill(-1);
  const endUs = new Float64Array(workers.length);
  const busyUs = new Float64Array(workers.length);
  const wireUs = new Float64Array(count);
  const iterators = workers.map(({ moves }) => moves()[Symbol.iterator]());
  const current: (Move | undefined)[] = workers.map(() => undefined);
  const done = new Int32Array(workers.length);
  let slices = 0;
  // For programs: the time of each move's end by worker, and the workers that wait for the next.
  const doneAt: (number[] | undefined)[] = [];
  const waiting: (number[] | undefined)[] = [];

  const runnable = new Int32Array(workers.length);
  const isQueued = new Uint8Array(workers.length).fill(1);
  let head = workers.length;
  for (let worker = 0; worker < workers.length; worker++) runnable[worker] = workers.length - 1 - worker;
  const wake = (worker: number) => {
    if (worker < 0 || isQueued[worker] === 1) return;
    isQueued[worker] = 1;
    runnable[head++] = worker;
  };

  const batches = new Batches(workers, wake);

  while (head > 0) {
    const worker = runnable[--head] ?? 0;
    isQueued[worker] = 0;
    const iterator = iterators[worker];
    const copyRate = timing.copyRate(worker);
    const isMemory = workers[worker]?.serves !== undefined;
    let free = endUs[worker] ?? 0;
    running: for (;;) {
      let move = current[worker];
      if (move === undefined) {
        const next = iterator?.next();
        if (next === undefined || next.done === true) {
          batches.end(worker, free);
          break;
        }
        move = next.value;
        current[worker] = move;
        done[worker] = 0;
      }
      const { receive, send, bytes } = move;
      const sliceBytes = Math.max(Math.ceil(bytes / slicing.slices), slicing.leastBytes);
      const touches = move.input >= 0 || move.output >= 0 || move.local !== undefined || move.ranges !== undefined;
      const sliceUs = isMemory ? 0 : touches ? timing.copySliceUs : timing.sliceUs;
      const { local, batch = 0 } = move;
      let ready = 0;
      if (batch > 0) {
        const opened = batches.begin(worker, batch, free);
        if (opened === undefined) break;
        ready = opened;
      }
      if (local !== undefined) {
        for (const wait of local.after) {
          const at = doneAt[wait.worker]?.[wait.moves - 1];
          if (at === undefined) {
            (waiting[wait.worker] ??= []).push(worker);
            break running;
          }
          ready = Math.max(ready, at);
        }
      }
      const operands =
        receive.length +
        (move.input >= 0 ? 1 : 0) +
        send.length +
        (move.output >= 0 ? 1 : 0) +
        (local === undefined ? 0 : local.adds.length + local.writes.length);
      const sums = Math.max(0, receive.length + (move.input >= 0 ? 1 : 0) + (local === undefined ? 0 : local.adds.length) - 1);
      const factor = 1 + operandCost * (operands - 2) + sumCost * sums;
      for (let slice = done[worker] ?? 0; slice < slicing.slices; slice++) {
        const size = Math.max(0, Math.min(sliceBytes, bytes - slice * sliceBytes));
        if (size === 0 && slice > 0) break;
        done[worker] = slice;
        let start = Math.max(free, ready);
        let complete = 0;
        let rate = copyRate;
        for (const number of receive) {
          const next = taken[number] ?? 0;
          if ((sent[number] ?? 0) <= next) {
            receiver[number] = worker;
            break running;
          }
          const slot = number * slots + (next & mask);
          start = Math.max(start, (cutsThrough ? firstArrival[slot] : lastArrival[slot]) ?? 0);
          complete = Math.max(complete, lastArrival[slot] ?? 0);
          rate = Math.min(rate, readRate[number] ?? Infinity);
        }
        let notifyUs = 0;
        for (const number of send) {
          const next = sent[number] ?? 0;
          if (next - slots >= (taken[number] ?? 0)) {
            sender[number] = worker;
            break running;
          }
          if (next >= slots) start = Math.max(start, freedAt[number * slots + (next & mask)] ?? 0);
          rate = Math.min(rate, writeRate[number] ?? Infinity);
          notifyUs = Math.max(notifyUs, sendUs[number] ?? 0);
        }
        const work = size === 0 ? 0 : Math.max(size / rate, (size / copyRate) * factor);
        const end = Math.max(start + sliceUs + notifyUs + work, cutsThrough ? complete + Math.min(sliceUs, work) : 0);
        for (const number of receive) {
          const slot = number * slots + ((taken[number] ?? 0) & mask);
          freedAt[slot] = end + (creditUs[number] ?? 0);
          taken[number] = (taken[number] ?? 0) + 1;
          const waiting = sender[number] ?? -1;
          if (waiting >= 0) {
            sender[number] = -1;
            wake(waiting);
          }
        }
        const wires: { connection: number; startUs: number; endUs: number }[] | undefined = listen === undefined ? undefined : [];
        for (const number of send) {
          const slot = number * slots + ((sent[number] ?? 0) & mask);
          const latency = latencyUs[number] ?? 0;
          const wire = wireRate[number] ?? Infinity;
          if (wire === Infinity) {
            firstArrival[slot] = start + sliceUs + latency;
            lastArrival[slot] = end + latency;
            wires?.push({ connection: number, startUs: start, endUs: end });
          } else {
            // A NIC sends a slice when all of it has arrived; its first bytes arrive while the last are in flight.
            const begins = Math.max(end, wireFree[number] ?? 0);
            const leaves = begins + size / wire;
            wireFree[number] = leaves + (stepUs[number] ?? 0);
            wireUs[number] = (wireUs[number] ?? 0) + size / wire + (stepUs[number] ?? 0);
            firstArrival[slot] = begins + latency;
            lastArrival[slot] = leaves + latency;
            wires?.push({ connection: number, startUs: leaves - size / wire, endUs: leaves });
          }
          sent[number] = (sent[number] ?? 0) + 1;
          const waiting = receiver[number] ?? -1;
          if (waiting >= 0) {
            receiver[number] = -1;
            wake(waiting);
          }
        }
        listen?.({ worker, move, startUs: start, endUs: end, bytes: size, wires: wires ?? [] });
        busyUs[worker] = (busyUs[worker] ?? 0) + end - start;
        free = end;
        slices++;
      }
      current[worker] = undefined;
      if (local !== undefined) {
        (doneAt[worker] ??= []).push(free);
        const others = waiting[worker];
        waiting[worker] = undefined;
        for (const other of others ?? []) wake(other);
      }
    }
    endUs[worker] = free;
  }
  const stuck = current.findIndex((move) => move !== undefined);
  if (stuck >= 0)
    throw new RangeError(
      `the schedule deadlocks: rank ${workers[stuck]?.rank ?? -1} on channel ${workers[stuck]?.channel ?? -1} never goes on`,
    );
  return { endUs, busyUs, slices, wireUs };
}
