import { expect, test } from 'vitest';
import { decodeCall, encodeCall, type Algorithm } from '../../../../src/runtime/algorithms/call.js';
import {
  algorithmFor,
  defaultTable,
  type AlgorithmTable,
  type ChoiceContext,
} from '../../../../src/runtime/algorithms/choose-algorithm.js';
import { CompositeEngine } from '../../../../src/runtime/algorithms/composite-engine.js';
import { traits } from '../../../../src/runtime/algorithms/traits.js';
import type { Engine } from '../../../../src/runtime/algorithms/engine.js';
import { DONE } from '../../../../src/runtime/device/kernels/kernels.js';
import { float32, float64 } from '../../../../src/runtime/device/types.js';

/** An engine that finishes immediately and records its calls. */
function recordingEngine(name: string, records: string[], blocking = true): Engine {
  return {
    blocking,
    polled: true,
    parkAfterMs: 10,
    wakeOn: () => undefined,
    steps: 0,
    begin: ({ code, type, root, count }, _spins, mark = 0) => {
      const call = decodeCall(code | mark, root, count);
      records.push(`${name}: ${call.kind} of ${count} ${type.name} by ${call.algorithm}`);
      return DONE;
    },
    progress: () => DONE,
    check: () => undefined,
    late: () => [],
    reportWait: () => undefined,
    forwardReport: () => undefined,
    underWay: () => undefined,
    doing: () => undefined,
    abort: (error) => void records.push(`${name}: ${error.message}`),
    close: () => Promise.resolve(void records.push(`${name}: closed`)),
  };
}

const everywhere: AlgorithmTable = defaultTable({ nRanks: 2, oneSegment: true, forced: undefined });

test('a call uses the algorithm of the table for its kind and bytes, which its code contains', () => {
  const records: string[] = [];
  const table: AlgorithmTable = {
    ...everywhere,
    allReduce: [
      { upToBytes: 64, algorithm: 'direct' },
      { upToBytes: Infinity, algorithm: 'ring' },
    ],
  };
  const engine = new CompositeEngine(table, { direct: recordingEngine('A', records), ring: recordingEngine('B', records) });
  const array = new Float32Array(17);
  const code = encodeCall({ kind: 'allReduce', type: float32, operator: 'max', root: 0, count: 0, algorithm: 'direct' });
  const call = { code, type: float32, root: 0, send: array, recv: array, count: 16 };
  engine.begin(call, 0);
  engine.begin({ ...call, count: 17 }, 0);
  engine.begin({ ...call, code: code | (float64.code << 4), type: float64, count: 9 }, 0);
  const broadcast = encodeCall({ kind: 'broadcast', type: float32, operator: 'sum', root: 1, count: 0, algorithm: 'direct' });
  engine.begin({ ...call, code: broadcast, root: 1, count: 17 }, 0);
  expect(records).toEqual([
    'A: allReduce of 16 float32 by direct',
    'B: allReduce of 17 float32 by ring',
    'B: allReduce of 9 float64 by ring',
    'A: broadcast of 17 float32 by direct',
  ]);
  expect(engine.algorithmOf('allReduce', 64)).toBe('direct');
  expect(engine.algorithmOf('allReduce', 65)).toBe('ring');
});

test('all engines are closed, one that serves two algorithms once', async () => {
  const records: string[] = [];
  const both = recordingEngine('both', records);
  const engine = new CompositeEngine(everywhere, { direct: both, ring: both });
  await engine.close();
  expect(records).toEqual(['both: closed']);
});

test('blocking calls need all algorithms to allow them, whichever is chosen', () => {
  const composite = (blocking: boolean): boolean =>
    new CompositeEngine(everywhere, { direct: recordingEngine('A', []), ring: recordingEngine('B', [], blocking) }).blocking;
  expect(composite(true)).toBe(true);
  expect(composite(false)).toBe(false);
});

/** The algorithm of a large call. */
function largest(situation: ChoiceContext): Record<string, Algorithm> {
  return Object.fromEntries(
    Object.entries(defaultTable(situation)).map(([kind, ranges]) => {
      expect(ranges.at(-1)!.upToBytes).toBe(Infinity);
      return [kind, ranges.at(-1)!.algorithm];
    }),
  );
}

const byRing = {
  allReduce: 'ring',
  broadcast: 'ring',
  barrier: 'ring',
  reduce: 'ring',
  allGather: 'ring',
  reduceScatter: 'ring',
  allGatherV: 'ring',
  reduceScatterV: 'ring',
  allToAll: 'pairs',
  allToAllV: 'pairs',
  scan: 'pairs',
  exscan: 'pairs',
  gather: 'pairs',
  scatter: 'pairs',
};
const byDirect = Object.fromEntries(Object.keys(byRing).map((kind) => [kind, 'direct']));
const byTree = { allReduce: 'tree', broadcast: 'tree', barrier: 'tree', reduce: 'tree' };

test.each<[string, ChoiceContext, Record<string, string>]>([
  ['one segment', { nRanks: 4, oneSegment: true, forced: undefined }, byDirect],
  ['no common segment', { nRanks: 4, oneSegment: false, forced: undefined }, byRing],
  ['TCCL_ALGO=ring', { nRanks: 4, oneSegment: true, forced: 'ring' }, byRing],
  ['TCCL_ALGO=tree', { nRanks: 4, oneSegment: true, forced: 'tree' }, { ...byRing, ...byTree }],
  ['TCCL_ALGO=pat', { nRanks: 4, oneSegment: false, forced: 'pat' }, { ...byRing, allGather: 'pat', reduceScatter: 'pat' }],
  [
    'TCCL_ALGO=nvls',
    { nRanks: 4, oneSegment: true, forced: 'nvls' },
    { ...byDirect, allReduce: 'nvls', allGather: 'nvls', reduceScatter: 'nvls' },
  ],
  ['one rank', { nRanks: 1, oneSegment: true, forced: 'ring' }, byDirect],
])('every kind has an algorithm for every size: %s', (_, situation, expected) => {
  expect(largest(situation)).toEqual(expected);
});

test('ranks of several hosts that share memory within hosts use the hierarchical algorithm for all-reduces of any size and other large calls', () => {
  const layered: ChoiceContext = { nRanks: 4, oneSegment: false, hosts: 'of several ranks', forced: undefined };
  const large = Object.fromEntries(
    (['allReduce', 'barrier', 'allGather', 'reduceScatter', 'broadcast', 'reduce'] as const).map((kind) => [
      kind,
      'hierarchical',
    ]),
  );
  expect(largest(layered)).toEqual({ ...byRing, ...large });
  expect(defaultTable(layered).allGather).toEqual([
    { upToBytes: 16_384, algorithm: 'pat' },
    { upToBytes: Infinity, algorithm: 'hierarchical' },
  ]);
  expect(defaultTable(layered).broadcast).toEqual([
    { upToBytes: 8192, algorithm: 'tree' },
    { upToBytes: Infinity, algorithm: 'hierarchical' },
  ]);
  expect(defaultTable(layered).reduce).toEqual(defaultTable(layered).broadcast);
  expect(defaultTable({ ...layered, nRanks: 3 }).reduceScatter).toEqual([
    { upToBytes: 16_384, algorithm: 'ring' },
    { upToBytes: Infinity, algorithm: 'hierarchical' },
  ]);
  expect(algorithmFor(defaultTable(layered).allReduce, 8)).toBe('hierarchical');
  expect(largest({ ...layered, forced: 'ring' })).toEqual(byRing);
  const byHost = Object.fromEntries(traits.hierarchical.kinds.map((kind) => [kind, 'hierarchical']));
  expect(largest({ ...layered, hosts: undefined, forced: 'hierarchical' })).toEqual({ ...byRing, ...byHost });
});

test('hosts of one rank each use the hierarchical algorithm for all-reduces that it does not divide', () => {
  const single: ChoiceContext = { nRanks: 4, oneSegment: false, hosts: 'of one rank', forced: undefined };
  expect(largest(single)).toEqual({ ...byRing, barrier: 'hierarchical' });
  expect(defaultTable(single).allReduce).toEqual([
    { upToBytes: 61_440, algorithm: 'hierarchical' },
    { upToBytes: Infinity, algorithm: 'ring' },
  ]);
  expect(largest({ ...single, forced: 'ring' })).toEqual(byRing);
});

test('small calls without a common segment use the algorithms with few messages', () => {
  const engine = (nRanks: number): CompositeEngine => {
    const any = recordingEngine('any', []);
    return new CompositeEngine(defaultTable({ nRanks, oneSegment: false, forced: undefined }), {
      ring: any,
      tree: any,
      pat: any,
      pairs: any,
    });
  };
  expect([
    engine(8).algorithmOf('allReduce', 8),
    engine(8).algorithmOf('allGather', 8),
    engine(8).algorithmOf('allGatherV', 8),
  ]).toEqual(['tree', 'pat', 'ring']);
  expect([engine(2).algorithmOf('allReduce', 8), engine(2).algorithmOf('allGather', 8)]).toEqual(['ring', 'ring']);
});
