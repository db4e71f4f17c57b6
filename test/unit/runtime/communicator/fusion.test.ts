import { expect, test } from 'vitest';
import { fuse } from '../../../../src/runtime/communicator/fusion.js';
import type { GroupMember } from '../../../../src/runtime/communicator/group.js';
import type { QueuedCall } from '../../../../src/runtime/algorithms/queued-call.js';
import { callKinds } from '../../../../src/runtime/device/kernels/kernels.js';
import { float32, int32, operatorCode, type DataType, type NumericArray } from '../../../../src/runtime/device/types.js';
import { InvalidArgumentError, InvalidUsageError } from '../../../../src/errors.js';

/** A communicator that fuses whole numbers only. */
const member = {
  isFusable: (type: DataType) => type === int32,
  fusionArray: (type: DataType, count: number) => new type.array(new ArrayBuffer(count * type.bytes), 0, count),
} as unknown as GroupMember;

function sum(send: NumericArray, recv: NumericArray = send, type: DataType = int32): QueuedCall {
  const code = callKinds.allReduce | (type.code << 4) | (operatorCode('sum') << 8);
  return { code, type, root: 0, send, recv, count: send.length, details: undefined };
}

const lengths = (calls: readonly QueuedCall[]): number[] => calls.map(({ count }) => count);

test('consecutive small all-reduces of one type and operator become one', () => {
  const a = Int32Array.of(1, 2);
  const b = Int32Array.of(3);
  const [call, ...others] = fuse([sum(a), sum(b)], member);
  expect(others).toEqual([]);
  call!.before?.();
  expect([...call!.send]).toEqual([1, 2, 3]);
  (call!.recv as Int32Array).fill(9);
  call!.after?.();
  expect([...a, ...b]).toEqual([9, 9, 9]);
});

test('others stay separate: another operator, kind, or length, or if bits would differ', () => {
  const small = () => sum(new Int32Array(4));
  const max = { ...small(), code: small().code | (operatorCode('max') << 8) };
  const barrier = { ...small(), code: callKinds.barrier };
  expect(lengths(fuse([small(), max, small(), barrier, small(), sum(new Int32Array(3000)), small(), small()], member))).toEqual([
    4, 4, 4, 4, 4, 3000, 8,
  ]);
  expect(
    lengths(
      fuse(
        [sum(new Float32Array(1), new Float32Array(1), float32), sum(new Float32Array(1), new Float32Array(1), float32)],
        member,
      ),
    ),
  ).toEqual([1, 1]);
});

test('one exchange has no more data than fit', () => {
  const calls = Array.from({ length: 20 }, () => sum(new Int32Array(1500)));
  expect(lengths(fuse(calls, member))).toEqual([15_000, 15_000]);
});

test('calls that write elements that others use are refused, with their places', () => {
  const x = new Int32Array(10);
  expect(() => fuse([sum(new Int32Array(1)), sum(x), sum(x)], member)).toThrow(InvalidUsageError);
  expect(() => fuse([sum(x.subarray(0, 4), new Int32Array(4)), sum(new Int32Array(4), x.subarray(3, 7))], member)).toThrow(
    /numbers 1 and 2/,
  );
  expect(lengths(fuse([sum(x, new Int32Array(10)), sum(x, new Int32Array(10))], member))).toEqual([20]);
  expect(lengths(fuse([sum(x.subarray(0, 5)), sum(x.subarray(5))], member))).toEqual([10]);
});

test('an array that was transferred away meanwhile is a separate error', () => {
  const a = new Int32Array(2);
  const [call] = fuse([sum(a), sum(new Int32Array(1))], member);
  structuredClone(a.buffer, { transfer: [a.buffer] });
  expect(() => call!.before?.()).toThrow(InvalidArgumentError);
});
