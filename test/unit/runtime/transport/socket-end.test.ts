import { expect, test, vi } from 'vitest';
import { openSocketPair } from './pairs.js';

/** So long that each message is read for itself. */
const SIZE = { steps: 2, slotBytes: 4096 };
/** For what comes after some turns of the event loop. */
const PATIENCE_MS = 20_000;
const closed = { name: 'RemoteError', code: 'CLOSED' };

/** The final error of the call. */
async function thrown(call: () => unknown): Promise<unknown> {
  return vi.waitFor(() => {
    try {
      call();
    } catch (error) {
      return error;
    }
    throw new Error('it throws nothing');
  }, PATIENCE_MS);
}

test('a sender that computed until the receiver had closed gets CLOSED when it sends', async () => {
  const { sender, receiver, sockets, closeTransports } = await openSocketPair(SIZE);
  sockets[0].pause();
  await receiver.close();
  for (let i = 0; i < SIZE.steps; i++) {
    expect(sender.acquire()).toBeGreaterThan(0);
    sender.post(SIZE.slotBytes);
  }
  await new Promise(setImmediate); // the event loop turns
  sockets[0].resume();
  expect(await thrown(() => sender.acquire())).toMatchObject({ ...closed, rank: 1 });
  await sender.close();
  closeTransports();
});

test('a receiver that computed until the sender had closed gets all that was sent, though its credits cannot be written', async () => {
  const { sender, receiver, senderSegment, receiverSegment, sockets, closeTransports } = await openSocketPair(SIZE);
  sockets[1].pause();
  for (let i = 0; i < SIZE.steps; i++) {
    new Uint8Array(senderSegment.buffer, sender.acquire(), SIZE.slotBytes).fill(i + 1);
    sender.post(SIZE.slotBytes);
  }
  await sender.close();
  const received: (number | undefined)[] = [];
  // Each message is answered before the next one is read.
  receiver.onNews(() => {
    try {
      for (let at = receiver.peek(); at > 0; at = receiver.peek()) {
        received.push(new Uint8Array(receiverSegment.buffer, at, SIZE.slotBytes).at(-1));
        receiver.release();
      }
    } catch {
      // The end, which is asked for below.
    }
  });
  sockets[1].resume();
  expect(await thrown(() => receiver.peek())).toMatchObject({ ...closed, rank: 0 });
  expect(received).toEqual([1, 2]);
  await receiver.close();
  closeTransports();
});

test('listening to a connection that the other side has closed leaves nothing behind', async () => {
  const { sender, receiver, sockets, closeTransports } = await openSocketPair(SIZE);
  await Promise.all([sender.close(), vi.waitFor(() => expect(() => receiver.peek()).toThrow(), PATIENCE_MS)]);
  await vi.waitFor(() => expect(sockets[1].closed).toBe(true), PATIENCE_MS);
  for (let i = 0; i < 3; i++) {
    receiver.onNews(() => undefined);
    receiver.onNews(undefined);
  }
  expect(sockets[1].listenerCount('connect')).toBe(0);
  await receiver.close();
  closeTransports();
});

test.each([0, 1] as const)('the end of rank %i without a goodbye is an error with its host', async (gone) => {
  const { sender, receiver, kill, closeTransports } = await openSocketPair(SIZE);
  kill(gone);
  const error = await thrown(() => (gone === 1 ? sender.acquire() : receiver.peek()));
  const message = `rank ${gone} on host${gone} (10.0.0.${gone}) died: it ended without closing the communicator`;
  expect(error).toMatchObject({ code: 'RANK_DIED', rank: gone, message });
  await Promise.allSettled([sender.close(), receiver.close()]);
  closeTransports();
});
