import { connect, startRoot } from '../../../../src/runtime/bootstrap/index.js';
import type { Bootstrap, ConnectOptions, Root, RootOptions } from '../../../../src/runtime/bootstrap/index.js';

/** A long timeout: only a failing test waits for it. */
export const timeoutMs = 20_000;

/** A root on loopback. */
export function loopbackRoot(options: RootOptions = {}): Promise<Root> {
  return startRoot({ host: '127.0.0.1', ...options });
}

/** Ranks 0 to n - 1 in this event loop, on loopback. */
export async function connectRanks(
  n: number,
  optionsOf: (rank: number) => Partial<ConnectOptions> = () => ({}),
): Promise<Bootstrap[]> {
  const { id } = await loopbackRoot();
  return Promise.all(Array.from({ length: n }, (_, rank) => connect({ id, rank, nRanks: n, timeoutMs, ...optionsOf(rank) })));
}

/** Runs `body` with n connected ranks and closes them. */
export async function withRanks(
  n: number,
  body: (ranks: Bootstrap[]) => Promise<void>,
  optionsOf?: (rank: number) => Partial<ConnectOptions>,
): Promise<void> {
  const ranks = await connectRanks(n, optionsOf);
  try {
    await body(ranks);
  } finally {
    await Promise.all(ranks.map((rank) => rank.close()));
  }
}

/** The error of a promise that must reject. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new Error(`resolved with ${String(value)} where a rejection was expected`);
    },
    (error: unknown) => error,
  );
}

export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
export const bytes = (value: string): Uint8Array => Buffer.from(value);
