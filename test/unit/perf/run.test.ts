import { afterEach, expect, it, vi } from 'vitest';
import { getUniqueId } from '../../../src/runtime/bootstrap/root.js';
import type { Communicator } from '../../../src/runtime/communicator/communicator.js';
import { init } from '../../../src/runtime/init/init.js';
import { collectives, type MeasuredCommunicator } from '../../../src/perf/collectives.js';
import { perfOptions, type RawOptions } from '../../../src/perf/options.js';
import { perfOperators } from '../../../src/perf/types.js';
import { jsonReporter, silent } from '../../../src/perf/report.js';
import { runPerf } from '../../../src/perf/run.js';
import { elementTypes } from '../../../src/perf/types.js';
import { rawOptions } from './raw-options.js';

let open: Communicator[] = [];
afterEach(async () => {
  await Promise.all(open.map((comm) => comm.close()));
  open = [];
});

/** Ranks of one process; they use the promise API, since a blocking call would keep the others from running. */
async function world(nRanks: number): Promise<Communicator[]> {
  const commId = await getUniqueId();
  return (open = await Promise.all(Array.from({ length: nRanks }, (_, rank) => init({ rank, nRanks, commId, env: {} }))));
}

async function perf(ranks: readonly MeasuredCommunicator[], collective: string, raw: Partial<RawOptions>) {
  const options = perfOptions(collective, { ...rawOptions, iters: '2', warmup_iters: '1', api: 'promise', ...raw });
  const lines: Record<string, unknown>[] = [];
  const reporter = jsonReporter(options, (text) => lines.push(JSON.parse(text) as Record<string, unknown>));
  const summaries = await Promise.all(ranks.map((comm) => runPerf(comm, options, comm.rank === 0 ? reporter : silent)));
  return { lines, summaries };
}

it('every type and operator at every size, out of place and in place, gives the right result', async () => {
  const { lines, summaries } = await perf(await world(3), 'all_reduce', {
    minbytes: '520',
    maxbytes: '520',
    datatype: 'all',
    op: 'all',
    iters: '1',
    warmup_iters: '0',
  });
  const rows = lines.slice(0, -1);
  expect(rows).toHaveLength(elementTypes.length * perfOperators.length * 2);
  expect(rows.every((row) => row['wrong'] === 0 && row['ranks'] === 3)).toBe(true);
  expect(rows[0]).toMatchObject({
    lib: 'tccl',
    coll: 'all_reduce',
    type: 'int8',
    op: 'sum',
    root: -1,
    bytes: 520,
    count: 520,
    inplace: 0,
    calls: 1,
    api: 'promise',
    memory: 'shared',
  });
  expect(lines.at(-1)).toMatchObject({ summary: 'all_reduce', ranks: 3, errors: 0 });
  expect(summaries.every((summary) => summary.errors === 0)).toBe(true);
});

it('broadcast runs from each root in turn with -r -1', async () => {
  const { lines } = await perf(await world(3), 'broadcast', { minbytes: '4K', maxbytes: '4K', root: '-1' });
  expect(lines.map((line) => [line['root'], line['op'], line['wrong']])).toEqual([
    [0, 'none', 0],
    [0, 'none', 0],
    [1, 'none', 0],
    [1, 'none', 0],
    [2, 'none', 0],
    [2, 'none', 0],
    [undefined, undefined, undefined],
  ]);
});

it.each(collectives.map(({ name }) => name))('%s gives the right result', async (name) => {
  const { lines } = await perf(await world(3), name, {
    minbytes: '0',
    maxbytes: '3000',
    stepbytes: '1500',
    datatype: 'bfloat16',
    root: '-1',
    iters: '1',
    warmup_iters: '0',
  });
  expect(lines.length).toBeGreaterThan(3);
  expect(lines.slice(0, -1).filter((line) => line['wrong'] !== 0)).toEqual([]);
});

it('one wrong element on one rank is counted on all ranks', async () => {
  const [zero, one] = await world(2);
  const damaging = new Proxy(one!, {
    get(comm, name) {
      if (name !== 'allReduce')
        return typeof comm[name as 'close'] === 'function'
          ? (comm[name as 'close'] as () => unknown).bind(comm)
          : comm[name as 'rank'];
      return async (...args: Parameters<Communicator['allReduce']>) => {
        await comm.allReduce(...args);
        // Only the measured arrays, not the counts that ranks exchange.
        const result = args[1] ?? args[0];
        if (result instanceof Float32Array) result[7] = result[7]! + 1;
      };
    },
  });
  const { lines, summaries } = await perf([zero!, damaging], 'all_reduce', { minbytes: '64', maxbytes: '64' });
  expect(lines.slice(0, 2).map((line) => line['wrong'])).toEqual([1, 1]);
  expect(summaries.map((summary) => summary.errors)).toEqual([2, 2]);
});

it('the shortest time is at most the mean, and of the fastest tenth of the calls', async () => {
  const { lines } = await perf(await world(2), 'all_reduce', { minbytes: '8', maxbytes: '8', iters: '25', warmup_iters: '0' });
  for (const line of lines.slice(0, 2)) expect(0 < Number(line['min_us']) && line['min_us']! <= line['time_us']!).toBe(true);
});

it('without -w, calls are repeated until they get no faster, on all ranks equally often', async () => {
  const ranks = await world(2);
  const calls = ranks.map(() => 0);
  const counting = ranks.map(
    (comm, rank) =>
      new Proxy(comm, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name, target);
          if (typeof member !== 'function') return member;
          return (...args: unknown[]): unknown => {
            if (name === 'allReduce' && args[0] instanceof Float32Array) calls[rank]!++;
            return Reflect.apply(member, target, args);
          };
        },
      }),
  );
  const options = perfOptions('all_reduce', { ...rawOptions, minbytes: '1M', maxbytes: '1M', iters: '1', api: 'promise' });
  expect(options.warmup).toBeUndefined();
  await Promise.all(counting.map((comm) => runPerf(comm, options, silent)));
  expect(calls[0]).toBe(calls[1]);
  // At least twice 16 calls of each half.
  expect(calls[0]).toBeGreaterThan(2 * 16);
});

it('without -n, the calls of each half take 0.1 s, or move 16 MiB', async () => {
  let nowMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const comm = {
    rank: 0,
    nRanks: 1,
    localRank: 0,
    alloc: (type: Float64ArrayConstructor, length: number) => new type(length),
    free: () => undefined,
    barrier: () => Promise.resolve(),
    allReduce: (send: Float32Array, recv: Float32Array) => {
      if (send instanceof Float32Array && send !== recv) recv.set(send);
      // Microseconds: 5 and a quarter a byte.
      if (send instanceof Float32Array) nowMs += 5e-3 + send.byteLength / 4e3;
      return Promise.resolve();
    },
  } as unknown as MeasuredCommunicator;
  const raw = { iters: undefined, warmup_iters: undefined, minbytes: '20', maxbytes: '64K', stepfactor: '3276' };
  const { lines } = await perf([comm], 'all_reduce', raw as unknown as Partial<RawOptions>);
  clock.mockRestore();
  // 10 µs a call; 16.4 ms a call, of which 256 move 16 MiB.
  expect(lines.slice(0, -1).map((line) => [line['bytes'], line['calls'], line['time_us']])).toEqual([
    [20, 10_000, 10],
    [20, 10_000, 10],
    [65520, 256, 16385],
    [65520, 256, 16385],
  ]);
});

it('nothing is checked with -c 0', async () => {
  const { lines } = await perf(await world(2), 'all_reduce', { minbytes: '64', maxbytes: '64', check: '0' });
  expect(lines.slice(0, 2).map((line) => line['wrong'])).toEqual([null, null]);
});

it('a root that is no rank is refused', async () => {
  await expect(perf(await world(2), 'broadcast', { minbytes: '8', maxbytes: '8', root: '2' })).rejects.toThrow(
    '--root 2 is not a rank: there are 2, from 0 to 1',
  );
});
