import { once } from '#platform/events';
import type { Worker } from '#platform/threads';
import type { EngineCall } from '../algorithms/queued-call.js';
import { decodeCall, type Call } from '../algorithms/call.js';
import { DONE, PENDING } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import type { TcclError } from '../../errors.js';
import { unpackReason } from '../failure/transfer.js';
import { EXIT, type EngineThreadMemory, type PlacedCall } from './engine-thread-memory.js';
import type { Engine } from '../algorithms/engine.js';
import { StagedArrays } from './staged-arrays.js';
import type { WakeSources } from '../progress/parking.js';
import { sharesOf } from './shared-calls.js';
import { graceMs } from '../failure/grace.js';

/** An engine thread. */
export interface EngineThread {
  readonly memory: EngineThreadMemory;
  readonly worker: Worker;
  /** Ends the running call, and with it the thread, and reports the reason to the other ranks. */
  readonly fail: (error: TcclError) => void;
  /** See Engine. */
  readonly forwardReport: (report: readonly number[]) => void;
  /** Called when the thread has ended. */
  readonly left: () => void;
}

interface OtherRanks {
  /** Evaluates the reports of ranks that hold up a call; called at intervals. */
  readonly readReports: (late: readonly number[], limitMs: number) => void;
  /** See Engine. */
  readonly doing: (rank: number) => string | undefined;
}

interface ThreadEngineOptions {
  /** The threads. */
  readonly threads: readonly EngineThread[];
  /** Team of the communicator; the threads work in its segment. */
  readonly team: Team;
  readonly libc: Libc | undefined;
  readonly rank: number;
  readonly nRanks: number;
  /** See Engine. */
  readonly keepsTime: boolean;
  /** If the threads do not keep time: reports of other ranks to this rank's thread. */
  readonly others?: OtherRanks;
}

/**
 * Carries out calls on separate threads (direct-threads.ts, network-threads.ts), so that the rank's event loop and
 * computation continue, or the rank can block. With several threads ("channels"), they share large calls (shared-calls.ts);
 * all other calls go to the first.
 *
 *      rank's thread      begin ── computes ──────────── wake ── done
 *                            \                           /
 *      engine thread 0        └ its share ──────────────┤
 *      engine thread 1        └ its share ──────────────┘
 *
 * The rank's thread copies arrays outside the segment, as a whole, before and after the call: only that thread knows that they
 * still exist (an array can be transferred at any time).
 */
export class ThreadEngine implements Engine {
  readonly blocking = true;
  readonly keepsTime: boolean;
  readonly #threads: readonly EngineThread[];
  readonly #rank: number;
  readonly #nRanks: number;
  readonly #others: OtherRanks | undefined;
  readonly #staged: StagedArrays;
  #underWay: PlacedCall | undefined;
  #closed = false;

  constructor({ threads, team, libc, rank, nRanks, keepsTime, others }: ThreadEngineOptions) {
    this.#threads = threads;
    this.#rank = rank;
    this.#nRanks = nRanks;
    this.#staged = new StagedArrays(team, libc);
    this.keepsTime = keepsTime;
    this.#others = others;
  }

  begin({ code, type, root, send, recv, count, details }: EngineCall, spins: number, mark = 0): number {
    const [input, output] = this.#staged.place(send, recv);
    const call: PlacedCall = {
      code: code | mark,
      root,
      send: input,
      sendLength: send.length,
      recv: output,
      recvLength: recv.length,
      count,
      details,
    };
    this.#underWay = call;
    // The threads keep the process alive until the call is over.
    for (const { worker } of this.#threads) worker.ref();
    sharesOf(call, type.bytes, this.#threads.length, this.#nRanks).forEach((share, thread) =>
      this.#threads[thread]?.memory.post(share),
    );
    return this.progress(spins);
  }

  progress(spins: number): number {
    for (const { memory } of this.#threads) if (!memory.isDone(spins)) return PENDING;
    this.check();
    this.#staged.leave();
    for (const { worker } of this.#threads) worker.unref();
    return DONE;
  }

  get steps(): number {
    return this.#threads.reduce((sum, { memory }) => sum + memory.steps, 0);
  }

  readonly polled = false;
  readonly parkAfterMs = 0;

  wakeOn({ wake }: WakeSources): void {
    (this.#busyThread() ?? this.#threads[0])?.memory.whenNews(wake);
  }

  readonly rest = (ms: number): void => this.#busyThread()?.memory.waitUntilDone(ms);

  /** Nothing to do: the threads check liveness themselves. */
  check(): void {
    for (const { memory } of this.#threads) {
      const reason = memory.reason();
      if (reason !== undefined) throw unpackReason(reason, this.#rank);
    }
  }

  /** Only the threads know. */
  late(): number[] {
    const late = this.#threads.flatMap(({ memory }) => (memory.isDone(0) ? [] : memory.late()));
    return [...new Set(late)].sort((a, b) => a - b);
  }

  /** Nothing to do: the threads report their waits themselves, because only they know which ranks they wait for. */
  reportWait(limitMs: number): undefined {
    this.#others?.readReports(this.late(), limitMs);
    return undefined;
  }

  forwardReport(report: readonly number[]): void {
    for (const { forwardReport } of this.#threads) forwardReport(report);
  }

  underWay(): Call | undefined {
    return this.#underWay === undefined ? undefined : decodeCall(this.#underWay.code, this.#underWay.root, this.#underWay.count);
  }

  doing(rank: number): string | undefined {
    return this.#others?.doing(rank);
  }

  abort(error: TcclError): void {
    for (const { worker, fail } of this.#threads) {
      fail(error);
      worker.unref();
    }
    this.#staged.abandon();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const living = this.#threads.filter(({ worker }) => worker.threadId >= 0);
    const exits = living.map(({ worker }) => {
      worker.ref();
      return once(worker, 'exit');
    });
    for (const { memory } of living) memory.rankLeaves();
    // Threads that gave up end by themselves.
    const waiting = living.filter(({ memory }) => memory.reason() === undefined);
    for (const { memory } of waiting) memory.end(EXIT);
    // A process that is about to end does not return to its event loop.
    for (const { memory } of waiting) memory.waitUntilDone(graceMs.threadGoodbye);
    await Promise.all(exits);
    for (const thread of this.#threads) thread.left();
  }

  #busyThread(): EngineThread | undefined {
    return this.#threads.find(({ memory }) => !memory.isDone(0));
  }
}
