import {
  channelRange,
  chunksOf,
  ConnectionTable,
  type Move,
  type Schedule,
  type ScheduledCall,
  type Worker,
} from './schedule.js';

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
  readonly chunkBytes: number;
  /** The ranks whose part of the schedule is made; all by default. */
  readonly ranks?: readonly number[];
}

/** Number of rounds whose messages a thread block handles concurrently. */
const ROUNDS_AT_ONCE = 8;

/** A message from one rank to another. */
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
  { nRanks, rounds, nChannels, channelsFor, channelOfRound, chunkBytes, ranks }: PairsInput,
): Schedule {
  const table = new ConnectionTable();
  const numbers = new Map<number, number>();
  const jobs = new Map<string, { readonly rank: number; readonly channel: number; readonly moves: (() => Iterable<Move>)[] }>();
  const turns = new Int32Array(nRanks * nChannels);
  const bits = Math.log2(nChannels);
  for (const rank of ranks ?? Array.from({ length: nRanks }, (_, number) => number)) {
    const { send, receive } = rounds(rank);
    for (let round = 0; round < send.length; round++) {
      const ends = [
        { kind: 'send', from: rank, to: send[round] ?? 0 },
        { kind: 'receive', from: receive[round] ?? 0, to: rank },
      ] as const;
      const used = new Set<number>();
      for (const { kind, from, to } of ends) {
        if (from === to && kind === 'receive') continue;
        const message = messageOf(call, nRanks, from, to);
        if (message === undefined || message.bytes === 0) continue;
        const parts = channelsFor(message.bytes, from, to);
        for (let part = 0; part < parts; part++) {
          const channel = (channelOfRound(round) + reversedBits(part, bits)) % nChannels;
          used.add(channel);
          const turn = turns[rank * nChannels + channel] ?? 0;
          const share = channelRange(message.bytes, parts, part);
          const number =
            from === to
              ? -1
              : connectionOf(table, numbers, { from, to, channel, nRanks, nChannels }, Math.floor(turn / ROUNDS_AT_ONCE));
          const key = `${kind} ${rank} ${channel} ${turn % ROUNDS_AT_ONCE}`;
          let job = jobs.get(key);
          if (job === undefined) jobs.set(key, (job = { rank, channel, moves: [] }));
          const batch = Math.floor(turn / ROUNDS_AT_ONCE);
          job.moves.push(() => movesOf(kind, number, message, share, { chunkBytes, batch }));
        }
      }
      for (const channel of used) turns[rank * nChannels + channel] = (turns[rank * nChannels + channel] ?? 0) + 1;
    }
  }
  const workers = [...jobs.values()].map(({ rank, channel, moves }): Worker => ({ rank, channel, moves: () => inTurn(moves) }));
  return { call, nRanks, connections: table.all, workers };
}

function connectionOf(
  table: ConnectionTable,
  numbers: Map<number, number>,
  { from, to, channel, nRanks, nChannels }: Record<'from' | 'to' | 'channel' | 'nRanks' | 'nChannels', number>,
  phase: number,
): number {
  const key = (from * nRanks + to) * nChannels + channel;
  let number = numbers.get(key);
  if (number === undefined) numbers.set(key, (number = table.add(from, to, channel, 'direct', phase)));
  return number;
}

function* movesOf(
  kind: 'send' | 'receive',
  connection: number,
  message: Message,
  share: { readonly offset: number; readonly bytes: number },
  { chunkBytes, batch }: { readonly chunkBytes: number; readonly batch: number },
): Generator<Move> {
  for (const { offset, bytes } of chunksOf(share, chunkBytes)) {
    const input = message.input + offset;
    const output = message.output + offset;
    if (connection < 0) yield { receive: [], input, send: [], output, bytes, batch };
    else if (kind === 'send') yield { receive: [], input, send: [connection], output: -1, bytes, batch };
    else yield { receive: [connection], input: -1, send: [], output, bytes, batch };
  }
}

function* inTurn(parts: readonly (() => Iterable<Move>)[]): Generator<Move> {
  for (const part of parts) yield* part();
}

/** Message from one rank to another, if any. */
function messageOf({ collective, bytes, root }: ScheduledCall, nRanks: number, from: number, to: number): Message | undefined {
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
