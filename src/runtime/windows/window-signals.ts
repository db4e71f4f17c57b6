import { nameRanks } from '../bootstrap/rank-list.js';
import type { Observe } from '../algorithms/operation.js';
import { InvalidUsageError } from '../../errors.js';
import type { Bed } from '../progress/sleeper.js';
import type { Condition, Messenger } from '../messages/messenger.js';

/** A counter for each rank, in a line of its own. */
const LINE = 64;

/** Bytes of a rank's counters. */
export function signalBytes(nRanks: number): number {
  return nRanks * LINE;
}

/** One signal more from rank `from`, where counters begin at `address`. What was stored before is seen with it. */
export function countSignal(words: Int32Array, address: number, from: number): void {
  Atomics.add(words, (address + from * LINE) / 4, 1);
}

export interface WindowSignalsParts {
  readonly rank: number;
  readonly nRanks: number;
  /** Memory, and where in it this rank's counters begin, which were zero when the window was made. */
  readonly words: Int32Array;
  readonly address: number;
  readonly messenger: Messenger;
  /** Told of each wait, where somebody wants to know. */
  readonly observe: Observe | undefined;
  /** True if only looking again tells of signals from a rank. */
  readonly isPolled: (peer: number) => boolean;
  /** Names what wakes this thread for signals from a rank. */
  readonly sleepOn: (peer: number, bed: Bed) => void;
  /** Reason why no more signals come from a rank, if so. */
  readonly whyGone: (peer: number) => Error | undefined;
}

/** The signals that a rank gets in a window, and its waits for them. */
export class WindowSignals {
  readonly #parts: WindowSignalsParts;
  /** Signals of each rank that were waited for. */
  readonly #consumed: Int32Array;
  /** Those that have not ended. */
  readonly #waits = new Set<Condition>();

  constructor(parts: WindowSignalsParts) {
    this.#parts = parts;
    this.#consumed = new Int32Array(parts.nRanks);
  }

  /** Waits for `count` signals of each of `peers`, and takes them. */
  wait(peers: readonly number[], count: number, settle: (error?: Error) => void): void {
    const { observe, isPolled, sleepOn, messenger } = this.#parts;
    const text = `waitSignal of ${count} from ${nameRanks(peers)}`;
    const ended = observe?.({ name: 'waitSignal', text, args: { peers, count } });
    const wait: Condition = {
      isMet: () => this.#take(peers, count),
      awaited: () => peers.filter((peer) => !this.#has(peer, count)),
      polled: peers.some(isPolled),
      sleepOn: (bed) => {
        for (const peer of peers) sleepOn(peer, bed);
      },
      text,
      settled: (error) => {
        this.#waits.delete(wait);
        ended?.(error);
        settle(error);
      },
    };
    this.#waits.add(wait);
    messenger.waitFor(wait);
  }

  /** All have closed the window: what they signalled before is there, and no more comes. */
  endWaits(): void {
    const { messenger, rank } = this.#parts;
    for (const wait of this.#waits) {
      messenger.endWait(wait, () => {
        return new InvalidUsageError(
          'CLOSED',
          `rank ${rank} waits for signals of ${nameRanks(wait.awaited())} in a window that all ranks have closed; close it when all signals have come`,
          { rank },
        );
      });
    }
  }

  /** Takes `count` signals of each of `peers`, if all of them are there. Throws when they cannot come any more. */
  #take(peers: readonly number[], count: number): boolean {
    for (const peer of peers) {
      // The order matters: what a rank signalled before it left counts.
      const gone = this.#parts.whyGone(peer);
      if (this.#has(peer, count)) continue;
      if (gone !== undefined) throw gone;
      return false;
    }
    for (const peer of peers) this.#consumed[peer] = (this.#consumed[peer] ?? 0) + count;
    return true;
  }

  #has(peer: number, count: number): boolean {
    const { words, address } = this.#parts;
    return ((Atomics.load(words, (address + peer * LINE) / 4) - (this.#consumed[peer] ?? 0)) | 0) >= count;
  }
}
