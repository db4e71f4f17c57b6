import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { WaitLine } from '../bootstrap/wait-line.js';
import type { Team } from '../device/team.js';
import { InvalidArgumentError, SystemError, TimeoutError } from '../../errors.js';
import { died, unpackReason } from '../transport/ending.js';
import { ledToCaller } from '../caller-stack.js';
import { DEFAULT_INIT_TIMEOUT_MS } from './meet.js';
import { OutOfBandWait } from './out-of-band-wait.js';
import { closedTooEarly } from '../algorithms/team-error.js';
import { longWait, type WaitLimits } from '../progress/wait-limits.js';
import { afterWatching } from '../progress/watch-clock.js';

/** What calls out of band need of their communicator. */
export interface OutOfBandParts {
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly limits: WaitLimits;
  /** On which ranks that share no memory ask each other what they do in other calls. */
  readonly waitLine: WaitLine | undefined;
  /** Told once of each call that waits for long. */
  readonly warn: (text: string) => void;
  /** Throws what ended the communicator, if something has. */
  readonly checkAlive: () => void;
  /** Ends the communicator for an error, and gives the error to throw. */
  readonly fail: (error: unknown) => unknown;
}

/**
 * Calls that all ranks make out of band (split, shrink, grow, window), over the bootstrap's network: one after the other, and
 * each ends when a rank that it needs is gone.
 */
export class OutOfBandCalls {
  readonly #parts: OutOfBandParts;
  /** Ends with the last call. */
  #last: Promise<void> = Promise.resolve();

  constructor(parts: OutOfBandParts) {
    this.#parts = parts;
  }

  /**
   * Does what needs all ranks. A failure ends the communicator, as in other calls, unless it only means that this call
   * cannot be.
   */
  withAll<T>(
    name: string,
    { timeoutMs = DEFAULT_INIT_TIMEOUT_MS }: { readonly timeoutMs?: number | undefined },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#inTurn(async () => {
      try {
        const calls = this.#parts.team.countCall();
        const wait = new OutOfBandWait(this.#parts, timeoutMs, () => this.#behind(calls));
        const stopWarning = this.#warnLater(name, timeoutMs, wait);
        try {
          return await whileOthersCan(name, timeoutMs, () => this.#checkPresence(calls), wait, work);
        } finally {
          stopWarning();
        }
      } catch (error) {
        if (error instanceof InvalidArgumentError || (error instanceof SystemError && error.code === 'OUT_OF_MEMORY'))
          throw error;
        throw this.#parts.fail(this.#lastWords() ?? error);
      }
    });
  }

  /** Does what needs all ranks that are left. A failure ends this call only. */
  withRest<T>(
    name: string,
    { timeoutMs = DEFAULT_INIT_TIMEOUT_MS }: { readonly timeoutMs?: number | undefined },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#inTurn(async () => {
      const late = new AbortController();
      const wait = new OutOfBandWait(this.#parts, timeoutMs);
      const stopWarning = this.#warnLater(name, timeoutMs, wait);
      const stopWaiting = afterWatching(timeoutMs, () => late.abort(tooLate(name, timeoutMs, wait)));
      try {
        return await work(late.signal);
      } finally {
        stopWarning();
        stopWaiting();
        wait.close();
      }
    });
  }

  /** After what was begun before, whatever became of it. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.then(
      () => undefined,
      () => undefined,
    );
    return ledToCaller(turn);
  }

  /** Resolves when those begun so far have ended. */
  ended(): Promise<void> {
    return this.#last;
  }

  /** Says that a call waits, unless it ends before. Returns a function to call then. */
  #warnLater(name: string, timeoutMs: number, wait: OutOfBandWait): () => void {
    const {
      bootstrap: { rank },
      limits: { warnAfterMs },
      warn,
    } = this.#parts;
    if (warnAfterMs === 0 || warnAfterMs >= timeoutMs) return () => undefined;
    return afterWatching(warnAfterMs, () => warn(longWait(rank, warnAfterMs, name, wait.describe(wait.late()))));
  }

  /** The ranks of this host that have not made this rank's latest call. */
  #behind(calls: number): number[] {
    const { team, bootstrap } = this.#parts;
    return team.findBehind(calls).map((local) => bootstrap.localRanks[local] ?? local);
  }

  /** What a rank of this host ended the communicator with: it may be gone before the network tells. */
  #lastWords(): Error | undefined {
    const { team, bootstrap } = this.#parts;
    const words = team.lastWords();
    return words === undefined ? undefined : unpackReason(words, bootstrap.rank);
  }

  /** Throws where a rank that has not made this rank's latest call never will. */
  #checkPresence(calls: number): void {
    const { team, bootstrap, checkAlive } = this.#parts;
    checkAlive();
    // Who had all it needed from the others waits for those who had not, in what follows from it.
    if (bootstrap.failure !== undefined) throw bootstrap.failure;
    const rankOf = (local: number): number => bootstrap.localRanks[local] ?? local;
    const dead = team.findDead();
    if (dead >= 0) throw died(rankOf(dead));
    const left = team.findLeft(calls);
    if (left >= 0) throw closedTooEarly(rankOf(left));
  }
}

/** How often a rank that waits for others out of band looks whether they can still come. */
const LOOK_EVERY_MS = 20;

/**
 * What `work` gives, unless a rank that it needs cannot come any more (`check` throws) or time is over. `work` gets a
 * signal of that, and may tell more precisely what it waited for.
 */
async function whileOthersCan<T>(
  name: string,
  timeoutMs: number,
  check: () => void,
  wait: OutOfBandWait,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const stopped = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => setImmediate(() => reject(stop.signal.reason as Error)));
  });
  const stopWaiting = afterWatching(timeoutMs, () => stop.abort(tooLate(name, timeoutMs, wait)));
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
    stopWaiting();
    wait.close();
  }
}

/** The error for ranks that have not called, or do not go on with it, as far as that is known. */
function tooLate(name: string, timeoutMs: number, wait: OutOfBandWait): TimeoutError {
  const late = wait.late();
  return new TimeoutError(
    'TIMEOUT',
    `${name} waited ${timeoutMs / 1000} s in vain for ${wait.describe(late)} (it was not called there, or gets no further)`,
    { ranks: late },
  );
}
