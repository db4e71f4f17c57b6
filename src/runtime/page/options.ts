import type { Environment } from '../launch/environment.js';
import type { CommunicatorConfig } from '../resources/config.js';
import type { PlatformAbortSignal, PlatformURL } from '../platform/declarations.js';

/** Options of init() in a page. */
export interface PageInitOptions extends CommunicatorConfig {
  /** 0 with `nRanks: 1` makes a communicator of this worker alone. */
  readonly rank?: number | undefined;
  readonly nRanks?: number | undefined;
  /** Device of the rank, unique in the page. Default: a number of its own. */
  readonly device?: string | undefined;
  /** Time to wait for the other ranks, milliseconds. Default 60,000. Where it is given, also the default for calls. */
  readonly timeoutMs?: number | undefined;
  /** Aborts the wait for the other ranks. */
  readonly signal?: PlatformAbortSignal | undefined;
  /** Settings by their variables' names, such as `TCCL_TIMEOUT`. Default: `env` of spawnRanks. */
  readonly env?: Environment | undefined;
  /** Called with each warning. Default: one line on the console. */
  readonly onWarning?: ((message: string) => void) | undefined;
}

/** A worker of a browser. */
export interface PageWorker {
  postMessage(value: unknown, transferList: readonly object[]): void;
  addEventListener(kind: string, listener: (event: never) => void): void;
  terminate(): void;
}

/**
 * A rank's module: its URL, or a function that starts a worker on it. Bundlers find a worker by the text
 * `new Worker(new URL('./rank.js', import.meta.url), { type: 'module' })`.
 */
export type PageModule = string | PlatformURL | ((rank: number) => PageWorker);

/** Options of spawnRanks() in a page. */
export interface PageSpawnOptions {
  /** Settings of the ranks by their variables' names, such as `TCCL_TIMEOUT`. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Called with each message that a rank sends with `postMessage`. If it throws, all ranks end and the promise rejects. */
  readonly onMessage?: ((message: unknown, rank: number) => void) | undefined;
  /** Time that the other ranks may run after one fails, milliseconds. Default 1000. */
  readonly graceMs?: number | undefined;
  /** Ends all ranks; the promise rejects with the signal's reason. */
  readonly signal?: PlatformAbortSignal | undefined;
}
