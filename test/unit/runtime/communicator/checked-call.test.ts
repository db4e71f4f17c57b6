import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeCall, type Call } from '../../../../src/runtime/algorithms/call.js';
import type { CallOptions } from '../../../../src/runtime/algorithms/arguments.js';
import type { CheckedCall } from '../../../../src/runtime/communicator/checked-call.js';
import { namedCall } from './named-call.js';
import type { Parts } from '../../../../src/runtime/communicator/parts.js';
import { TcclError } from '../../../../src/errors.js';

/** The calls of rank 1 of 3. */
const call = (): CheckedCall => namedCall(1, 3);
const f32 = (length: number): Float32Array => new Float32Array(length);
const whole = f32(24);
/** A part of one memory. */
const part = (from: number, length: number): Float32Array => new Float32Array(whole.buffer, from * 4, length);

function detached(length: number): Float32Array {
  const array = f32(length);
  structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] });
  return array;
}

function meaning(checked: CheckedCall): Pick<Call, 'kind' | 'operator' | 'root' | 'count'> & { type: string } {
  const { kind, type, operator, root, count } = decodeCall(checked.code, checked.root, checked.count);
  return { kind, type: type.name, operator, root, count };
}

test('calls count elements as NCCL does', () => {
  const none = undefined;
  const sum = { operator: 'sum', type: 'float32', root: 0 };
  expect(meaning(call().allReduce(f32(6), f32(6), 'max', none))).toEqual({
    ...sum,
    kind: 'allReduce',
    operator: 'max',
    count: 6,
  });
  expect(meaning(call().reduce(f32(6), f32(0), 'sum', 2, none))).toEqual({ ...sum, kind: 'reduce', root: 2, count: 6 });
  expect(meaning(call().broadcast(f32(0), f32(6), 2, none))).toEqual({ ...sum, kind: 'broadcast', root: 2, count: 6 });
  expect(meaning(call().allGather(f32(2), f32(6), none))).toEqual({ ...sum, kind: 'allGather', count: 2 });
  expect(meaning(call().reduceScatter(f32(6), f32(2), 'avg', none))).toEqual({
    ...sum,
    kind: 'reduceScatter',
    operator: 'avg',
    count: 2,
  });
  expect(meaning(call().allToAll(f32(6), f32(6), none))).toEqual({ ...sum, kind: 'allToAll', count: 2 });
  expect(meaning(call().gather(f32(2), null, 0, none))).toEqual({ ...sum, kind: 'gather', count: 2 });
  expect(meaning(call().scatter(null, f32(2), 0, none))).toEqual({ ...sum, kind: 'scatter', count: 2 });
  expect(meaning(call().allGatherV(f32(2), f32(6), [1, 2, 3], none, none))).toMatchObject({ kind: 'allGatherV', count: 6 });
  expect(meaning(call().reduceScatterV(f32(6), f32(2), [1, 2, 3], 'min', none))).toMatchObject({
    kind: 'reduceScatterV',
    operator: 'min',
    count: 6,
  });
  const parts = { array: f32(6), counts: [1, 2, 3] };
  expect(meaning(call().allToAllV(parts, { ...parts, array: f32(6) }, none))).toMatchObject({ kind: 'allToAllV', count: 0 });
  expect(meaning(call().barrier())).toMatchObject({ kind: 'barrier', count: 0 });
});

test('only the root needs the arrays that only the root uses', () => {
  expect(meaning(call().reduce(f32(6), null, 'sum', 2, undefined))).toMatchObject({ kind: 'reduce', root: 2, count: 6 });
  expect(meaning(call().broadcast(null, f32(6), 2, undefined))).toMatchObject({ kind: 'broadcast', root: 2, count: 6 });
});

test('buffers and views without elements are moved as their bytes', () => {
  const { buffer } = new Float64Array(3);
  const moved = call().allGather(new DataView(buffer, 8, 8), buffer, undefined);
  expect(meaning(moved)).toMatchObject({ kind: 'allGather', type: 'uint8', count: 8 });
  expect([moved.send.byteOffset, moved.recv.length]).toEqual([8, 24]);
  expect(() => call().allGather(new DataView(buffer, 1, 8), buffer, undefined)).toThrow(/input and output overlap by 8 bytes/);
});

test('parts are consecutive without displacements', () => {
  expect(call().allGatherV(f32(2), f32(6), [1, 2, 3], undefined, undefined).details).toEqual({
    counts: [1, 2, 3],
    displacements: [0, 1, 3],
  });
  expect(call().allGatherV(f32(2), f32(9), [1, 2, 3], [8, 6, 0], undefined).details?.displacements).toEqual([8, 6, 0]);
});

test('counts may be typed arrays whose elements cannot hold the displacements', () => {
  const counts = Uint8Array.of(200, 200, 1);
  const { details } = call().allToAllV(
    { array: f32(401), counts },
    { array: f32(401), counts: Int32Array.from(counts), displacements: Uint16Array.of(201, 1, 0) },
    undefined,
  );
  expect(details).toEqual({
    counts: [200, 200, 1],
    displacements: [0, 200, 400],
    recvCounts: [200, 200, 1],
    recvDisplacements: [201, 1, 0],
  });
  expect(call().reduceScatterV(f32(401), f32(200), counts, 'sum', undefined).count).toBe(401);
});

test('each in-place form is recognised', () => {
  expect(() => call().allGather(part(2, 2), part(0, 6), undefined)).not.toThrow();
  expect(() => call().reduceScatter(part(0, 6), part(2, 2), 'sum', undefined)).not.toThrow();
  expect(() => call().allToAll(part(0, 6), part(0, 6), undefined)).not.toThrow();
  expect(() => call().gather(part(2, 2), part(0, 6), 1, undefined)).not.toThrow();
  expect(() => call().scatter(part(0, 6), part(2, 2), 1, undefined)).not.toThrow();
  expect(() => call().allGatherV(part(9, 2), part(4, 8), [1, 2, 3], [0, 5, 1], undefined)).not.toThrow();
  expect(() => call().reduceScatterV(part(0, 6), part(1, 2), [1, 2, 3], 'sum', undefined)).not.toThrow();
});

test('an input may lie in a gap of the output, and parts of both between each other', () => {
  expect(() => call().allGatherV(part(4, 2), part(0, 12), [4, 2, 3], [0, 10, 6], undefined)).not.toThrow();
  // An element too early or too late, it is in the way.
  expect(() => call().allGatherV(part(3, 2), part(0, 12), [4, 2, 3], [0, 10, 6], undefined)).toThrow(
    /part of rank 0 overlap by 4 bytes/,
  );
  expect(() => call().allGatherV(part(5, 2), part(0, 12), [4, 2, 3], [0, 10, 6], undefined)).toThrow(
    /part of rank 2 overlap by 4 bytes/,
  );
  // Parts without elements are nowhere.
  expect(() => call().allGatherV(part(0, 2), part(0, 6), [0, 2, 0], [1, 4, 1], undefined)).not.toThrow();

  const array = part(0, 12);
  const [even, odd] = [
    { array, counts: [2, 2, 2], displacements: [0, 4, 8] },
    { array, counts: [2, 2, 2], displacements: [10, 6, 2] },
  ];
  expect(call().allToAllV(even, odd, undefined).details).toEqual({
    counts: [2, 2, 2],
    displacements: [0, 4, 8],
    recvCounts: [2, 2, 2],
    recvDisplacements: [10, 6, 2],
  });
  // What is sent to several ranks may be the same.
  expect(() => call().allToAllV({ ...even, displacements: [4, 4, 4] }, odd, undefined)).not.toThrow();
  expect(() => call().allToAllV(even, { ...odd, counts: [2, 3, 2], displacements: [10, 5, 2] }, undefined)).toThrow(
    /part for rank 1 and the output's part from rank 1 overlap by 4 bytes/,
  );
});

test('parts are refused exactly when an element is both read and written, or written twice', () => {
  const shapes = fc.array(fc.record({ count: fc.nat(3), from: fc.nat(9) }), { minLength: 3, maxLength: 3 });
  const elementsOf = (shape: readonly { count: number; from: number }[], at: number): number[] =>
    shape.flatMap(({ count, from }) => Array.from({ length: count }, (_, i) => at + from + i));
  fc.assert(
    fc.property(shapes, shapes, fc.nat(12), (send, recv, at) => {
      const [read, written] = [elementsOf(send, at), elementsOf(recv, 0)];
      const isFine = new Set(written).size === written.length && !read.some((element) => written.includes(element));
      const parts = (shape: typeof send, from: number): Parts => ({
        array: part(from, 12),
        counts: shape.map(({ count }) => count),
        displacements: shape.map((one) => one.from),
      });
      let code = 'none';
      try {
        call().allToAllV(parts(send, at), parts(recv, 0), undefined);
      } catch (error) {
        ({ code } = error as TcclError);
      }
      expect(code).toBe(isFine ? 'none' : 'BUFFER_OVERLAP');
    }),
  );
});

const wrong: Record<string, [code: string, about: RegExp, (checked: CheckedCall) => unknown]> = {
  'an output too short for all ranks': [
    'BUFFER_SIZE',
    /allGather: the output has 5 elements, but what 3 ranks send needs 6/,
    (c) => c.allGather(f32(2), f32(5), undefined),
  ],
  'an input that is not a part for each rank': [
    'BUFFER_SIZE',
    /reduceScatter: the input has 7 elements, but an output of 2 for each of 3 ranks makes 6/,
    (c) => c.reduceScatter(f32(7), f32(2), 'sum', undefined),
  ],
  'an input that does not divide': [
    'BUFFER_SIZE',
    /allToAll: the input's 7 elements .* use allToAllV/,
    (c) => c.allToAll(f32(7), f32(7), undefined),
  ],
  'a root without output': [
    'ARGUMENT_TYPE',
    /gather: rank 1 is the root, so it needs an array for the output/,
    (c) => c.gather(f32(2), null, 1, undefined),
  ],
  'a root without input': [
    'ARGUMENT_TYPE',
    /scatter: rank 1 is the root, so it needs an array for the input/,
    (c) => c.scatter(null, f32(2), 1, undefined),
  ],
  'a root that is no rank': [
    'ROOT_RANGE',
    /reduce: root is 3, but ranks go from 0 to 2/,
    (c) => c.reduce(f32(2), f32(2), 'sum', 3, undefined),
  ],
  'a root that is no whole number': ['ROOT_RANGE', /scatter: root is 0.5/, (c) => c.scatter(f32(6), f32(2), 0.5, undefined)],
  'counts for other than all ranks': [
    'ARGUMENT_RANGE',
    /allGatherV: there are 2 counts for 3 ranks/,
    (c) => c.allGatherV(f32(2), f32(6), [1, 2], undefined, undefined),
  ],
  'a negative count': [
    'ARGUMENT_RANGE',
    /the count of rank 2 is -3/,
    (c) => c.allGatherV(f32(2), f32(6), [1, 2, -3], undefined, undefined),
  ],
  'an input of another length than its count': [
    'BUFFER_SIZE',
    /the input has 3 elements, but this rank's count makes 2/,
    (c) => c.allGatherV(f32(3), f32(6), [1, 2, 3], undefined, undefined),
  ],
  'a part outside the output': [
    'ARGUMENT_RANGE',
    /the 3 elements of rank 2 at displacement 4 are not within the 6 elements of the output/,
    (c) => c.allGatherV(f32(2), f32(6), [1, 2, 3], [0, 1, 4], undefined),
  ],
  'parts of the output that overlap': [
    'BUFFER_OVERLAP',
    /the parts of ranks 1 and 2 overlap in the output/,
    (c) => c.allGatherV(f32(2), f32(6), [1, 2, 3], [0, 1, 2], undefined),
  ],
  'an output too short for a part': [
    'BUFFER_SIZE',
    /reduceScatterV: the output has 1 element,/,
    (c) => c.reduceScatterV(f32(6), f32(1), [1, 2, 3], 'sum', undefined),
  ],
  'uneven parts in place': [
    'BUFFER_OVERLAP',
    /allToAllV: the input's part for rank 0 and the output's part from rank 0 overlap by 4 bytes; it does not work in place: pass parts that lie apart/,
    (c) => c.allToAllV({ array: whole, counts: [1, 1, 1] }, { array: whole, counts: [1, 1, 1] }, undefined),
  ],
  "a part that reaches into another's": [
    'BUFFER_OVERLAP',
    /the input's part for rank 0 and the output's part from rank 2 overlap by 4 bytes/,
    (c) =>
      c.allToAllV(
        { array: part(4, 9), counts: [3, 0, 3], displacements: [6, 0, 3] },
        { array: part(0, 12), counts: [4, 0, 1], displacements: [0, 0, 11] },
        undefined,
      ),
  ],
  'an input that reaches into a part of the output': [
    'BUFFER_OVERLAP',
    /allGatherV: the input and the output's part of rank 2 overlap by 4 bytes; pass the output's elements from 8 on as input to work in place/,
    (c) => c.allGatherV(part(3, 2), part(0, 10), [1, 2, 3], [0, 8, 4], undefined),
  ],
  'an input that is shifted against its part of the output': [
    'BUFFER_OVERLAP',
    /the input and the output's part of rank 1 overlap by 4 bytes/,
    (c) => c.allGatherV(part(7, 2), part(0, 10), [1, 2, 3], [0, 8, 4], undefined),
  ],
  'gathered parts that are too long for the output': [
    'BUFFER_SIZE',
    /gatherV: the output has 5 elements, but the sum of the counts needs 6/,
    (c) => c.gatherV(f32(2), { array: f32(5), counts: [1, 2, 3] }, 1, undefined),
  ],
  'a gathered part of another length than its count': [
    'BUFFER_SIZE',
    /gatherV: the input has 3 elements, but this rank's count makes 2/,
    (c) => c.gatherV(f32(3), { array: f32(6), counts: [1, 2, 3] }, 1, undefined),
  ],
  'a root that gathers nowhere': [
    'ARGUMENT_TYPE',
    /gatherV: rank 1 is the root, so it needs an array for the output/,
    (c) => c.gatherV(f32(3), null, 1, undefined),
  ],
  'a root that scatters a bare array': [
    'ARGUMENT_TYPE',
    /scatterV: its first argument is \{ array, counts/,
    (c) => c.scatterV(f32(6) as never, f32(2), 1, undefined),
  ],
  "an output in another rank's part of what is scattered": [
    'BUFFER_OVERLAP',
    /scatterV: the output and the input's part of rank 0 overlap by 4 bytes; pass the input's elements from 1 on as output/,
    (c) => c.scatterV({ array: part(0, 6), counts: [1, 1, 1] }, part(0, 1), 1, undefined),
  ],
  "another rank's place": [
    'BUFFER_OVERLAP',
    /allGather: input and output overlap by 8 bytes; pass the output's elements from 2 on as input/,
    (c) => c.allGather(part(0, 2), part(0, 6), undefined),
  ],
  'a shifted output': [
    'BUFFER_OVERLAP',
    /reduceScatter: .* pass the input's elements from 2 on as output/,
    (c) => c.reduceScatter(part(0, 6), part(3, 2), 'sum', undefined),
  ],
  'an input that is missing': [
    'ARGUMENT_TYPE',
    /^allReduce: undefined cannot be exchanged/,
    (c) => c.allReduce(undefined as never, undefined, 'sum', undefined),
  ],
  'a root without output in reduce': [
    'ARGUMENT_TYPE',
    /reduce: rank 1 is the root, so it needs an array for the output/,
    (c) => c.reduce(f32(2), null, 'sum', 1, undefined),
  ],
  'a root without input in broadcast': [
    'ARGUMENT_TYPE',
    /broadcast: rank 1 is the root, so it needs an array for the input/,
    (c) => c.broadcast(null, f32(2), 1, undefined),
  ],
  'a rank without output in broadcast': [
    'ARGUMENT_TYPE',
    /every rank needs an array for the output/,
    (c) => c.broadcast(null, null, 0, undefined),
  ],
  'counts that are missing': [
    'ARGUMENT_TYPE',
    /allGatherV: its counts are an array .* not undefined/,
    (c) => c.allGatherV(f32(2), f32(6), undefined as never, undefined, undefined),
  ],
  'arrays without counts': [
    'ARGUMENT_TYPE',
    /allToAllV: its first argument is \{ array, counts/,
    (c) => c.allToAllV(f32(2) as never, f32(2) as never, undefined),
  ],
  'two types': [
    'ARGUMENT_TYPE',
    /allGather: input is a Float32Array, output a Float64Array/,
    (c) => c.allGather(f32(2), new Float64Array(6), undefined),
  ],
  'a type that nothing names': [
    'ARGUMENT_TYPE',
    /pass \{ type: 'float16' \}/,
    (c) => c.reduce(new Uint16Array(2), null, 'sum', 0, undefined),
  ],
  'a detached input': ['BUFFER_DETACHED', /allGather: an array's memory/, (c) => c.allGather(detached(2), f32(6), undefined)],
  'a detached buffer': [
    'BUFFER_DETACHED',
    /broadcast: an array's memory/,
    (c) => c.broadcast(detached(2).buffer, f32(2), 0, undefined),
  ],
  'a sum of 16-bit integers': [
    'ARGUMENT_TYPE',
    /allReduce: int16 can be moved/,
    (c) => c.allReduce(new Int16Array(2) as never, new Int16Array(2) as never, 'sum', undefined),
  ],
  'a scalar that the type cannot hold': [
    'ARGUMENT_RANGE',
    /premulSum of int32 takes a whole number/,
    (c) => c.allReduce(new Int32Array(2), new Int32Array(2), { premulSum: 0.5 }, undefined),
  ],
  'a type that is no name': [
    'UNKNOWN_NAME',
    /allReduce: no data type is called null; use one of/,
    (c) => c.allReduce(f32(2), f32(2), 'sum', { type: null as never }),
  ],
  'a root that is a text': [
    'ROOT_RANGE',
    /gather: root is "0", but ranks/,
    (c) => c.gather(f32(2), f32(6), '0' as never, undefined),
  ],
  'a count that is a bigint': [
    'ARGUMENT_RANGE',
    /the count of rank 0 is 1n; pass whole numbers/,
    (c) => c.allGatherV(f32(2), f32(6), [1n, 2, 3] as never, undefined, undefined),
  ],
  'a count that is missing': [
    'ARGUMENT_RANGE',
    /the count of rank 1 is undefined; pass whole numbers/,
    (c) => c.allGatherV(f32(2), f32(6), Object.assign([1], { length: 3 }), undefined, undefined),
  ],
  "parts with MPI's name for displacements": [
    'UNKNOWN_NAME',
    /allToAllV: its second argument has no "displs"; it is \{ array/,
    (c) =>
      c.allToAllV(
        { array: f32(3), counts: [1, 1, 1] },
        { array: f32(3), counts: [1, 1, 1], displs: [2, 1, 0] } as never,
        undefined,
      ),
  ],
  'an operator with a bigint in it': [
    'UNKNOWN_NAME',
    /no reduction operator \{"premul":"3n"\}/,
    (c) => c.allReduce(f32(2), f32(2), { premul: 3n } as never, undefined),
  ],
  'bits of floating-point numbers': [
    'ARGUMENT_TYPE',
    /allReduce: band combines integers, not float32; pass an array of integers, such as an Int32Array/,
    (c) => c.allReduce(f32(2), f32(2), 'band', undefined),
  ],
  'places in small elements': [
    'ARGUMENT_TYPE',
    /reduce: minloc combines pairs of elements of 4 or 8 bytes, such as a Float64Array has, not int8/,
    (c) => c.reduce(new Int8Array(2), new Int8Array(2), 'minloc', 1, undefined),
  ],
  'half a pair': [
    'BUFFER_SIZE',
    /scan: maxloc combines pairs, a value and its place, so 3 elements are one too few or too many/,
    (c) => c.scan(f32(3), f32(3), 'maxloc', undefined),
  ],
  'a part with half a pair': [
    'BUFFER_SIZE',
    /reduceScatterV: maxloc combines pairs, .* so 3 elements/,
    (c) => c.reduceScatterV(f32(6), f32(3), [2, 3, 1], 'maxloc', undefined),
  ],
  'a running average': [
    'UNKNOWN_NAME',
    /exscan: avg divides by the number of all ranks; take 'sum'/,
    (c) => c.exscan(f32(3), f32(3), 'avg', undefined),
  ],
  'no operator': ['UNKNOWN_NAME', /did you mean sum/, (c) => c.reduceScatter(f32(6), f32(2), 'summ' as 'sum', undefined)],
};

test.each(Object.entries(wrong))('%s is refused', (_, [code, about, action]) => {
  let error: unknown;
  try {
    action(call());
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(TcclError);
  expect(error).toMatchObject({ code, rank: 1 });
  expect((error as Error).message).toMatch(about);
});

test('a call on the same arrays is checked again after they have changed', () => {
  const checked = call();
  const input = f32(2);
  const output = f32(6);
  checked.allGather(input, output, undefined);
  expect(meaning(checked.allGather(input, output, undefined)).count).toBe(2);
  structuredClone(output.buffer, { transfer: [output.buffer as ArrayBuffer] });
  expect(() => checked.allGather(input, output, undefined)).toThrow(/memory was transferred/);
  const array = f32(6);
  expect(meaning(checked.allReduce(array, array, 'sum', undefined))).toMatchObject({ kind: 'allReduce', operator: 'sum' });
  expect(meaning(checked.allReduce(array, array, 'prod', undefined))).toMatchObject({ operator: 'prod' });
  expect(checked.allReduce(array, array, { premulSum: 2 }, undefined).details).toEqual({ scalar: 2 });
  expect(checked.allReduce(array, array, { premulSum: 2n ** 2000n }, undefined).details).toEqual({ scalar: Infinity });
  expect(checked.allReduce(array, array, 'sum', undefined).details).toBeUndefined();
  expect(meaning(checked.reduce(array, array, 'sum', 0, undefined)).root).toBe(0);
  expect(meaning(checked.reduce(array, array, 'sum', 2, undefined)).root).toBe(2);
  expect(meaning(checked.allToAll(array, array, { type: 'float32' })).count).toBe(2);
});

test('the error of rank 0, whose part comes first, names the part that works in place', () => {
  const first = namedCall(0, 3);
  expect(() => first.allGather(part(1, 2), part(0, 6), undefined)).toThrow(
    /pass the output's elements from 0 on as input to work in place/,
  );
  expect(() => first.reduceScatter(part(0, 6), part(1, 2), 'sum', undefined)).toThrow(
    /pass the input's elements from 0 on as output to work in place/,
  );
  expect(() => first.allReduce(part(0, 2), part(1, 2), 'sum', undefined)).toThrow(/pass the same array twice to work in place/);
});

test('unknown options are refused, with a suggestion', () => {
  const options = (wrong: unknown): CallOptions => wrong as CallOptions;
  const refusals: [() => unknown, string, string][] = [
    [
      () => call().allReduce(f32(3), f32(3), 'sum', options({ typ: 'float16' })),
      'UNKNOWN_NAME',
      'allReduce: there is no option "typ"; did you mean type?; there are type, signal, timeoutMs',
    ],
    [
      () => call().allGather(f32(1), f32(3), options({ type: 'float32', operator: 'max' })),
      'UNKNOWN_NAME',
      'allGather: there is no option "operator"; there are type, signal, timeoutMs',
    ],
    [
      () => call().broadcast(f32(3), f32(3), 1, options('float16')),
      'ARGUMENT_TYPE',
      'broadcast: its options are an object, as in { type: \'float16\' }, not "float16"',
    ],
  ];
  for (const [act, code, message] of refusals)
    expect(act).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) as string }) as TcclError);
});

test('options are checked in each call on the same arrays', () => {
  const options = (wrong: unknown): CallOptions => wrong as CallOptions;
  const checked = call();
  const [input, output] = [new Uint16Array(2), new Uint16Array(6)];
  const given = { type: 'float16' } as const;
  const calls: Record<string, (options: CallOptions) => unknown> = {
    allReduce: (with_) => checked.allReduce(output, output, 'sum', with_),
    reduce: (with_) => checked.reduce(output, output, 'sum', 1, with_),
    broadcast: (with_) => checked.broadcast(output, output, 1, with_),
    allGather: (with_) => checked.allGather(input, output, with_),
    reduceScatter: (with_) => checked.reduceScatter(output, input, 'sum', with_),
    allToAll: (with_) => checked.allToAll(output, output, with_),
    gather: (with_) => checked.gather(input, output, 1, with_),
    scatter: (with_) => checked.scatter(output, input, 1, with_),
  };
  for (const [name, act] of Object.entries(calls)) {
    act(given);
    expect(() => act(options({ ...given, typ: 'float16' })), name).toThrow(
      `${name}: there is no option "typ"; did you mean type?`,
    );
    expect(() => act({ type: 'bfloat16' }), name).not.toThrow();
    expect(() => act(given), name).not.toThrow();
  }
  const array = f32(6);
  checked.allReduce(array, array, 'sum', undefined);
  for (const wrong of [{ typ: 'float16' }, null, 'float16', 16])
    expect(() => checked.allReduce(array, array, 'sum', options(wrong))).toThrow(/allReduce: /);
  expect(() => checked.allReduce(array, array, 'sum', {})).not.toThrow();
});
