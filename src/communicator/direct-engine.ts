import { Direct } from '../collectives/direct.js';
import { DONE, PENDING } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import { rankStates, type AbortReason, type Segment } from '../device/segment.js';
import type { DataType, NumericArray } from '../device/types.js';
import { RemoteError, type ErrorCode, type TcclError } from '../errors.js';
import type { Engine } from './engine.js';
import { callOfPost, describeMismatch } from './mismatch.js';

/** How the segment's abort word says these; all others are `failed`. */
const abortReasonOf: Partial<Record<ErrorCode, AbortReason>> = {
  ABORTED: 'aborted',
  RANK_DIED: 'died',
  CLOSED: 'closed',
  CALL_MISMATCH: 'mismatch',
  TIMEOUT: 'timedOut',
};

/** The algorithm `direct` with what it needs to notice, and tell, that something went wrong. */
export class DirectEngine implements Engine {
  readonly name = 'direct';
  readonly blocking = true;
  readonly #direct: Direct;

  /**
   * @param localRanks the rank of each rank of the segment
   * @param smallBytes see Direct
   */
  constructor(readonly segment: Segment, readonly localRanks: readonly number[], libc: Libc | undefined, smallBytes: number) {
    this.#direct = new Direct(segment, libc, smallBytes);
  }

  begin(code: number, type: DataType, root: number, send: NumericArray, recv: NumericArray, count: number, spins: number): number {
    const status = this.#direct.begin(code, type, root, send, recv, count, spins);
    if (status === DONE || status === PENDING) return status;
    throw describeMismatch(this.segment, this.localRanks);
  }

  progress(spins: number): number {
    const status = this.#direct.progress(spins);
    if (status === DONE || status === PENDING) return status;
    throw describeMismatch(this.segment, this.localRanks);
  }

  /** Rounds: a long call has many where some rank's arrays are staged. */
  get steps(): number {
    return this.segment.kernels.operationNumber();
  }

  check(): void {
    const { segment } = this;
    const abort = segment.abort();
    if (abort !== undefined) throw this.#error(abort.reason, abort.localRank);

    const dead = segment.findDead();
    if (dead >= 0) throw this.#error('died', dead);

    // The order matters: what a rank posted before it left counts.
    const awaited = segment.kernels.waitingFor();
    const gone = awaited < segment.nLocalRanks && segment.stateOf(awaited) === rankStates.closed;
    if (gone && callOfPost(segment, awaited) === undefined) throw this.#error('closed', awaited);
  }

  late(): number[] {
    return this.localRanks.filter((_, local) => callOfPost(this.segment, local) === undefined);
  }

  abort(error: TcclError): void {
    const aboutOther = error.code === 'RANK_DIED' || error.code === 'CLOSED';
    const about = aboutOther ? this.localRanks.indexOf(error.rank ?? -1) : this.segment.localRank;
    this.segment.raiseAbort(abortReasonOf[error.code] ?? 'failed', Math.max(0, about));
    this.#direct.close();
  }

  close(): Promise<void> {
    this.#direct.close();
    return Promise.resolve();
  }

  #error(reason: AbortReason, localRank: number): TcclError {
    const rank = this.localRanks[localRank] ?? localRank;
    switch (reason) {
      case 'aborted':
        return new RemoteError('ABORTED', `rank ${rank} aborted the communicator`, { rank });
      case 'closed':
        return new RemoteError('CLOSED', `rank ${rank} has closed its communicator, but others still call it`, { rank });
      case 'mismatch':
        return describeMismatch(this.segment, this.localRanks);
      case 'timedOut':
        return new RemoteError('TIMEOUT', `rank ${rank} gave up waiting for others and ended the communicator`, { rank });
      case 'failed':
        return new RemoteError('ABORTED', `rank ${rank} failed and ended the communicator; its own error says why`, { rank });
      case 'died':
      case 'none':
        return new RemoteError('RANK_DIED', `rank ${rank} died: it ended without closing the communicator`, { rank });
    }
  }
}
