import { expect, test } from 'vitest';
import {
  algorithms,
  decodeCall,
  describeCall,
  encodeCall,
  partsHash,
  type Call,
  type CallKind,
} from '../../../../src/runtime/algorithms/call.js';
import { callMismatch } from '../../../../src/runtime/algorithms/mismatch.js';
import { callKinds } from '../../../../src/runtime/device/kernels/kernels.js';
import { bfloat16, dataTypes, float32, operatorNames } from '../../../../src/runtime/device/types.js';

const kinds = Object.keys(callKinds) as CallKind[];

test('every call can be encoded and decoded', () => {
  for (const kind of kinds) {
    for (const type of kind === 'barrier' ? [float32] : dataTypes) {
      for (const algorithm of algorithms) {
        for (const operator of kind.startsWith('reduce') || kind === 'allReduce' || kind.endsWith('scan')
          ? operatorNames
          : (['sum'] as const)) {
          const call: Call = { kind, type, operator, root: 3, count: 7, algorithm };
          expect(decodeCall(encodeCall(call), 3, 7)).toEqual(call);
          const derived: Call = { ...call, derived: 'scatterV' };
          if (kind === 'allToAllV') expect(decodeCall(encodeCall(derived), 3, 7)).toEqual(derived);
        }
      }
    }
  }
});

test('a call is described with its root, its operator, and the hash of uneven parts', () => {
  const told = (kind: CallKind, root = 2): string =>
    describeCall({ kind, type: float32, operator: 'max', root, count: 5, algorithm: 'direct' });
  expect(kinds.map((kind) => told(kind))).toEqual([
    'allReduce of 5 float32 (max, direct)',
    'broadcast of 5 float32 from rank 2 (direct)',
    'barrier (direct)',
    'reduce of 5 float32 to rank 2 (max, direct)',
    'allGather of 5 float32 (direct)',
    'reduceScatter of 5 float32 (max, direct)',
    'allToAll of 5 float32 (direct)',
    'gather of 5 float32 to rank 2 (direct)',
    'scatter of 5 float32 from rank 2 (direct)',
    'allGatherV of 5 float32 in parts #00000002 (direct)',
    'reduceScatterV of 5 float32 in parts #00000002 (max, direct)',
    'allToAllV of float32 (direct)',
    'scan of 5 float32 (max, direct)',
    'exscan of 5 float32 (max, direct)',
  ]);
});

test('parts with the same sum have different hashes when their lengths or order differ', () => {
  const hashes = [
    [1, 2, 3],
    [3, 2, 1],
    [2, 2, 2],
    [6, 0, 0],
    [1, 2, 3 + 2 ** 32],
  ].map(partsHash);
  expect(new Set(hashes).size).toBe(5);
  expect(partsHash([1, 2, 3])).toBe(hashes[0]);
});

test('fields without meaning for a call do not change its code', () => {
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
  const error = callMismatch({ rank: 1, call: sum }, { rank: 4, call: { ...sum, kind: 'broadcast', root: 2 } });
  expect(error.message).toBe(
    'rank 1 called allReduce of 8 float32 (sum, ring) where rank 4 called broadcast of 8 float32 from rank 2 (ring); ' +
      'all ranks of a communicator must make the same calls in the same order',
  );
  expect(error).toMatchObject({ code: 'CALL_MISMATCH', ranks: [1, 4] });
  expect(describeCall({ ...sum, kind: 'barrier' })).toBe('barrier (ring)');
});

test('a mismatch of calls of one name says in which arguments they differ', () => {
  const call: Call = { kind: 'reduce', type: float32, operator: 'sum', root: 0, count: 8, algorithm: 'ring' };
  const said = (other: Partial<Call>) => callMismatch({ rank: 1, call }, { rank: 4, call: { ...call, ...other } }).message;
  expect(said({ count: 9 })).toContain('(sum, ring); they differ in the number of elements; all ranks');
  expect(said({ operator: 'max', root: 1 })).toContain('(max, ring); they differ in the operator and the root; all ranks');
  expect(said({ type: bfloat16, algorithm: 'direct' })).toContain('; they differ in the type; all ranks');
  expect(said({ algorithm: 'direct' })).not.toContain('they differ');
});

test('a mismatch of counts names the counts and their ranks', () => {
  const counts = [1, 2, 3, 0, 0, 0, 0, 0, 2];
  const others = [1, 2, 5, 0, 0, 0, 0, 0, 0];
  const called = (given: readonly number[]): Call => ({
    kind: 'allGatherV',
    type: float32,
    operator: 'sum',
    root: partsHash(given),
    count: 8,
    algorithm: 'ring',
  });
  const error = callMismatch({ rank: 1, call: called(counts), counts }, { rank: 4, call: called(others), counts: others });
  expect(error.message).toBe(
    'rank 1 called allGatherV of 8 float32 in parts of 1, 2, 3, 0, 0, 0, 0, 0, … (ring) where rank 4 called allGatherV of 8 float32 in parts of 1, 2, 5, 0, 0, 0, 0, 0, … (ring); ' +
      'their counts differ first for rank 2: 3 on rank 1, 5 on rank 4; all ranks of a communicator must make the same calls in the same order',
  );
});

test('two calls with the same text are distinguished by their numbers, or reported as damaged', () => {
  const call: Call = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 8, algorithm: 'ring' };
  const late = callMismatch({ rank: 1, call, number: 7 }, { rank: 4, call, number: 9 });
  expect(late).toMatchObject({
    code: 'CALL_MISMATCH',
    ranks: [1, 4],
    message: expect.stringContaining('its message says that this is its call number 9, and rank 1 is at number 7') as string,
  });
  expect(callMismatch({ rank: 1, call, number: 7 }, { rank: 4, call, number: 7 }).message).toMatch(
    /^rank 4 called .*, as rank 1 did, but the description of the call in its message was damaged on the way$/,
  );
});
