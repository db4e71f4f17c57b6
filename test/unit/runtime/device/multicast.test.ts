import { expect, test } from 'vitest';
import { Multicast, MULTICAST_GRANULARITY, type MulticastView } from '../../../../src/runtime/device/multicast.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { float32, int32, operatorCode } from '../../../../src/runtime/device/types.js';

const bytes = 16 * MULTICAST_GRANULARITY;

function segments(n: number): Segment[] {
  const memory = createMemory(1024);
  return Array.from({ length: n }, (_, rank) => Segment.ofThreads(memory, rank, n));
}

/** An object of all ranks, bound to zeros and mapped. */
function mapped(n: number): { segments: Segment[]; objects: Multicast[]; views: MulticastView[] } {
  const ranks = segments(n);
  const [first, ...others] = ranks;
  const made = Multicast.create(first!, n, bytes);
  const objects = [made, ...others.map((segment) => Multicast.open(segment, made.handle))];
  objects.forEach((object, member) => {
    object.add(member);
    const address = ranks[member]!.allocateBytes(bytes);
    new Uint8Array(ranks[member]!.buffer, address, bytes).fill(0);
    object.bind(address);
  });
  return { segments: ranks, objects, views: objects.map((object, member) => object.map(ranks[member]!.kernels)) };
}

test('a store of a member writes to the same place of all members', () => {
  const {
    segments: [segment],
    views,
  } = mapped(3);
  const source = segment!.alloc(Int32Array, 40);
  source.set(Array.from({ length: 40 }, (_, i) => i + 1));
  views[1]!.store(source.byteOffset, 256, 160);
  for (const view of views) {
    expect([...new Int32Array(segment!.buffer, view.unicast(256, 160), 40)]).toEqual([...source]);
    expect(new Int32Array(segment!.buffer, view.unicast(252, 4), 1)[0]).toBe(0);
    expect(new Int32Array(segment!.buffer, view.unicast(416, 4), 1)[0]).toBe(0);
  }
});

test('a load reduces one place of all members, and changes none', () => {
  const {
    segments: [segment],
    views,
  } = mapped(3);
  views.forEach((view, member) => new Int32Array(segment!.buffer, view.unicast(128, 40), 10).fill(10 ** member));
  const out = segment!.alloc(Int32Array, 10);
  views[2]!.loadReduce(int32.code, operatorCode('sum'), 128, 40, out.byteOffset);
  expect([...out]).toEqual(Array(10).fill(111));
  views[2]!.loadReduce(int32.code, operatorCode('max'), 128, 40, out.byteOffset);
  expect([...out]).toEqual(Array(10).fill(100));
  expect(new Int32Array(segment!.buffer, views[0]!.unicast(128, 4), 1)[0]).toBe(1);
});

test('a load with a store writes the result to all members', () => {
  const {
    segments: [segment],
    views,
  } = mapped(4);
  views.forEach((view, member) => new Float32Array(segment!.buffer, view.unicast(0, bytes), bytes / 4).fill(member));
  views[3]!.loadReduceStore(float32.code, operatorCode('avg'), 64, 128);
  for (const [member, view] of views.entries()) {
    expect([...new Float32Array(segment!.buffer, view.unicast(60, 8), 2)]).toEqual([member, 1.5]);
    expect([...new Float32Array(segment!.buffer, view.unicast(188, 8), 2)]).toEqual([1.5, member]);
  }
});

test('an object cannot be mapped before the last member has bound its memory', () => {
  const [a, b] = segments(2);
  const made = Multicast.create(a!, 2, bytes);
  const opened = Multicast.open(b!, made.handle);
  made.add(0);
  made.bind(a!.allocateBytes(bytes));
  expect(made.isComplete).toBe(false);
  expect(() => made.map(a!.kernels)).toThrow('once all of them have bound memory');
  opened.add(1);
  opened.bind(b!.allocateBytes(bytes));
  expect(made.isComplete).toBe(true);
  expect(made.map(a!.kernels).addresses).toEqual(opened.map(b!.kernels).addresses);
});

test('calls out of order are refused', () => {
  const [a, b] = segments(2);
  const made = Multicast.create(a!, 2, bytes);
  const opened = Multicast.open(b!, made.handle);
  expect(() => made.bind(1024)).toThrow('after it was added');
  made.add(0);
  expect(() => made.add(1)).toThrow('this rank is member 0 of the multicast object already');
  expect(() => opened.add(0)).toThrow('another rank is member 0');
  expect(() => opened.add(2)).toThrow('the members of this multicast object are 0 to 1, not 2');
  expect(() => made.unbind()).toThrow('has bound no memory');
  const address = a!.allocateBytes(bytes);
  made.bind(address);
  expect(() => made.bind(address)).toThrow('unbind it first');
  expect(() => opened.destroy()).toThrow('1 other ranks still use the multicast object');
  opened.close();
  expect(() => opened.add(1)).toThrow('has closed');
});

test.each([
  ['memory that is not aligned', 1000, 'aligned to 64'],
  ['memory beyond the segment', 64 * 2 ** 20 - 128, 'must lie in the segment'],
  ['no memory', 0, 'cannot be bound'],
])('%s is refused', (_, address, message) => {
  const [a] = segments(1);
  const object = Multicast.create(a!, 1, bytes);
  object.add(0);
  expect(() => object.bind(address)).toThrow(message);
});

test.each([
  [0, bytes, '1 to 2 members'],
  [3, bytes, '1 to 2 members'],
  [2, 0, 'a multiple of 64'],
  [2, 100, 'a multiple of 64'],
])('an object of %i members and %i bytes is refused', (members, length, message) =>
  expect(() => Multicast.create(segments(2)[0]!, members, length)).toThrow(message),
);

test('an invalid handle is refused, and that of a destroyed object', () => {
  const [a] = segments(1);
  const object = Multicast.create(a!, 1, bytes);
  const { handle } = object;
  for (const wrong of [new Uint8Array(0), new Uint8Array(8), handle.map((byte, i) => (i === 5 ? byte + 1 : byte))]) {
    expect(() => Multicast.open(a!, wrong)).toThrow('not the handle of a multicast object');
  }
  object.destroy();
  expect(() => Multicast.open(a!, handle)).toThrow('not the handle of a multicast object');
});

test('a view refuses places outside the object, and ends with the binding', () => {
  const { objects, views } = mapped(2);
  expect(() => views[0]!.unicast(bytes - 4, 8)).toThrow('outside the 1024 bytes');
  expect(() => views[0]!.loadReduce(int32.code, 0, -4, 8, 4096)).toThrow('outside');
  objects[0]!.unbind();
  expect(() => views[0]!.unicast(0, 4)).toThrow('its memory was unbound');
  expect(objects[1]!.isComplete).toBe(false);
});

test('all resources of an object are free after it is destroyed', () => {
  const { segments: ranks, objects } = mapped(3);
  const before = ranks.map((segment) => segment.heap.usedBytes);
  objects[1]!.close();
  objects[2]!.close();
  objects[0]!.close();
  expect(objects[0]!.isUsed).toBe(false);
  objects[0]!.destroy();
  const memory = bytes + 5 * 128 + 127;
  ranks.forEach((segment, rank) => expect(segment.heap.usedBytes).toBeLessThan(before[rank]!));
  expect(ranks[1]!.heap.usedBytes).toBeLessThanOrEqual(memory);
});
