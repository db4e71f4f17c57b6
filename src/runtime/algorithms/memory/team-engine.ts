import type { Activity } from '../activity.js';
import { describeCall, type Call } from '../call.js';
import type { Engine } from '../engine.js';
import { lastCallOf } from '../mismatch.js';
import type { EngineCall } from '../queued-call.js';
import { WaitChains, type Awaited } from '../wait-chains.js';
import type { AbortReason, Team } from '../../device/team.js';
import { RemoteError, type TcclError } from '../../../errors.js';
import { defined } from '../../../defined.js';
import { closedTooEarly, died } from '../../failure/reasons.js';
import { PARK_AFTER_MS } from '../../progress/backoff.js';
import type { WakeSources } from '../../progress/parking.js';

/** An engine of ranks that share memory: failures and waits of the members are in the memory of their team. */
export abstract class TeamEngine implements Engine {
  readonly blocking = true;
  readonly polled = true;
  readonly parkAfterMs = PARK_AFTER_MS;
  protected readonly waitChains: TeamWaitChains;

  /** @param localRanks the rank of each member of the team */
  constructor(
    readonly team: Team,
    readonly localRanks: readonly number[],
  ) {
    this.waitChains = new TeamWaitChains(team, localRanks);
  }

  abstract readonly steps: number;
  abstract begin(call: EngineCall, spins: number, mark?: number): number;
  abstract progress(spins: number): number;
  abstract underWay(): Call | undefined;
  abstract abort(error: TcclError): void;
  abstract close(): Promise<void>;

  /** The members for which the running call waits. */
  protected abstract awaited(): number[];
  /** A member that has left although the running call waits for it. What it had done before it left counts. */
  protected abstract leaver(): number | undefined;
  /** Error for ranks with different calls: the same on every rank. */
  protected abstract mismatch(): TcclError;

  wakeOn(sources: WakeSources): void {
    sources.addTeam(this.team);
  }

  check(): void {
    const abort = this.team.abort();
    if (abort !== undefined) throw this.#error(abort.reason, abort.localRank);
    this.team.checkMembers(this.localRanks);
    const left = this.leaver();
    if (left !== undefined) throw this.#error('closed', left);
  }

  late(limitMs: number): number[] {
    return this.waitChains.find(this.awaited(), limitMs);
  }

  reportWait(limitMs: number, activity: Activity): readonly number[] {
    return this.waitChains.reportWait(this.awaited(), limitMs, activity);
  }

  forwardReport(): void {
    // Nothing to do: the rank has reported it in the team's memory.
  }

  doing(rank: number): string | undefined {
    return this.waitChains.doing(rank);
  }

  /** Error for a failure that a member had, or caused, as the team's abort word reports it. */
  #error(reason: AbortReason, localRank: number): TcclError {
    if (reason === 'mismatch') return this.mismatch();
    const rank = defined(this.localRanks[localRank]);
    if (reason === 'closed') return closedTooEarly(rank);
    if (reason === 'died' || reason === 'none') return died(rank);
    // Written before the abort word was raised.
    const text = `rank ${rank} failed and ended the communicator; its own error says why`;
    return this.team.recordedFailure() ?? new RemoteError('ABORTED', text, { rank });
  }
}

/** Finds the members of a team that hold up a rank in shared memory; see WaitChains. */
export class TeamWaitChains {
  readonly #waitChains: WaitChains;
  readonly #members: readonly Awaited[];

  /** @param localRanks the rank of each member */
  constructor(
    readonly team: Team,
    readonly localRanks: readonly number[],
  ) {
    this.#waitChains = new WaitChains(defined(localRanks[team.localRank]));
    this.#members = localRanks.map((peer, local) => ({ peer, waitReport: () => team.waitReport(local) }));
  }

  /** The ranks that hold up this one while it waits for these members. */
  find(locals: readonly number[], limitMs: number): number[] {
    return this.#waitChains.find(this.#awaited(locals), limitMs);
  }

  /** Reports to the members that this rank waits for these of them, and in which operation. */
  reportWait(locals: readonly number[], limitMs: number, activity: Activity): readonly number[] {
    const report = this.#waitChains.look(this.#awaited(locals), limitMs, activity);
    this.team.reportWait(report);
    return report;
  }

  /** See WaitChains. */
  doing(rank: number): string | undefined {
    return this.#waitChains.doing(rank);
  }

  /** The same, or else its last call of *direct*. */
  doingOrLast(rank: number): string | undefined {
    const waits = this.doing(rank);
    const local = this.localRanks.indexOf(rank);
    if (waits !== undefined || local < 0) return waits;
    const last = lastCallOf(this.team, local);
    return last === undefined ? 'no call yet' : `last call ${describeCall(last)}`;
  }

  #awaited(locals: readonly number[]): Awaited[] {
    return locals.flatMap((local) => this.#members[local] ?? []);
  }
}
