import { channelRange, ConnectionTable, type Move, type Schedule, type ScheduledCall, type Worker } from './schedule.js';

/** NCCL's distribution of messages between pairs of ranks over channels. */
interface PairsInput {
  readonly nRanks: number;
  /** By rank: its peer in each round; rounds of two peers match. */
  readonly rounds: (rank: number) => { readonly send: ArrayLike<number>; readonly receive: ArrayLike<number> };
  readonly nChannels: number;
  /** Number of channels that carry a message of that many bytes between two ranks. */
  readonly channelsFor: (bytes: number, from: number, to: number) => number;
  /** The channel of the first part of a round's messages. */
  readonly channelOfRound: (round: number) => number;
  /** Bytes of a chunk of a message between two ranks. */
  readonly chunkBytesFor: (from: number, to: number) => number;
  /** Messages by sender and receiver; those of the collective by default. */
  readonly messageOf?: (from: number, to: number) => Message | undefined;
  /** The ranks whose part of the schedule is made; all by default. */
  readonly ranks?: readonly number[];
  /** The channels whose workers are made; all by default. Connections are those of all channels. */
  readonly channels?: ReadonlySet<number>;
}

/** Number of rounds whose messages a thread block handles concurrently. */
export const ROUNDS_AT_ONCE = 8;

/** Bytes that one rank sends to another. */
export interface PairMessage {
  /** Rank that sends. */
  readonly from: number;
  /** Rank that receives. */
  readonly to: number;
  readonly bytes: number;
}

/** A message between two ranks, by its places in their memory. */
interface Message {
  readonly input: number;
  readonly output: number;
  readonly bytes: number;
}

/**
 * All-to-all, send and receive around a circle, gather and scatter: messages between pairs of ranks, round after round, each cut
 * into parts for several channels. On each channel the warps of a block handle up to eight rounds concurrently, and each sends
 * and receives at the same time.
 */
export function pairsSchedule(
  call: ScheduledCall,
  { nRanks, rounds, nChannels, channelsFor, channelOfRound, chunkBytesFor, ranks, channels, messageOf }: PairsInput,
): Schedule {
  const messageBetween = messageOf ?? ((from, to) => messageOfCall(call, nRanks, from, to));
  const table = new ConnectionTable();
  const numbers = new Map<number, number>();
  const numberOf = (from: number, to: number, channel: number, phase: number) => {
    const key = (from * nRanks + to) * nChannels + channel;
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = table.add(from, to, channel, 'direct', phase)));
    return number;
  };
  const jobs = new Map<number, Job>();
  const turns = new Int32Array(nRanks * nChannels);
  const bits = Math.log2(nChannels);
  // Channels of a round; one list for all, because an all-to-all has as many rounds as pairs of ranks.
  const used: number[] = [];
  const add = (rank: number, round: number, isSend: boolean, from: number, to: number) => {
    const message = messageBetween(from, to);
    if (message === undefined || message.bytes === 0) return;
    const parts = channelsFor(message.bytes, from, to);
    const chunkBytes = chunkBytesFor(from, to);
    for (let part = 0; part < parts; part++) {
      const channel = (channelOfRound(round) + reversedBits(part, bits)) % nChannels;
      if (!used.includes(channel)) used.push(channel);
      const turn = turns[rank * nChannels + channel] ?? 0;
      const batch = Math.floor(turn / ROUNDS_AT_ONCE);
      const connection = from === to ? -1 : numberOf(from, to, channel, batch);
      if (channels?.has(channel) === false) continue;
      // Numbers, because texts as keys take most of the time where there are many ranks.
      const key = ((rank * nChannels + channel) * ROUNDS_AT_ONCE + (turn % ROUNDS_AT_ONCE)) * 2 + (isSend ? 0 : 1);
      const made: Part = {
        isSend,
        connection,
        message,
        chunkBytes,
        ...channelRange(message.bytes, parts, part),
        batch,
        next: undefined,
      };
      const job = jobs.get(key);
      if (job === undefined) jobs.set(key, { rank, channel, first: made, last: made });
      else job.last = job.last.next = made;
    }
  };
  for (const rank of ranks ?? Array.from({ length: nRanks }, (_, number) => number)) {
    const { send, receive } = rounds(rank);
    for (let round = 0; round < send.length; round++) {
      used.length = 0;
      const [to, from] = [send[round] ?? 0, receive[round] ?? 0];
      add(rank, round, true, rank, to);
      if (from !== rank) add(rank, round, false, from, rank);
      for (const channel of used) turns[rank * nChannels + channel] = (turns[rank * nChannels + channel] ?? 0) + 1;
    }
  }
  const workers = Array.from(jobs.values(), ({ rank, channel, first }): Worker => ({
    rank,
    channel,
    moves: () => new Moves(first),
  }));
  return { call, nRanks, connections: table.all, workers };
}

/** Messages that the same warps of a block handle one after the other. */
interface Job {
  readonly rank: number;
  readonly channel: number;
  readonly first: Part;
  last: Part;
}

/** Part of a message that one channel carries. */
interface Part {
  readonly isSend: boolean;
  /** -1 for a copy within the rank. */
  readonly connection: number;
  readonly message: Message;
  readonly chunkBytes: number;
  /** Its first byte in the message. */
  readonly offset: number;
  readonly bytes: number;
  readonly batch: number;
  /** The next one of the job: a list, because arrays and generators of 65,000 jobs, of 256 ranks, take 40 MB. */
  next: Part | undefined;
}

const none: readonly number[] = [];

/** The moves of a job, chunk after chunk. */
class Moves implements IterableIterator<Move> {
  #part: Part | undefined;
  #done = 0;

  constructor(first: Part) {
    this.#part = first;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Move, undefined> {
    let part = this.#part;
    while (part !== undefined && this.#done >= part.bytes) {
      part = this.#part = part.next;
      this.#done = 0;
    }
    if (part === undefined) return { done: true, value: undefined };
    const { isSend, connection, message, chunkBytes, batch } = part;
    const [isSent, isReceived] = [connection >= 0 && isSend, connection >= 0 && !isSend];
    const ends = connection < 0 ? none : [connection];
    const at = part.offset + this.#done;
    const bytes = Math.min(chunkBytes, part.bytes - this.#done);
    this.#done += chunkBytes;
    const value = {
      receive: isReceived ? ends : none,
      input: isReceived ? -1 : message.input + at,
      send: isSent ? ends : none,
      output: isSent ? -1 : message.output + at,
      bytes,
      batch,
    };
    return { done: false, value };
  }
}

/** Message of a collective from one rank to another, if any. */
function messageOfCall(
  { collective, bytes, root }: ScheduledCall,
  nRanks: number,
  from: number,
  to: number,
): Message | undefined {
  const part = bytes / nRanks;
  switch (collective) {
    case 'AllToAll':
      return { input: to * part, output: from * part, bytes: part };
    case 'SendRecv':
      return to === (from + 1) % nRanks ? { input: 0, output: 0, bytes } : undefined;
    case 'Gather':
      return to === root ? { input: 0, output: from * part, bytes: part } : undefined;
    case 'Scatter':
      return from === root ? { input: to * part, output: 0, bytes: part } : undefined;
    default:
      throw new RangeError(`${collective} is not made of messages between pairs`);
  }
}

function reversedBits(value: number, bits: number): number {
  let reversed = 0;
  for (let bit = 0; bit < bits; bit++) reversed |= ((value >> bit) & 1) << (bits - 1 - bit);
  return reversed;
}
