import type { TcclError } from '../../errors.js';
import type { Call } from './call.js';
import type { EngineCall } from './queued-call.js';
import type { WakeSources } from '../progress/parking.js';
import type { Activity } from './activity.js';

/**
 * Carries out the collectives of a communicator, one at a time, by one or more algorithms. `begin` and `progress` return
 * PENDING or DONE; they throw when the operation cannot complete.
 */
export interface Engine {
  /** True if a rank may wait inside a blocking call (node:net needs the event loop). */
  readonly blocking: boolean;
  /** True if the engine itself ends calls that wait too long. */
  readonly keepsTime?: boolean;
  /**
   * Starts a call. The caller may use the object again as soon as this returns.
   *
   * @param mark the bits of an algorithm in the code of the call, if one was chosen
   * @throws InvalidUsageError `UNSUPPORTED` for a kind that the algorithm does not support
   */
  begin(call: EngineCall, spins: number, mark?: number): number;
  /** Progresses the running call, with at most `spins` polls for missing data. */
  progress(spins: number): number;
  /** Changes whenever the running call progresses: a wait counts as long only while this stands still. */
  readonly steps: number;
  /** True if news of the running call is found by polling; otherwise only the event loop, or another thread, brings news. */
  readonly polled: boolean;
  /** See Waitable. */
  readonly parkAfterMs: number;
  /** Registers the wake sources of the running call. */
  wakeOn(sources: WakeSources): void;
  /** Blocks until there may be news, at most for `ms`; absent if polling finds the news. */
  readonly rest?: ((ms: number) => void) | undefined;
  /** Checks whether the awaited ranks can still arrive. Throws the reason if they cannot. */
  check(): void;
  /**
   * The ranks that hold up the running call, as far as known: they have not made it, or make no progress in it.
   * @param limitMs time after which the call warns or fails, as for reportWait()
   */
  late(limitMs: number): number[];
  /** Text about what holds up the running call where that is no rank: `the aggregator at …`. Absent where there is none. */
  lateBeyondRanks?(limitMs: number): string | undefined;
  /**
   * Reports this rank's wait and its cause to ranks that may wait for it; called at intervals while a call makes no progress.
   * Returns the report if this thread sent it.
   */
  reportWait(limitMs: number, activity: Activity): readonly number[] | undefined;
  /** Reports this rank's wait elsewhere to ranks that wait for it in a call that it has not made. */
  forwardReport(report: readonly number[]): void;
  /** The running call. */
  underWay(): Call | undefined;
  /** Text of the activity of a rank that holds up the call: `waiting in …`, `last call …`. */
  doing(rank: number): string | undefined;
  /** Reports the failure of the communicator, with its reason, to the others. */
  abort(error: TcclError): void;
  /** Leaves. No call is running. */
  close(): Promise<void>;
}
