import type { LookupAddress } from 'node:dns';
import type { AddressInfo, NetConnectOpts, Server, ServerOpts, Socket } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';

export type { AddressInfo, Server, Socket };

/**
 * The machine that the runtime runs on. Nothing else in src/runtime may read a clock, set a timer, draw a random number or open a
 * socket, so that another platform can decide what a rank sees: lint checks it.
 */
export interface Platform {
  /** Milliseconds since this process began; never goes back. */
  readonly clockMs: () => number;
  /** Milliseconds since 1970; jumps when the clock is set. */
  readonly wallClockMs: () => number;
  /** Nanoseconds of a clock that is the same in all processes of a host. */
  readonly hostClockNs: () => bigint;
  readonly setTimeout: (action: () => void, ms?: number) => Timer;
  readonly clearTimeout: (timer: Timer | undefined) => void;
  readonly setInterval: (action: () => void, ms: number) => Timer;
  readonly clearInterval: (timer: Timer | undefined) => void;
  /** Calls after the event loop has read what has arrived so far. */
  readonly setImmediate: (action: () => void) => void;
  /** Resolves after a time; rejects with the signal's reason if that aborts. Keeps the process alive unless `ref` is false. */
  readonly sleep: (ms: number, options?: SleepOptions) => Promise<void>;

  /** From 0 to below 1, for pauses; not for secrets. */
  readonly random: () => number;
  /** Cryptographically random bytes. */
  readonly randomBytes: (bytes: number) => Buffer;
  /** From `from` to below `end`. */
  readonly randomInt: (from: number, end: number) => number;

  readonly connect: (options: NetConnectOpts) => Socket;
  readonly createServer: (options?: ServerOpts, onConnection?: (socket: Socket) => void) => Server;
  readonly networkInterfaces: () => NodeJS.Dict<NetworkInterfaceInfo[]>;
  readonly hostname: () => string;
  /** Addresses of a host's name. */
  readonly lookup: (name: string) => Promise<LookupAddress[]>;
}

/** A time-out or interval that has been set. */
export interface Timer {
  /** Lets the process end before the timer. */
  unref(): this;
}

export interface SleepOptions {
  readonly signal?: AbortSignal | undefined;
  readonly ref?: boolean;
}
