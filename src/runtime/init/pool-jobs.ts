import { InternalError } from '../../errors.js';
import { ParkedRanks } from '../device/parked-ranks.js';
import { RankLines } from '../device/rank-lines.js';
import { threadPlacement, type ThreadPlacement } from '#seam/launch/thread-placement';
import { setTimeout } from '../platform/platform.js';
import { progressHere } from '../progress/progress.js';

/** Interval at which a rank looks whether calls that its function left have ended, milliseconds. */
const LOOK_EVERY_MS = 20;

type PlaceInMemory = Pick<ThreadPlacement, 'memory' | 'rank' | 'nRanks'>;

/**
 * Shows other ranks of a pool in which job this rank is. A rank whose function has returned makes no call of the job any more:
 * waits of others for it end, as those for a process that has exited.
 */
export class PoolJobs {
  readonly #lines: RankLines;
  readonly #parkedRanks: ParkedRanks;

  constructor(place: PlaceInMemory | undefined = threadPlacement()) {
    if (place?.memory === undefined) throw new InternalError('INTERNAL', 'a rank of a pool has no memory of its pool');
    const { memory, rank, nRanks } = place;
    this.#lines = new RankLines(memory, rank, undefined);
    this.#parkedRanks = new ParkedRanks(memory, rank, nRanks);
  }

  /** @param job its number, from 1 */
  begin(job: number): void {
    // Calls that an earlier job left, and that go on, may wait for a rank whose part of this job has ended.
    this.#lines.setJob(progressHere().isIdle ? job : 0);
  }

  /** The job's function has thrown, and its communicator has ended; waits in communicators that it made end as well. */
  failed(job: number): void {
    this.#setReturned(job);
  }

  /** The job's function has returned. Others see it once no call that it left goes on. */
  returned(job: number): void {
    this.#lines.setJob(0);
    this.#show(job);
  }

  readonly #show = (job: number): void => {
    if (!progressHere().isIdle) {
      setTimeout(() => this.#show(job), LOOK_EVERY_MS).unref();
      return;
    }
    this.#setReturned(job);
  };

  #setReturned(job: number): void {
    this.#lines.setReturned(job);
    this.#parkedRanks.wake();
    // Closes the pipes of others: jobs seldom end while others wait.
    this.#parkedRanks.close();
  }
}
