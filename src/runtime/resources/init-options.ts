import type { UniqueId } from '../bootstrap/unique-id.js';
import type { Environment } from '../launch/environment.js';
import type { PlatformAbortSignal } from '../platform/declarations.js';
import type { CommunicatorConfig } from './config.js';

/** Options of init(); a launcher's environment can replace all of them. */
export interface InitOptions extends CommunicatorConfig {
  /** This rank; together with `nRanks` and `commId`, for programs that start ranks themselves. */
  readonly rank?: number | undefined;
  /** Number of ranks; needed with `rank`. */
  readonly nRanks?: number | undefined;
  /** The result of getUniqueId() at one of the ranks (or its text), or the `host:port` of rank 0. */
  readonly commId?: UniqueId | string | undefined;
  /** Device of the rank, unique on its host. Default: a number of its own. */
  readonly device?: string | undefined;
  /**
   * Time to wait for the other ranks, milliseconds; time during which this process is stopped does not count. Default:
   * TCCL_INIT_TIMEOUT, or 60,000. Where it is given, also the default for calls, in place of TCCL_TIMEOUT:
   * {@link Communicator.timeoutMs}.
   */
  readonly timeoutMs?: number | undefined;
  /** Aborts the wait for the other ranks. */
  readonly signal?: PlatformAbortSignal | undefined;
  /** Environment variables to use. Default `process.env`. */
  readonly env?: Environment | undefined;
  /**
   * Called with each warning: on rank 0 about a set-up that works but is slow, on every rank about a call that has waited for
   * TCCL_WARN_AFTER seconds. Default: one line on standard error.
   */
  readonly onWarning?: ((message: string) => void) | undefined;
}
