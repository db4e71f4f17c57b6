import { expect, test } from 'vitest';
import { algorithms, callMismatch, decodeCall, describeCall, encodeCall, type Call } from '../../../src/collectives/call.js';
import { dataTypes, float32, reductionOperators } from '../../../src/device/types.js';

test('every call survives its code', () => {
  for (const type of dataTypes) {
    for (const algorithm of algorithms) {
      for (const operator of reductionOperators) {
        const call: Call = { kind: 'allReduce', type, operator, root: 0, count: 7, algorithm };
        expect(decodeCall(encodeCall(call), 0, 7)).toEqual(call);
      }
      const broadcast: Call = { kind: 'broadcast', type, operator: 'sum', root: 3, count: 7, algorithm };
      expect(decodeCall(encodeCall(broadcast), 3, 7)).toEqual(broadcast);
    }
  }
});

test('what has no meaning for a call does not change its code', () => {
  const broadcast: Call = { kind: 'broadcast', type: float32, operator: 'sum', root: 0, count: 1, algorithm: 'ring' };
  expect(encodeCall({ ...broadcast, operator: 'max' })).toBe(encodeCall(broadcast));
  const barrier: Call = { ...broadcast, kind: 'barrier' };
  for (const type of dataTypes) expect(encodeCall({ ...barrier, type })).toBe(encodeCall(barrier));
});

test('a code that no call has is a defect', () => {
  expect(() => decodeCall(15, 0, 0)).toThrow('0xf is not the code of a call');
});

test('a mismatch names both ranks and both calls', () => {
  const sum: Call = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 8, algorithm: 'ring' };
  const error = callMismatch(1, sum, 4, { ...sum, kind: 'broadcast', root: 2 });
  expect(error.message).toBe(
    'rank 1 called allReduce of 8 float32 (sum, ring) where rank 4 called broadcast of 8 float32 from rank 2 (ring); ' +
      'all ranks of a communicator must make the same calls in the same order',
  );
  expect(error).toMatchObject({ code: 'CALL_MISMATCH', rank: 4, ranks: [1, 4] });
  expect(describeCall({ ...sum, kind: 'barrier' })).toBe('barrier (ring)');
});
