import type { UniqueId } from '../bootstrap/unique-id.js';
import type { Environment } from '../launch/environment.js';
import type { PlatformAbortSignal } from '../platform.js';
import type { CommunicatorConfig } from './config.js';

/** What init() takes; a launcher's environment gives all of it. */
export interface InitOptions extends CommunicatorConfig {
  /** This rank; with `nRanks` and `commId` for programs that start ranks by themselves. */
  readonly rank?: number | undefined;
  /** How many ranks there are; goes with `rank`. */
  readonly nRanks?: number | undefined;
  /** What getUniqueId() gave to one of the ranks (or its text), or `host:port` where rank 0 can be reached. */
  readonly commId?: UniqueId | string | undefined;
  /** What the rank computes on, unique on its host. Left out: a number of its own. */
  readonly device?: string | undefined;
  /** How long to wait for the other ranks to come, in milliseconds in which this one runs (watch-clock.ts). Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Gives up waiting for the other ranks. */
  readonly signal?: PlatformAbortSignal | undefined;
  /** Where variables are read from. Default `process.env`. */
  readonly env?: Environment | undefined;
  /** Told, on rank 0, what works but not as well as it could. Default: one line on standard error. */
  readonly onWarning?: ((message: string) => void) | undefined;
}
