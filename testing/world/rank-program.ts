import type { Communicator } from '../../src/runtime/communicator/communicator.js';
import type { init as initOf } from '../../src/runtime/init/init.js';
import { makeCall } from './calls.js';
import { hostOf, type Job } from './program.js';
import type { World } from './world.js';

/** Limits that ranks are given, in milliseconds of virtual time. */
export const limits = { initMs: 20_000, callMs: 10_000, heartbeatMs: 3000 } as const;

/** A call of a rank, and its time. */
export interface Span {
  readonly rank: number;
  readonly name: string;
  readonly limitMs: number;
  readonly beginMs: number;
  endMs: number | undefined;
}

/** Error that ended something. */
export interface Outcome {
  readonly code: string;
  readonly text: string;
  readonly ranks: readonly number[];
}

/** Program of one rank: it meets the others, makes the job's calls, and after a failure goes on with those that are left. */
export class RankProgram {
  readonly spans: Span[] = [];
  /** Failure of the first communicator. */
  outcome: Outcome | undefined;
  /** Size of the communicator after a failure, or the reason for none. */
  survived: number | Outcome | undefined;
  isDone = false;
  readonly broken: string[] = [];
  #knowsFailure = false;

  constructor(
    readonly world: World,
    readonly job: Job,
    readonly rank: number,
    readonly init: typeof initOf,
    /** Host and port where the ranks meet. */
    readonly commId: string,
  ) {}

  /** The call in flight. */
  get current(): Span | undefined {
    return this.spans.at(-1);
  }

  async run(): Promise<void> {
    const first: { comm?: Communicator } = {};
    try {
      await this.#makeCalls(first);
    } catch (error) {
      this.outcome = this.#outcomeOf(error);
      if (first.comm !== undefined) await this.#goOn(first.comm);
    }
    this.world.note(this.rank, 'ends');
    this.isDone = true;
  }

  async #makeCalls(first: { comm?: Communicator }): Promise<void> {
    const { world, job, rank, commId } = this;
    const env = {
      TCCL_HOSTID: `host ${hostOf(job, rank)}`,
      TCCL_COMM_SECRET: 'secret of the virtual world',
      TCCL_INIT_TIMEOUT: String(limits.initMs / 1000),
      TCCL_TIMEOUT: String(limits.callMs / 1000),
      TCCL_HEARTBEAT: String(limits.heartbeatMs / 1000),
    };
    const onWarning = (text: string): void => world.note(rank, `warning: ${text}`);
    const comm = await this.#timed('init', limits.initMs, () => this.init({ rank, nRanks: job.nRanks, commId, env, onWarning }));
    first.comm = comm;
    void comm.failed.then(() => (this.#knowsFailure = true));
    for (const [number, { kind, count, pauseMs }] of job.calls.entries()) {
      if (pauseMs > 0) await new Promise<void>((resolve) => void world.after(pauseMs * world.random.next(), rank, resolve));
      const odd = job.faults.find((fault) => fault.kind === 'odd call' && fault.rank === rank && fault.call === number);
      const makes = odd?.kind === 'odd call' ? odd.makes : kind;
      await this.#refusedAfterFailure(async () => {
        if (makes === undefined)
          await this.#timed(`call ${number}: another`, limits.callMs, () => comm.allReduce(new Float64Array(3)));
        else
          await this.#checked(`call ${number}: ${makes} of ${count}`, makes === 'split' ? limits.initMs : limits.callMs, () =>
            makeCall(comm, { kind: makes, count }, number),
          );
      });
    }
    await this.#timed('close', limits.callMs, () => comm.close());
  }

  async #goOn(comm: Communicator): Promise<void> {
    let rest: Communicator | undefined;
    try {
      const made = await (this.job.recovers
        ? this.#timed('recover', 2 * limits.initMs, () => comm.recover())
        : this.#timed('shrink', limits.initMs, () => comm.shrink()));
      rest = made;
      await this.#checked(`allReduce of 5 among ${made.nRanks}`, limits.callMs, () =>
        makeCall(made, { kind: 'allReduce', count: 5 }, 99),
      );
      this.survived = made.nRanks;
    } catch (error) {
      this.survived = this.#outcomeOf(error);
    }
    for (const each of [rest, comm])
      if (each !== undefined) await this.#timed('close', limits.callMs, () => each.close().catch(() => undefined));
  }

  /** Makes a call, which must end at once with an error if `comm.failed` has resolved before. */
  async #refusedAfterFailure(call: () => Promise<void>): Promise<void> {
    const { nowMs } = this.world;
    const isRefused = this.#knowsFailure;
    let hasFailed = true;
    try {
      await call();
      hasFailed = false;
    } finally {
      if (isRefused && !(hasFailed && this.world.nowMs === nowMs))
        this.broken.push(`rank ${this.rank}: ${this.current?.name ?? ''} began after comm.failed had resolved`);
    }
  }

  async #checked(name: string, limitMs: number, call: () => Promise<string | undefined>): Promise<void> {
    const wrong = await this.#timed(name, limitMs, call);
    if (wrong !== undefined) this.broken.push(`rank ${this.rank}: ${wrong}`);
  }

  async #timed<T>(name: string, limitMs: number, call: () => Promise<T>): Promise<T> {
    const { world, rank } = this;
    const span: Span = { rank, name, limitMs, beginMs: world.nowMs, endMs: undefined };
    this.spans.push(span);
    world.note(rank, name);
    try {
      return await call();
    } finally {
      span.endMs = world.nowMs;
    }
  }

  #outcomeOf(error: unknown): Outcome {
    const { code = 'none', rank, ranks } = error as { code?: string; rank?: number; ranks?: readonly number[] };
    const text = error instanceof Error ? error.message : String(error);
    this.world.note(this.rank, `${this.current?.name ?? ''} failed: ${code} ${text}`);
    if (code === 'none') this.broken.push(`rank ${this.rank}: an error without a code: ${(error as Error).stack ?? text}`);
    return { code, text, ranks: ranks ?? (rank === undefined ? [] : [rank]) };
  }
}
