import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Bootstrap } from '../../../../src/runtime/bootstrap/bootstrap.js';
import { PointToPoint } from '../../../../src/runtime/messages/p2p.js';
import type { MessagePiece } from '../../../../src/runtime/messages/p2p-served.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../src/runtime/device/team.js';
import { uint8 } from '../../../../src/runtime/device/types.js';
import { InternalError } from '../../../../src/errors.js';

const SLICE_BYTES = 128;
/** One test after the other uses it. */
const memory = createMemory();

/** A rank whose messages a thread carries, as far as that sees them: what rank 0 sends to rank 1 comes back from there. */
function servedRank() {
  const segment = Segment.ofThreads(memory, 0, 1);
  const pieces: { readonly sent: MessagePiece[]; readonly wanted: MessagePiece[] } = { sent: [], wanted: [] };
  const ended = { sent: 0, received: 0 };
  const slices: Uint8Array[] = [];
  let failure: Error | undefined;
  const p2p = new PointToPoint({
    bootstrap: { rank: 0, nRanks: 2, localRanks: [0] } as unknown as Bootstrap,
    team: Team.ofAll(segment),
    libc: undefined,
    shared: false,
    openTransport: () => undefined as never,
    onNews: () => undefined,
    tellInCalls: () => undefined,
    server: {
      sliceBytes: SLICE_BYTES,
      allocate: (bytes) => segment.allocateBytes(bytes),
      free: (address) => segment.freeBytes(address),
      numberAt: (address) => new Float64Array(segment.buffer, address, 1)[0]!,
      hand: (piece) => void (piece.sends ? pieces.sent : pieces.wanted).push(piece),
      ended: (sends) => (sends ? ended.sent : ended.received),
      failure: () => failure,
      listen: () => undefined,
    },
  });
  const bytesOf = ({ address, length }: MessagePiece): Uint8Array => new Uint8Array(segment.buffer, address, length);
  return {
    segment,
    p2p,
    pieces,
    fail: (error: Error) => (failure = error),
    /** Sends the oldest piece. */
    send(): void {
      const piece = pieces.sent.shift();
      if (piece === undefined) return;
      const bytes = bytesOf(piece);
      for (let from = 0; from < bytes.length; from += SLICE_BYTES) slices.push(bytes.slice(from, from + SLICE_BYTES));
      if (bytes.length === 0) slices.push(bytes.slice());
      ended.sent++;
    },
    /** Fills the oldest piece that is wanted with a whole message, which may be shorter. */
    receiveShorter(message: Uint8Array): void {
      const piece = pieces.wanted.shift()!;
      bytesOf(piece).set(message);
      new Float64Array(segment.buffer, piece.countAt, 1)[0] = message.length;
      ended.received++;
    },
    /** Fills the oldest piece that is wanted, if all of it has come. */
    receive(): void {
      const [piece] = pieces.wanted;
      const needed = piece === undefined ? Infinity : Math.max(1, Math.ceil(piece.length / SLICE_BYTES));
      if (piece === undefined || slices.length < needed) return;
      let at = 0;
      for (const slice of slices.splice(0, needed)) {
        bytesOf(piece).set(slice, at);
        at += slice.length;
      }
      expect(at).toBe(piece.length);
      pieces.wanted.shift();
      ended.received++;
    },
  };
}

test.each([true, false])(
  'a receive of at most so much gets the length that came, and gives its memory back; placed: %s',
  (placed) => {
    const rank = servedRank();
    const { segment, p2p } = rank;
    const array = placed ? segment.alloc(Uint8Array, 10) : new Uint8Array(10);
    array.fill(9);
    const largest = segment.heap.largestFree();
    const transfer = p2p.add(false, 1, array, uint8, undefined);
    transfer.atMost = true;
    p2p.progress();
    expect([transfer.done, segment.heap.largestFree() < largest]).toEqual([false, true]);
    rank.receiveShorter(Uint8Array.of(1, 2, 3));
    p2p.progress();
    expect([transfer.done, transfer.count, ...array.subarray(0, 5)]).toEqual([true, 3, 1, 2, 3, 9, 9]);
    p2p.recycle(transfer);
    if (placed) segment.free(array);
  },
);

test('messages that another thread carries arrive whole and in order, wherever arrays lie and whoever comes first', () => {
  const message = fc.record({
    count: fc.oneof(fc.constantFrom(0, 1, 128, 129, 256, 257), fc.nat(9000)),
    sentPlaced: fc.boolean(),
    receivedPlaced: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 8 }), fc.infiniteStream(fc.nat(3)), (messages, turns) => {
      const rank = servedRank();
      const make = (placed: boolean, count: number): Uint8Array =>
        placed ? rank.segment.alloc(Uint8Array, count) : new Uint8Array(count);
      const arrays = messages.map(({ count, sentPlaced, receivedPlaced }, salt) => {
        const sent = make(sentPlaced, count);
        for (let i = 0; i < count; i++) sent[i] = i * 7 + salt;
        return { sent, received: make(receivedPlaced, count) };
      });
      const starts = [0, 0];
      const done: number[] = [];
      for (let step = 0; done.length < 2 * messages.length; step++) {
        if (step > 100_000) throw new Error('they wait for each other');
        const turn = turns.next().value as number;
        if (turn === 0) rank.send();
        if (turn === 1) rank.receive();
        if (turn > 1) {
          const i = starts[turn - 2]!++;
          const array = turn === 2 ? arrays[i]?.sent : arrays[i]?.received;
          if (array !== undefined) rank.p2p.add(turn === 2, 1, array, uint8, { settled: () => done.push(i) });
        }
        rank.p2p.progress();
      }
      for (const { sent, received } of arrays) expect([...received]).toEqual([...sent]);
    }),
    { numRuns: 100 },
  );
});

test('all receives are handed over before the first is done, and long ones of ordinary arrays in pieces', () => {
  const { segment, p2p, pieces } = servedRank();
  for (const array of [segment.alloc(Uint8Array, 10_000), new Uint8Array(300), new Uint8Array(10_000)])
    p2p.add(false, 1, array, uint8, { settled: () => undefined });
  p2p.progress();
  expect(pieces.wanted.map(({ count, length }) => [count, length])).toEqual([
    [10_000, 10_000],
    [300, 256],
    [300, 44],
    ...Array.from({ length: 6 }, () => [10_000, 256]),
  ]);
});

test('who waits for a thread that gave up gets its reason', () => {
  const rank = servedRank();
  rank.p2p.add(true, 1, new Uint8Array(5), uint8, { settled: () => undefined });
  rank.p2p.add(true, 1, new Uint8Array(5), uint8, { settled: () => undefined });
  rank.p2p.progress();
  rank.send();
  rank.fail(new InternalError('INTERNAL', 'the reason'));
  expect(() => rank.p2p.progress()).toThrow('the reason');
  expect(() => rank.p2p.check()).toThrow('the reason');
});

test('a rank may wait in place for whom another thread serves, and leaves the time to that', () => {
  const { p2p } = servedRank();
  p2p.add(false, 1, new Uint8Array(5), uint8, { settled: () => undefined });
  expect(p2p.isBlocking(1)).toBe(true);
  expect(p2p.polled).toBe(false);
  p2p.longWait(0, 500);
  expect(p2p.longWait(10_000, 500)).toBeUndefined();
});
