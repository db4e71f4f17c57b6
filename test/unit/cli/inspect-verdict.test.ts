import { expect, test } from 'vitest';
import type { Job } from '../../../src/cli/inspect/job.js';
import { verdictOn } from '../../../src/cli/inspect/verdict.js';
import { Board } from '../../../src/runtime/device/board.js';
import { encodeCall, type Call } from '../../../src/runtime/algorithms/call.js';
import { encodeActivity } from '../../../src/runtime/algorithms/activity.js';
import { dataTypeOf } from '../../../src/runtime/device/types.js';
import { readBoard } from '../../../src/runtime/observe/read-boards.js';

const call: Call = {
  kind: 'allReduce',
  type: dataTypeOf(new Float64Array(0)),
  operator: 'sum',
  root: 0,
  count: 8,
  algorithm: 'ring',
};

/** A rank whose first call has waited for a minute, for a rank that it names. */
function waiting(rank: number, late: number): Job['ranks'][number] {
  const board = Board.ofOwn();
  board.open({ rank, nRanks: 3, facts: { job: 'abcd', version: '0.1.0', shared: false, hosts: [] } });
  const recorder = board.show({ id: '0.0', name: undefined, rank, nRanks: 3, members: [0, 1, 2] });
  recorder.begin(1, encodeCall(call), 0, 8);
  recorder.wait(1, { code: encodeCall(call), root: 0, count: 8 });
  recorder.report('collective', performance.now(), 60_000, encodeActivity({ kind: 'collective', call, number: 0 }), [late]);
  const shown = readBoard(board.bytes());
  if (shown === undefined) throw new Error('nothing shown');
  const process = { pid: 100 + rank, state: 'S', cpuMs: 0 };
  return { ...shown, process, host: `host${rank}`, cpu: 0, rate: 0, hasMoved: false } as unknown as Job['ranks'][number];
}

test('ranks that wait for each other in one collective are in the right order: the network is to look at', () => {
  const job: Job = {
    id: 'abcd',
    nRanks: 3,
    version: '0.1.0',
    shared: false,
    hosts: ['host0', 'host1', 'host2'],
    silentHosts: [],
    ranks: [waiting(0, 1), waiting(1, 2), waiting(2, 0)],
    hostOf: (rank) => `host${rank}`,
    atMs: Date.now() + 60_000,
  };
  const { state, causes } = verdictOn(job, 1000);
  expect(state).toBe('stuck');
  expect(causes.map(({ text }) => text).join()).toMatch(/^ranks 0-2: all are in allReduce of 8 float64 .*, and none comes out$/);
  expect(causes[0]?.advice).toContain('look at the network');
});
