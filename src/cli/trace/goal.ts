import { InvalidArgumentError } from '../../errors.js';
import { NETWORK_RANK, type Schedule, type Worker } from '../../planner/schedule/schedule.js';

/** Processors of a rank that GOAL can number: each thread block takes one. */
const MOST_PROCESSORS = 256;
/** Moves from which a file is too large to simulate. */
const MOST_MOVES = 2_000_000;

/**
 * The messages of a schedule in GOAL, the input of LogGOPSim and ATLAHS (spcl/LogGOPSim, txt2bin.re): thread blocks of a rank as
 * processors, a tag for each connection, and what each message waits for.
 *
 *     l7: recv 5472b from 3 tag 12 cpu 0
 *     l8: send 5472b to 5 tag 13 cpu 0
 *     l8 requires l7
 *
 * FIFOs never fill: GOAL has no credits.
 *
 * @param wireBytes bytes on the wire by bytes of data, with the flags of LL and LL128
 * @param launchUs time before the first message of a rank
 * @throws InvalidArgumentError for a network that reduces, which is no rank, and for too many moves
 */
export function goalText({ nRanks, workers, connections }: Schedule, wireBytes: number, launchUs: number): string {
  if (workers.some(({ rank }) => rank === NETWORK_RANK))
    throw new InvalidArgumentError('ARGUMENT_RANGE', 'GOAL has no network that reduces (--collnet)');
  const lines = [`num_ranks ${nRanks}`];
  let moves = 0;
  const byRank = new Map<number, Worker[]>();
  for (const worker of workers) byRank.set(worker.rank, [...(byRank.get(worker.rank) ?? []), worker]);
  for (let rank = 0; rank < nRanks; rank++) {
    const section = new Section(launchUs);
    (byRank.get(rank) ?? []).forEach((worker, number) => {
      moves += section.add(worker, number % MOST_PROCESSORS, connections, wireBytes);
      if (moves > MOST_MOVES)
        throw new InvalidArgumentError('ARGUMENT_RANGE', `the schedule has more than ${MOST_MOVES} moves: give a smaller size`);
    });
    lines.push('', `rank ${rank} {`, ...section.end(), '}');
  }
  return `${lines.join('\n')}\n`;
}

/** Labels of the first and last messages of a worker in a batch. */
interface Batch {
  readonly number: number;
  readonly first: readonly string[];
  last: readonly string[];
}

/** Messages of one rank. */
class Section {
  readonly #lines: string[] = [];
  readonly #start: string;
  #labels = 0;
  /** By channel and batch, one for each worker. */
  readonly #batches = new Map<number, Map<number, Batch[]>>();

  constructor(launchUs: number) {
    this.#start = this.#operation(`calc ${Math.round(launchUs * 1000)}`, []);
  }

  /** @returns number of its moves */
  add({ channel, moves }: Worker, processor: number, connections: Schedule['connections'], wireBytes: number): number {
    let before: readonly string[] = [this.#start];
    let batch: Batch | undefined;
    let count = 0;
    const message = (verb: 'recv' | 'send', connection: number, bytes: number, after: readonly string[]) => {
      const { from = 0, to = 0 } = connections[connection] ?? {};
      const end = verb === 'recv' ? `from ${from}` : `to ${to}`;
      return this.#operation(`${verb} ${Math.ceil(bytes * wireBytes)}b ${end} tag ${connection} cpu ${processor}`, after);
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

  /** All lines. A batch of a channel begins after all workers of the one before it; labels must stand before they are named. */
  end(): readonly string[] {
    for (const ofChannel of this.#batches.values()) {
      const numbers = [...ofChannel.keys()].sort((a, b) => a - b);
      numbers.slice(1).forEach((number, place) => {
        const previous = (ofChannel.get(numbers[place] ?? 0) ?? []).flatMap(({ last }) => last);
        for (const { first } of ofChannel.get(number) ?? [])
          for (const label of first) for (const other of previous) this.#lines.push(`${label} requires ${other}`);
      });
    }
    return this.#lines;
  }

  #operation(text: string, after: readonly string[]): string {
    const label = `l${this.#labels++}`;
    this.#lines.push(`${label}: ${text}`, ...after.map((other) => `${label} requires ${other}`));
    return label;
  }
}
