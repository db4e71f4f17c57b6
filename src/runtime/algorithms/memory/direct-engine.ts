import type { EngineCall } from '../queued-call.js';
import { describeCall, type Call } from '../call.js';
import { PARK_AFTER_MS } from '../../progress/backoff.js';
import type { WakeSources } from '../../progress/parking.js';
import type { Activity } from '../activity.js';
import { Direct } from './direct.js';
import { PENDING } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import type { AbortReason, Team } from '../../device/team.js';
import { withRank, type ErrorCode, type TcclError } from '../../../errors.js';
import { packReason } from '../../failure/transfer.js';
import type { Engine } from '../engine.js';
import { callOfPost, lastCallOf, mismatchAmong } from '../mismatch.js';
import { teamError } from './team-error.js';
import { TeamWaitChains } from './team-wait-chains.js';
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
export class DirectEngine implements Engine {
  readonly blocking = true;
  readonly polled = true;
  readonly parkAfterMs = PARK_AFTER_MS;
  readonly #direct: Direct;
  readonly #waitChains: TeamWaitChains;
  /** True while a call waits. */
  #waits = false;
  /** The member that had left when check() looked last, the step that waited for it, and whether the call was polled since. */
  #leaver = { member: -1, step: -1, wasPolled: false };

  /**
   * @param localRanks the rank of each member of the team
   * @param smallBytes see Direct
   * @param leastStageBytes see StagingMemory
   */
  constructor(
    readonly team: Team,
    readonly localRanks: readonly number[],
    libc: Libc | undefined,
    smallBytes: number,
    leastStageBytes?: number,
  ) {
    this.#direct = new Direct(team, libc, smallBytes, leastStageBytes);
    this.#waitChains = new TeamWaitChains(team, localRanks);
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

  wakeOn(sources: WakeSources): void {
    sources.addTeam(this.team);
  }

  check(): void {
    const { team } = this;
    const abort = team.abort();
    if (abort !== undefined) throw this.#error(abort.reason, abort.localRank);

    const dead = team.findDead();
    if (dead >= 0) throw this.#error('died', dead);

    // Before the check for departed ranks: posts from before a rank left are valid.
    const awaited = team.kernels.waitingFor();
    const unread = this.#direct.unread().find((member) => team.hasLeft(member));
    if (unread !== undefined) throw this.#error('closed', unread);
    const gone = awaited < team.nLocalRanks && team.hasLeft(awaited);
    if (!gone) return;
    if (callOfPost(team, awaited) === undefined || this.#hasLeftWithin(awaited)) throw this.#error('closed', awaited);
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

  late(limitMs: number): number[] {
    return this.#waitChains.find(this.#awaited(), limitMs);
  }

  reportWait(limitMs: number, activity: Activity): readonly number[] {
    return this.#waitChains.reportWait(this.#awaited(), limitMs, activity);
  }

  forwardReport(): void {
    // Nothing to do: the rank has reported it in the team's memory.
  }

  underWay(): Call | undefined {
    return callOfPost(this.team, this.team.localRank);
  }

  doing(rank: number): string | undefined {
    return doingInTeam(this.team, this.localRanks, this.#waitChains, rank);
  }

  #awaited(): number[] {
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
    throw this.#mismatch();
  }

  /** Error for ranks with different calls, from their posts: the same on every rank. */
  #mismatch(): TcclError {
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

  #error(reason: AbortReason, localRank: number): TcclError {
    return reason === 'mismatch' ? this.#mismatch() : teamError(this.team, this.localRanks, reason, localRank);
  }
}

/** Text of the activity of a rank that holds up a *direct* call; see Engine. */
export function doingInTeam(
  team: Team,
  localRanks: readonly number[],
  waitChains: TeamWaitChains,
  rank: number,
): string | undefined {
  const waits = waitChains.doing(rank);
  const local = localRanks.indexOf(rank);
  if (waits !== undefined || local < 0) return waits;
  const last = lastCallOf(team, local);
  return last === undefined ? 'no call yet' : `last call ${describeCall(last)}`;
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
