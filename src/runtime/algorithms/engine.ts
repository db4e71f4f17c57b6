import type { TcclError } from '../../errors.js';
import type { Call, CallDetails } from './call.js';
import type { Bed } from '../progress/sleeper.js';
import type { Deed } from './deed.js';
import type { DataType, NumericArray } from '../device/types.js';

/**
 * What carries out operations of a communicator, one at a time, by one or more algorithms. `begin` and `progress`
 * return PENDING or DONE; they throw when the operation cannot come to its end.
 */
export interface Engine {
  /** Whether a rank may wait inside a blocking call (sockets need the event loop). */
  readonly blocking: boolean;
  /** Whether the engine itself ends calls that wait too long. */
  readonly keepsTime?: boolean;
  /**
   * Starts a call (call.ts has the code, and what `root` and `count` are of each kind). Arrays that do not matter on this
   * rank may be of any length; those of a barrier are empty. `details` come with V forms and premulSum only.
   *
   * @throws InvalidUsageError `UNSUPPORTED` for a kind that the algorithm does not have
   */
  begin(
    code: number,
    type: DataType,
    root: number,
    send: NumericArray,
    recv: NumericArray,
    count: number,
    spins: number,
    details?: CallDetails,
  ): number;
  /** Goes on with the call under way, looking at most `spins` times at what has not come. */
  progress(spins: number): number;
  /** Changes whenever the call under way gets further: a wait is only long if this stands still. */
  readonly steps: number;
  /** Whether looking again tells what is new of the call under way; otherwise only the event loop, or another thread, does. */
  readonly polled: boolean;
  /** See Waitable. */
  readonly sleepAfterMs: number;
  /** Names what wakes this thread for the call under way. */
  sleepOn(bed: Bed): void;
  /** Blocks until going on may be worth it, at most for so long; absent where looking tells. */
  readonly rest?: ((ms: number) => void) | undefined;
  /** Looks whether those that are waited for can still come. Throws the reason why not. */
  check(): void;
  /**
   * The ranks that hold up the call under way, as far as that is known: they have not made it, or do not go on with it.
   * @param limitMs how long the call waits before it says so, or fails, as for sayWaits()
   */
  late(limitMs: number): number[];
  /**
   * Tells ranks that may wait for this one that it waits itself, and what it knows of why: from time to time in a call
   * that gets no further. Returns what it told, if this thread did.
   */
  sayWaits(limitMs: number, deed: Deed): readonly number[] | undefined;
  /** Tells those that may wait for this rank in a call, which it is not in, what it waits for elsewhere. */
  tellWaits(report: readonly number[]): void;
  /** The call under way. */
  underWay(): Call | undefined;
  /** What is known of a rank that holds up the call: `waiting in …`, `last call …`. */
  doing(rank: number): string | undefined;
  /** Tells the others that the communicator has failed, and why. */
  abort(error: TcclError): void;
  /** Leaves. Nothing is under way. */
  close(): Promise<void>;
}
