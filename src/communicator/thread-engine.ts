import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { CallDetails } from '../collectives/call.js';
import { stageMemoryBytes } from '../collectives/direct-stage.js';
import { tablesMemoryBytes } from '../collectives/direct-tables.js';
import { DONE, PENDING } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import type { DataType, NumericArray } from '../device/types.js';
import { SystemError, type TcclError } from '../errors.js';
import { unpackReason } from '../transport/ending.js';
import { raiseTeamAbort } from './direct-engine.js';
import { EngineThreadMemory, EXIT } from './engine-thread-memory.js';
import type { EngineThreadData } from './engine-thread.js';
import type { Engine } from './engine.js';
import { Guests } from './guests.js';
import { sharesOf } from './shared-calls.js';

/** More than the gaps between allocations of an engine thread take. */
const GAPS_BYTES = 16 * 1024;

/** An engine thread and the team that it works in. */
interface Lane {
  readonly team: Team;
  readonly memory: EngineThreadMemory;
  readonly worker: Worker;
}

export interface ThreadEngineOptions {
  /** One a thread; the first is the communicator's. */
  readonly teams: readonly Team[];
  /** The rank of each member. */
  readonly localRanks: readonly number[];
  readonly libc: Libc | undefined;
  readonly smallBytes: number;
  /** How often a thread looks before it gives its core away. */
  readonly spins: number;
}

/**
 * The direct algorithm on threads of its own, so that the rank's event loop and computation go on. With several
 * threads ("channels"), large calls are shared by them, each in a team of its own (shared-calls.ts); all else goes to the
 * first.
 *
 *      rank's thread      begin ── computes ──────────── wake ── done
 *                            \                           /
 *      engine thread 0        └ its share ──────────────┤
 *      engine thread 1        └ its share ──────────────┘
 *
 * Arrays outside the segment are copied by the rank's thread, in whole, before and after: only it can know that they are
 * still there (an array can be transferred away at any time).
 */
export class ThreadEngine implements Engine {
  readonly blocking = true;
  readonly #lanes: readonly Lane[];
  readonly #localRanks: readonly number[];
  readonly #guests: Guests;
  #closed = false;

  private constructor(lanes: readonly Lane[], { teams: [team], localRanks, libc }: ThreadEngineOptions & { readonly teams: readonly [Team, ...Team[]] }) {
    this.#lanes = lanes;
    this.#localRanks = localRanks;
    this.#guests = new Guests(team, libc);
  }

  /** @throws SystemError `OUT_OF_MEMORY`, `LAUNCH` when threads cannot be started */
  static async start(options: ThreadEngineOptions & { readonly teams: readonly [Team, ...Team[]] }): Promise<ThreadEngine> {
    const lanes = options.teams.map((team) => startLane(team, options));
    try {
      await Promise.all(lanes.map(({ worker }) => once(worker, 'message')));
    } catch (error) {
      for (const { worker } of lanes) void worker.terminate();
      throw new SystemError('LAUNCH', `an engine thread cannot be started: ${(error as Error).message}`, { cause: error });
    }
    for (const { worker } of lanes) worker.unref();
    return new ThreadEngine(lanes, options);
  }

  begin(
    code: number, type: DataType, root: number, send: NumericArray, recv: NumericArray, count: number, spins: number, details?: CallDetails,
  ): number {
    const [input, output] = this.#guests.place(send, recv);
    const call = { code, root, send: input, sendLength: send.length, recv: output, recvLength: recv.length, count, details };
    // The threads are what goes on: they keep the process alive until the call is over.
    for (const { worker } of this.#lanes) worker.ref();
    sharesOf(call, type.bytes, this.#lanes.length, this.#localRanks.length).forEach((share, lane) => this.#lanes[lane]?.memory.post(share));
    return this.progress(spins);
  }

  progress(spins: number): number {
    for (const { memory } of this.#lanes) if (!memory.isDone(spins)) return PENDING;
    this.check();
    this.#guests.leave();
    for (const { worker } of this.#lanes) worker.unref();
    return DONE;
  }

  get steps(): number {
    return this.#lanes.reduce((sum, { memory }) => sum + memory.steps, 0);
  }

  readonly whenReady = (wake: () => void): void => {
    const busy = this.#lanes.find(({ memory }) => !memory.isDone(0)) ?? this.#lanes[0];
    busy?.memory.whenNews(wake);
  };

  /** The threads look for themselves whether others can still come. */
  check(): void {
    for (const { memory, team } of this.#lanes) {
      const reason = memory.reason();
      if (reason !== undefined) throw unpackReason(reason, this.#localRanks[team.localRank] ?? 0);
    }
  }

  /** Only the threads know. */
  late(): number[] {
    return [];
  }

  abort(error: TcclError): void {
    // Threads that wait for others find it, and end.
    for (const { team } of this.#lanes) raiseTeamAbort(team, this.#localRanks, error);
    this.#guests.abandon();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.all(this.#lanes.map(async ({ memory, worker }) => {
      if (worker.threadId < 0) return;
      const exit = once(worker, 'exit');
      worker.ref();
      memory.post({ code: EXIT, root: 0, send: 0, sendLength: 0, recv: 0, recvLength: 0, count: 0, details: undefined });
      await exit;
    }));
    for (const { team } of this.#lanes.slice(1)) team.leave();
  }
}

function startLane(team: Team, { localRanks, smallBytes, spins }: ThreadEngineOptions): Lane {
  const memory = new EngineThreadMemory();
  const bytes = stageMemoryBytes(team) + tablesMemoryBytes(team) + GAPS_BYTES;
  const from = team.allocateBytes(bytes);
  const data: EngineThreadData = {
    segment: team.segment.forThread(from, from + bytes),
    team: { address: team.address, members: team.members, stageBytes: team.stageBytes },
    localRanks, smallBytes, spins, buffer: memory.buffer,
  };
  const worker = new Worker(new URL('./engine-thread.js', import.meta.url), { workerData: data, name: `engine of rank ${localRanks[team.localRank] ?? 0}` });
  return { team, memory, worker };
}
