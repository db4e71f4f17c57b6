import { expect, test } from 'vitest';
import { dataParallel } from '../../../../src/ddp/data-parallel.js';
import { checkMoved, checkPeer, checkRoot } from '../../../../src/runtime/algorithms/arguments.js';
import { CheckedCall } from '../../../../src/runtime/communicator/checked-call.js';
import { namedCall } from './named-call.js';

const x = new Float32Array(4);
const call = namedCall(0, 2);
/** As JavaScript programs call it. */
const wrong = (value: unknown): never => value as never;

test.each<[string, () => unknown, string]>([
  [
    'an operator for the output',
    () => call.allReduce(x, wrong('max'), 'sum', undefined),
    "allReduce: 'max' is where the output belongs; pass the operator so: allReduce(x, undefined, 'max')",
  ],
  [
    'a root for the output',
    () => call.broadcast(x, wrong(0), 0, undefined),
    'broadcast: 0 is where the output belongs; pass the root so: broadcast(x, undefined, 0)',
  ],
  [
    'a root for an output that cannot be left out',
    () => call.gather(x, wrong(1), 1, undefined),
    'gather: 1 is where the output belongs; pass the root so: gather(x, output, 1)',
  ],
  [
    'an operator in an object, for the output',
    () => call.allReduce(x, wrong({ op: 'sum' }), 'sum', undefined),
    "allReduce: { op: 'sum' } is where the output belongs; pass the operator so: allReduce(x, undefined, 'sum')",
  ],
  [
    'an operator in an object, for the operator',
    () => call.allReduce(x, x, wrong({ op: 'sum' }), undefined),
    "allReduce: { op: 'sum' } is where the operator belongs; pass the operator so: allReduce(x, undefined, 'sum')",
  ],
  [
    'a root for the operator',
    () => call.reduce(x, x, wrong(1), 0, undefined),
    'reduce: 1 is where the operator belongs; pass the root so: reduce(x, undefined, undefined, 1)',
  ],
  [
    'options for the operator',
    () => call.allReduce(x, x, wrong({ type: 'float32' }), undefined),
    "allReduce: { type: 'float32' } is where the operator belongs; pass the options so: allReduce(x, undefined, undefined, { type: 'float32' })",
  ],
  [
    'options for the output',
    () => call.allToAll(x, wrong({ timeoutMs: 5 }), undefined),
    'allToAll: { timeoutMs: 5 } is where the output belongs; pass the options so: allToAll(x, undefined, { timeoutMs: 5 })',
  ],
  [
    'a function for the output',
    () => call.allReduce(x, wrong(Math.max), 'sum', undefined),
    'allReduce: max is where the output belongs; pass the operator so: allReduce(x, undefined, max)',
  ],
  [
    'a call without its output',
    () => call.allGather(x, wrong(undefined), undefined),
    'allGather: there is no output; pass an array for it after the input',
  ],
])('%s is refused with the call that was meant', (_, act, message) => {
  expect(act).toThrow(expect.objectContaining({ code: 'ARGUMENT_TYPE', message, rank: 0 }));
});

test('a blocking form is refused by its own name', () => {
  const refusal = (...args: Parameters<CheckedCall['allReduce']>) => {
    const checked = new CheckedCall(0, 2);
    checked.name = 'allReduceSync';
    return () => checked.allReduce(...args);
  };
  expect(refusal(x, wrong('max'), 'sum', undefined)).toThrow(
    "allReduceSync: 'max' is where the output belongs; pass the operator so: allReduceSync(x, undefined, 'max')",
  );
  expect(refusal(x, x, wrong('summ'), undefined)).toThrow(/^allReduceSync: there is no reduction operator "summ"/);
  expect(refusal(x, new Float32Array(3), 'sum', undefined)).toThrow(/^allReduceSync: the output has 3 elements/);
});

test('an operator that does not exist is refused with the name of the call', () => {
  expect(() => call.reduceScatter(x, new Float32Array(2), wrong('summ'), undefined)).toThrow(
    /^reduceScatter: there is no reduction operator "summ"; did you mean sum\?/,
  );
});

test('options in place of the root, values that are no arrays, and ranks that are no numbers are refused with the right argument', () => {
  expect(() => checkRoot('broadcastObject', wrong({ timeoutMs: 3 }), 2)).toThrow(
    /ranks go from 0 to 1; options come after the root$/,
  );
  expect(() => checkMoved('send', wrong([1, 2]), undefined)).toThrow(
    'send: an object of class Array cannot be exchanged; pass a typed array: Float64Array.from(x), or take a call for objects (sendObject, broadcastObject …)',
  );
  expect(() => checkPeer('send', wrong(x), 2)).toThrow(
    'send: a rank is a whole number from 0 to 1, not an object of class Float32Array',
  );
  expect(() => checkMoved('send', x, { type: wrong('bf16') })).toThrow(/int16, uint16$/);
});

test('a data-parallel model without a communicator is refused with the right argument', async () => {
  await expect(dataParallel(wrong({ x }), wrong(undefined))).rejects.toThrow(
    'dataParallel: pass a communicator of init() first, as in dataParallel(comm, { weights }), not an object of class Object',
  );
});
