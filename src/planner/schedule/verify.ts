import { inputBytes, outputBytes } from './buffers.js';
import { Races } from './races.js';
import {
  type ScheduledConnection,
  NETWORK_RANK,
  placeOf,
  rangesOf,
  type Move,
  type MoveRange,
  type VerifiableSchedule,
  type VerifiableCall,
  type Worker,
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
  const { call, nRanks } = schedule;
  const inputs = Array.from({ length: nRanks }, (_, rank) => randomNumbers(inputBytes(call, nRanks, rank), seed * 65_537 + rank));
  const races = schedule.own === undefined ? undefined : new Races(schedule);
  const done = executeSchedule(schedule, slots, inputs, races);
  if (done.fault !== undefined) return done.fault;
  const wrong = wrongByte(call, nRanks, inputs, done.outputs);
  if (wrong === undefined) return races?.end();
  const { chunkBytes } = schedule.own ?? {};
  const chunk = chunkBytes === undefined ? '' : ` (chunk ${Math.floor(wrong.index / chunkBytes)})`;
  const what = wrong.isUnwritten
    ? 'is never written'
    : `is not made of each input once${explainSum(schedule, slots, wrong, inputs)}`;
  return `byte ${wrong.index}${chunk} of the output of rank ${wrong.rank} ${what}`;
}

/** Executes the moves of all workers. @returns the first fault, or the outputs of all ranks */
function executeSchedule(
  schedule: VerifiableSchedule,
  slots: number,
  inputs: readonly Float64Array[],
  races: Races | undefined,
): { readonly fault?: string; readonly outputs: readonly Float64Array[] } {
  const { call, nRanks, connections } = schedule;
  const outputs = Array.from({ length: nRanks }, (_, rank) => new Float64Array(outputBytes(call, nRanks, rank)).fill(Number.NaN));
  const memories = memoriesOf(schedule, inputs, outputs);
  const queues: Float64Array[][] = connections.map(() => []);
  const workers = schedule.workers.map(({ rank, channel, serves, block, moves }) => ({
    rank,
    channel,
    serves,
    block,
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
        if (fault !== undefined) return { fault: `${nameOf(worker)}, ${stepOf(worker)}: ${fault}`, outputs };
        worker.next = undefined;
        worker.count++;
        isMoving = true;
      }
    }
  }
  const stuck = workers.filter(({ done }) => !done);
  if (stuck.length > 0) {
    const named = stuck
      .slice(0, 3)
      .map(
        (worker) => `${nameOf(worker)} waits in ${stepOf(worker)} ${awaited(worker.next, connections, queues, workers, slots)}`,
      );
    const more = stuck.length > 3 ? `; and ${stuck.length - 3} more` : '';
    return { fault: `deadlock: ${named.join('; ')}${more}`, outputs };
  }
  const left = queues.findIndex(({ length }) => length > 0);
  if (left < 0) return { outputs: memories.map(({ output }) => output) };
  const { from, to, channel } = connections[left] ?? { from: -1, to: -1, channel: -1 };
  return { fault: `a message from rank ${from} to rank ${to} on channel ${channel} is never received`, outputs };
}

type WorkerName = Pick<Worker, 'rank' | 'channel'> & Record<'serves' | 'block', number | undefined>;

/** `rank 0, channel 2`, or its thread block; of a memory also the rank that uses it. */
function nameOf({ rank, channel, serves, block }: WorkerName): string {
  if (block === undefined) return `rank ${rank}, channel ${channel}`;
  return serves === undefined ? placeOf(rank, block) : `memory of rank ${rank} for ${placeOf(serves, block)}`;
}

/** `step 3 (send)` of a program, otherwise `move 3`. */
function stepOf({ next, count }: { readonly next: Move | undefined; readonly count: number }): string {
  return next?.at ?? `move ${count}`;
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
  slots: number,
): string {
  const wait = move?.local?.after.find(({ worker, moves }) => (workers[worker]?.count ?? 0) < moves);
  if (wait !== undefined)
    return `for ${wait.at ?? `move ${wait.moves - 1} of another worker, which is at ${workers[wait.worker]?.count ?? 0}`}`;
  const empty = move?.receive.find((number) => queues[number]?.length === 0);
  if (empty !== undefined) return `for a message from rank ${connections[empty]?.from ?? -1}`;
  const full = move?.send.find((number) => (queues[number]?.length ?? 0) >= slots);
  return `until rank ${connections[full ?? 0]?.to ?? -1} takes one of the ${slots} messages that their connection holds`;
}

/** The inputs that a byte of an output is the sum of: byte `index` of the ranks from `from` to `to - 1`. */
interface Sources {
  readonly from: number;
  readonly to: number;
  readonly index: number;
}

/** Inputs that belong into a byte of a rank's output. */
function sourcesOf({ collective, bytes, root }: VerifiableCall, nRanks: number, rank: number, index: number): Sources {
  const part = bytes / nRanks;
  const all = { from: 0, to: nRanks };
  const one = (source: number, at: number): Sources => ({ from: source, to: source + 1, index: at });
  const [block, rest] = [Math.floor(index / part), index % part];
  switch (collective) {
    case 'AllReduce':
    case 'Reduce':
      return { ...all, index };
    case 'ReduceScatter':
      return { ...all, index: rank * part + index };
    case 'AllGather':
    case 'Gather':
      return one(block, rest);
    case 'Broadcast':
      return one(root, index);
    case 'AllToAll':
      return one(block, rank * part + rest);
    case 'SendRecv':
      return one((rank - 1 + nRanks) % nRanks, index);
    case 'Scatter':
      return one(root, rank * part + index);
    case 'Scan':
      return { from: 0, to: rank + 1, index };
    case 'ExclusiveScan':
      return { from: 0, to: rank, index };
  }
}

/** Inputs that are told apart in one execution, as digits of a number, and most ranks to do so for. */
const DIGITS = 8;
const BASE = 64;
const MOST_EXPLAINED_RANKS = 128;
const MOST_NAMED = 4;

/** Names inputs that are missing from a wrong byte, counted twice, or do not belong there: executes the schedule on digits. */
function explainSum(
  schedule: VerifiableSchedule,
  slots: number,
  { rank, index }: WrongByte,
  inputs: readonly Float64Array[],
): string {
  const { call, nRanks } = schedule;
  if (nRanks > MOST_EXPLAINED_RANKS) return '';
  const sources = sourcesOf(call, nRanks, rank, index);
  /** Number of times that the chosen bytes of each of some ranks are in the wrong byte. */
  const counts = (first: number, isChosen: (at: number) => boolean): number[] => {
    const digits = inputs.map((input, source) => {
      const digit = source - first;
      const value = digit >= 0 && digit < DIGITS ? BASE ** digit : 0;
      return Float64Array.from(input, (_, at) => (isChosen(at) ? value : 0));
    });
    const found = executeSchedule(schedule, slots, digits, undefined).outputs[rank]?.[index] ?? 0;
    return Array.from({ length: DIGITS }, (_, digit) => Math.floor(found / BASE ** digit) % BASE);
  };
  const faults: string[] = [];
  for (let first = 0; first < nRanks; first += DIGITS) {
    const right = counts(first, (at) => at === sources.index);
    const other = counts(first, (at) => at !== sources.index);
    for (let source = first; source < Math.min(nRanks, first + DIGITS); source++) {
      const [here, elsewhere] = [right[source - first] ?? 0, other[source - first] ?? 0];
      const isWanted = source >= sources.from && source < sources.to;
      if (isWanted && here === 0) faults.push(`that of rank ${source} is missing`);
      if (isWanted && here > 1) faults.push(`that of rank ${source} is counted ${here === 2 ? 'twice' : `${here} times`}`);
      if (!isWanted && here > 0) faults.push(`that of rank ${source} does not belong there`);
      if (elsewhere > 0) faults.push(`another byte of rank ${source} is there`);
    }
  }
  const more = faults.length > MOST_NAMED ? `, and ${faults.length - MOST_NAMED} more` : '';
  return faults.length === 0 ? '' : `: ${faults.slice(0, MOST_NAMED).join(', ')}${more}`;
}

interface WrongByte {
  readonly rank: number;
  readonly index: number;
  readonly isUnwritten: boolean;
}

function wrongByte(
  call: VerifiableCall,
  nRanks: number,
  inputs: readonly Float64Array[],
  outputs: readonly Float64Array[],
): WrongByte | undefined {
  // Sums of all ranks, which most collectives need again and again.
  const sums: number[] = [];
  const sum = ({ from, to, index }: Sources) => {
    let total = 0;
    for (let rank = from; rank < to; rank++) total += inputs[rank]?.[index] ?? 0;
    return total;
  };
  for (const [rank, output] of outputs.entries()) {
    for (let index = 0; index < output.length; index++) {
      const found = output[index] ?? Number.NaN;
      if (Number.isNaN(found)) return { rank, index, isUnwritten: true };
      const sources = sourcesOf(call, nRanks, rank, index);
      const isWhole = sources.to - sources.from === nRanks;
      const wanted = isWhole ? (sums[sources.index] ??= sum(sources)) : sum(sources);
      if (found !== wanted) return { rank, index, isUnwritten: false };
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
