import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

test.each([
  ['that share memory', {}],
  ['on engine threads', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
  ['over sockets', { TCCL_SHM_DISABLE: '1' }],
])("the stack of a promise call's error leads to where it is awaited: ranks %s", async (_, env) => {
  const { records, stderr } = await runRanks(2, 'caller-stack.mjs', [], { env });
  const ofCall = (place: string, ...functions: string[]): object => ({ place, code: place === 'begin' ? 'RANK_MISSING' : 'ABORTED', functions: [...functions, 'top'], says: true });
  const byPlace = (a: object, b: object): number => JSON.stringify(a).localeCompare(JSON.stringify(b));
  expect([...records].sort(byPlace), stderr).toEqual([
    ofCall('all', 'all'),
    ofCall('begin', 'begin'),
    ofCall('divide', 'divide'),
    ofCall('exchange', 'exchange'),
    ofCall('later', 'later'),
    ofCall('step', 'step', 'epoch'),
    ofCall('together', 'together'),
  ]);
});
