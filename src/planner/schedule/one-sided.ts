import { InputError } from '../../errors.js';
import {
  ConnectionTable,
  type Local,
  type Move,
  placeOf,
  type Schedule,
  type ScheduledCollective,
  type Wait,
} from './schedule.js';
import { inputBytes, outputBytes } from './buffers.js';

/**
 * An algorithm whose thread blocks read and write the memory of other ranks and notify them by signals, such as an
 * execution plan of MSCCL++.
 */
export interface OneSidedProgram {
  readonly isOneSided: true;
  readonly name: string;
  readonly collective: ScheduledCollective;
  readonly nRanks: number;
  /** Number of chunks of a rank's larger buffer. */
  readonly chunks: number;
  readonly protocol: 'LL' | 'LL128' | 'Simple';
  /** Input and output are one buffer. */
  readonly isInPlace: boolean;
  /** Bytes of each chunk that scratch holds before it is reused; unlimited by default. */
  readonly scratchChunkBytes?: number;
  /** Sizes of calls that the program is for, as nccl-tests counts them; any by default. */
  readonly leastBytes?: number;
  readonly mostBytes?: number;
  readonly ranks: readonly OneSidedRank[];
}

/** Work of one rank. */
export interface OneSidedRank {
  readonly scratchChunks: number;
  /** Initial values of the semaphores between its blocks. */
  readonly semaphores: readonly number[];
  /** Steps of each thread block. */
  readonly blocks: readonly (readonly OneSidedStep[])[];
}

/**
 * `move` writes the sum of `from` to all of `to`. `signal` and `wait`: the n-th wait on a channel ends after the n-th signal on
 * it; signals to several ranks are on their way at the same time. `barrier`: `blocks` blocks of the rank meet. `repeat`: the
 * steps for each piece of the chunks in turn.
 */
export type OneSidedStep = { /** Place in the file, for messages. */ readonly at?: string } & (
  | {
      readonly kind: 'move';
      readonly from: readonly FarPlace[];
      readonly to: readonly FarPlace[];
      /** Several blocks share the work. */
      readonly part?: { readonly index: number; readonly of: number };
    }
  | { readonly kind: 'signal' | 'wait'; readonly channels: readonly SignalChannel[] }
  | { readonly kind: 'barrier'; readonly barrier: number; readonly blocks: number }
  | { readonly kind: 'acquire' | 'release'; readonly semaphores: readonly number[] }
  | { readonly kind: 'repeat'; readonly unitBytes: number; readonly chunks: number; readonly steps: readonly OneSidedStep[] }
);

/** One of several lines for signals between two ranks: both give it the same number. */
export interface SignalChannel {
  readonly peer: number;
  readonly number: number;
}

/** Chunks in the memory of a rank. */
export interface FarPlace {
  /** Left out: the rank itself. Several ranks: by way of the NVSwitch, which adds and copies. */
  readonly ranks?: readonly number[];
  readonly isSwitch?: boolean;
  readonly buffer: Local['buffer'];
  readonly chunk: number;
  readonly count: number;
  /** Data carry flags: readers wait for them. */
  readonly hasFlags?: boolean;
}

/** Options of `schedule`. */
export interface ScheduleOptions {
  /** Longest message; by default that of NCCL's kernels, or as long as a step of a one-sided program. */
  readonly pieceBytes?: number;
  /** Length of the pieces of `repeat`, and of scratch, for checks with few bytes. */
  readonly unitBytes?: number;
}

/** Blocks share work in multiples of this. */
const GRAIN_BYTES = 16;

/**
 * The schedule of a one-sided program. Writes of a block to another rank are messages to a worker that stands for that rank's
 * memory; signals and requests to read go the same way, so that they arrive behind the data.
 *
 *     rank 0, block 0   put ──► signal ──►┐                         ┌─► block 0 waits for move 2 of the memory
 *     rank 1, memory                      └─ 1: store ─ 2: signal ──┘
 *
 * @param bytes as nccl-tests counts it; rounded to a multiple of the chunks
 * @throws InputError for a program that deadlocks or contradicts itself, naming rank, thread block and step, and for a size that
 *   it is not for
 */
export function scheduleOneSided(program: OneSidedProgram, bytes: number, options: ScheduleOptions = {}): Schedule {
  // Checks with short pieces stand for other sizes.
  if (options.unitBytes === undefined) checkSize(program, bytes);
  const made = new Maker(program, Math.max(1, Math.round(bytes / program.chunks)), options);
  made.run();
  return made.schedule();
}

/** The first signal of a program for which no wait follows, as a fault. */
export function unwaitedSignal(program: OneSidedProgram, bytes: number, options: ScheduleOptions): string | undefined {
  const made = new Maker(program, Math.max(1, Math.round(bytes / program.chunks)), options);
  made.run();
  return made.unwaitedSignal();
}

/** @throws InputError for a size that the program is not for */
function checkSize({ name, leastBytes = 0, mostBytes = Infinity }: OneSidedProgram, bytes: number): void {
  if (bytes < leastBytes || bytes > mostBytes)
    throw new InputError(
      'CONTENT',
      `${name} is for calls of ${bytes < leastBytes ? `${leastBytes} bytes at least` : `${mostBytes} bytes at most`}, this one has ${bytes}`,
    );
}

/** A worker whose moves are being recorded. */
interface Draft {
  readonly rank: number;
  readonly channel: number;
  /** Of a memory: the rank that writes and reads it. */
  readonly serves: number | undefined;
  /** The thread block. */
  readonly block: number;
  readonly moves: Move[];
}

/** A block's way into the memory of another rank. */
interface Link {
  readonly number: number;
  readonly to: number;
  readonly connection: number;
  /** Place of the memory's worker. */
  readonly worker: number;
  readonly memory: Draft;
  /** Connection for data that the block reads; made at the first read. */
  reply: number;
}

/** Messages that precede the next moves of a block, by link. */
type Known = Map<number, number>;

/** An event that a block may wait for: moves, and the knowledge of the block that made them. */
interface Event {
  readonly after: readonly Wait[];
  readonly known: Known;
}

interface Signal extends Event {
  /** Place of the step that sends it. */
  readonly from: string;
  readonly to: number;
}

interface Block {
  readonly rank: number;
  readonly index: number;
  readonly worker: number;
  readonly draft: Draft;
  readonly steps: Iterator<Concrete, undefined>;
  readonly known: Known;
  /** Messages of each link that it waited for. */
  readonly seen: Known;
  next: Concrete | undefined;
  done: boolean;
  /** Moves that its next move waits for. */
  after: Wait[];
  hasArrived: boolean;
}

/** A step with its piece of chunks. */
interface Concrete {
  readonly step: Exclude<OneSidedStep, { readonly kind: 'repeat' }>;
  readonly at: string;
  readonly offset: number;
  readonly unit: number;
}

/** Written data with flags. */
interface Flagged {
  readonly from: number;
  readonly to: number;
  readonly after: Wait;
}

class Maker {
  readonly #program: OneSidedProgram;
  readonly #perChunk: number;
  readonly #unitBytes: number | undefined;
  readonly #pieceBytes: number;
  readonly #scratchChunk: number;
  readonly #table = new ConnectionTable();
  readonly #workers: Draft[] = [];
  readonly #blocks: Block[] = [];
  readonly #links = new Map<string, Link>();
  readonly #linkOf: Link[] = [];
  readonly #signals = new Map<string, Signal[]>();
  readonly #waits = new Map<string, number>();
  readonly #flagged: Flagged[][];
  readonly #releases = new Map<string, Event[]>();
  readonly #acquired = new Map<string, number>();
  readonly #users = new Map<string, number>();
  readonly #arrived = new Map<string, Block[]>();

  constructor(program: OneSidedProgram, perChunk: number, { unitBytes, pieceBytes = Infinity }: ScheduleOptions) {
    this.#program = program;
    this.#perChunk = perChunk;
    this.#unitBytes = unitBytes;
    this.#pieceBytes = pieceBytes;
    const scale = unitBytes === undefined ? 1 : unitBytes / (unitOf(program) ?? unitBytes);
    this.#scratchChunk = Math.min(perChunk, Math.max(1, Math.floor((program.scratchChunkBytes ?? Infinity) * scale)));
    this.#flagged = program.ranks.map(() => []);
    if (program.ranks.length !== program.nRanks)
      throw new InputError(
        'CONTENT',
        `the program ${program.name} is for ${program.nRanks} ranks and has ${program.ranks.length}`,
      );
    program.ranks.forEach(({ blocks }, rank) => {
      blocks.forEach((steps, index) => {
        const draft: Draft = { rank, channel: index, serves: undefined, block: index, moves: [] };
        this.#blocks.push({
          rank,
          index,
          worker: this.#workers.push(draft) - 1,
          draft,
          steps: this.#concrete(steps),
          known: new Map(),
          seen: new Map(),
          next: undefined,
          done: false,
          after: [],
          hasArrived: false,
        });
      });
    });
    // All connections first, so that they do not depend on the size.
    for (const block of this.#blocks) this.#openLinks(block, program.ranks[block.rank]?.blocks[block.index] ?? []);
  }

  #openLinks(block: Block, steps: readonly OneSidedStep[]): void {
    for (const step of steps) {
      if (step.kind === 'repeat') this.#openLinks(block, step.steps);
      else if (step.kind === 'signal') for (const { peer } of step.channels) this.#link(block, peer, false);
      else if (step.kind === 'move') {
        // A block that reads, then writes, has the links for each of both.
        const phase = step.to.some(({ ranks }) => ranks !== undefined) ? 1 : 0;
        for (const { ranks = [], isSwitch = false } of step.from)
          for (const rank of ranks)
            if (rank !== block.rank) this.#link(block, rank, false, isSwitch ? 'switch-in' : 'direct', phase);
        for (const { ranks = [], isSwitch = false } of step.to)
          for (const rank of ranks) if (rank !== block.rank) this.#link(block, rank, isSwitch);
      }
    }
  }

  /** Executes the blocks without data, and records their moves. */
  run(): void {
    for (let isMoving = true; isMoving;) {
      isMoving = false;
      for (const block of this.#blocks) {
        while (!block.done) {
          if (block.next === undefined) {
            const next = block.steps.next();
            if (next.done === true) {
              block.done = true;
              // The block ends after the moves that it waits for.
              if (block.after.length > 0) this.#post(block, [], { bytes: 0 });
              break;
            }
            block.next = next.value;
          }
          if (!this.#step(block, block.next)) break;
          block.next = undefined;
          isMoving = true;
        }
      }
    }
    const stuck = this.#blocks.filter(({ done }) => !done);
    if (stuck.length > 0)
      throw new InputError(
        'CONTENT',
        `deadlock: ${stuck
          .slice(0, 3)
          .map((block) => `${this.#where(block)} ${this.#awaited(block)}`)
          .join('; ')}${stuck.length > 3 ? `; and ${stuck.length - 3} more` : ''}`,
      );
  }

  schedule(): Schedule {
    const { collective, nRanks, chunks, isInPlace, ranks } = this.#program;
    const scratchBytes = Math.max(0, ...ranks.map(({ scratchChunks }) => scratchChunks)) * this.#scratchChunk;
    return {
      call: { collective, bytes: this.#perChunk * chunks, root: 0 },
      nRanks,
      connections: this.#table.all,
      workers: this.#workers.map(({ rank, channel, serves, block, moves }) => ({
        rank,
        channel,
        block,
        moves: () => moves,
        ...(serves === undefined ? {} : { serves }),
      })),
      own: { scratchBytes, isInPlace, chunkBytes: this.#perChunk },
    };
  }

  /** The steps of a block one after the other, those that are repeated for each piece. */
  *#concrete(steps: readonly OneSidedStep[]): Generator<Concrete, undefined> {
    for (const [number, step] of steps.entries()) {
      if (step.kind !== 'repeat') {
        yield { step, at: step.at ?? String(number), offset: 0, unit: Infinity };
        continue;
      }
      const unit = this.#unitBytes ?? step.unitBytes;
      for (let offset = 0; offset < step.chunks * this.#perChunk; offset += unit) {
        for (const [innerNumber, inner] of step.steps.entries()) {
          if (inner.kind === 'repeat') throw new InputError('CONTENT', `step ${number} repeats steps that repeat steps`);
          yield { step: inner, at: inner.at ?? `${number}.${innerNumber}`, offset, unit };
        }
      }
    }
    return undefined;
  }

  /** Executes a step; returns false if it has to wait. */
  #step(block: Block, concrete: Concrete): boolean {
    const { step } = concrete;
    switch (step.kind) {
      case 'move':
        return this.#move(block, step, concrete);
      case 'signal':
        this.#signal(block, step.channels);
        return true;
      case 'wait': {
        const events = step.channels.map(({ peer, number }) => {
          const key = `${peer} ${block.rank} ${number}`;
          return this.#signals.get(key)?.[this.#waits.get(key) ?? 0];
        });
        if (events.includes(undefined)) return false;
        step.channels.forEach(({ peer, number }) => count(this.#waits, `${peer} ${block.rank} ${number}`));
        for (const event of events) if (event !== undefined) this.#learn(block, event);
        return true;
      }
      case 'barrier': {
        const key = `${block.rank} ${step.barrier}`;
        const waiting = this.#arrived.get(key) ?? [];
        if (!block.hasArrived) {
          block.hasArrived = true;
          waiting.push(block);
          this.#arrived.set(key, waiting);
          if (waiting.length >= step.blocks) {
            const events = waiting.map((each) => eventOf(each));
            for (const each of waiting) {
              for (const event of events) this.#learn(each, event);
              each.hasArrived = false;
            }
            this.#arrived.set(key, []);
            // The others continue after the step in which they wait.
            for (const each of waiting) if (each !== block) each.next = undefined;
            return true;
          }
        }
        return false;
      }
      case 'release':
        for (const semaphore of step.semaphores) {
          this.#onlyOne(block, 'released', semaphore);
          pushTo(this.#releases, `${block.rank} ${semaphore}`, eventOf(block));
        }
        return true;
      case 'acquire': {
        const initial = (semaphore: number) => this.#program.ranks[block.rank]?.semaphores[semaphore] ?? 0;
        const events = step.semaphores.map((semaphore) => {
          this.#onlyOne(block, 'acquired', semaphore);
          const key = `${block.rank} ${semaphore}`;
          const number = (this.#acquired.get(key) ?? 0) - initial(semaphore);
          return number < 0 ? 'free' : this.#releases.get(key)?.[number];
        });
        if (events.includes(undefined)) return false;
        for (const semaphore of step.semaphores) count(this.#acquired, `${block.rank} ${semaphore}`);
        for (const event of events) if (event !== undefined && event !== 'free') this.#learn(block, event);
        return true;
      }
    }
  }

  /** Signals to several ranks are one move: threads of a block send them side by side. */
  #signal(block: Block, channels: readonly SignalChannel[]): void {
    const links = new Map(channels.map(({ peer }) => [peer, this.#link(block, peer, false)]));
    this.#post(block, [...links.values()], { bytes: 0 });
    const known = new Map(block.known);
    const from = this.#where(block);
    for (const { peer, number } of channels) {
      const link = links.get(peer);
      const after = link === undefined ? [] : [{ worker: link.worker, moves: link.memory.moves.length }];
      pushTo(this.#signals, `${block.rank} ${peer} ${number}`, { after, known, from, to: peer });
    }
  }

  /** Fault of the first signal that a wait of the next call would take for its own. */
  unwaitedSignal(): string | undefined {
    for (const [key, events] of this.#signals) {
      const left = events[this.#waits.get(key) ?? 0];
      if (left !== undefined)
        return `${left.from}: rank ${left.to} does not wait for this signal, so a wait of the next call would end too early`;
    }
    return undefined;
  }

  /** @throws InputError if the order of several blocks at one semaphore is undefined */
  #onlyOne(block: Block, how: string, semaphore: number): void {
    const key = `${block.rank} ${semaphore} ${how}`;
    const user = this.#users.get(key) ?? block.index;
    this.#users.set(key, user);
    if (user !== block.index)
      throw new InputError(
        'CONTENT',
        `${this.#where(block)}: semaphore ${semaphore} is ${how} by thread block ${user}, too; the order of both is not fixed, so give each thread block a semaphore of its own`,
      );
  }

  #move(block: Block, step: Extract<OneSidedStep, { kind: 'move' }>, concrete: Concrete): boolean {
    const ranges = (places: readonly FarPlace[]) => places.map((place) => this.#range(block, place, step.part, concrete));
    const [sources, targets] = [ranges(step.from), ranges(step.to)];
    const bytes = sources[0]?.bytes ?? 0;
    const after: Wait[] = [];
    for (const [index, { hasFlags }] of step.from.entries()) {
      const range = sources[index];
      if (hasFlags !== true || range === undefined) continue;
      const written = (this.#flagged[block.rank] ?? []).filter(
        ({ from, to }) => from < range.at.offset + bytes && to > range.at.offset,
      );
      const covered = written.reduce(
        (sum, { from, to }) => sum + Math.min(to, range.at.offset + bytes) - Math.max(from, range.at.offset),
        0,
      );
      if (covered < bytes) return false;
      after.push(...written.map((each) => each.after));
    }
    if (bytes === 0) return true;
    for (let done = 0; done < bytes; done += this.#pieceBytes) {
      const at = ({ buffer, offset }: Local): Local => ({ buffer, offset: offset + done });
      this.#movePiece(block, step, {
        from: sources.map((range) => at(range.at)),
        to: targets.map((range) => at(range.at)),
        bytes: Math.min(this.#pieceBytes, bytes - done),
        after,
      });
    }
    return true;
  }

  #movePiece(
    block: Block,
    step: Extract<OneSidedStep, { kind: 'move' }>,
    { from, to, bytes, after }: { from: readonly Local[]; to: readonly Local[]; bytes: number; after: readonly Wait[] },
  ): void {
    const adds: Local[] = [];
    const readers: { readonly link: Link; readonly place: Local }[] = [];
    step.from.forEach((place, index) => {
      const at = from[index] ?? { buffer: place.buffer, offset: 0 };
      for (const rank of place.ranks ?? [block.rank]) {
        if (rank === block.rank) adds.push(at);
        else readers.push({ link: this.#link(block, rank, false, place.isSwitch === true ? 'switch-in' : 'direct'), place: at });
      }
    });
    const writes: Local[] = [];
    const writers: { readonly link: Link; readonly place: Local; readonly hasFlags: boolean }[] = [];
    step.to.forEach((place, index) => {
      const at = to[index] ?? { buffer: place.buffer, offset: 0 };
      for (const rank of place.ranks ?? [block.rank]) {
        if (rank === block.rank) writes.push(at);
        else
          writers.push({ link: this.#link(block, rank, place.isSwitch === true), place: at, hasFlags: place.hasFlags === true });
      }
    });
    for (const links of [readers, writers]) {
      if (new Set(links.map(({ link }) => link.number)).size < links.length)
        throw new InputError('CONTENT', `${this.#where(block)}: it reads or writes twice in the memory of one rank`);
    }

    if (readers.length > 0) {
      this.#post(
        block,
        readers.map(({ link }) => link),
        { bytes: 0 },
        after,
      );
      for (const { link, place } of readers) {
        link.memory.moves.push({ receive: [], input: -1, send: [link.reply], output: -1, bytes, local: local([place], []) });
        block.known.set(link.number, link.memory.moves.length);
      }
    }
    this.#post(
      block,
      writers.map(({ link }) => link),
      { bytes, receive: readers.map(({ link }) => link.reply), adds, writes, places: writers.map(({ place }) => place) },
      after,
    );
    step.to.forEach(({ hasFlags }, index) => {
      const at = to[index];
      if (hasFlags === true && at !== undefined && writes.includes(at))
        this.#flagged[block.rank]?.push({
          from: at.offset,
          to: at.offset + bytes,
          after: { worker: block.worker, moves: block.draft.moves.length },
        });
    });
    for (const { link, place, hasFlags } of writers) {
      if (hasFlags)
        this.#flagged[link.to]?.push({
          from: place.offset,
          to: place.offset + bytes,
          after: { worker: link.worker, moves: link.memory.moves.length },
        });
    }
  }

  /** A move of a block, and the moves of memories that take its messages. */
  #post(
    block: Block,
    links: readonly Link[],
    {
      bytes,
      receive = [],
      adds = [],
      writes = [],
      places = [],
    }: {
      readonly bytes: number;
      readonly receive?: readonly number[];
      readonly adds?: readonly Local[];
      readonly writes?: readonly Local[];
      readonly places?: readonly Local[];
    },
    after: readonly Wait[] = [],
  ): void {
    block.draft.moves.push({
      receive,
      input: -1,
      send: links.map(({ connection }) => connection),
      output: -1,
      bytes,
      local: { adds, writes, after: latest([...block.after, ...after]) },
      ...(block.next === undefined ? {} : { at: stepOf(block.next) }),
    });
    block.after = [];
    links.forEach((link, index) => {
      const place = places[index];
      link.memory.moves.push({
        receive: [link.connection],
        input: -1,
        send: [],
        output: -1,
        bytes,
        local: local([], place === undefined ? [] : [place]),
      });
      block.known.set(link.number, link.memory.moves.length);
    });
  }

  /** Adds another block's knowledge to this one's; its next move waits for the messages of that block to this rank. */
  #learn(block: Block, { after, known }: Event): void {
    block.after.push(...after.filter(({ worker }) => worker !== block.worker));
    for (const [number, messages] of known) {
      if (messages > (block.known.get(number) ?? 0)) block.known.set(number, messages);
      const link = this.#linkOf[number];
      if (link?.to !== block.rank || messages <= (block.seen.get(number) ?? 0)) continue;
      block.seen.set(number, messages);
      block.after.push({ worker: link.worker, moves: messages });
    }
  }

  #link(block: Block, to: number, isSwitch: boolean, reply?: 'direct' | 'switch-in', phase = 0): Link {
    const { nRanks } = this.#program;
    if (!Number.isInteger(to) || to < 0 || to >= nRanks || to === block.rank)
      throw new InputError(
        'CONTENT',
        `${this.#where(block)}: rank ${to} as its peer: ${to === block.rank ? 'itself' : `there are ${nRanks}`}`,
      );
    const key = `${block.worker} ${to} ${isSwitch ? 'switch-out' : (reply ?? 'direct')}`;
    let link = this.#links.get(key);
    if (link === undefined) {
      const memory: Draft = { rank: to, channel: block.index, serves: block.rank, block: block.index, moves: [] };
      const number = this.#linkOf.length;
      const connection = this.#table.add(block.rank, to, block.index, isSwitch ? 'switch-out' : 'direct');
      link = { number, to, connection, worker: this.#workers.push(memory) - 1, memory, reply: -1 };
      this.#linkOf.push(link);
      this.#links.set(key, link);
    }
    if (reply !== undefined && link.reply < 0) link.reply = this.#table.add(to, block.rank, block.index, reply, phase);
    return link;
  }

  #range(
    block: Block,
    { buffer, chunk, count: chunks }: FarPlace,
    part: { readonly index: number; readonly of: number } | undefined,
    { offset, unit }: Concrete,
  ): { readonly at: Local; readonly bytes: number } {
    const stride = buffer === 'scratch' ? this.#scratchChunk : this.#perChunk;
    const whole = chunks * this.#perChunk;
    const { collective, nRanks, chunks: all, ranks } = this.#program;
    const call = { collective, bytes: this.#perChunk * all, root: 0 };
    const room = {
      input: inputBytes(call, nRanks, block.rank) / this.#perChunk,
      output: outputBytes(call, nRanks, block.rank) / this.#perChunk,
      scratch: Math.max(...ranks.map(({ scratchChunks }) => scratchChunks)),
    }[buffer];
    if (chunk < 0 || chunks < 1 || chunk + chunks > room)
      throw new InputError(
        'CONTENT',
        `${this.#where(block)}: chunks ${chunk} to ${chunk + chunks - 1} of the ${buffer}, which has ${room}`,
      );
    const grain = Math.min(GRAIN_BYTES, this.#perChunk);
    const cut = (index: number, of: number) => {
      const grains = Math.floor(whole / grain);
      return index === of ? whole : (index * Math.floor(grains / of) + Math.min(index, grains % of)) * grain;
    };
    const begin = part === undefined ? 0 : cut(part.index, part.of);
    const end = part === undefined ? whole : cut(part.index + 1, part.of);
    const bytes = Math.max(0, Math.min(unit, end - begin - offset));
    const shift = buffer === 'scratch' ? offset % this.#scratchChunk : offset;
    const at = { buffer, offset: chunk * stride + begin + shift };
    return { at, bytes };
  }

  #where({ rank, index, next }: Block): string {
    return placeOf(rank, index, next === undefined ? undefined : stepOf(next));
  }

  #awaited({ next, rank }: Block): string {
    const step = next?.step;
    switch (step?.kind) {
      case 'wait': {
        const missing = step.channels.find(
          ({ peer, number }) =>
            this.#signals.get(`${peer} ${rank} ${number}`)?.[this.#waits.get(`${peer} ${rank} ${number}`) ?? 0] === undefined,
        );
        return `waits for a signal of rank ${missing?.peer ?? -1}`;
      }
      case 'barrier':
        return `waits for ${step.blocks} thread blocks at barrier ${step.barrier}`;
      case 'acquire':
        return `waits for semaphore ${step.semaphores.join(', ')}`;
      default:
        return 'waits for data with flags';
    }
  }
}

/** Bytes of a piece in a program that repeats steps. */
export function unitOf({ ranks }: OneSidedProgram): number | undefined {
  for (const { blocks } of ranks)
    for (const steps of blocks) for (const step of steps) if (step.kind === 'repeat') return step.unitBytes;
  return undefined;
}

function local(adds: readonly Local[], writes: readonly Local[]) {
  return { adds, writes, after: [] };
}

function eventOf(block: Block): Event {
  return {
    after: latest([...block.after, { worker: block.worker, moves: block.draft.moves.length }]).filter(({ moves }) => moves > 0),
    known: new Map(block.known),
  };
}

function stepOf({ at, step }: Concrete): string {
  return `step ${at} (${step.kind})`;
}

/** Of each worker, the wait for most moves. */
function latest(waits: readonly Wait[]): Wait[] {
  const most = new Map<number, number>();
  for (const { worker, moves } of waits) most.set(worker, Math.max(moves, most.get(worker) ?? 0));
  return [...most].map(([worker, moves]) => ({ worker, moves }));
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function pushTo<Kind extends Event>(lists: Map<string, Kind[]>, key: string, event: Kind): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [event]);
  else list.push(event);
}
