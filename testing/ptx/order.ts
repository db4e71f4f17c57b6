// Which accesses happen before which, by vector clocks. Two accesses of a place, one of them a write and one of them weak, of
// threads that nothing orders are a race: a release, an acquire or a barrier is missing. A race is found in every schedule
// that makes both accesses, whatever values it sees.
//
// The model is PTX's (Memory Consistency Model) without what kernels here do not use: all strong accesses have scope .sys.

import { MemoryError, type Region } from './memory.js';

/** Number of the newest event of each thread that another has seen. */
export type Clock = Int32Array;

/** A thread as the order of accesses needs it. */
export interface OrderedThread {
  /** From 0, over all devices. */
  readonly id: number;
  readonly clock: Clock;
  /** Text for errors: the thread and its current instruction. */
  describe(): string;
  /** Text of an instruction of its kernel. */
  instruction(place: number): string;
  /** Place of its current instruction. */
  place: number;
}

/** Adds the events of another clock. */
export function join(clock: Clock, other: Clock): void {
  for (let i = 0; i < clock.length; i++) if ((other[i] ?? 0) > (clock[i] ?? 0)) clock[i] = other[i] ?? 0;
}

/** The last access of each kind of every byte: thread + 1, its clock then, and the instruction. */
class Last {
  readonly thread: Int32Array;
  readonly time: Int32Array;
  readonly place: Int32Array;

  constructor(length: number) {
    this.thread = new Int32Array(length);
    this.time = new Int32Array(length);
    this.place = new Int32Array(length);
  }

  set(at: number, { id, clock, place }: OrderedThread): void {
    this.thread[at] = id + 1;
    this.time[at] = clock[id] ?? 0;
    this.place[at] = place;
  }

  /** The thread of the last access, unless it happened before what `thread` does now. */
  unordered(at: number, thread: OrderedThread): number | undefined {
    const other = (this.thread[at] ?? 0) - 1;
    return other < 0 || other === thread.id || (this.time[at] ?? 0) <= (thread.clock[other] ?? 0) ? undefined : other;
  }
}

/** A read that is not the last one of its byte. */
interface Read {
  readonly time: number;
  readonly place: number;
  readonly strong: boolean;
}

/** Bytes of a history: most runs touch little of a region. No element lies in two. */
const PAGE_BYTES = 4096;

/** Accesses of a page of a region. */
class History {
  readonly weakWrites: Last;
  readonly strongWrites: Last;
  readonly weakReads: Last;
  readonly strongReads: Last;
  /** Of bytes that several threads read without order, the others: byte, thread, time. */
  readonly moreReads = new Map<number, Map<number, Read>>();

  constructor() {
    this.weakWrites = new Last(PAGE_BYTES);
    this.strongWrites = new Last(PAGE_BYTES);
    this.weakReads = new Last(PAGE_BYTES);
    this.strongReads = new Last(PAGE_BYTES);
  }
}

/** All accesses of a run. */
export class AccessOrder {
  readonly #threads: readonly OrderedThread[];
  readonly #histories = new Map<Region, (History | undefined)[]>();
  /** Clocks of the releases that wrote places, which an acquire of the place takes over. */
  readonly #released = new Map<Region, Map<number, Clock>>();

  constructor(threads: readonly OrderedThread[]) {
    this.#threads = threads;
  }

  /** Records a read, and throws if it races with a write. */
  read(thread: OrderedThread, region: Region, offset: number, bytes: number, strong: boolean): void {
    const history = this.#history(region, offset);
    const reads = strong ? history.strongReads : history.weakReads;
    for (let place = offset; place < offset + bytes; place++) {
      const at = place % PAGE_BYTES;
      this.#check(history.weakWrites, place, thread, region, 'written');
      if (!strong) this.#check(history.strongWrites, place, thread, region, 'written');
      const other = reads.unordered(at, thread);
      if (other !== undefined) {
        let more = history.moreReads.get(at);
        if (more === undefined) history.moreReads.set(at, (more = new Map<number, Read>()));
        more.set(other, { time: reads.time[at] ?? 0, place: reads.place[at] ?? 0, strong });
      }
      reads.set(at, thread);
    }
  }

  /** Records a write, and throws if it races with another access. */
  write(thread: OrderedThread, region: Region, offset: number, bytes: number, strong: boolean): void {
    const history = this.#history(region, offset);
    for (let place = offset; place < offset + bytes; place++) {
      const at = place % PAGE_BYTES;
      this.#check(history.weakWrites, place, thread, region, 'written');
      this.#check(history.weakReads, place, thread, region, 'read');
      if (!strong) {
        this.#check(history.strongWrites, place, thread, region, 'written');
        this.#check(history.strongReads, place, thread, region, 'read');
      }
      const more = history.moreReads.get(at);
      if (more !== undefined) {
        for (const [other, read] of more)
          if (other !== thread.id && read.time > (thread.clock[other] ?? 0) && !(strong && read.strong))
            this.#race(thread, region, place, other, read.place, 'read');
        history.moreReads.delete(at);
      }
      (strong ? history.strongWrites : history.weakWrites).set(at, thread);
    }
  }

  /** After an acquiring load: the thread has seen all that the writer had when it released the place. */
  acquired(thread: OrderedThread, region: Region, offset: number): void {
    const released = this.#released.get(region)?.get(offset);
    if (released !== undefined) join(thread.clock, released);
  }

  /**
   * When a strong store becomes visible: what an acquire of the place takes over.
   * @param clock of a release; without one, nothing
   * @param adds true of a read-modify-write, which hands on what it found
   */
  stored(region: Region, offset: number, clock: Clock | undefined, adds = false): void {
    let released = this.#released.get(region);
    if (released === undefined) this.#released.set(region, (released = new Map<number, Clock>()));
    const before = adds ? released.get(offset) : undefined;
    if (clock === undefined && before === undefined) released.delete(offset);
    else {
      const joined = (clock ?? before ?? new Int32Array()).slice();
      if (before !== undefined) join(joined, before);
      released.set(offset, joined);
    }
  }

  #history(region: Region, offset: number): History {
    let pages = this.#histories.get(region);
    if (pages === undefined) this.#histories.set(region, (pages = []));
    return (pages[Math.floor(offset / PAGE_BYTES)] ??= new History());
  }

  #check(last: Last, place: number, thread: OrderedThread, region: Region, what: string): void {
    const at = place % PAGE_BYTES;
    const other = last.unordered(at, thread);
    if (other !== undefined) this.#race(thread, region, place, other, last.place[at] ?? 0, what);
  }

  #race(thread: OrderedThread, region: Region, at: number, other: number, place: number, what: string): never {
    const rival = this.#threads[other];
    throw new MemoryError(
      `race at ${at} of ${region.name}: ${thread.describe()}, and nothing orders it with thread ${other}, by which it was ` +
        `${what} in '${rival?.instruction(place)}'; a release, an acquire or a barrier is missing`,
    );
  }
}
