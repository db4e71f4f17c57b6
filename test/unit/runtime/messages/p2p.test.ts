import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Bootstrap } from '../../../../src/runtime/bootstrap/bootstrap.js';
import { ANY_SOURCE } from '../../../../src/runtime/algorithms/activity.js';
import { PointToPoint } from '../../../../src/runtime/messages/p2p.js';
import { ANY_TAG, type Transfer } from '../../../../src/runtime/messages/p2p-transfer.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../src/runtime/device/team.js';
import { float32, int32, type NumericArray } from '../../../../src/runtime/device/types.js';
import { InvalidUsageError } from '../../../../src/errors.js';
import { ranks, type Rank } from '../algorithms/ranks-in-one-thread.js';

const typeOf = (array: NumericArray) => (array instanceof Float32Array ? float32 : int32);

/** Lengths around those where messages take another way: in the post, in several, in staging slots, in place. */
const lengths = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(1023, 1024, 1025, 32_767, 32_768, 32_769, 140_001));

test('messages arrive complete and in order, for any order of calls and any memory of arrays', () => {
  const all = ranks(3);
  const message = fc.record({
    from: fc.nat(2),
    to: fc.nat(2),
    count: lengths,
    sentPlaced: fc.boolean(),
    receivedPlaced: fc.boolean(),
    inOneCall: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 24 }), fc.infiniteStream(fc.nat(2)), (messages, turns) => {
      const arrays = messages.map(({ from, to, count, sentPlaced, receivedPlaced }, salt) => {
        const sent = sentPlaced ? all[from]!.segment.alloc(Int32Array, count) : new Int32Array(count);
        for (let i = 0; i < count; i++) sent[i] = i * 3 + salt;
        const received = receivedPlaced ? all[to]!.segment.alloc(Int32Array, count) : new Int32Array(count);
        return { sent, received };
      });
      const starts = messages.flatMap(({ from, to, inOneCall }, i) => [
        {
          rank: from,
          start: () => {
            const { sent } = arrays[i]!;
            if (inOneCall && all[from]!.p2p.sendNow(to, sent, int32)) sent.fill(-1);
            else all[from]!.p2p.add(true, to, sent, int32, { settled: () => undefined });
          },
        },
        {
          rank: to,
          start: () => {
            const { received } = arrays[i]!;
            if (!inOneCall || !all[to]!.p2p.recvNow(from, received, int32))
              all[to]!.p2p.add(false, from, received, int32, { settled: () => undefined });
          },
        },
      ]);
      // Each rank starts its own in order; the interleaving of ranks is random.
      const queues = [0, 1, 2].map((rank) => starts.filter((start) => start.rank === rank));
      for (let step = 0; all.some(({ p2p }) => p2p.inFlight.pending > 0) || queues.some((queue) => queue.length > 0); step++) {
        const turn = turns.next().value as number;
        // Short messages that are started together are sent together.
        for (let more = 4 * (turns.next().value as number); more >= 0; more--) queues[turn]!.shift()?.start();
        all[turn]!.p2p.progress();
        if (step > 100_000) throw new Error('they wait for each other');
      }
      for (const [salt, { received }] of arrays.entries())
        expect(received.every((value, i) => value === i * 3 + salt)).toBe(true);
      messages.forEach(({ from, to, sentPlaced, receivedPlaced }, i) => {
        if (sentPlaced) all[from]!.segment.free(arrays[i]!.sent);
        if (receivedPlaced) all[to]!.segment.free(arrays[i]!.received);
      });
    }),
    { numRuns: 60 },
  );
});

test('sends of small messages complete before the receive is called, as long as there is room', () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  for (let i = 0; i < 20; i++) {
    a.p2p.add(true, 1, Int32Array.of(i), int32, { settled: () => undefined });
    a.p2p.progress();
  }
  expect(a.p2p.inFlight.pending).toBe(4);
  const received = Array.from({ length: 20 }, () => new Int32Array(1));
  for (const array of received) b.p2p.add(false, 0, array, int32, { settled: () => undefined });
  while (b.p2p.inFlight.pending > 0) {
    b.p2p.progress();
    a.p2p.progress();
  }
  expect(received.map((array) => array[0])).toEqual(Array.from({ length: 20 }, (_, i) => i));
});

test('short messages that are sent together share posts, and each is received like any other', () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  const counts = Array.from({ length: 300 }, (_, i) => [1, 2, 0, 128, 7, 129][i % 6]!);
  const settled = (): void => undefined;
  for (const [i, count] of counts.entries())
    a.p2p.add(true, 1, new Int32Array(count).fill(i), int32, { settled }, i % 3 === 0 ? 5 : undefined);
  a.p2p.progress();
  const waiting = a.p2p.inFlight.pending;
  // Without shared posts there would be room for 16 of them.
  expect(waiting).toBeLessThan(284);
  for (const [i, count] of counts.entries()) {
    const room = new Int32Array(count).fill(-1);
    if (i % 5 === 2) expect(b.p2p.matching.peek(0)).toMatchObject({ source: 0, tag: i % 3 === 0 ? 5 : 0, count });
    const wanted = i % 3 === 0 ? 5 : undefined;
    // A message that is not the next one's receive leaves it.
    if (i > 0) expect(b.p2p.recvNow(0, new Int32Array(count + 1), int32)).toBe(false);
    if (i === 0 || i % 7 === 3 || !b.p2p.recvNow(0, room, int32, wanted)) {
      b.p2p.add(false, 0, room, int32, { settled }, wanted);
      b.p2p.progress();
    }
    expect([i, room.every((value) => value === i), b.p2p.inFlight.pending]).toEqual([i, true, 0]);
    a.p2p.progress();
  }
  expect(a.p2p.inFlight.pending).toBe(0);
});

test('a group of short messages takes one post, however many messages', () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  const sent = Array.from({ length: 64 }, (_, i) => a.segment.alloc(Int32Array, 2).fill(i));
  const transfers = sent.map((array) => a.p2p.prepare(true, 1, array, int32, { settled: () => undefined }, undefined));
  for (const transfer of transfers) a.p2p.addPrepared(transfer);
  a.p2p.progress();
  expect(a.p2p.inFlight.pending).toBe(0);
  // The first post is the only one, and has all of them.
  const { steps } = b.p2p.inFlight;
  const rooms = sent.map(() => new Int32Array(2));
  for (const room of rooms) b.p2p.add(false, 0, room, int32, { settled: () => undefined });
  b.p2p.progress();
  expect(b.p2p.inFlight.steps).toBeGreaterThan(steps);
  expect(rooms.map(([value]) => value)).toEqual(sent.map((_, i) => i));
});

test.each([0, 50])(
  'short messages that are sent together arrive where memory has no room for slots (first message: %i)',
  (first) => {
    const [a, b] = ranks(2) as [Rank, Rank];
    const settled = (): void => undefined;
    const counts = [first, 128, 1, 128, 100, 0, 60, 128, 3, 3];
    const rooms = counts.map((count) => new Int32Array(count));
    const add = (i: number): void => void a.p2p.add(true, 1, new Int32Array(counts[i]!).fill(i + 1), int32, { settled });
    const receive = (i: number): void => void b.p2p.add(false, 0, rooms[i]!, int32, { settled });
    // The first message makes the mailbox, and slots as long as it needs them.
    add(0);
    a.p2p.progress();
    fillMemory(a.segment);
    for (let i = 1; i < counts.length; i++) add(i);
    a.p2p.progress();
    for (let i = 0; i < counts.length; i++) receive(i);
    for (let turn = 0; a.p2p.inFlight.pending + b.p2p.inFlight.pending > 0; turn++) {
      a.p2p.progress();
      b.p2p.progress();
      if (turn > 1000) throw new Error('they wait for each other');
    }
    expect(rooms).toEqual(counts.map((count, i) => new Int32Array(count).fill(i + 1)));
  },
);

/** Takes all memory that is left. */
function fillMemory(segment: Segment): void {
  for (let bytes = 2 ** 31; bytes >= 64;) {
    try {
      segment.allocateBytes(bytes);
    } catch {
      bytes /= 2;
    }
  }
}

test('a message in one call passes none that waits, and takes none of another type, length or tag', () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  const sent = Int32Array.of(7);
  const room = new Int32Array(1);
  // Both have to meet first.
  expect(a.p2p.sendNow(1, sent, int32)).toBe(false);
  expect(b.p2p.recvNow(0, room, int32)).toBe(false);
  exchange(a, b, sent, room);
  expect(a.p2p.sendNow(1, sent, int32, 5)).toBe(true);
  expect(b.p2p.recvNow(0, new Float32Array(1), float32)).toBe(false);
  expect(b.p2p.recvNow(0, new Int32Array(2), int32)).toBe(false);
  expect(b.p2p.recvNow(0, room, int32, 4)).toBe(false);
  room.fill(0);
  expect(b.p2p.recvNow(0, room, int32, 5)).toBe(true);
  expect(room[0]).toBe(7);
  for (let i = 0; i < 16; i++) expect(a.p2p.sendNow(1, Int32Array.of(i), int32)).toBe(true);
  expect(a.p2p.sendNow(1, sent, int32)).toBe(false);
  a.p2p.add(true, 1, sent, int32, { settled: () => undefined });
  a.p2p.progress();
  expect(b.p2p.recvNow(0, room, int32)).toBe(true);
  // There is room for one, which is for the send that waits.
  expect(a.p2p.sendNow(1, Int32Array.of(99), int32)).toBe(false);
  b.p2p.add(false, 0, room, int32, { settled: () => undefined });
  expect(b.p2p.recvNow(0, room, int32)).toBe(false);
});

function exchange(a: Rank, b: Rank, sent: Int32Array, room: Int32Array): void {
  a.p2p.add(true, 1, sent, int32, { settled: () => undefined });
  b.p2p.add(false, 0, room, int32, { settled: () => undefined });
  a.p2p.progress();
  b.p2p.progress();
}

test('an array in the segment is not copied twice: its send waits until the receiver has it', () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  const sent = a.segment.alloc(Int32Array, 5000).fill(1);
  const transfer = a.p2p.add(true, 1, sent, int32, undefined);
  a.p2p.progress();
  expect(transfer.done).toBe(false);
  sent.fill(2);
  const received = new Int32Array(5000);
  b.p2p.add(false, 0, received, int32, { settled: () => undefined });
  b.p2p.progress();
  a.p2p.progress();
  expect(transfer.done).toBe(true);
  expect(received[4999]).toBe(2);
});

test.each([
  ['type', Float32Array.of(1), Int32Array.of(0), '1 float32', '1 int32'],
  ['length', new Int32Array(9000), new Int32Array(1), '9000 int32', '1 int32'],
])('a message of another %s than expected is an error for all ranks of the host', (_, sent, expected, sentText, expectedText) => {
  const [a, b, c] = ranks(3) as [Rank, Rank, Rank];
  a.p2p.add(true, 1, sent, typeOf(sent), { settled: () => undefined });
  a.p2p.progress();
  b.p2p.add(false, 0, expected, typeOf(expected), { settled: () => undefined });
  const text = `rank 0 sent ${sentText} to rank 1, which receives ${expectedText}`;
  expect(() => b.p2p.progress()).toThrow(text);
  for (const { p2p } of [a, c]) {
    expect(() => p2p.check()).toThrow(InvalidUsageError);
    expect(() => p2p.check()).toThrow(text);
  }
});

test('a rank that waits too long is distinguished from one that progresses', () => {
  const [a, b] = ranks(3) as [Rank, Rank];
  a.p2p.add(false, 1, new Int32Array(200_000), int32, { settled: () => undefined });
  a.p2p.add(false, 2, new Int32Array(1), int32, { settled: () => undefined });
  expect(a.p2p.inFlight.longWait(1000, 500)?.ranks).toBeUndefined();
  b.p2p.add(true, 0, new Int32Array(200_000), int32, { settled: () => undefined });
  b.p2p.progress();
  a.p2p.progress();
  expect(a.p2p.inFlight.longWait(1600, 500)?.ranks).toEqual([2]);
});

test('an abort ends all waits, and no message is in flight any more', () => {
  const [a] = ranks(2) as [Rank];
  const outcomes: unknown[] = [];
  for (const sends of [true, false])
    a.p2p.add(sends, 1, new Int32Array(1_000_000), int32, { settled: (error) => outcomes.push(error) });
  a.p2p.progress();
  const reason = new Error('enough');
  a.p2p.abort(reason);
  expect(outcomes).toEqual([reason, reason]);
  expect(a.p2p.inFlight.pending).toBe(0);
});

test('a message is not received from an array whose sender has given up', () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  const sent = a.segment.alloc(Int32Array, 5000).fill(1);
  a.p2p.add(true, 1, sent, int32, { settled: () => undefined });
  a.p2p.add(true, 1, Int32Array.of(3), int32, { settled: () => undefined });
  a.p2p.progress();
  a.p2p.abort(new Error('enough'));
  sent.fill(2);
  const ended: unknown[] = [];
  b.p2p.add(false, 0, new Int32Array(5000), int32, { settled: (error) => ended.push(error) });
  b.p2p.progress();
  expect(ended).toEqual([]);
  const reason = new Error('so did the others');
  b.p2p.abort(reason);
  expect(ended).toEqual([reason]);
});

test('a mailbox takes no more memory than its messages need, and gives it back when all have left the team', async () => {
  const memory = createMemory();
  const segments = [0, 1].map((rank) => Segment.ofThreads(memory, rank, 2)) as [Segment, Segment];
  const used = () => segments[0].heap.usedBytes;
  const before = used();
  const teams = segments.map((segment) => Team.ofAll(segment));
  const open = (rank: number) => {
    const bootstrap = { rank, nRanks: 2, localRank: rank, localRanks: [0, 1] } as unknown as Bootstrap;
    return new PointToPoint({
      bootstrap,
      team: teams[rank]!,
      libc: undefined,
      shared: true,
      openTransport: () => undefined as never,
      onNews: () => undefined,
      forwardInCalls: () => undefined,
    });
  };
  const [a, b] = [open(0), open(1)];
  const exchange = (count: number) => {
    const sent = Int32Array.from({ length: count }, (_, i) => i * 7 + count);
    const received = new Int32Array(count);
    a.add(true, 1, sent, int32, { settled: () => undefined });
    b.add(false, 0, received, int32, { settled: () => undefined });
    while (a.inFlight.pending + b.inFlight.pending > 0) {
      a.progress();
      b.progress();
    }
    expect(received.every((value, i) => value === sent[i])).toBe(true);
  };
  exchange(1);
  expect(used() - before).toBeLessThan(4 * 1024);
  exchange(250);
  expect(used() - before).toBeLessThan(24 * 1024);
  // Longer slots replace shorter ones while those may still be read.
  for (let round = 0; round < 40; round++) for (const count of [30, 250, 1000, 5000, 1 << 15, 1 << 18]) exchange(count);
  expect(used() - before).toBeLessThan(700 * 1024);
  await a.links.close();
  await b.links.close();
  expect(used()).toBeGreaterThan(before);
  for (const team of teams) team.leave();
  for (const segment of [...segments, ...segments]) segment.settle();
  expect(used()).toBe(before);
});

test('a probe that passes several messages with one tag leaves each as it was sent', () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  const settled = (): void => undefined;
  const tags = [1, 1, 3, 1, 3, 2];
  for (const [i, tag] of tags.entries()) a.p2p.add(true, 1, Int32Array.of(i), int32, { settled }, tag);
  a.p2p.progress();
  let found: unknown;
  for (let turn = 0; turn < 20 && (found = b.p2p.matching.peek(0, 2)) === undefined; turn++) b.p2p.progress();
  expect(found).toMatchObject({ tag: 2, count: 1 });
  const rooms = tags.map(() => new Int32Array(1).fill(-1));
  for (const [i, room] of rooms.entries()) b.p2p.add(false, 0, room, int32, { settled }, tags[i]);
  b.p2p.progress();
  expect(rooms.map(([value]) => value)).toEqual([0, 1, 2, 3, 4, 5]);
});

test('the next part of what a receive began is received while it is being kept', () => {
  const [a, b] = ranks(2) as [Rank, Rank];
  const settled = (): void => undefined;
  const long = Int32Array.from({ length: 400_000 }, (_, i) => i * 3);
  for (const array of [Int32Array.of(7), long, Int32Array.of(8)]) a.p2p.add(true, 1, array, int32, { settled }, 5);
  a.p2p.add(true, 1, Int32Array.of(9), int32, { settled }, 4);
  const [head, rest, other, last] = [1, long.length, 1, 1].map((count) => new Int32Array(count)) as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  b.p2p.add(false, 0, other, int32, { settled }, 4);
  // All of the first message, and the beginning of the second one.
  a.p2p.progress();
  b.p2p.progress();
  b.p2p.add(false, 0, head, int32, { settled: () => b.p2p.addNext(0, rest, int32, { settled }, 5) }, 5);
  b.p2p.add(false, 0, last, int32, { settled }, 5);
  for (let turn = 0; a.p2p.inFlight.pending + b.p2p.inFlight.pending > 0; turn++) {
    b.p2p.progress();
    a.p2p.progress();
    if (turn > 1000) throw new Error('they wait for each other');
  }
  expect([head[0], rest.every((value, i) => value === long[i]), last[0], other[0]]).toEqual([7, true, 8, 9]);
});

test('messages with tags, and receives of any rank, match in the order of each source and of receives', () => {
  const all = ranks(3);
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('send' as const),
        from: fc.nat(2),
        tag: fc.nat(2),
        count: lengths,
        times: fc.integer({ min: 1, max: 4 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('receive' as const),
        from: fc.option(fc.nat(2), { nil: ANY_SOURCE }),
        tag: fc.option(fc.nat(2), { nil: ANY_TAG }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('withdraw' as const), nth: fc.nat(20) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const { p2p } = all[0]!;
      // Rank 0 receives. Each message is the first of its source that its receive accepts; no earlier receive accepts it.
      const waiting: { from: number; tag: number; open: boolean; withdraw: () => boolean }[] = [];
      const arrived: { from: number; tag: number; text: string }[] = [];
      const takes = (receive: { from: number; tag: number; open: boolean }, message: { from: number; tag: number }): boolean =>
        receive.open && [ANY_SOURCE, message.from].includes(receive.from) && [ANY_TAG, message.tag].includes(receive.tag);
      const turn = (): void => {
        for (let i = 0; i < 40; i++) for (const rank of all) rank.p2p.progress();
      };
      const settled = (): void => undefined;
      for (const [salt, one] of steps.entries()) {
        if (one.kind === 'send') {
          for (let i = 0; i < one.times; i++) {
            const value = 4 * salt + i;
            all[one.from]!.p2p.add(true, 0, new Int32Array(one.count).fill(value), int32, { settled }, one.tag);
            arrived.push({ from: one.from, tag: one.tag, text: `${one.from} ${one.count} ${one.count > 0 ? value : 'none'}` });
          }
        } else if (one.kind === 'receive') {
          const room = new Int32Array(150_000);
          const index = waiting.length;
          const take = ({ peer, count }: Transfer): void => {
            const own = waiting[index]!;
            const isWhole = room.subarray(0, count).every((value) => value === room[0]);
            const at = arrived.findIndex((message) => message.from === peer && takes(own, message));
            const [first] = arrived.splice(at, 1);
            expect(first?.text).toBe(`${peer} ${count} ${count === 0 ? 'none' : isWhole ? room[0] : 'mixed'}`);
            expect(waiting.slice(0, index).filter((earlier) => takes(earlier, first!))).toEqual([]);
            own.open = false;
          };
          const error = new Error('withdrawn');
          let withdraw: () => boolean;
          if (one.from === ANY_SOURCE) {
            const any = p2p.addAny(room, int32, { settled: () => take(any.claimed!) }, one.tag, true);
            withdraw = () => p2p.withdrawAny(any, error);
          } else {
            const owner = { settled: () => take(transfer) };
            const transfer = p2p.add(false, one.from, room, int32, owner, one.tag);
            transfer.atMost = true;
            const { from } = one;
            withdraw = () => p2p.withdraw(from, owner, error);
          }
          waiting.push({ from: one.from, tag: one.tag, open: true, withdraw });
        } else {
          const wanted = waiting[one.nth];
          if (wanted?.open === true && wanted.withdraw()) wanted.open = false;
        }
        turn();
        expect(waiting.filter((receive) => arrived.some((message) => takes(receive, message)))).toEqual([]);
      }
      // The rest is received, so that the next run begins with nothing in flight.
      for (const { open, withdraw } of waiting) if (open) expect(withdraw()).toBe(true);
      for (const { from } of arrived) {
        const room = new Int32Array(150_000);
        p2p.add(false, from, room, int32, { settled }).atMost = true;
        turn();
      }
      expect(all.map(({ p2p: each }) => each.inFlight.pending)).toEqual([0, 0, 0]);
    }),
    { numRuns: 60 },
  );
});
