import type { JobCall } from './job-call.js';
import type { RankProgram } from './program.js';
import { TimeQueue } from './queue.js';

/** Times of a call in a replay, µs on the common clock. */
export interface ReplayedCall {
  /** By rank, when its kernel begins. */
  readonly starts: ReadonlyMap<number, number>;
  /** When the last rank has come. */
  readonly beginUs: number;
  readonly endUs: number;
}

/** A replayed job. */
export interface Run {
  /** A replayed call for each call that began. */
  readonly calls: ReadonlyMap<JobCall, ReplayedCall>;
  /** By rank, when all of its work and calls are done. */
  readonly endUs: ReadonlyMap<number, number>;
  /** By rank, time that it waited for calls, µs. */
  readonly exposedUs: ReadonlyMap<number, number>;
  /** Calls that began without all ranks, because these wait for each other. */
  readonly forced: number;
}

/** Costs of calls. */
export interface CallCosts {
  /** Time of a call alone from the last rank's start on, µs. */
  timeUs(call: JobCall): number;
  /** Speed of each of several calls at the same time, relative to being alone: 0 to 1. */
  speeds(running: readonly JobCall[]): Float64Array;
}

type Event =
  | { readonly kind: 'rank'; readonly rank: RankState }
  | { readonly kind: 'begin'; readonly call: CallState }
  | { readonly kind: 'end'; readonly call: CallState; readonly version: number };

interface RankState {
  readonly program: RankProgram;
  next: number;
  workUs: number;
  readonly streams: Map<string, Stream>;
  blockedSince: number;
  exposedUs: number;
  endUs: number;
}

/** Calls of one rank that run one after the other. */
interface Stream {
  readonly queue: { readonly call: CallState; readonly lagUs: number }[];
  freeAt: number;
  isBusy: boolean;
}

interface CallState {
  readonly call: JobCall;
  readonly starts: Map<number, number>;
  readonly ranks: { readonly rank: RankState; readonly stream: Stream }[];
  readonly waiting: RankState[];
  phase: 'waiting' | 'running' | 'done';
  beginUs: number;
  endUs: number;
  leftUs: number;
  speed: number;
  sinceUs: number;
  version: number;
}

/**
 * Executes programs in time: a call begins when its last rank is there, and takes the time that `costs` gives, longer while
 * other calls use the same links.
 */
export function runPrograms(programs: readonly RankProgram[], costs: CallCosts): Run {
  return new Runner(programs, costs).run();
}

class Runner {
  readonly #costs: CallCosts;
  readonly #ranks: readonly RankState[];
  readonly #calls = new Map<JobCall, CallState>();
  readonly #queue = new TimeQueue<Event>();
  #running: CallState[] = [];
  #forced = 0;

  constructor(programs: readonly RankProgram[], costs: CallCosts) {
    this.#costs = costs;
    this.#ranks = programs.map((program) => ({
      ...{ program, next: 0, workUs: 0, streams: new Map(), blockedSince: -1, exposedUs: 0, endUs: program.startUs },
    }));
    for (const rank of this.#ranks) this.#queue.add(rank.program.startUs, { kind: 'rank', rank });
  }

  run(): Run {
    let nowUs = 0;
    for (;;) {
      const next = this.#queue.take();
      if (next === undefined) {
        const stuck = this.#firstStuck();
        if (stuck === undefined) break;
        this.#forced++;
        this.#begin(stuck, nowUs);
        continue;
      }
      nowUs = next.timeUs;
      if (next.entry.kind === 'rank') this.#advance(next.entry.rank, nowUs);
      else if (next.entry.kind === 'begin') this.#transfer(next.entry.call, nowUs);
      else if (next.entry.version === next.entry.call.version) this.#end(next.entry.call, nowUs);
    }
    return {
      calls: new Map(
        [...this.#calls].flatMap(([call, { phase, starts, beginUs, endUs }]) =>
          phase === 'done' ? [[call, { starts, beginUs, endUs }] as const] : [],
        ),
      ),
      endUs: new Map(this.#ranks.map(({ program, endUs }) => [program.rank, endUs])),
      exposedUs: new Map(this.#ranks.map(({ program, exposedUs }) => [program.rank, exposedUs])),
      forced: this.#forced,
    };
  }

  /** Does a rank's actions up to the next one that takes time. */
  #advance(rank: RankState, nowUs: number): void {
    const { actions, workUs } = rank.program;
    for (;;) {
      const action = actions[rank.next];
      const target = action?.atUs ?? workUs;
      if (target > rank.workUs) {
        const passed = target - rank.workUs;
        rank.workUs = target;
        this.#queue.add(nowUs + passed, { kind: 'rank', rank });
        return;
      }
      if (action === undefined) {
        rank.endUs = Math.max(rank.endUs, nowUs);
        return;
      }
      const call = this.#stateOf(action.call);
      if (action.kind === 'issue') {
        const stream = rank.streams.get(action.stream) ?? { queue: [], freeAt: -Infinity, isBusy: false };
        rank.streams.set(action.stream, stream);
        stream.queue.push({ call, lagUs: action.lagUs });
        this.#startNext(rank, stream, nowUs);
      } else if (call.phase !== 'done') {
        rank.blockedSince = nowUs;
        call.waiting.push(rank);
        rank.next++;
        return;
      }
      rank.next++;
    }
  }

  /** Begins the kernel of the next call of a stream. */
  #startNext(rank: RankState, stream: Stream, nowUs: number): void {
    const next = stream.queue[0];
    if (stream.isBusy || next === undefined) return;
    stream.queue.shift();
    stream.isBusy = true;
    const { call, lagUs } = next;
    const startUs = Math.max(nowUs, stream.freeAt + lagUs);
    call.starts.set(rank.program.rank, startUs);
    if (call.phase === 'done') {
      // It was forced to begin, and is over.
      stream.isBusy = false;
      stream.freeAt = startUs;
      this.#startNext(rank, stream, nowUs);
      return;
    }
    call.ranks.push({ rank, stream });
    if (call.phase === 'waiting' && call.starts.size === call.call.parts.size) this.#begin(call, nowUs);
  }

  /** All ranks have made the call: it begins when the last one's kernel does. */
  #begin(call: CallState, nowUs: number): void {
    call.phase = 'running';
    call.beginUs = [...call.starts.values()].reduce((latest, time) => Math.max(latest, time), nowUs);
    if (call.beginUs > nowUs) this.#queue.add(call.beginUs, { kind: 'begin', call });
    else this.#transfer(call, nowUs);
  }

  /** From now on a call takes its part of the links. */
  #transfer(call: CallState, nowUs: number): void {
    this.#settle(nowUs);
    call.leftUs = this.#costs.timeUs(call.call);
    call.sinceUs = nowUs;
    this.#running.push(call);
    this.#schedule(nowUs);
  }

  #end(call: CallState, nowUs: number): void {
    call.phase = 'done';
    call.endUs = nowUs;
    this.#settle(nowUs);
    this.#running = this.#running.filter((each) => each !== call);
    this.#schedule(nowUs);
    for (const { rank, stream } of call.ranks) {
      stream.isBusy = false;
      stream.freeAt = nowUs;
      rank.endUs = Math.max(rank.endUs, nowUs);
      this.#startNext(rank, stream, nowUs);
    }
    for (const rank of call.waiting) {
      rank.exposedUs += nowUs - rank.blockedSince;
      this.#advance(rank, nowUs);
    }
  }

  /** Takes off what running calls have done since their speeds changed. */
  #settle(nowUs: number): void {
    for (const call of this.#running) {
      call.leftUs = Math.max(0, call.leftUs - (nowUs - call.sinceUs) * call.speed);
      call.sinceUs = nowUs;
    }
  }

  #schedule(nowUs: number): void {
    const speeds =
      this.#running.length > 1 ? this.#costs.speeds(this.#running.map(({ call }) => call)) : new Float64Array(1).fill(1);
    this.#running.forEach((call, place) => {
      const speed = speeds[place] ?? 1;
      if (call.version > 0 && call.speed === speed) return;
      call.speed = speed;
      call.version++;
      this.#queue.add(nowUs + call.leftUs / speed, { kind: 'end', call, version: call.version });
    });
  }

  #stateOf(call: JobCall): CallState {
    let state = this.#calls.get(call);
    if (state === undefined) {
      state = {
        call,
        starts: new Map(),
        ranks: [],
        waiting: [],
        phase: 'waiting',
        beginUs: 0,
        endUs: 0,
        leftUs: 0,
        speed: 1,
        sinceUs: 0,
        version: 0,
      };
      this.#calls.set(call, state);
    }
    return state;
  }

  /** Of the calls for which ranks wait while no other moves, the one that was made first. */
  #firstStuck(): CallState | undefined {
    return [...this.#calls.values()]
      .filter(({ phase, starts }) => phase === 'waiting' && starts.size > 0)
      .reduce<CallState | undefined>(
        (first, each) => (first === undefined || each.call.index < first.call.index ? each : first),
        undefined,
      );
  }
}
