import { Random } from './random.js';

/** Something that happened, to a rank or to the world. */
export interface TraceLine {
  readonly atMs: number;
  readonly rank: number | undefined;
  readonly text: string;
}

/** A scheduled action that can be cancelled. */
export interface Scheduled {
  cancel(): void;
}

/** An action at a virtual time. */
class Event implements Scheduled {
  isCancelled = false;

  constructor(
    public atMs: number,
    readonly order: number,
    /** Rank whose code it runs; undefined for the network's and the world's own. */
    readonly rank: number | undefined,
    readonly run: () => void,
  ) {}

  cancel(): void {
    this.isCancelled = true;
  }
}

/** Time of an event, of which only slow ranks take a multiple, in milliseconds. */
const EVENT_MS = 0.02;
/** Steps that the event loop of Node.js runs before it looks at its own descriptors. */
const STEPS_PER_TURN = 64;

/**
 * Virtual time, and everything that will happen in it. One event runs at a time, with all promises that it resolves; a seed
 * decides all that is random.
 */
export class World {
  readonly random: Random;
  readonly trace: TraceLine[] = [];
  /** Errors that ranks threw into their event loops, which would end a process. */
  readonly thrown: { readonly rank: number; readonly error: unknown }[] = [];
  /** Called before an event of a rank. */
  readonly enters = new Map<number, () => void>();
  nowMs = 0;
  #order = 0;
  readonly #heap: Event[] = [];
  /** Events of stopped ranks, in the order in which they came. */
  readonly #held = new Map<number, Event[]>();
  readonly #dead = new Set<number>();
  /** Of slow ranks: time that each event takes, and until when the rank is busy. */
  readonly #slow = new Map<number, { readonly eventMs: number; busyUntilMs: number }>();

  constructor(readonly seed: number) {
    this.random = new Random(seed);
  }

  /** Adds a line to the trace. */
  note(rank: number | undefined, text: string): void {
    this.trace.push({ atMs: this.nowMs, rank, text });
  }

  after(ms: number, rank: number | undefined, run: () => void): Scheduled {
    const event = new Event(this.nowMs + Math.max(0, ms), this.#order++, rank, run);
    push(this.#heap, event);
    return event;
  }

  /** Lets nothing of a rank run any more. */
  kill(rank: number): void {
    this.#dead.add(rank);
    this.#held.delete(rank);
  }

  isDead(rank: number): boolean {
    return this.#dead.has(rank);
  }

  /** Holds everything of a rank until resume(). */
  stop(rank: number): void {
    if (!this.#held.has(rank)) this.#held.set(rank, []);
  }

  resume(rank: number): void {
    const held = this.#held.get(rank) ?? [];
    this.#held.delete(rank);
    for (const event of held) this.#putOff(event, this.nowMs);
  }

  /** Lets each event of a rank take `factor` times as long as one of others. */
  slow(rank: number, factor: number): void {
    this.#slow.set(rank, { eventMs: EVENT_MS * factor, busyUntilMs: this.nowMs });
  }

  /** Runs until `isOver`, or until nothing can happen any more, or until `limitMs` of virtual time. */
  async run(isOver: () => boolean, limitMs: number): Promise<'over' | 'nothing left' | 'limit'> {
    return new Promise((resolve, reject) => {
      let planned = 0;
      let result: 'over' | 'nothing left' | 'limit' | undefined;
      const step = (): void => {
        planned--;
        if (result !== undefined) return;
        try {
          if (isOver()) result = 'over';
          else result = this.#step(limitMs);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        if (result !== undefined) resolve(result);
        else if (planned === 0) plan();
      };
      // Promises settle between two immediates.
      const plan = (): void => {
        for (; planned < STEPS_PER_TURN; planned++) setImmediate(step);
      };
      plan();
    });
  }

  /** Moves an event, which can still be cancelled by whoever scheduled it. */
  #putOff(event: Event, untilMs: number): void {
    event.atMs = untilMs;
    push(this.#heap, event);
  }

  #step(limitMs: number): 'nothing left' | 'limit' | undefined {
    while (true) {
      const event = pop(this.#heap);
      if (event === undefined) return 'nothing left';
      if (event.isCancelled || (event.rank !== undefined && this.#dead.has(event.rank))) continue;
      if (event.atMs > limitMs) return 'limit';
      this.nowMs = Math.max(this.nowMs, event.atMs);
      const slow = event.rank === undefined ? undefined : this.#slow.get(event.rank);
      if (slow !== undefined) {
        if (slow.busyUntilMs > this.nowMs) {
          this.#putOff(event, slow.busyUntilMs);
          continue;
        }
        slow.busyUntilMs = this.nowMs + slow.eventMs;
      }
      const held = event.rank === undefined ? undefined : this.#held.get(event.rank);
      if (held !== undefined) {
        held.push(event);
        continue;
      }
      try {
        if (event.rank !== undefined) this.enters.get(event.rank)?.();
        event.run();
      } catch (error) {
        if (event.rank === undefined) throw error;
        this.thrown.push({ rank: event.rank, error });
      }
      return undefined;
    }
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

function push(heap: Event[], event: Event): void {
  let at = heap.length;
  heap.push(event);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || !isBefore(event, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = event;
}

function pop(heap: Event[]): Event | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (last === undefined || first === undefined || heap.length === 0) return first;
  let at = 0;
  while (true) {
    let child = 2 * at + 1;
    const left = heap[child];
    const right = heap[child + 1];
    if (left === undefined) break;
    if (right !== undefined && isBefore(right, left)) child++;
    const least = heap[child];
    if (least === undefined || !isBefore(least, last)) break;
    heap[at] = least;
    at = child;
  }
  heap[at] = last;
  return first;
}
