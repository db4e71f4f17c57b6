import { expect, it } from 'vitest';
import type { NamedOperator } from '../../../src/device/types.js';
import type { ElementArray } from '../../../src/perf/types.js';
import type { MeasuredCommunicator } from '../../../src/perf/collectives.js';
import { perfOptions, type RawOptions } from '../../../src/perf/options.js';
import { jsonReporter, silent } from '../../../src/perf/report.js';
import { runPerf } from '../../../src/perf/run.js';
import { rawOptions } from './raw-options.js';

/** Ranks of one process that exchange arrays by the promise API; `damage` may change what an all-reduce gives a rank. */
function world(nRanks: number, damage: (result: ElementArray, rank: number) => void = () => undefined): MeasuredCommunicator[] {
  let arrived: (() => void)[] = [];
  let inputs: ElementArray[] = [];
  /** Resolves with all ranks' inputs when all have come. */
  const meet = async (rank: number, input: ElementArray): Promise<ElementArray[]> => {
    inputs[rank] = input.slice();
    const all = inputs;
    await new Promise<void>((resolve) => {
      arrived.push(resolve);
      if (arrived.length < nRanks) return;
      const waiting = arrived;
      [arrived, inputs] = [[], []];
      for (const go of waiting) go();
    });
    return all;
  };
  const blocking = () => { throw new Error('no blocking calls here'); };
  return Array.from({ length: nRanks }, (_, rank): MeasuredCommunicator => ({
    rank, nRanks, localRank: rank,
    alloc: (type, length) => new type(new ArrayBuffer(length * type.BYTES_PER_ELEMENT), 0, length),
    free: () => undefined,
    async allReduce(send: ElementArray, recv: ElementArray = send, operator: NamedOperator = 'sum') {
      const all = await meet(rank, send);
      for (let i = 0; i < recv.length; i++) {
        const values = all.map((input) => input[i]!);
        recv[i] = operator === 'prod' ? values.reduce((a, b) => a * b)
          : operator === 'max' ? Math.max(...values)
          : operator === 'min' ? Math.min(...values)
          : values.reduce((a, b) => a + b) / (operator === 'avg' ? nRanks : 1);
      }
      damage(recv, rank);
    },
    async broadcast(send: ElementArray, recv: ElementArray = send, root = 0) {
      const all = await meet(rank, send);
      recv.set(all[root]!);
    },
    async barrier() {
      await meet(rank, new Int32Array(0));
    },
    allReduceSync: blocking, broadcastSync: blocking, barrierSync: blocking,
  }));
}

async function perf(ranks: MeasuredCommunicator[], collective: string, raw: Partial<RawOptions>) {
  const options = perfOptions(collective, { ...rawOptions, iters: '2', warmup_iters: '1', api: 'promise', ...raw });
  const lines: Record<string, unknown>[] = [];
  const reporter = jsonReporter(options, (text) => lines.push(JSON.parse(text) as Record<string, unknown>));
  const summaries = await Promise.all(ranks.map((comm) => runPerf(comm, options, comm.rank === 0 ? reporter : silent)));
  return { lines, summaries };
}

it('every type and operator at every size, out of place and in place, comes out right', async () => {
  const { lines, summaries } = await perf(world(3), 'all_reduce', { minbytes: '8', maxbytes: '2K', stepfactor: '16', datatype: 'all', op: 'all' });
  const rows = lines.slice(0, -1);
  expect(rows).toHaveLength(3 * 5 * 3 * 2);
  expect(rows.every((row) => row['wrong'] === 0 && row['ranks'] === 3)).toBe(true);
  expect(rows[0]).toMatchObject({ lib: 'tccl', coll: 'all_reduce', type: 'int32', op: 'sum', root: -1, bytes: 8, count: 2, inplace: 0, calls: 2, api: 'promise', memory: 'shared' });
  expect(lines.at(-1)).toMatchObject({ summary: 'all_reduce', ranks: 3, errors: 0 });
  expect(summaries.every((summary) => summary.errors === 0)).toBe(true);
});

it('broadcast runs from each root in turn with -r -1', async () => {
  const { lines } = await perf(world(3), 'broadcast', { minbytes: '4K', maxbytes: '4K', root: '-1' });
  expect(lines.map((line) => [line['root'], line['op'], line['wrong']])).toEqual(
    [[0, 'none', 0], [0, 'none', 0], [1, 'none', 0], [1, 'none', 0], [2, 'none', 0], [2, 'none', 0], [undefined, undefined, undefined]]);
});

it('one wrong element at one rank is counted at all ranks', async () => {
  const ranks = world(2, (result, rank) => {
    // Only the measured arrays, not the counts that ranks exchange.
    if (rank === 1 && result instanceof Float32Array) result[7] = result[7]! + 1;
  });
  const { lines, summaries } = await perf(ranks, 'all_reduce', { minbytes: '64', maxbytes: '64' });
  expect(lines.slice(0, 2).map((line) => line['wrong'])).toEqual([1, 1]);
  expect(summaries.map((summary) => summary.errors)).toEqual([2, 2]);
});

it('nothing is checked with -c 0', async () => {
  const { lines } = await perf(world(2), 'all_reduce', { minbytes: '64', maxbytes: '64', check: '0' });
  expect(lines.slice(0, 2).map((line) => line['wrong'])).toEqual([null, null]);
});

it('a root that is no rank is refused', async () => {
  await expect(perf(world(2), 'broadcast', { minbytes: '8', maxbytes: '8', root: '2' })).rejects.toThrow('--root 2 is not a rank: there are 2, from 0 to 1');
});
