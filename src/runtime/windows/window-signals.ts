import { nameRanks } from '../bootstrap/rank-list.js';
import type { Observe } from '../algorithms/operation.js';
import { windowCode } from '../algorithms/other-calls.js';
import type { CallRecorder } from '../device/board.js';
import { int32 } from '../device/types.js';
import { InvalidUsageError } from '../../errors.js';
import type { WakeSources } from '../progress/parking.js';
import type { Condition, Messenger } from '../messages/messenger.js';
import { defined } from '../../defined.js';

/** A counter for each rank, in a line of its own. */
const LINE = 64;

/** Its code in the ring of calls; it has no elements. */
const WAIT = windowCode('waitSignal', int32);

/** Bytes of a rank's counters. */
export function signalBytes(nRanks: number): number {
  return nRanks * LINE;
}

/** Adds a signal from rank `from` to the counters at `address`. Earlier stores are visible before it. */
export function countSignal(words: Int32Array, address: number, from: number): void {
  Atomics.add(words, (address + from * LINE) / 4, 1);
}

/** A wait for signals that has begun. */
export interface SignalWait {
  /** The ranks whose signals have not come. */
  readonly awaited: () => readonly number[];
  /** Withdraws it; false if it has ended. */
  readonly withdraw: (error: Error) => boolean;
}

interface WindowSignalsParts {
  readonly rank: number;
  readonly nRanks: number;
  /** Memory with this rank's counters, and their index. They were zero when the window was made. */
  readonly words: Int32Array;
  readonly address: number;
  readonly messenger: Messenger;
  /** Observer of waits, if the communicator is observed. */
  readonly observe: Observe | undefined;
  readonly recorder: CallRecorder | undefined;
  /** True if signals from a rank are found only by polling. */
  readonly isPolled: (peer: number) => boolean;
  /** True if signals from a rank come over sockets. */
  readonly isOverSockets: (peer: number) => boolean;
  /** Adds the wake sources of signals from a rank. */
  readonly wakeOn: (peer: number, sources: WakeSources) => void;
  /** Reason why no more signals come from a rank, if there is one. */
  readonly whyGone: (peer: number) => Error | undefined;
}

/** The signals to a rank in a window, and its waits for them. */
export class WindowSignals {
  readonly #parts: WindowSignalsParts;
  /** Number of signals of each rank that waits have consumed. */
  readonly #consumed: Int32Array;
  /** Waits that have not ended. */
  readonly #waits = new Set<Condition>();

  constructor(parts: WindowSignalsParts) {
    this.#parts = parts;
    this.#consumed = new Int32Array(parts.nRanks);
  }

  /** Waits for `count` signals of each of `peers`, and consumes them. */
  wait(peers: readonly number[], count: number, settle: (error?: Error) => void): SignalWait {
    const { observe, recorder, isPolled, isOverSockets, wakeOn, messenger } = this.#parts;
    const text = `waitSignal of ${count} from ${nameRanks(peers)}`;
    const ended = observe?.({ name: 'waitSignal', text, args: { peers, count } });
    const entries = recorder === undefined ? [] : peers.map((peer) => recorder.beginOperation(WAIT, peer, count));
    const over = (error?: Error) => {
      this.#waits.delete(wait);
      for (const entry of entries) recorder?.endApart(entry);
      ended?.(error);
    };
    const wait: Condition = {
      isMet: () => this.#take(peers, count),
      awaited: () => peers.filter((peer) => !this.#has(peer, count)),
      get polled() {
        return peers.some(isPolled);
      },
      overSockets: peers.some(isOverSockets),
      wakeOn: (sources) => {
        for (const peer of peers) wakeOn(peer, sources);
      },
      text,
      call: 'waitSignal',
      settled: (error) => {
        over(error);
        settle(error);
      },
    };
    this.#waits.add(wait);
    messenger.waitFor(wait);
    return {
      awaited: wait.awaited,
      withdraw: (error) => {
        if (!messenger.withdrawWait(wait)) return false;
        over(error);
        return true;
      },
    };
  }

  /** All ranks have closed the window: earlier signals have arrived, and no more will come. */
  endWaits(): void {
    const { messenger, rank } = this.#parts;
    for (const wait of this.#waits) {
      messenger.endWait(wait, () => {
        return new InvalidUsageError(
          'CLOSED',
          `rank ${rank} waits for signals of ${nameRanks(wait.awaited())} in a window that all ranks have closed; close it when all signals have arrived`,
          { rank },
        );
      });
    }
  }

  /** Consumes `count` signals of each of `peers`, if all have arrived. Throws if they cannot arrive any more. */
  #take(peers: readonly number[], count: number): boolean {
    for (const peer of peers) {
      // First, because signals from before a rank left are valid.
      const gone = this.#parts.whyGone(peer);
      if (this.#has(peer, count)) continue;
      if (gone !== undefined) throw gone;
      return false;
    }
    for (const peer of peers) this.#consumed[peer] = defined(this.#consumed[peer]) + count;
    return true;
  }

  #has(peer: number, count: number): boolean {
    const { words, address } = this.#parts;
    return ((Atomics.load(words, (address + peer * LINE) / 4) - defined(this.#consumed[peer])) | 0) >= count;
  }
}
