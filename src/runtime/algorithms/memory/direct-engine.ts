import type { EngineCall } from '../queued-call.js';
import { describeCall, type Call } from '../call.js';
import { Direct } from './direct.js';
import { PENDING } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import type { AbortReason, Team } from '../../device/team.js';
import { withRank, type ErrorCode, type TcclError } from '../../../errors.js';
import { packReason } from '../../failure/transfer.js';
import { callOfPost, mismatchAmong } from '../mismatch.js';
import { TeamEngine } from './team-engine.js';
import { defined } from '../../../defined.js';

/** The team's abort reason for these errors; all others are `failed`. */
const abortReasonOf: Partial<Record<ErrorCode, AbortReason>> = {
  ABORTED: 'aborted',
  RANK_DIED: 'died',
  CLOSED: 'closed',
  CALL_MISMATCH: 'mismatch',
  TIMEOUT: 'timedOut',
};

/** Larger than any phase number of the kernels. */
const PHASES = 4;

/** The algorithm `direct` as an engine: with detection and reporting of failures. */
export class DirectEngine extends TeamEngine {
  readonly #direct: Direct;
  /** True while a call waits. */
  #waits = false;
  /** The member that had left when check() looked last, the step that waited for it, and whether the call was polled since. */
  #leaver = { member: -1, step: -1, wasPolled: false };

  /**
   * @param localRanks the rank of each member of the team
   * @param smallBytes see Direct
   * @param leastStageBytes see StagingMemory
   */
  constructor(team: Team, localRanks: readonly number[], libc: Libc | undefined, smallBytes: number, leastStageBytes?: number) {
    super(team, localRanks);
    this.#direct = new Direct(team, libc, smallBytes, leastStageBytes);
  }

  begin(call: EngineCall, spins: number, mark = 0): number {
    const status = this.#direct.begin(call, call.code | mark, spins);
    if (status === PENDING) this.#waits = true;
    return status >= PENDING ? status : this.#refuse();
  }

  progress(spins: number): number {
    this.#leaver.wasPolled = true;
    const status = this.#direct.progress(spins);
    if (status !== PENDING) this.#waits = false;
    return status >= PENDING ? status : this.#refuse();
  }

  /** Counts parts of rounds: a long call has many rounds if a rank's arrays are staged. */
  get steps(): number {
    const { kernels } = this.team;
    return kernels.operationNumber() * PHASES + kernels.phaseNumber();
  }

  /** Posts from before a rank left are valid. */
  protected leaver(): number | undefined {
    const { team } = this;
    const awaited = team.kernels.waitingFor();
    const unread = this.#direct.unread().find((member) => team.hasLeft(member));
    if (unread !== undefined || awaited >= team.nLocalRanks || !team.hasLeft(awaited)) return unread;
    return callOfPost(team, awaited) === undefined || this.#hasLeftWithin(awaited) ? awaited : undefined;
  }

  /**
   * True if a member that has posted its call left before it had done its share, as a process does that exits: all that it did
   * is visible since check() first saw that it had left, and a poll after that waits for it in the same step.
   */
  #hasLeftWithin(member: number): boolean {
    const { steps: step } = this;
    const before = this.#leaver;
    this.#leaver = { member, step, wasPolled: false };
    return before.wasPolled && before.member === member && before.step === step;
  }

  underWay(): Call | undefined {
    return callOfPost(this.team, this.team.localRank);
  }

  override doing(rank: number): string | undefined {
    return this.waitChains.doingOrLast(rank);
  }

  protected awaited(): number[] {
    const absent = [...this.localRanks.keys()].filter((local) => callOfPost(this.team, local) === undefined);
    // All have begun, so one has not finished.
    return absent.length > 0 ? absent : [this.team.kernels.waitingFor()];
  }

  abort(error: TcclError): void {
    if (this.#waits) this.team.giveUp(this.team.kernels.operationNumber());
    raiseTeamAbort(this.team, this.localRanks, error);
    this.#direct.close();
  }

  close(): Promise<void> {
    this.#direct.close();
    return Promise.resolve();
  }

  #refuse(): never {
    throw this.mismatch();
  }

  /** From the posts. */
  protected mismatch(): TcclError {
    const calls = this.localRanks.map((_, local) => callOfPost(this.team, local));
    const texts = new Set(calls.map((call) => call && describeCall(call)));
    const areEqual = texts.size === 1 && !texts.has(undefined);
    const parts = areEqual ? this.#direct.partsError() : undefined;
    if (parts !== undefined) return parts;
    return mismatchAmong(
      this.localRanks,
      (local) => calls[local],
      (local) => this.#direct.partsOf(local),
    );
  }
}

/** Reports the failure of the communicator, with its reason, to the other members of a team. */
export function raiseTeamAbort(team: Team, localRanks: readonly number[], error: TcclError): void {
  const isOver = error.code === 'RANK_DIED' || error.code === 'CLOSED';
  // -1: a rank of another host.
  const about = isOver ? localRanks.indexOf(error.rank ?? -1) : team.localRank;
  const reason = about < 0 ? 'failed' : (abortReasonOf[error.code] ?? 'failed');
  // The others detect a dead rank or a different call themselves; any other reason is written before the abort word, so that
  // they find it.
  const isSeen = (isOver && about >= 0) || reason === 'mismatch';
  if (!isSeen) team.recordFailure(packReason(withRank(error, defined(localRanks[team.localRank]))));
  team.raiseAbort(reason, about < 0 ? team.localRank : about);
}
