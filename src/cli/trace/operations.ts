import { InvalidArgumentError } from '../../errors.js';
import { NETWORK_RANK, type Schedule, type Worker } from '../../planner/schedule/schedule.js';

/** Moves from which a file is too large to simulate. */
const MOST_MOVES = 2_000_000;

/** A message that a thread block sends or receives. */
export interface Operation {
  readonly verb: 'send' | 'recv';
  /** On the wire. */
  readonly bytes: number;
  readonly peer: number;
  /** Number of the connection. */
  readonly tag: number;
  /** Number of the thread block among those of its rank. */
  readonly worker: number;
  /** Operations of the same rank that are done before, by their places; -1 for the launch. */
  readonly after: number[];
}

/**
 * The messages of a schedule by rank, with the order of each thread block.
 *
 * @param wireBytes bytes on the wire by bytes of data, with the flags of LL and LL128
 * @throws InvalidArgumentError for a network that reduces, which is no rank, and for too many moves
 */
export function operationsOf({ nRanks, workers, connections }: Schedule, wireBytes: number): Operation[][] {
  if (workers.some(({ rank }) => rank === NETWORK_RANK))
    throw new InvalidArgumentError('ARGUMENT_RANGE', 'files of messages have no network that reduces (--collnet)');
  let moves = 0;
  const byRank = new Map<number, Worker[]>();
  for (const worker of workers) byRank.set(worker.rank, [...(byRank.get(worker.rank) ?? []), worker]);
  return Array.from({ length: nRanks }, (_, rank) => {
    const section = new Section(connections, wireBytes);
    (byRank.get(rank) ?? []).forEach((worker, number) => {
      moves += section.add(worker, number);
      if (moves > MOST_MOVES)
        throw new InvalidArgumentError('ARGUMENT_RANGE', `the schedule has more than ${MOST_MOVES} moves: give a smaller size`);
    });
    return section.end();
  });
}

/** First and last messages of a worker in a batch, by their places. */
interface Batch {
  readonly number: number;
  readonly first: readonly number[];
  last: readonly number[];
}

/** Place of the launch, which everything waits for. */
const LAUNCH = -1;

/** Messages of one rank. */
class Section {
  readonly #connections: Schedule['connections'];
  readonly #wireBytes: number;
  readonly #operations: Operation[] = [];
  /** By channel and batch, one for each worker. */
  readonly #batches = new Map<number, Map<number, Batch[]>>();

  constructor(connections: Schedule['connections'], wireBytes: number) {
    this.#connections = connections;
    this.#wireBytes = wireBytes;
  }

  /** @returns number of its moves */
  add({ channel, moves }: Worker, worker: number): number {
    let before: readonly number[] = [LAUNCH];
    let batch: Batch | undefined;
    let count = 0;
    const message = (verb: Operation['verb'], tag: number, bytes: number, after: readonly number[]) => {
      const { from = 0, to = 0 } = this.#connections[tag] ?? {};
      const peer = verb === 'recv' ? from : to;
      return this.#operations.push({ verb, bytes: Math.ceil(bytes * this.#wireBytes), peer, tag, worker, after: [...after] }) - 1;
    };
    for (const { receive, send, bytes, batch: number = 0 } of moves()) {
      count++;
      // A message without data is none.
      if (bytes === 0 || receive.length + send.length === 0) continue;
      const received = receive.map((connection) => message('recv', connection, bytes, before));
      const ready = received.length === 0 ? before : received;
      const sent = send.map((connection) => message('send', connection, bytes, ready));
      if (batch?.number !== number) {
        batch = { number, first: received.length === 0 ? sent : received, last: [] };
        const ofChannel = this.#batches.get(channel) ?? new Map<number, Batch[]>();
        this.#batches.set(channel, ofChannel.set(number, [...(ofChannel.get(number) ?? []), batch]));
      }
      before = sent.length === 0 ? received : sent;
      batch.last = before;
    }
    return count;
  }

  /** All operations. A batch of a channel begins after all workers of the one before it. */
  end(): Operation[] {
    for (const ofChannel of this.#batches.values()) {
      const numbers = [...ofChannel.keys()].sort((a, b) => a - b);
      numbers.slice(1).forEach((number, place) => {
        const previous = (ofChannel.get(numbers[place] ?? 0) ?? []).flatMap(({ last }) => last);
        for (const { first } of ofChannel.get(number) ?? [])
          for (const each of first) {
            const after = this.#operations[each]?.after;
            for (const other of previous) if (after?.includes(other) === false) after.push(other);
          }
      });
    }
    return this.#operations;
  }
}
