import type { PairMessage } from '../schedule/pairs.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import type { RankCall } from './trace.js';

/** A call of a communicator with the parts of all ranks that recorded it. */
export interface JobCall {
  /** Number among the calls of the job, in the order in which the first rank made them. */
  readonly index: number;
  readonly group: string;
  readonly groupName: string;
  /** Ranks of the communicator in its order; undefined where nothing says which. */
  readonly members: readonly number[] | undefined;
  /** Number of its ranks; of sends and receives, those that take part. */
  readonly size: number;
  readonly operation: string;
  readonly collective: ScheduledCollective | undefined;
  readonly bytes: number;
  readonly type: RankCall['type'];
  /** Of sends and receives, and of an all-to-all whose parts differ: messages between ranks, by their numbers in the job. */
  readonly messages?: readonly PairMessage[] | undefined;
  /** By rank. */
  readonly parts: ReadonlyMap<number, RankCall>;
}

/** Calls of a job, and what was missing or did not fit. */
export interface Joined {
  readonly calls: readonly JobCall[];
  /** One line each. */
  readonly notes: readonly string[];
}
