import { inputBytes, outputBytes } from './buffers.js';
import { Races } from './races.js';
import {
  type ScheduledConnection,
  NETWORK_RANK,
  rangesOf,
  type Move,
  type MoveRange,
  type VerifiableSchedule,
  type VerifiableCall,
} from './schedule.js';

/** First fault of a schedule; `undefined` if there is none. */
export type ScheduleFault = string | undefined;

/**
 * Executes a schedule on numbers and checks the result. Each byte of each input is a random number below 2^45, so a sum in which
 * one is missing or counted twice differs.
 *
 * @param slots number of messages that a connection holds before its sender waits
 * @returns the first fault: a deadlock (and what each stuck worker waits for), a range outside of a buffer, messages whose
 *   lengths differ, workers that use the same memory without waiting for each other, a wrong output
 */
export function verifySchedule(schedule: VerifiableSchedule, slots: number, seed = 1): ScheduleFault {
  const { call, nRanks, connections } = schedule;
  const inputs = Array.from({ length: nRanks }, (_, rank) => randomNumbers(inputBytes(call, nRanks, rank), seed * 65_537 + rank));
  const outputs = Array.from({ length: nRanks }, (_, rank) => new Float64Array(outputBytes(call, nRanks, rank)).fill(Number.NaN));
  const memories = memoriesOf(schedule, inputs, outputs);
  const queues: Float64Array[][] = connections.map(() => []);
  const races = schedule.own === undefined ? undefined : new Races(schedule);
  const workers = schedule.workers.map(({ rank, channel, serves, moves }) => ({
    rank,
    channel,
    serves,
    moves: moves()[Symbol.iterator](),
    next: undefined as Move | undefined,
    done: false,
    count: 0,
  }));

  for (let isMoving = true; isMoving;) {
    isMoving = false;
    for (const [index, worker] of workers.entries()) {
      while (!worker.done) {
        if (worker.next === undefined) {
          const next = worker.moves.next() as IteratorResult<Move, undefined>;
          if (next.done === true) {
            worker.done = true;
            break;
          }
          worker.next = next.value;
        }
        const move = worker.next;
        if (
          move.local?.after.some((wait) => (workers[wait.worker]?.count ?? 0) < wait.moves) === true ||
          move.receive.some((number) => queues[number]?.length === 0) ||
          move.send.some((number) => (queues[number]?.length ?? 0) >= slots)
        )
          break;
        const fault = execute(move, worker.rank, connections, queues, memories) ?? races?.move(index, worker.rank, move);
        if (fault !== undefined) return `${nameOf(worker)}, move ${worker.count}: ${fault}`;
        worker.next = undefined;
        worker.count++;
        isMoving = true;
      }
    }
  }
  const stuck = workers.filter(({ done }) => !done);
  if (stuck.length > 0)
    return `deadlock: ${stuck
      .slice(0, 3)
      .map((worker) => `${nameOf(worker)} waits in move ${worker.count} ${awaited(worker.next, connections, queues, workers)}`)
      .join('; ')}${stuck.length > 3 ? `; and ${stuck.length - 3} more` : ''}`;
  const left = queues.findIndex(({ length }) => length > 0);
  if (left >= 0)
    return `a message from rank ${connections[left]?.from ?? -1} to rank ${connections[left]?.to ?? -1} is never received`;
  const wrong = wrongOutput(
    call,
    nRanks,
    inputs,
    memories.map(({ output }) => output),
  );
  return wrong ?? races?.end();
}

/** `rank 0, channel 2`; of a memory also the rank that uses it. */
function nameOf({
  rank,
  channel,
  serves,
}: {
  readonly rank: number;
  readonly channel: number;
  readonly serves: number | undefined;
}) {
  return serves === undefined
    ? `rank ${rank}, channel ${channel}`
    : `memory of rank ${rank} for rank ${serves}, channel ${channel}`;
}

/** Buffers of a rank. */
interface Memory {
  readonly input: Float64Array;
  readonly output: Float64Array;
  readonly scratch: Float64Array;
}

/** Copies inputs that moves may overwrite, for the check of results. */
function memoriesOf(
  { call, nRanks, own }: VerifiableSchedule,
  inputs: readonly Float64Array[],
  outputs: readonly Float64Array[],
): readonly Memory[] {
  const nothing = new Float64Array();
  return outputs.map((output, rank) => {
    const given = inputs[rank] ?? nothing;
    if (own === undefined) return { input: given, output, scratch: nothing };
    const scratch = new Float64Array(own.scratchBytes).fill(Number.NaN);
    if (!own.isInPlace) return { input: given.slice(), output, scratch };
    // A rank's part of a larger buffer is at its place there.
    const whole = new Float64Array(Math.max(given.length, output.length)).fill(Number.NaN);
    const at = (part: Float64Array) => (part.length === whole.length ? 0 : (rank * call.bytes) / nRanks);
    whole.set(given, at(given));
    const view = (part: Float64Array) => whole.subarray(at(part), at(part) + part.length);
    return { input: view(given), output: view(output), scratch };
  });
}

/** Executes a move whose messages and room are there. */
function execute(
  move: Move,
  rank: number,
  connections: readonly ScheduledConnection[],
  queues: Float64Array[][],
  memories: readonly Memory[],
): ScheduleFault {
  const { receive, send, bytes } = move;
  const messages: Float64Array[] = [];
  for (const number of receive) {
    if (connections[number]?.to !== rank) return `it receives what is sent to rank ${connections[number]?.to ?? NETWORK_RANK}`;
    const message = queues[number]?.shift();
    if (message?.length !== bytes)
      return `it wants ${bytes} bytes from rank ${connections[number].from}, which sent ${message?.length ?? 0}`;
    messages.push(message);
  }
  const sent = new Float64Array(bytes);
  let from = 0;
  for (const range of rangesOf(move)) {
    const to = from + range.bytes;
    const incoming = messages.map((message) => message.subarray(from, to));
    const fault = executeRange(range, move.exclusive === true, memories[rank], incoming, sent.subarray(from, to));
    if (fault !== undefined) return fault;
    from = to;
  }
  if (from !== bytes) return `its ranges have ${from} bytes, its messages ${bytes}`;
  for (const number of send) {
    if (connections[number]?.from !== rank) return `it sends for rank ${connections[number]?.from ?? NETWORK_RANK}`;
    queues[number]?.push(sent);
  }
  return undefined;
}

/** @param sum zeros, which become the data to send */
function executeRange(
  { input, output, bytes, local }: MoveRange,
  isExclusive: boolean,
  memory: Memory | undefined,
  incoming: readonly Float64Array[],
  sum: Float64Array,
): ScheduleFault {
  for (const { buffer, offset } of local?.adds ?? []) {
    const range = memory?.[buffer].subarray(offset, offset + bytes);
    if (range?.length !== bytes) return `bytes ${offset} to ${offset + bytes} are outside of the ${buffer}`;
    const unwritten = range.findIndex(Number.isNaN);
    if (unwritten >= 0) return `it reads byte ${offset + unwritten} of the ${buffer} before it is written`;
    add(sum, range);
  }
  for (const message of incoming) add(sum, message);
  const received = isExclusive ? sum.slice() : sum;
  if (input >= 0) {
    const own = memory?.input;
    if (own === undefined || input + bytes > own.length)
      return `bytes ${input} to ${input + bytes} are outside of an input of ${own?.length ?? 0} bytes`;
    add(sum, own.subarray(input, input + bytes));
  } else if (incoming.length === 0 && local === undefined && bytes > 0) {
    return 'it takes neither input nor a message';
  }
  for (const { buffer, offset } of local?.writes ?? []) {
    const own = memory?.[buffer];
    if (own === undefined || offset + bytes > own.length)
      return `bytes ${offset} to ${offset + bytes} are outside of the ${buffer}`;
    own.set(sum, offset);
  }
  if (output < 0) return undefined;
  const own = memory?.output;
  if (own === undefined || output + bytes > own.length)
    return `bytes ${output} to ${output + bytes} are outside of an output of ${own?.length ?? 0} bytes`;
  for (let index = 0; index < bytes; index++) {
    if (!Number.isNaN(own[output + index] ?? 0)) return `byte ${output + index} of the output is written a second time`;
  }
  own.set(received, output);
  return undefined;
}

function add(sum: Float64Array, other: Float64Array): void {
  for (let index = 0; index < sum.length; index++) sum[index] = (sum[index] ?? 0) + (other[index] ?? 0);
}

function awaited(
  move: Move | undefined,
  connections: readonly ScheduledConnection[],
  queues: readonly Float64Array[][],
  workers: readonly { readonly channel: number; readonly count: number }[],
): string {
  const wait = move?.local?.after.find(({ worker, moves }) => (workers[worker]?.count ?? 0) < moves);
  if (wait !== undefined) return `for move ${wait.moves - 1} of another block, which is at ${workers[wait.worker]?.count ?? 0}`;
  const empty = move?.receive.find((number) => queues[number]?.length === 0);
  if (empty !== undefined) return `for a message from rank ${connections[empty]?.from ?? -1}`;
  return `until rank ${connections[move?.send[0] ?? 0]?.to ?? -1} has room`;
}

function wrongOutput(
  call: VerifiableCall,
  nRanks: number,
  inputs: readonly Float64Array[],
  outputs: readonly Float64Array[],
): ScheduleFault {
  const { collective, bytes, root } = call;
  const part = bytes / nRanks;
  const total = (index: number) => inputs.reduce((sum, input) => sum + (input[index] ?? 0), 0);
  const sums =
    collective === 'AllReduce' || collective === 'Reduce' || collective === 'ReduceScatter'
      ? Float64Array.from({ length: bytes }, (_, index) => total(index))
      : new Float64Array();
  const prefix = (last: number, index: number) => inputs.slice(0, last + 1).reduce((sum, input) => sum + (input[index] ?? 0), 0);
  const wanted = (rank: number, index: number): number | undefined => {
    const from = Math.floor(index / part);
    switch (collective) {
      case 'AllReduce':
      case 'Reduce':
        return sums[index];
      case 'ReduceScatter':
        return sums[rank * part + index];
      case 'AllGather':
      case 'Gather':
        return inputs[from]?.[index - from * part];
      case 'Broadcast':
        return inputs[root]?.[index];
      case 'AllToAll':
        return inputs[from]?.[rank * part + index - from * part];
      case 'SendRecv':
        return inputs[(rank - 1 + nRanks) % nRanks]?.[index];
      case 'Scatter':
        return inputs[root]?.[rank * part + index];
      case 'Scan':
        return prefix(rank, index);
      case 'ExclusiveScan':
        return prefix(rank - 1, index);
    }
  };
  for (const [rank, output] of outputs.entries()) {
    for (let index = 0; index < output.length; index++) {
      const found = output[index] ?? Number.NaN;
      if (Number.isNaN(found)) return `byte ${index} of the output of rank ${rank} is never written`;
      if (found !== wanted(rank, index)) return `byte ${index} of the output of rank ${rank} is not made of each input once`;
    }
  }
  return undefined;
}

/** Whole numbers below 2^45: sums of 64 are exact. */
function randomNumbers(count: number, seed: number): Float64Array {
  let state = seed >>> 0;
  const next = () => {
    // xorshift32 after Marsaglia, on a state that is never 0.
    state = state === 0 ? 0x9e3779b9 : state;
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  for (let warmUp = 0; warmUp < 8; warmUp++) next();
  return Float64Array.from({ length: count }, () => (next() % 2 ** 13) * 2 ** 32 + next());
}
