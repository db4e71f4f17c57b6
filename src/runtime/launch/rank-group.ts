import type { Ending } from './rank-process.js';
import type { RankState } from './rank-state.js';

/** One rank of a job, on this host or another. */
export interface RunningRank {
  readonly rank: number;
  /** Name of its host as the user wrote it; undefined where the whole job is on this host. */
  readonly host: string | undefined;
  readonly running: boolean;
  readonly ended: Promise<Ending>;
  /** Resolves when all of its output has been written where it goes. */
  readonly delivered: Promise<unknown>;
}

/** The ranks of a job on one host. */
export interface RankGroup {
  readonly ranks: readonly RunningRank[];
  /** True if signals of the terminal and stops reach the ranks only through this object. */
  readonly isRemote: boolean;
  /** States of the ranks that run, as far as they are known; those of another host as of its last heartbeat. */
  states(): readonly RankState[];
  /** Starts a rank that has ended again; `restarts` counts how often ranks of the job have been. */
  restart?(rank: number, restarts: number): RunningRank;
  /** Signals the ranks that run, and all they started. */
  signal(signal: NodeJS.Signals): void;
  /** Ends processes that the ranks left behind. Call it when all have ended; resolves when the host has no process of the job. */
  finish(graceMs: number): Promise<void>;
}

/** `rank 3`, or `rank 3 on node1`. */
export function nameRank(rank: number, host: string | undefined): string {
  return `rank ${rank}${host === undefined ? '' : ` on ${host}`}`;
}
