import { expect, test } from 'vitest';
import { runRanks } from '../multi-process/ranks.js';

const f32 = (length: number): string => `new Float32Array(${length})`;

/** Calls of ranks 0 and 1 that do not match, and the errors of both ranks. */
const pairs: readonly [first: string, second: string, message: RegExp][] = [
  [
    `comm.gatherV(${f32(2)}, { array: ${f32(5)}, counts: [2, 3] })`,
    `comm.gather(${f32(2)}, null)`,
    /gatherV of float32 to rank 0 \(.*gather of 2 float32 to rank 0 \(|gather of 2 float32 to rank 0 \(.*gatherV of float32 to rank 0 \(/,
  ],
  [
    `comm.scatterV({ array: ${f32(5)}, counts: [2, 3] }, ${f32(2)})`,
    `comm.scatterV({ array: ${f32(5)}, counts: [2, 3] }, ${f32(3)}, 1)`,
    /scatterV of float32 from rank 0 .*scatterV of float32 from rank 1|scatterV of float32 from rank 1 .*scatterV of float32 from rank 0/,
  ],
];

/** Calls of ranks 0 and 1 whose errors begin with the rank's own call. */
const named: readonly [first: string, second: string, begins: readonly string[], code: string, env?: Record<string, string>][] = [
  [`comm.allReduce(${f32(4)})`, `comm.broadcast(${f32(4)})`, ['allReduce: ', 'broadcast: '], 'CALL_MISMATCH'],
  [`comm.allReduceSync(${f32(4)})`, `comm.allReduce(${f32(5)})`, ['allReduceSync: ', 'allReduce: '], 'CALL_MISMATCH'],
  [`comm.send(${f32(2_000_000)}, 1)`, `comm.recv(${f32(5)}, 0)`, ['send: ', 'recv: '], 'CALL_MISMATCH'],
  [`comm.sendSync(${f32(2_000_000)}, 1)`, `comm.recvSync(${f32(5)}, 0)`, ['sendSync: ', 'recvSync: '], 'CALL_MISMATCH'],
  [
    `comm.sendSync(${f32(2_000_000)}, 1)`,
    `(comm.probeSync(0), comm.recvSync(${f32(5)}, 0))`,
    ['sendSync: ', 'recvSync: '],
    'CALL_MISMATCH',
  ],
  [`comm.sendRecv(${f32(2_000_000)}, 1, ${f32(3)}, 1)`, `comm.recv(${f32(5)}, 0)`, ['send: ', 'recv: '], 'CALL_MISMATCH'],
  [
    `comm.grid([2], { periodic: true }).neighborAllGather(${f32(4)}, ${f32(8)})`,
    `comm.grid([2], { periodic: true }).neighborAllToAll(${f32(4)}, ${f32(4)})`,
    ['neighborAllGather: ', 'neighborAllToAll: '],
    'CALL_MISMATCH',
  ],
  [
    `comm.grid([2]).neighborAllGatherSync(${f32(4)}, ${f32(8)})`,
    `comm.recvSync(${f32(5)}, 0)`,
    ['neighborAllGatherSync: ', 'recvSync: '],
    'CALL_MISMATCH',
  ],
  [`comm.barrier()`, `comm.recv(${f32(5)}, 0)`, ['barrier: ', 'recv: '], 'TIMEOUT', { TCCL_TIMEOUT: '1' }],
  [`comm.barrierSync()`, `comm.recvObjectSync(0)`, ['barrierSync: ', 'recvObjectSync: '], 'TIMEOUT', { TCCL_TIMEOUT: '1' }],
];

test.each(named)('an error of %s and %s begins with the call of the rank', async (first, second, begins, code, own = {}) => {
  for (const shape of [{}, { TCCL_SHM_DISABLE: '1', TCCL_TEST_CONFIG: '{"blocking":true}' }] as Record<string, string>[]) {
    const { records, stderr } = await runRanks(2, 'calls-differ.mjs', [first, second], { env: { ...shape, ...own } });
    expect(records, stderr).toHaveLength(2);
    for (const { rank, ...record } of records) {
      const begin = begins[Number(rank)] ?? '';
      expect(record).toMatchObject({ code, message: expect.stringMatching(new RegExp(`^${begin}rank`)) as string });
    }
  }
});

test('a blocking call over sockets is refused with its name', async () => {
  const calls = [`comm.allReduceSync(${f32(4)})`, `comm.recvSync(${f32(4)}, 0)`];
  const { records } = await runRanks(2, 'calls-differ.mjs', calls, { env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' } });
  for (const { rank, ...record } of records) {
    const begin = rank === 0 ? 'allReduceSync: these ranks talk over sockets' : 'recvSync: a blocking call needs memory shared';
    expect(record).toMatchObject({ code: 'UNSUPPORTED', message: expect.stringContaining(begin) as string });
  }
});

test.each(pairs)('%s and %s are distinguished, in shared memory and over sockets', async (first, second, message) => {
  for (const env of [{}, { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }] as Record<string, string>[]) {
    const { records, stderr } = await runRanks(2, 'calls-differ.mjs', [first, second], { env });
    expect(records, stderr).toHaveLength(2);
    for (const record of records)
      expect(record).toMatchObject({ code: 'CALL_MISMATCH', message: expect.stringMatching(message) as string });
  }
});

test.each([
  ['a collective', 'comm.allReduce(new Int32Array(4))', 'comm.allReduce(new Int32Array(5))'],
  ['a message', `comm.send(${f32(2_000_000)}, 1)`, `comm.recv(${f32(5)}, 0)`, 0],
  ['a window', 'comm.window(comm.alloc(Int32Array, 4))', 'comm.window(comm.alloc(Float32Array, 4))'],
  ['the root of combined objects', 'comm.reduceObject(1, Math.max, 0)', 'comm.reduceObject(1, Math.max, 1)'],
  ['the root of objects', 'comm.gatherObject(1, 0)', 'comm.gatherObject(1, 1)'],
])('two ranks that differ in %s both name both', async (_, first, second, sender?: number) => {
  for (const env of [{}, { TCCL_SHM_DISABLE: '1' }] as Record<string, string>[]) {
    const { records, stderr } = await runRanks(2, 'calls-differ.mjs', [first, second], { env });
    expect(records.map(({ rank, code, about, ranks }) => ({ rank, code, about, ranks })).sort(), stderr).toEqual(
      expect.arrayContaining([0, 1].map((rank) => ({ rank, code: 'CALL_MISMATCH', about: sender, ranks: [0, 1] }))),
    );
  }
});

test('among more ranks, a mismatch names the one whose call differs, on every rank', async () => {
  const calls = ['comm.allReduce(new Int32Array(4))', 'comm.allReduce(new Int32Array(5))', 'comm.allReduce(new Int32Array(4))'];
  for (const env of [{}, { TCCL_SHM_DISABLE: '1' }] as Record<string, string>[]) {
    const { records, stderr } = await runRanks(4, 'calls-differ.mjs', calls, { env });
    expect(records, stderr).toHaveLength(4);
    for (const record of records) {
      expect(record, stderr).toMatchObject({ code: 'CALL_MISMATCH', ranks: expect.arrayContaining([1]) as number[] });
      expect(record).not.toHaveProperty('about');
    }
  }
  // All heads are known here, so that the majority is.
  const roots = ['comm.gatherObject(1, 0)', 'comm.gatherObject(1, 1)', 'comm.gatherObject(1, 0)'];
  const { records, stderr } = await runRanks(3, 'calls-differ.mjs', roots);
  for (const record of records) expect(record, stderr).toMatchObject({ code: 'CALL_MISMATCH', ranks: [1] });
});

/** Calls over the bootstrap network, and collectives of each shape. */
const apartFromData = ['comm.split(0)', 'comm.stream()', 'comm.window(comm.alloc(Int32Array, 4))', 'comm.grow(3)'];
const collectives = [
  'comm.allReduce(new Int32Array(1000))',
  'comm.broadcast(new Int32Array(300_000), undefined, 1)',
  'comm.allGatherObject({ a: 1 })',
];
const nameIn = (call: string): string => /^comm\.(\w+)/.exec(call)?.[1] ?? '';

test.each(apartFromData)('%s against a collective, or another such call, is a mismatch when they meet', async (call) => {
  const next = apartFromData[(apartFromData.indexOf(call) + 1) % apartFromData.length] ?? '';
  const others = [...collectives, next];
  for (const env of [{}, { TCCL_SHM_DISABLE: '1' }] as Record<string, string>[]) {
    for (const other of others) {
      const { records, stderr } = await runRanks(2, 'calls-differ.mjs', [call, other], { env });
      expect(records, stderr).toHaveLength(2);
      for (const { rank, code, message } of records) {
        const own = nameIn(rank === 0 ? call : other);
        expect({ code, message }, `${call} and ${other}`).toEqual({
          code: 'CALL_MISMATCH',
          message: expect.stringMatching(new RegExp(`^${own}: `)) as string,
        });
        expect(message).toContain(nameIn(call));
        expect(message).toContain(nameIn(other));
      }
    }
  }
});

test('a gathered part must have the length that the root counts for it', async () => {
  const calls = [`comm.gatherV(${f32(2)}, { array: ${f32(6)}, counts: [2, 4] })`, `comm.gatherV(${f32(3)}, null)`];
  const shared = await runRanks(2, 'calls-differ.mjs', calls);
  for (const record of shared.records)
    expect(record).toMatchObject({
      code: 'CALL_MISMATCH',
      message: expect.stringContaining('gatherV: rank 1 sends 3 float32 to rank 0, which expects 4') as string,
    });
  const apart = await runRanks(2, 'calls-differ.mjs', calls, { env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' } });
  expect(apart.records.find(({ rank }) => rank === 0)).toMatchObject({
    code: 'CALL_MISMATCH',
    message: expect.stringMatching(
      /rank 1 sends 3 float32 to rank 0, which expects 4 float32, in a message of gatherV of float32 to rank 0/,
    ) as string,
  });
});
