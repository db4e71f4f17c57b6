import { expect, test } from 'vitest';
import { CheckedCall } from '../../../../src/runtime/communicator/checked-call.js';

const x = new Float32Array(4);
const call = new CheckedCall(0, 2);
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
])('%s is refused with the call that was meant', (_, act, message) => {
  expect(act).toThrow(expect.objectContaining({ code: 'ARGUMENT_TYPE', message, rank: 0 }));
});

test('an operator that does not exist is refused with the name of the call', () => {
  expect(() => call.reduceScatter(x, new Float32Array(2), wrong('summ'), undefined)).toThrow(
    /^reduceScatter: there is no reduction operator "summ"; did you mean sum\?/,
  );
});
