import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import { outOfBandCode } from '../algorithms/other-calls.js';
import { encodeActivity, isOfRest, type CallOfRest, type OutOfBandCall } from '../algorithms/activity.js';
import type { CallLimits } from '../algorithms/arguments.js';
import type { MeetingCall } from '../algorithms/call.js';
import type { CallRecorder } from '../device/board.js';
import type { Team } from '../device/team.js';
import { InvalidArgumentError, namingCall, ofCall, TcclError, TimeoutError } from '../../errors.js';
import { withCallerFrames } from '../caller-stack.js';
import { reasonText } from '../messages/timed-call.js';
import { cutOff, OutOfBandWait, TimeLimit, whileOthersCan, type Elsewhere } from './out-of-band-wait.js';
import { longWait, untilWarning, type WaitLimits } from '../progress/wait-limits.js';
import { clockMs } from '../platform/platform.js';
import { afterWatching } from '../progress/watch-clock.js';

/** The parts of a communicator that out-of-band calls use. */
interface OutOfBandParts {
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly recorder: CallRecorder;
  readonly limits: WaitLimits;
  /** Queries to ranks that share no memory about their own waits. */
  readonly waitQueries: WaitQueries | undefined;
  /** Time that a call may wait, if it has no limit of its own, milliseconds. */
  readonly defaultMs: number;
  /** Starts the barrier with which a call of all ranks begins. */
  readonly meet: (name: MeetingCall, limits: CallLimits) => Promise<void>;
  /** Called once for each call that waits for long. */
  readonly warn: (text: string) => void;
  /** Throws the error that ended the communicator, if it has failed. */
  readonly checkAlive: () => void;
  /** Ends the communicator with an error, and returns the error to throw. */
  readonly fail: (error: unknown, call: string) => unknown;
  /** Ends it for a reason of this rank. */
  readonly abort: (reason: string) => void;
}

/**
 * Calls of all ranks over the bootstrap network (split, shrink, grow, window …). They run one after the other; each ends when a
 * rank that it needs has gone.
 */
export class OutOfBandCalls {
  readonly #parts: OutOfBandParts;
  /** Resolves when the last call ends. */
  #last: Promise<void> = Promise.resolve();

  constructor(parts: OutOfBandParts) {
    this.#parts = parts;
  }

  /**
   * Runs a call that needs all ranks. They meet in a barrier first, which is a collective like any other: it finds ranks that
   * call something else, or nothing. A failure ends the communicator, as in other calls, unless only this call is impossible.
   */
  withAll<T>(
    name: MeetingCall,
    { timeoutMs = this.#parts.defaultMs, signal }: CallLimits,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { abort, fail } = this.#parts;
    const limit = new TimeLimit(timeoutMs);
    // Now, in the order of the program's calls.
    const met = this.#parts.meet(name, { timeoutMs, signal });
    met.catch(() => limit.lift());
    return this.#inTurn(async () => {
      await met;
      try {
        return await this.#wait(
          name,
          limit,
          signal,
          () => this.#checkPresence(),
          (stop) => cutOff(work(stop), stop),
        );
      } catch (error) {
        if (signal?.aborted === true && error === signal.reason) {
          abort(`its ${name} was cancelled (${reasonText(error)})`);
          throw error;
        }
        if (isOfCallOnly(error)) throw ofCall(error, name);
        throw fail(this.#parts.team.recordedFailure() ?? error, name);
      }
    });
  }

  /**
   * Runs a call that needs all remaining ranks. A failure ends this call only.
   * @param work see whileOthersCan()
   */
  withRest<T>(
    name: CallOfRest,
    { timeoutMs = this.#parts.defaultMs, signal }: CallLimits,
    work: (signal: AbortSignal, over: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#inTurn(async () => {
      signal?.throwIfAborted();
      try {
        return await this.#wait(name, new TimeLimit(timeoutMs), signal, undefined, work);
      } catch (error) {
        // The result of its own wait is ignored.
        signal?.throwIfAborted();
        throw error;
      }
    });
  }

  /** Runs `work`, which waits for other ranks, until the time is over. */
  async #wait<T>(
    call: OutOfBandCall,
    limit: TimeLimit,
    signal: AbortSignal | undefined,
    check: (() => void) | undefined,
    work: (signal: AbortSignal, over: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { bootstrap, recorder, warn, limits } = this.#parts;
    const { rank, nRanks } = bootstrap;
    const beganMs = clockMs();
    const warnAfterMs = untilWarning(limits, 0);
    const queries = bootstrap.openWaitQueries();
    const show = (late: readonly number[]): void =>
      recorder.report('outOfBand', beganMs, clockMs() - beganMs, encodeActivity({ kind: 'outOfBand', call }), late);
    const wait = new OutOfBandWait({ call, rank, nRanks, queries, elsewhere: { ...this.#elsewhere, show } }, limit.ms);
    show([]);
    const entry = recorder.beginOutOfBand(outOfBandCode(call), beganMs);
    const warnsLater = warnAfterMs > 0 && warnAfterMs < limit.ms;
    const stopWarning = warnsLater
      ? afterWatching(warnAfterMs, () => warn(longWait(rank, warnAfterMs, call, wait.describe(wait.late()))))
      : () => undefined;
    const tooLate = (late: readonly number[]): TimeoutError =>
      namingCall(
        new TimeoutError(
          isOfRest(call) ? 'RANK_MISSING' : 'TIMEOUT',
          `${call}: rank ${rank} waited ${limit.ms / 1000} s for ${wait.describe(late)}, without an answer or progress`,
          { ranks: late },
        ),
      );
    try {
      return await whileOthersCan(wait, { limit, tooLate, signal, check }, work);
    } finally {
      stopWarning();
      recorder.resolve('outOfBand');
      recorder.endOutOfBand(entry);
    }
  }

  get #elsewhere(): Omit<Elsewhere, 'show'> {
    const { bootstrap, team, waitQueries } = this.#parts;
    const { localRanks, nRanks } = bootstrap;
    // If the ranks of a host share no memory, each is a team of its own.
    const shares = team.nLocalRanks === localRanks.length;
    return {
      report: (words, holds) => {
        team.reportWait(words);
        waitQueries?.setAnswer(words, holds);
      },
      ask: (ranks) => waitQueries?.ask(ranks),
      reports: Array.from({ length: nRanks }, (_, peer) => {
        const local = shares ? localRanks.indexOf(peer) : -1;
        return { peer, waitReport: () => (local < 0 ? waitQueries?.answer(peer) : team.waitReport(local)) };
      }),
    };
  }

  /** Runs `work` after all earlier calls, whether they failed or not. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.then(
      () => undefined,
      () => undefined,
    );
    return withCallerFrames(turn);
  }

  /** Resolves when all calls so far have ended. */
  ended(): Promise<void> {
    return this.#last;
  }

  /** Throws if a rank can take part no longer. */
  #checkPresence(): void {
    const { team, bootstrap, checkAlive } = this.#parts;
    checkAlive();
    // A rank that already has the failed rank's data now waits for ranks that lack them.
    if (bootstrap.failure !== undefined) throw bootstrap.failure;
    team.checkMembers(bootstrap.localRanks);
  }
}

/** True for an error after which the communicator stays usable. Every rank that the call concerns has it. */
function isOfCallOnly(error: unknown): error is TcclError {
  return (
    error instanceof InvalidArgumentError || (error instanceof TcclError && ['OUT_OF_MEMORY', 'UNSUPPORTED'].includes(error.code))
  );
}
