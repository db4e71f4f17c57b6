import { inputBytes, outputBytes } from './buffers.js';
import { rangesOf, type Local, type Move, type VerifiableSchedule } from './schedule.js';

/** The moves that a worker knows to be complete: their number, by worker. */
type Clock = Int32Array;

/**
 * Finds races by vector clocks: workers that use the same bytes of a rank without an order between them. A worker's own moves,
 * messages, and waits within a rank give an order; waiting for room in a connection gives none, because its length is arbitrary.
 */
export class Races {
  readonly #schedule: VerifiableSchedule;
  readonly #clocks: Clock[];
  readonly #messages: Clock[][];
  /** Clocks of moves that others wait for. */
  readonly #kept = new Map<string, Clock | undefined>();
  readonly #done: Int32Array;
  /** Uses by byte of each buffer; undefined for bytes without any. */
  readonly #memory = new Map<string, (Use | undefined)[]>();

  constructor(schedule: VerifiableSchedule) {
    const { workers, connections } = schedule;
    this.#schedule = schedule;
    this.#clocks = workers.map(() => new Int32Array(workers.length));
    this.#messages = connections.map(() => []);
    this.#done = new Int32Array(workers.length);
    for (const { moves } of workers)
      for (const { local } of moves())
        for (const wait of local?.after ?? []) this.#kept.set(`${wait.worker} ${wait.moves}`, undefined);
  }

  /** Called after each move, in a possible order; returns the first conflict. */
  move(worker: number, rank: number, move: Move): string | undefined {
    const { receive, send, local } = move;
    const clock = this.#clocks[worker] ?? new Int32Array();
    for (const wait of local?.after ?? []) join(clock, this.#kept.get(`${wait.worker} ${wait.moves}`));
    for (const number of receive) join(clock, this.#messages[number]?.shift());
    const count = (this.#done[worker] ?? 0) + 1;
    this.#done[worker] = count;
    clock[worker] = count;
    let conflict: string | undefined;
    for (const range of rangesOf(move)) {
      for (const place of range.local?.adds ?? []) conflict ??= this.#use(worker, rank, place, range.bytes, false);
      for (const place of range.local?.writes ?? []) conflict ??= this.#use(worker, rank, place, range.bytes, true);
    }
    for (const number of send) this.#messages[number]?.push(clock.slice());
    const key = `${worker} ${count}`;
    if (this.#kept.has(key)) this.#kept.set(key, clock.slice());
    return conflict;
  }

  /** Called after the last move: uses of a rank's buffers by others after its own workers have ended. */
  end(): string | undefined {
    const { workers, nRanks } = this.#schedule;
    for (let rank = 0; rank < nRanks; rank++) {
      const known = new Int32Array(workers.length);
      workers.forEach((each, index) => {
        if (each.rank === rank && each.serves === undefined) join(known, this.#clocks[index]);
      });
      for (const buffer of ['input', 'output', 'whole']) {
        for (const [at, use] of (this.#memory.get(`${rank} ${buffer}`) ?? []).entries()) {
          const late = use === undefined ? undefined : lateUser(use, known);
          if (late === undefined) continue;
          const name = buffer === 'whole' ? 'buffer' : buffer;
          return `byte ${at} of the ${name} of rank ${rank} is ${late === use?.writer ? 'written' : 'read'} by ${this.#userOf(late)}, and no thread block of rank ${rank} waits for that before it ends`;
        }
      }
    }
    return undefined;
  }

  #use(worker: number, rank: number, { buffer, offset }: Local, bytes: number, isWrite: boolean): string | undefined {
    const clock = this.#clocks[worker] ?? new Int32Array();
    const [place, from] = this.#place(rank, buffer, offset);
    let uses = this.#memory.get(place);
    if (uses === undefined) this.#memory.set(place, (uses = []));
    const count = this.#done[worker] ?? 0;
    // An array without holes is fast.
    while (uses.length < from) uses.push(undefined);
    for (let at = from; at < from + bytes; at++) {
      const use = (uses[at] ??= { writer: -1, write: 0, readers: undefined });
      if (use.writer >= 0 && use.write > (clock[use.writer] ?? 0))
        return this.#told(use.writer, buffer, offset + at - from, `${isWrite ? 'written' : 'read'} here and written`);
      if (isWrite) {
        if (use.readers !== undefined) {
          for (const [reader, read] of use.readers)
            if (read > (clock[reader] ?? 0)) return this.#told(reader, buffer, offset + at - from, 'written here and read');
          use.readers = undefined;
        }
        use.writer = worker;
        use.write = count;
      } else {
        (use.readers ??= new Map<number, number>()).set(worker, count);
      }
    }
    return undefined;
  }

  #told(other: number, buffer: string, offset: number, how: string): string {
    return `byte ${offset} of the ${buffer} is ${how} by ${this.#userOf(other)}, and neither waits for the other`;
  }

  /** Name of the thread block that uses memory as a worker. */
  #userOf(worker: number): string {
    const { rank, channel, serves, block } = this.#schedule.workers[worker] ?? { rank: -1, channel: -1 };
    return `thread block ${block ?? channel} of rank ${serves ?? rank}`;
  }

  /** Position of a range in memory: if input and output are one buffer, a rank's part is at its offset in the whole. */
  #place(rank: number, buffer: Local['buffer'], offset: number): [string, number] {
    const { call, nRanks, own } = this.#schedule;
    if (buffer === 'scratch' || own?.isInPlace !== true) return [`${rank} ${buffer}`, offset];
    const [input, output] = [inputBytes(call, nRanks, rank), outputBytes(call, nRanks, rank)];
    const isPart = (buffer === 'input' ? input : output) < Math.max(input, output);
    return [`${rank} whole`, offset + (isPart ? (rank * call.bytes) / nRanks : 0)];
  }
}

/** The first worker whose use of a byte came after what the clock knows. */
function lateUser({ writer, write, readers }: Use, known: Clock): number | undefined {
  if (write > (known[writer] ?? 0)) return writer;
  if (readers !== undefined) for (const [reader, read] of readers) if (read > (known[reader] ?? 0)) return reader;
  return undefined;
}

/** The last write of a byte, and reads since by worker. */
interface Use {
  writer: number;
  write: number;
  readers: Map<number, number> | undefined;
}

function join(clock: Clock, other: Clock | undefined): void {
  if (other === undefined) return;
  for (let index = 0; index < clock.length; index++) clock[index] = Math.max(clock[index] ?? 0, other[index] ?? 0);
}
