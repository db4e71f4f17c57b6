import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, ofCall, RemoteError, TcclError, TimeoutError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import { nameRanks } from '../bootstrap/rank-list.js';
import { withCallerFrames } from '../caller-stack.js';
import { runtimeSettings } from '../resources/options.js';
import { markDead, RankLines, reaches } from '../device/rank-lines.js';
import { MAX_LOCAL_RANKS } from '../device/segment.js';
import { createMemory } from '../device/shared-memory.js';
import type { RankPort } from '../launch/rank-port.js';
import { clearTimeout, random, setTimeout, type Timer } from '../platform/platform.js';
import type { PageModule, PageSpawnOptions, PageWorker } from './options.js';
import { checkIsolated, PLACE, type PagePlace, type ToPage, type ToRank } from './place.js';
import { makeChannel, type Port } from './port-connection.js';
import { onAbort } from '../abort-signals.js';
import { afterWatching } from '../progress/watch-clock.js';
import { warn } from '../warn.js';
import { defined } from '../../defined.js';

/** Ranks that run as workers: a promise that resolves when all have ended without error, and a port to each. */
export interface SpawnedWorkers extends Promise<void> {
  /** A port for messages to and from each rank, by rank. */
  readonly ranks: readonly RankPort[];
}

const optionNames = Object.keys({ env: true, onMessage: true, graceMs: true, signal: true } satisfies Record<
  keyof PageSpawnOptions,
  true
>);

/**
 * Runs ranks as workers of this page, each on `module`, and resolves when all have ended without error: a rank ends when it has
 * closed its communicators. The workers end then.
 *
 * @param module URL of a module, or a function that starts a worker on it, as bundlers need it
 * @throws InvalidArgumentError `ARGUMENT_RANGE`, `ARGUMENT_TYPE`, `UNKNOWN_NAME`, SystemError `SHARED_MEMORY` in a page without
 *   cross-origin isolation, `OUT_OF_MEMORY` before anything runs; RemoteError `RANK_DIED` when a rank threw or its worker ended:
 *   `rank` is its number, `cause` its error; the other workers have ended by then (after `graceMs`); TimeoutError `RANK_MISSING`
 *   when a module has not imported this one in time
 *
 * @example
 * await spawnRanks(4, () => new Worker(new URL('./rank.js', import.meta.url), { type: 'module' }));
 */
export function spawnRanks(nRanks: number, module: PageModule, options: PageSpawnOptions = {}): SpawnedWorkers {
  try {
    checkOptionNames('spawnRanks', options, optionNames, "{ env: { TCCL_TIMEOUT: '10' } }");
    const workers = new Workers('spawnRanks', nRanks, module, options);
    return Object.assign(withCallerFrames(workers.ended), { ranks: workers.ports });
  } catch (error) {
    const named = error instanceof TcclError ? ofCall(error, 'spawnRanks') : error;
    return Object.assign(withCallerFrames(Promise.reject(named as Error)), { ranks: [] });
  }
}

/** Events of a browser's worker. */
interface WorkerEvents {
  addEventListener(
    kind: 'message',
    listener: (event: { readonly data: unknown; stopImmediatePropagation(): void }) => void,
  ): void;
  addEventListener(
    kind: 'error' | 'messageerror',
    listener: (event: { readonly message?: string; preventDefault(): void }) => void,
  ): void;
}

interface Member {
  readonly worker: PageWorker;
  readonly control: Port;
  state: 'runs' | 'ended' | 'failed';
  /** True once its module has imported ours. */
  hasPlace: boolean;
}

/** Parts of a pool. */
interface OfPool {
  /** The other end of a rank's port for jobs. */
  readonly jobs: (rank: number) => Port;
  /** False while a rank that ends in order has failed, too. */
  readonly mayEnd: () => boolean;
}

/** @internal Ranks of a page, as its own thread sees them. */
export class Workers {
  readonly ports: readonly RankPort[];
  readonly ended: Promise<void>;
  readonly #members: readonly Member[];
  readonly #memory = createMemory();
  readonly #call: string;
  readonly #graceMs: number;
  readonly #ofPool: OfPool | undefined;
  #resolve: () => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  /** The error of the first rank that failed, or of the caller. */
  #failure: { readonly error: unknown } | undefined;
  #timer: Timer | undefined;
  readonly #endLimit: () => void;
  #isOver = false;

  constructor(
    call: string,
    nRanks: number,
    module: PageModule,
    { env, onMessage, graceMs = 1000, signal }: PageSpawnOptions,
    ofPool?: OfPool,
  ) {
    check(call, nRanks, module);
    checkIsolated(call);
    const abort = signal;
    abort?.throwIfAborted();
    const { initTimeoutMs, unknown } = runtimeSettings(env ?? {});
    for (const { text } of unknown) warn(`${call}: ${text}`);
    this.#call = call;
    this.#graceMs = graceMs;
    this.#ofPool = ofPool;
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const lines = linesAmong(nRanks);
    const ofRank = typeof module === 'function' ? 'its module' : `the module ${String(module)}`;
    const name = `tccl:${random()}`;
    const members: Member[] = [];
    this.#members = members;
    for (let rank = 0; rank < nRanks; rank++) {
      const worker = this.#start(module, rank);
      const { port1, port2 } = makeChannel();
      const own = defined(lines[rank]);
      const place: PagePlace = {
        rank,
        nRanks,
        memory: this.#memory,
        lines: own,
        control: port2,
        lock: `${name}:${rank}`,
        env: env ?? {},
        ...(ofPool === undefined ? {} : { jobs: ofPool.jobs(rank) }),
      };
      const ports = place.jobs === undefined ? [port2] : [port2, place.jobs];
      worker.postMessage({ [PLACE]: place }, [...ports, ...own.filter((line) => line !== undefined)]);
      const member: Member = { worker, control: port1, state: 'runs', hasPlace: false };
      members.push(member);
      const events = worker as unknown as WorkerEvents;
      events.addEventListener('message', (event) => {
        const { data } = event;
        const news = (data as { readonly [PLACE]?: ToPage } | null | undefined)?.[PLACE];
        if (news !== undefined) {
          event.stopImmediatePropagation();
          this.#receive(rank, news, place.lock);
          return;
        }
        try {
          if (!this.#isOver) onMessage?.(data, rank);
        } catch (error) {
          this.#end({ error });
        }
      });
      events.addEventListener('error', (event) => {
        event.preventDefault();
        this.#fail(rank, new Error(event.message ?? `${ofRank} cannot be loaded: the browser's console says why`));
      });
      events.addEventListener('messageerror', () => this.#fail(rank, new Error('a message of it cannot be deserialized')));
    }
    this.ports = members.map(({ worker }, rank) => portTo(worker, rank));
    this.#endLimit = afterWatching(initTimeoutMs, () => this.#checkJoined(initTimeoutMs / 1000));
    onAbort(abort, () => this.#end({ error: abort?.reason }));
  }

  #start(module: PageModule, rank: number): PageWorker {
    const { Worker } = globalThis as unknown as {
      readonly Worker: new (url: string | URL, options: { readonly type: 'module'; readonly name: string }) => PageWorker;
    };
    const worker = typeof module === 'function' ? module(rank) : new Worker(module, { type: 'module', name: `rank ${rank}` });
    if (typeof (worker as Partial<PageWorker> | undefined)?.postMessage === 'function') return worker;
    for (const { worker: other } of this.#members) other.terminate();
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${this.#call}: the function that starts rank ${rank} returns a Worker, not ${describeValue(worker)}`,
    );
  }

  #receive(rank: number, message: ToPage, lock: string): void {
    switch (message.kind) {
      case 'lives': {
        if (this.#members[rank] !== undefined) this.#members[rank].hasPlace = true;
        const { navigator } = globalThis as unknown as {
          readonly navigator: { readonly locks: { request(name: string, then: () => void): Promise<void> } };
        };
        // Granted when the worker that holds it has ended, in whatever way.
        void navigator.locks.request(lock, () => this.#fail(rank, undefined));
        return;
      }
      case 'failed':
        this.#fail(rank, message.error);
        return;
      case 'ended':
        if (this.#ofPool?.mayEnd() === false) this.#fail(rank, new Error('it closed its communicators'));
        else this.#leave(rank, 'ended');
    }
  }

  /**
   * Ends ranks that cannot join any more. A module that imports ours may call init() later, as when its program starts ranks
   * before it needs them; once one rank has called it, its own limit counts.
   */
  #checkJoined(seconds: number): void {
    const lines = new RankLines(this.#memory, 0, undefined);
    const idle = this.#members.flatMap(({ hasPlace }, rank) =>
      lines.reachOf(rank) === reaches.unknown ? [{ rank, hasPlace }] : [],
    );
    const late = this.#ofPool === undefined ? idle.filter(({ hasPlace }) => !hasPlace) : idle;
    const ranks = late.map(({ rank }) => rank);
    const after = `within ${seconds} s (TCCL_INIT_TIMEOUT)`;
    if (ranks.length > 0) {
      const what =
        this.#ofPool === undefined
          ? `did not import tccl/browser ${after}: the module of a rank imports it at its top level and calls init`
          : `did not call servePool ${after}: the module of a pool's rank calls it at its top level`;
      this.#end({ error: new TimeoutError('RANK_MISSING', `${this.#call}: ${nameRanks(ranks)} ${what}`, { ranks }) });
    } else if (idle.length === this.#members.length) {
      warn(`${this.#call}: no rank called init within ${seconds} s; the promise waits until all have called init and close`);
    }
  }

  #fail(rank: number, cause: unknown): void {
    if (this.#members[rank]?.state !== 'runs') return;
    const what =
      cause === undefined ? "'s worker ended" : ` failed: ${cause instanceof Error ? cause.message : describeValue(cause)}`;
    this.#failure ??= { error: new RemoteError('RANK_DIED', `rank ${rank} of ${this.#members.length}${what}`, { rank, cause }) };
    markDead(this.#memory, rank);
    const news: ToRank = { kind: 'died', rank, why: 'ended: its worker ended without closing the communicator' };
    for (const { control, state } of this.#members) if (state === 'runs') control.postMessage(news);
    this.#timer ??= setTimeout(() => this.#end(), this.#graceMs);
    this.#leave(rank, 'failed');
  }

  /** A rank has no more to do. */
  #leave(rank: number, state: 'ended' | 'failed'): void {
    const member = this.#members[rank];
    if (member?.state !== 'runs') return;
    member.state = state;
    member.worker.terminate();
    if (!this.#members.some((one) => one.state === 'runs')) this.#end();
  }

  /** Ends all ranks that still run. */
  #end(failure = this.#failure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#endLimit();
    this.#failure ??= failure;
    clearTimeout(this.#timer);
    for (const member of this.#members) {
      member.state = 'ended';
      member.worker.terminate();
      member.control.close();
    }
    if (this.#failure === undefined) this.#resolve();
    else this.#reject(this.#failure.error);
  }
}

/** Ports of each rank to the others; undefined in its own place. */
function linesAmong(nRanks: number): (Port | undefined)[][] {
  const lines = Array.from({ length: nRanks }, () => new Array<Port | undefined>(nRanks).fill(undefined));
  for (let low = 0; low < nRanks; low++)
    for (let high = low + 1; high < nRanks; high++) {
      const { port1, port2 } = makeChannel();
      defined(lines[low])[high] = port1;
      defined(lines[high])[low] = port2;
    }
  return lines;
}

function check(call: string, nRanks: number, module: unknown): void {
  if (!Number.isInteger(nRanks) || nRanks < 1 || nRanks > MAX_LOCAL_RANKS)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call} takes a number of ranks from 1 to ${MAX_LOCAL_RANKS}, not ${describeValue(nRanks)}`,
    );
  if (typeof module !== 'function' && typeof module !== 'string' && !(module instanceof URL))
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: module is a URL or a function that starts a worker, as in () => new Worker(new URL('./rank.js', import.meta.url), { type: 'module' }), not ${describeValue(module)}`,
    );
}

function portTo(worker: PageWorker, rank: number): RankPort {
  return {
    rank,
    postMessage(value, transferList = []) {
      try {
        worker.postMessage(value, transferList);
      } catch (error) {
        throw new InvalidArgumentError('ARGUMENT_TYPE', `postMessage to rank ${rank}: ${(error as Error).message}`, {
          cause: error,
        });
      }
    },
  };
}
