import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RemoteError, SystemError } from '../../../../src/errors.js';
import { connectPeers, orWhyNot, type Offer, type WantedEnd } from '../../../../src/runtime/transport/peers.js';
import type { Transport, TwoWayConnection } from '../../../../src/runtime/transport/transport.js';

const broken = () =>
  Promise.reject(
    new SystemError('NETWORK', 'rank 0 cannot reach rank 1 for data: the other side closed the connection', { rank: 1 }),
  );
const { signal } = new AbortController();
const waitFor = () => () => undefined;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("an error of a connection that breaks during set-up has the peer's failure as cause, even if that arrives later", async () => {
  const cause = new RemoteError('RANK_DIED', 'rank 2 died', { rank: 2 });
  let tell: (reason: Error) => void = () => undefined;
  const outcome = orWhyNot({ waitFor, whyGone: () => new Promise((resolve) => (tell = resolve)) }, 1, broken(), signal).catch(
    (error: unknown) => error,
  );
  await vi.advanceTimersByTimeAsync(1000);
  tell(cause);
  expect(await outcome).toBe(cause);
});

test('without a failure of the peer, the network is the cause', async () => {
  const outcome = orWhyNot({ waitFor, whyGone: () => new Promise(() => undefined) }, 1, broken(), signal).catch(
    (error: unknown) => error,
  );
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await outcome).toMatchObject({ code: 'NETWORK', rank: 1 });
});

test("a rank at its timeout does not wait for the peer's failure", async () => {
  const stop = new AbortController();
  const outcome = orWhyNot({ waitFor, whyGone: () => new Promise(() => undefined) }, 1, broken(), stop.signal).catch(
    (error: unknown) => error,
  );
  stop.abort(new Error('too late'));
  expect(await outcome).toMatchObject({ code: 'NETWORK', rank: 1 });
});

test('other errors are passed on at once', async () => {
  const full = new SystemError('OUT_OF_MEMORY', 'no room');
  await expect(orWhyNot({ waitFor, whyGone: () => new Promise(() => undefined) }, 1, Promise.reject(full), signal)).rejects.toBe(
    full,
  );
});

test('a rank that listens for a rank that has gone gets the reason', async () => {
  const gone = new RemoteError('CLOSED', 'rank 1 closed its communicator', { rank: 1 });
  const size = { steps: 4, slotBytes: 64 };
  const offer: Offer = { transport: 'socket', size, sends: {}, receives: {}, both: { pair: '' } };
  const listening = {
    info: new Uint8Array(),
    cancel: () => undefined,
    // Nobody dials.
    connect: (_: Uint8Array, aborted: AbortSignal) =>
      new Promise<TwoWayConnection>((_, reject) => aborted.addEventListener('abort', () => reject(aborted.reason as Error))),
  };
  const transport = { name: 'socket', size, setUpBoth: () => Promise.resolve(listening) } as unknown as Transport;
  const bootstrap = {
    rank: 0,
    send: () => Promise.resolve(),
    recv: () => Promise.resolve(Buffer.from(JSON.stringify(offer))),
    onFailure: () => () => undefined,
    waitFor,
    whyGone: () => Promise.resolve(gone),
    fail: () => undefined,
  } as unknown as Parameters<typeof connectPeers>[0];
  const ends: WantedEnd[] = [{ peer: 1, name: 'pair' }];
  const outcome = connectPeers(bootstrap, ends, ends, () => transport, signal).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await outcome).toBe(gone);
});
