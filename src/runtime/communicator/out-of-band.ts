import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import type { Team } from '../device/team.js';
import { InvalidArgumentError, ofCall, TcclError, TimeoutError } from '../../errors.js';
import { died, unpackReason } from '../transport/ending.js';
import { withCallerFrames } from '../caller-stack.js';
import type { CallLimits } from '../algorithms/arguments.js';
import { reasonText } from '../messages/timed-call.js';
import { OutOfBandWait } from './out-of-band-wait.js';
import { closedTooEarly } from '../algorithms/team-error.js';
import { longWait, untilWarning, type WaitLimits } from '../progress/wait-limits.js';
import { afterWatching } from '../progress/watch-clock.js';
import { withAnySignal } from '../with-any-signal.js';

/** The parts of a communicator that out-of-band calls use. */
interface OutOfBandParts {
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly limits: WaitLimits;
  /** Queries to ranks that share no memory about their own waits. */
  readonly waitQueries: WaitQueries | undefined;
  /** Time that a call may wait, if it has no limit of its own, milliseconds. */
  readonly defaultMs: number;
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
 * Calls of all ranks over the bootstrap network (split, shrink, grow, window). They run one after the other; each ends when a
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
   * Runs a call that needs all ranks. A failure ends the communicator, as in other calls, unless only this call is
   * impossible.
   */
  withAll<T>(
    name: string,
    { timeoutMs = this.#parts.defaultMs, signal }: CallLimits,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#inTurn(async () => {
      signal?.throwIfAborted();
      try {
        const calls = this.#parts.team.countCall();
        const wait = new OutOfBandWait(this.#parts, timeoutMs, () => this.#behind(calls));
        const stopWarning = this.#warnLater(name, timeoutMs, wait);
        try {
          return await whileOthersCan(name, { timeoutMs, signal }, () => this.#checkPresence(calls), wait, work);
        } finally {
          stopWarning();
        }
      } catch (error) {
        if (signal?.aborted === true && error === signal.reason) {
          this.#parts.abort(`its ${name} was cancelled (${reasonText(error)})`);
          throw error;
        }
        if (isOfCallOnly(error)) throw ofCall(error, name);
        throw this.#parts.fail(this.#recordedFailure() ?? error, name);
      }
    });
  }

  /** Runs a call that needs all remaining ranks. A failure ends this call only. */
  withRest<T>(
    name: string,
    { timeoutMs = this.#parts.defaultMs, signal }: CallLimits,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#inTurn(async () => {
      signal?.throwIfAborted();
      const late = new AbortController();
      const wait = new OutOfBandWait(this.#parts, timeoutMs);
      const stopWarning = this.#warnLater(name, timeoutMs, wait);
      const stopWaiting = afterWatching(timeoutMs, () => late.abort(tooLate(name, timeoutMs, wait)));
      try {
        return await withAnySignal([late.signal, signal], work);
      } catch (error) {
        // The result of its own wait is ignored.
        signal?.throwIfAborted();
        throw error;
      } finally {
        stopWarning();
        stopWaiting();
        wait.close();
      }
    });
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

  /** Warns if the call takes long. Returns a function that cancels the warning. */
  #warnLater(name: string, timeoutMs: number, wait: OutOfBandWait): () => void {
    const {
      bootstrap: { rank },
      limits,
      warn,
    } = this.#parts;
    const warnAfterMs = untilWarning(limits, 0);
    if (warnAfterMs === 0 || warnAfterMs >= timeoutMs) return () => undefined;
    return afterWatching(warnAfterMs, () => warn(longWait(rank, warnAfterMs, name, wait.describe(wait.late()))));
  }

  /** Ranks of this host that have not made this rank's latest call. */
  #behind(calls: number): number[] {
    const { team, bootstrap } = this.#parts;
    return team.findBehind(calls).map((local) => bootstrap.localRanks[local] ?? local);
  }

  /** Error with which a rank of this host ended the communicator; it may be known here before the network reports it. */
  #recordedFailure(): Error | undefined {
    const { team, bootstrap } = this.#parts;
    const words = team.recordedFailure();
    return words === undefined ? undefined : unpackReason(words, bootstrap.rank);
  }

  /** Throws if a rank that has not made this rank's latest call cannot make it any more. */
  #checkPresence(calls: number): void {
    const { team, bootstrap, checkAlive } = this.#parts;
    checkAlive();
    // A rank that already has the failed rank's data now waits for ranks that lack them.
    if (bootstrap.failure !== undefined) throw bootstrap.failure;
    const rankOf = (local: number): number => bootstrap.localRanks[local] ?? local;
    const dead = team.findDead();
    if (dead >= 0) throw died(rankOf(dead));
    const left = team.findLeft(calls);
    if (left >= 0) throw closedTooEarly(rankOf(left));
  }
}

/** True for an error after which the communicator stays usable. Every rank that the call concerns has it. */
function isOfCallOnly(error: unknown): error is TcclError {
  return (
    error instanceof InvalidArgumentError || (error instanceof TcclError && ['OUT_OF_MEMORY', 'UNSUPPORTED'].includes(error.code))
  );
}

/** Interval at which a waiting rank checks whether the others can still arrive. */
const LOOK_EVERY_MS = 20;

/**
 * Returns the result of `work`, unless `check` throws because a needed rank is gone, or time is up. `work` gets a signal, since
 * its own error may name the awaited ranks more precisely.
 */
async function whileOthersCan<T>(
  name: string,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal | undefined },
  check: () => void,
  wait: OutOfBandWait,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const stopped = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => setImmediate(() => reject(stop.signal.reason as Error)));
  });
  const stopWaiting = afterWatching(timeoutMs, () => stop.abort(tooLate(name, timeoutMs, wait)));
  const cancel = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', cancel, { once: true });
  const look = setInterval(() => {
    try {
      check();
    } catch (error) {
      stop.abort(error);
    }
  }, LOOK_EVERY_MS);
  try {
    return await Promise.race([work(stop.signal), stopped]);
  } finally {
    clearInterval(look);
    signal?.removeEventListener('abort', cancel);
    stopWaiting();
    wait.close();
  }
}

/** Error that names the ranks that have not made the call, or are stuck in it, as far as known. */
function tooLate(name: string, timeoutMs: number, wait: OutOfBandWait): TimeoutError {
  const late = wait.late();
  return new TimeoutError(
    'TIMEOUT',
    `${name}: waited ${timeoutMs / 1000} s for ${wait.describe(late)} (it was not called there, or makes no progress)`,
    { ranks: late },
  );
}
