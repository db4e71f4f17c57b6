import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import type { Segment } from '../../../../src/runtime/device/segment.js';
import { InvalidUsageError } from '../../../../src/errors.js';
import type {
  FifoSize,
  ReceiveConnection,
  SendConnection,
  TwoWayConnection,
} from '../../../../src/runtime/transport/transport.js';
import { news, thrown, until, type ConnectedPair } from './pairs.js';
import { runs } from '../../../runs.js';

const size: FifoSize = { steps: 4, slotBytes: 2000 };

/** Differences between transports. */
interface Kind {
  /** True if a sleeping thread is woken in another way than by the connection. */
  readonly isSilent?: boolean;
  /** True if `post` copies the slot, which is then free again. */
  readonly copies?: boolean;
  /** True if both ends send and receive. */
  readonly twoWay?: boolean;
  /** Number of sockets, each with slots of its own. */
  readonly sockets?: number;
}

/**
 * Requirements of every transport.
 * @param title text behind "a connection by"
 * @param openPair makes a transport for rank 0 and one for rank 1, and joins a connection of them (see `join` in pairs.ts)
 */
export function transportCompliance(
  title: string,
  openPair: (size: FifoSize) => Promise<ConnectedPair>,
  { isSilent = false, copies = false, twoWay = false, sockets = 1 }: Kind = {},
): void {
  const slots = size.steps * sockets;
  describe(`a connection by ${title}`, () => {
    let pair: ConnectedPair | undefined;
    const open = async (): Promise<ConnectedPair> => (pair = await openPair(size));
    afterEach(async () => {
      await Promise.all([pair?.sender.close(), pair?.receiver.close()]);
    });

    test('delivers messages in order, unchanged, for all sizes and whichever side is ahead', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.record({ bytes: fc.nat(size.slotBytes), sends: fc.boolean() }), { maxLength: 80 }),
          async (script) => {
            const { sender, receiver, senderSegment, receiverSegment } = await open();
            let sent = 0;
            let received = 0;
            const lengths: number[] = [];
            const receiveOne = (): void => {
              if (receiver.peek() < 0) return;
              expectSame(read(receiver, receiverSegment), pattern(received, lengths[received]!));
              received++;
            };
            for (const { bytes, sends } of script) {
              if (sends && sender.acquire() >= 0) {
                lengths.push(bytes);
                write(sender, senderSegment, pattern(sent++, bytes));
              } else receiveOne();
              if ((sent & 3) === 0) await new Promise((resolve) => setImmediate(resolve));
            }
            await until(() => {
              receiveOne();
              return received === sent;
            });
            expect(receiver.peek()).toBe(-1);
            await Promise.all([sender.close(), receiver.close()]);
          },
        ),
        { numRuns: runs(12, 30), seed: 1 },
      );
    });

    test('carries thousands of messages through its few slots', async () => {
      const { sender, receiver, senderSegment, receiverSegment } = await open();
      let sent = 0;
      let received = 0;
      await until(() => {
        while (sent < 3000 && sender.acquire() >= 0) {
          write(sender, senderSegment, pattern(sent, sent % 97));
          sent++;
        }
        while (receiver.peek() >= 0) {
          expectSame(read(receiver, receiverSegment), pattern(received, received % 97));
          received++;
        }
        return received === 3000;
      });
    });

    test('has no slot for the sender when all are filled, until the receiver releases one', async () => {
      const { sender, receiver, senderSegment, receiverSegment } = await open();
      for (let i = 0; i < slots; i++) write(sender, senderSegment, pattern(i, 10));
      expect(sender.acquire()).toBe(-1);
      await until(() => receiver.peek() >= 0);
      expect(sender.acquire()).toBe(-1);
      expectSame(read(receiver, receiverSegment), pattern(0, 10));
      await until(() => sender.acquire() >= 0);
      write(sender, senderSegment, pattern(slots, 10));
      expect(sender.acquire()).toBe(-1);
    });

    test('returns the same slot until it is posted or released', async () => {
      const { sender, receiver, senderSegment } = await open();
      const free = sender.acquire();
      expect(free % 64).toBe(0);
      expect(sender.acquire()).toBe(free);
      write(sender, senderSegment, pattern(0, 5));
      if (!copies) expect(sender.acquire()).not.toBe(free);
      await until(() => receiver.peek() >= 0);
      const filled = receiver.peek();
      expect(filled % 64).toBe(0);
      expect(receiver.peek()).toBe(filled);
      expect(receiver.messageBytes).toBe(5);
    });

    test('carries messages of no bytes and of a full slot', async () => {
      const { sender, receiver, senderSegment, receiverSegment } = await open();
      expect([sender.size, receiver.size]).toMatchObject([size, size]);
      const sizes = [0, size.slotBytes, 0, 0, size.slotBytes, size.slotBytes];
      let sent = 0;
      let received = 0;
      await until(() => {
        while (sent < sizes.length && sender.acquire() >= 0) {
          write(sender, senderSegment, pattern(sent, sizes[sent]!));
          sent++;
        }
        while (receiver.peek() >= 0) {
          expectSame(read(receiver, receiverSegment), pattern(received, sizes[received]!));
          received++;
        }
        return received === sizes.length;
      });
    });

    test('delivers the last wait report of the other side, and its repetition, between messages and beside them', async () => {
      const { sender, receiver, senderSegment, receiverSegment } = await open();
      expect([sender.waitReport(), receiver.waitReport()]).toEqual([undefined, undefined]);
      for (const words of [[], [1, -2, 2 ** 31 - 1], [7, 8, 9]]) {
        const counts = [sender, receiver].map((end) => end.waitReport()?.count);
        await until(() => sender.acquire() >= 0);
        write(sender, senderSegment, pattern(0, 1001));
        sender.reportWait(words);
        receiver.reportWait(words);
        await until(() => sender.acquire() >= 0);
        write(sender, senderSegment, pattern(1, 10));
        await until(() =>
          [sender, receiver].every((end, i) => end.waitReport() !== undefined && end.waitReport()?.count !== counts[i]),
        );
        for (const end of [sender, receiver]) expect(end.waitReport()?.words).toEqual(words);
        for (const [i, bytes] of [1001, 10].entries()) {
          await until(() => receiver.peek() >= 0);
          expectSame(read(receiver, receiverSegment), pattern(i, bytes));
        }
      }
    });

    test('delivers messages that were posted before the sender closed, then CLOSED and its last report', async () => {
      const { sender, receiver, senderSegment, receiverSegment } = await open();
      for (let i = 0; i < 3; i++) write(sender, senderSegment, pattern(i, 1500));
      const closed = sender.close([5, -6]);
      for (let i = 0; i < 3; i++) {
        expect(thrown(() => receiver.check())).toBeUndefined();
        await until(() => receiver.peek() >= 0);
        expectSame(read(receiver, receiverSegment), pattern(i, 1500));
      }
      await until(() => thrown(() => receiver.peek()) !== undefined);
      expect(thrown(() => receiver.peek())).toMatchObject({ name: 'RemoteError', code: 'CLOSED', rank: 0 });
      expect(thrown(() => receiver.check())).toMatchObject({ name: 'RemoteError', code: 'CLOSED', rank: 0 });
      expect(receiver.waitReport()?.words).toEqual([5, -6]);
      expect(thrown(() => sender.acquire())).toMatchObject({ name: 'InvalidUsageError', code: 'CLOSED' });
      await closed;
    });

    test('gives the sender CLOSED at the latest when it has used up its slots', async () => {
      const { sender, receiver, senderSegment } = await open();
      const closed = receiver.close();
      await until(() => {
        const error = thrown(() => {
          if (sender.acquire() >= 0) write(sender, senderSegment, pattern(0, 8));
        });
        return (error as { code?: string } | undefined)?.code === 'CLOSED';
      });
      expect(thrown(() => sender.check())).toMatchObject({ name: 'RemoteError', code: 'CLOSED', rank: 1 });
      expect(thrown(() => receiver.peek())).toMatchObject({ name: 'InvalidUsageError', code: 'CLOSED' });
      await closed;
    });

    test.each(['sender', 'receiver'] as const)('carries the reason when the %s aborts', async (who) => {
      const ends = await open();
      const [aborts, meets] = who === 'sender' ? [ends.sender, ends.receiver] : [ends.receiver, ends.sender];
      const reason = new InvalidUsageError('CALL_MISMATCH', 'rank 3 called this where rank 5 called that', {
        rank: 5,
        ranks: [3, 5],
      });
      aborts.abort(reason);
      expect(thrown(() => aborts.check())).toBe(reason);
      await until(() => thrown(() => meets.check()) !== undefined);
      expect(thrown(() => meets.check())).toMatchObject({
        name: 'InvalidUsageError',
        code: 'CALL_MISMATCH',
        message: reason.message,
        rank: 5,
        ranks: [3, 5],
      });
    });

    test('cuts a reason that is too long, and names the rank if the reason is no error of tccl', async () => {
      const { sender, receiver } = await open();
      sender.abort(new Error('ä'.repeat(5000)));
      await until(() => thrown(() => receiver.peek()) !== undefined);
      const error = thrown(() => receiver.peek()) as Error;
      expect(error).toMatchObject({ name: 'RemoteError', code: 'ABORTED', rank: 0 });
      expect(error.message).toMatch(/^rank 0 gave up: ä{100,}…+$/);
    });

    test.each([0, 1] as const)('detects that rank %i died, after its messages', async (rank) => {
      const { sender, receiver, senderSegment, kill } = await open();
      write(sender, senderSegment, pattern(0, 100));
      await until(() => receiver.peek() >= 0);
      kill(rank);
      const survivor = rank === 0 ? receiver : sender;
      if (rank === 0) receiver.release();
      await until(() => thrown(() => survivor.check()) !== undefined);
      expect(thrown(() => survivor.check())).toMatchObject({ name: 'RemoteError', code: 'RANK_DIED', rank });
    });

    test('closes while the sender is out of slots and the receiver does not read', async () => {
      const { sender, receiver, senderSegment } = await open();
      for (let i = 0; i < slots; i++) write(sender, senderSegment, pattern(i, size.slotBytes));
      await Promise.all([sender.close(), receiver.close()]);
      expect(thrown(() => sender.acquire())).toMatchObject({ code: 'CLOSED' });
      expect(thrown(() => receiver.peek())).toMatchObject({ code: 'CLOSED' });
    });

    test('frees its memory and leaves no handle when both sides have closed', async () => {
      const { sender, receiver, senderSegment, receiverSegment, closeTransports } = await open();
      const usedBytes = (): number => senderSegment.heap.usedBytes + receiverSegment.heap.usedBytes;
      expect(usedBytes()).toBeGreaterThan(slots * size.slotBytes);
      await Promise.all([receiver.close(), sender.close()]);
      closeTransports();
      expect(usedBytes()).toBe(0);
      expect(process.getActiveResourcesInfo().filter((resource) => resource.startsWith('TCP'))).toEqual([]);
    });

    test.runIf(twoWay)('carries messages both ways at once, each side ahead in turn', async () => {
      const { sender, receiver, senderSegment, receiverSegment } = await open();
      const sides = [
        { end: sender as TwoWayConnection, segment: senderSegment, sent: 0, received: 0 },
        { end: receiver as TwoWayConnection, segment: receiverSegment, sent: 0, received: 0 },
      ];
      const bytesOf = (number: number): number => (number * 37) % size.slotBytes;
      let turn = 0;
      await until(() => {
        const ahead = turn++ % 3;
        for (const [number, side] of sides.entries()) {
          if (ahead === number) continue;
          while (side.sent < 1000 && side.end.acquire() >= 0)
            write(side.end, side.segment, pattern(side.sent, bytesOf(side.sent++)));
          while (side.end.peek() >= 0) expectSame(read(side.end, side.segment), pattern(side.received, bytesOf(side.received++)));
        }
        return sides.every(({ received }) => received === 1000);
      });
    });

    test.skipIf(isSilent)('calls back at news', async () => {
      const { sender, receiver, senderSegment, receiverSegment } = await open();
      for (const end of [sender, receiver]) expect(end.fd >= 0).toBe(end.polled);
      const arrived = news(receiver);
      for (let i = 0; i < slots; i++) write(sender, senderSegment, pattern(i, 10));
      await arrived;
      const credited = news(sender);
      await until(() => receiver.peek() >= 0);
      read(receiver, receiverSegment);
      await credited;
      await until(() => sender.acquire() >= 0);
      for (let i = 1; i < slots; i++) {
        await until(() => receiver.peek() >= 0);
        read(receiver, receiverSegment);
      }
      expect(receiver.peek()).toBe(-1);
      const ended = news(receiver);
      await Promise.all([sender.close(), ended]);
      await until(() => thrown(() => receiver.peek()) !== undefined);
      expect(receiver.fd).toBe(-1);
    });
  });
}

function write(sender: SendConnection, segment: Segment, message: Uint8Array): void {
  new Uint8Array(segment.buffer, sender.acquire(), message.length).set(message);
  sender.post(message.length);
}

function read(receiver: ReceiveConnection, segment: Segment): Uint8Array {
  const address = receiver.peek();
  const message = new Uint8Array(segment.buffer, address, receiver.messageBytes).slice();
  receiver.release();
  return message;
}

/** Like toEqual, which takes most of a test's time for thousands of messages. */
function expectSame(got: Uint8Array, wanted: Uint8Array): void {
  if (Buffer.compare(got, wanted) !== 0) expect(got).toEqual(wanted);
}

/** Bytes that no other message has in the same places. */
function pattern(number: number, bytes: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, i) => (Math.imul(number + 1, 0x9e3779b1) >>> 24) + i * 7);
}
