import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { POLLIN, POLLOUT, setPollEntry } from '../../../../src/runtime/device/libc.js';
import { RemoteError } from '../../../../src/errors.js';
import type { FifoSize } from '../../../../src/runtime/transport/transport.js';
import { libc, news, openSocketPair, thrown, until, type ConnectedPair, type Ends } from './pairs.js';

const small: FifoSize = { steps: 4, slotBytes: 2000 };
/** More than the kernel buffers of a connection that is not read. */
const large: FifoSize = { steps: 2, slotBytes: 12 << 20 };
const calls: Ends = ['system calls', 'system calls'];

const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
interface Koffi {
  load(path: null): { func(prototype: string): (...args: unknown[]) => number };
}

/** A blocked rank: nothing here lets the event loop turn. */
describe.runIf(libc !== undefined)('a connection by system calls', () => {
  let pair: ConnectedPair | undefined;
  const open = async (size: FifoSize, moves: Ends = calls): Promise<ConnectedPair> => (pair = await openSocketPair(size, moves));
  afterEach(async () => {
    vi.restoreAllMocks();
    await Promise.all([pair?.sender.close(), pair?.receiver.close()]);
    pair?.closeTransports();
  });

  const fill = ({ sender, senderSegment }: ConnectedPair, bytes: number, seed: number): void => {
    const message = new Uint8Array(senderSegment.buffer, sender.acquire(), bytes);
    for (let i = 0; i < bytes; i += 997) message[i] = seed + i;
    sender.post(bytes);
  };
  const expectMessage = ({ receiver, receiverSegment }: ConnectedPair, bytes: number, seed: number): void => {
    const message = new Uint8Array(receiverSegment.buffer, receiver.peek(), receiver.messageBytes);
    expect(message.length).toBe(bytes);
    for (let i = 0; i < bytes; i += 997) if (message[i] !== ((seed + i) & 255)) throw new Error(`byte ${i} is ${message[i]}`);
  };
  const blockUntil = (holds: () => boolean): void => {
    while (!holds());
  };

  test('carries thousands of messages while the event loop is blocked', async () => {
    const ends = await open(small);
    const { sender, receiver } = ends;
    let sent = 0;
    let received = 0;
    blockUntil(() => {
      while (sent < 5000 && sender.acquire() >= 0) fill(ends, (sent * 37) % 2001, sent++);
      while (receiver.peek() >= 0) {
        expectMessage(ends, (received * 37) % 2001, received++);
        receiver.release();
      }
      return received === 5000;
    });
  });

  test("carries messages that exceed the kernel's buffer, in parts", async () => {
    const ends = await open(large);
    const { sender, receiver } = ends;
    for (const seed of [1, 2]) fill(ends, large.slotBytes, seed);
    expect(sender.flush()).toBe(false);
    expect(sender.acquire()).toBe(-1);
    const entry = new Int32Array(2);
    for (const seed of [1, 2]) {
      blockUntil(() => {
        sender.flush();
        return receiver.peek() >= 0;
      });
      expectMessage(ends, large.slotBytes, seed);
      receiver.release();
    }
    expect(sender.flush()).toBe(true);
    setPollEntry(entry, 0, sender.fd, POLLIN | POLLOUT);
    expect(libc!.pollFds(entry, 1, 0)).toBe(1);
    blockUntil(() => sender.acquire() >= 0);
  });

  test('carries messages through a send buffer that is smaller than one', async () => {
    const size: FifoSize = { steps: 4, slotBytes: 30_000 };
    const ends = await open(size);
    const { sender, receiver } = ends;
    const { default: koffi } = (await import('koffi')) as { default: Koffi };
    const setOption = koffi.load(null).func('int setsockopt(int fd, int level, int option, const int *value, uint bytes)');
    expect(setOption(sender.fd, SOL_SOCKET, SO_SNDBUF, [4096], 4)).toBe(0);
    let [sent, received, blocked] = [0, 0, 0];
    blockUntil(() => {
      while (sent < 20 && sender.acquire() >= 0) fill(ends, (sent * 7919) % 30_001, sent++);
      if (!sender.flush()) blocked++;
      while (receiver.peek() >= 0) {
        expectMessage(ends, (received * 7919) % 30_001, received++);
        receiver.release();
      }
      return received === 20;
    });
    expect(blocked).toBeGreaterThan(20);
  });

  test('sleeps in the event loop until there is room', async () => {
    const ends = await open(large);
    const { sender, receiver } = ends;
    for (const seed of [1, 2]) fill(ends, large.slotBytes, seed);
    let naps = 0;
    const drained = (async () => {
      while (!sender.flush()) {
        naps++;
        await news(sender);
      }
    })();
    for (const seed of [1, 2]) {
      while (receiver.peek() < 0) await news(receiver);
      expectMessage(ends, large.slotBytes, seed);
      receiver.release();
    }
    await drained;
    expect(naps).toBeGreaterThan(0);
  });

  test.each<Ends>([calls, ['system calls', 'node:net']])(
    "delivers data that exceed the kernel's buffer when the sender (%s) closes or aborts (%s)",
    async (...moves) => {
      for (const leave of ['close', 'abort'] as const) {
        const ends = await open(large, moves);
        const { sender, receiver } = ends;
        for (const seed of [1, 2]) fill(ends, large.slotBytes, seed);
        if (leave === 'abort') sender.abort(new RemoteError('ABORTED', 'enough', { rank: 5 }));
        const left = sender.close();
        for (const seed of [1, 2]) {
          await until(() => receiver.peek() >= 0);
          expectMessage(ends, large.slotBytes, seed);
          receiver.release();
        }
        await until(() => thrown(() => receiver.peek()) !== undefined);
        expect(thrown(() => receiver.peek())).toMatchObject({ code: leave === 'close' ? 'CLOSED' : 'ABORTED' });
        await left;
        await receiver.close();
        ends.closeTransports();
      }
    },
  );

  test('a receiver closes in the middle of a message', async () => {
    const ends = await open(large);
    const { sender, receiver } = ends;
    for (const seed of [1, 2]) fill(ends, large.slotBytes, seed);
    expect(receiver.peek()).toBe(-1);
    const closed = receiver.close();
    await until(() => thrown(() => sender.acquire()) !== undefined);
    expect(thrown(() => sender.acquire())).toMatchObject({ code: 'CLOSED', rank: 1 });
    await sender.close();
    await closed;
  });

  test('gets an abort while the event loop is blocked', async () => {
    const { sender, receiver } = await open(small);
    receiver.abort(new RemoteError('RANK_DIED', 'rank 7 died', { rank: 7 }));
    blockUntil(() => thrown(() => sender.check()) !== undefined);
    expect(thrown(() => sender.check())).toMatchObject({ code: 'RANK_DIED', rank: 7 });
    expect(sender.fd).toBe(-1);
  });

  test('reads messages that a rank sent before it died, though writing to it fails', async () => {
    const ends = await open({ steps: 4, slotBytes: 8000 });
    const { sender, receiver, kill } = ends;
    for (const seed of [1, 2, 3]) fill(ends, 8000, seed);
    kill(0);
    await until(() => sender.fd === -1);
    await new Promise(setImmediate); // its end is sent
    for (const seed of [1, 2, 3]) {
      blockUntil(() => receiver.peek() >= 0);
      expectMessage(ends, 8000, seed);
      receiver.release();
    }
    blockUntil(() => thrown(() => receiver.peek()) !== undefined);
    expect(thrown(() => receiver.peek())).toMatchObject({ code: 'RANK_DIED', rank: 0 });
  });

  test('a rank that blocks does not wait for the event loop to explain why a connection broke', async () => {
    const { sender, receiver, kill } = (pair = await openSocketPair(small, calls, {
      whyGone: () => new Promise(() => undefined),
    }));
    kill(0);
    await until(() => sender.fd === -1);
    await new Promise(setImmediate); // its end is sent
    let now = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    blockUntil(() => receiver.peek() < 0 && receiver.fd === -1);
    expect(thrown(() => receiver.check())).toBeUndefined();
    now += 1000;
    expect(thrown(() => receiver.check())).toMatchObject({ code: 'RANK_DIED', rank: 0 });
  });

  test('asks why a connection broke, and sleeps until that is known', async () => {
    let explain: (error: Error) => void = () => undefined;
    const reason = new RemoteError('CLOSED', 'rank 0 exited', { rank: 0 });
    const asked = (): Promise<Error> => new Promise((resolve) => (explain = resolve));
    const { receiver, kill } = (pair = await openSocketPair(small, calls, { whyGone: asked }));
    const ended = news(receiver);
    kill(0);
    await ended;
    expect(receiver.peek()).toBe(-1);
    expect(receiver.fd).toBe(-1);
    const known = news(receiver);
    explain(reason);
    await known;
    expect(thrown(() => receiver.peek())).toBe(reason);
  });

  test('leaves no descriptor behind, even after a sleep', async () => {
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    await (await open(small)).sender.close();
    await pair!.receiver.close();
    const before = descriptors();
    for (const ending of ['close', 'abort', 'kill'] as const) {
      const { sender, receiver, kill, closeTransports } = await open(small);
      const arrived = news(receiver);
      sender.acquire();
      sender.post(1);
      await arrived;
      expect(descriptors()).toBeGreaterThan(before);
      if (ending === 'kill') kill(0);
      if (ending === 'abort') sender.abort(new Error('enough'));
      await Promise.all([sender.close(), receiver.close()]);
      closeTransports();
      await until(() => descriptors() === before);
    }
  });
});
