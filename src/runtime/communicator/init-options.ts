import type { UniqueId } from '../bootstrap/unique-id.js';
import type { Environment } from '../launch/environment.js';
import type { PlatformAbortSignal } from '../platform.js';
import type { CommunicatorConfig } from './config.js';

/** Options of init(); a launcher's environment can give all of them. */
export interface InitOptions extends CommunicatorConfig {
  /** This rank; with `nRanks` and `commId` for programs that start ranks by themselves. */
  readonly rank?: number | undefined;
  /** Number of ranks; goes with `rank`. */
  readonly nRanks?: number | undefined;
  /** The result of getUniqueId() at one of the ranks (or its text), or the `host:port` of rank 0. */
  readonly commId?: UniqueId | string | undefined;
  /** Device of the rank, unique on its host. Default: a number of its own. */
  readonly device?: string | undefined;
  /** Time to wait for the other ranks, in milliseconds during which this one runs (watch-clock.ts). Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Gives up waiting for the other ranks. */
  readonly signal?: PlatformAbortSignal | undefined;
  /** Source of the variables. Default `process.env`. */
  readonly env?: Environment | undefined;
  /** Told, on rank 0, what works but not as well as it could. Default: one line on standard error. */
  readonly onWarning?: ((message: string) => void) | undefined;
}
