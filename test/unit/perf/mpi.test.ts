import { afterEach, describe, expect, it } from 'vitest';
import { collectives } from '../../../src/perf/collectives.js';
import { benchmarks } from '../../../src/perf/mpi/benchmarks.js';
import { benchmarkOf, mpiOptions, type MpiOptions } from '../../../src/perf/mpi/options.js';
import { mpiJson, mpiTable } from '../../../src/perf/mpi/report.js';
import { silent } from '../../../src/perf/report.js';
import { type MpiRow, runMpi } from '../../../src/perf/mpi/run.js';
import type { RawOptions } from '../../../src/perf/options.js';
import { getUniqueId } from '../../../src/runtime/bootstrap/root.js';
import type { Communicator } from '../../../src/runtime/communicator/communicator.js';
import { init } from '../../../src/runtime/init/init.js';
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

function optionsOf(name: string, raw: Partial<RawOptions> = {}): MpiOptions {
  const benchmark = benchmarkOf(name);
  if (benchmark === undefined) throw new Error(name);
  return mpiOptions(benchmark, { ...rawOptions, ...raw }, (option) => option in raw);
}

async function rowsOf(ranks: readonly Communicator[], options: MpiOptions): Promise<MpiRow[]> {
  const rows: MpiRow[] = [];
  const reporter = { ...silent, row: (row: MpiRow) => rows.push(row) };
  await Promise.all(ranks.map((comm) => runMpi(comm, options, comm.rank === 0 ? reporter : silent)));
  return rows;
}

const few = { iters: '2', warmup_iters: '1', api: 'promise' };

describe('benchmarks of OSU and IMB', () => {
  it.each(benchmarks.map(({ name }) => name))('%s has a row for each size', async (name) => {
    const options = optionsOf(name, { ...few, minbytes: '4', maxbytes: '1K', stepfactor: '16' });
    const rows = await rowsOf(await world(2), options);
    expect(rows.map(({ bytes }) => bytes)).toEqual(options.benchmark.largest === 0 ? [0] : [4, 64, 1024]);
    for (const { values } of rows) {
      expect(values).toHaveLength(options.benchmark.columns.length);
      for (const value of values) expect(value).toBeGreaterThanOrEqual(0);
      expect(Math.max(...values)).toBeGreaterThan(0);
    }
  });

  it.each(benchmarks.filter(({ ranks }) => ranks !== 'two').map(({ name }) => name))('%s runs on four ranks', async (name) => {
    expect(await rowsOf(await world(4), optionsOf(name, { ...few, minbytes: '16', maxbytes: '16' }))).toHaveLength(1);
  });

  it('leave their names to the benchmarks of nccl-tests that have the same in lower case', () => {
    for (const { name } of collectives) expect(benchmarkOf(name), name).toBeUndefined();
    expect(benchmarkOf('Alltoall')?.family).toBe('IMB');
    expect(benchmarkOf('allreduce')?.name).toBe('Allreduce');
  });

  it('what they move arrives', async () => {
    const ranks = await world(2);
    for (const name of ['osu_latency', 'osu_bibw', 'Sendrecv', 'Exchange', 'osu_alltoall', 'osu_bcast']) {
      const benchmark = benchmarkOf(name);
      if (benchmark === undefined) throw new Error(name);
      const received = await Promise.all(
        ranks.map(async (comm) => {
          const { send: sends, recv: receives } = benchmark.counts(4, 2);
          const [send, recv] = [new Int8Array(sends).fill(comm.rank + 1), new Int8Array(receives)];
          const part = receives / benchmark.atATime;
          const parts = Array.from({ length: benchmark.atATime }, (_, i) => recv.subarray(i * part, (i + 1) * part));
          const type = { type: 'int8' } as const;
          const call = { send, recv, operator: 'sum', root: 0, options: type } as const;
          await benchmark.run({ comm, send, recv, parts, call, type, answer: new Int32Array(1) });
          return name === 'osu_bcast' ? send : recv;
        }),
      );
      const all = (value: number, count: number) => new Int8Array(count).fill(value);
      const expected =
        name === 'osu_alltoall'
          ? [Int8Array.of(1, 1, 1, 1, 2, 2, 2, 2), Int8Array.of(1, 1, 1, 1, 2, 2, 2, 2)]
          : name === 'osu_bcast'
            ? [all(1, 4), all(1, 4)]
            : [all(2, received[0]?.length ?? 0), all(1, received[1]?.length ?? 0)];
      expect(received, name).toEqual(expected);
    }
  });

  it('print the tables of their projects', () => {
    const printed = (name: string, raw: Partial<RawOptions>, values: readonly number[], json = false) => {
      let text = '';
      const options = optionsOf(name, raw);
      const write = (more: string) => (text += more);
      const reporter = json ? mpiJson(options, write) : mpiTable(options, '1.2.3', write);
      reporter.start(2);
      reporter.row({ bytes: 64, repetitions: 100, values });
      return text;
    };
    expect(printed('osu_latency', {}, [0.256])).toBe(
      [
        '# osu_latency on 2 ranks',
        '# tccl perf version 1.2.3 type: int8 api: sync arrays: alloc',
        '# Size            Latency (us)',
        '64                        0.26',
        '',
      ].join('\n'),
    );
    expect(printed('pingpong', {}, [0.256, 250])).toContain(
      [
        '# Benchmarking PingPong ',
        '# #processes = 2 ',
        '#------------------------------------------------------------------------',
        '       #bytes #repetitions      t[usec]   Mbytes/sec',
        '           64          100         0.26       250.00',
        '',
      ].join('\n'),
    );
    expect(JSON.parse(printed('osu_allreduce', { datatype: 'half' }, [3, 2, 4], true))).toEqual({
      lib: 'tccl',
      benchmark: 'osu_allreduce',
      type: 'half',
      ranks: 2,
      bytes: 64,
      calls: 100,
      api: 'sync',
      memory: 'shared',
      avg_us: 3,
      min_us: 2,
      max_us: 4,
    });
  });

  it('measure their projects’ sizes where none are given', () => {
    expect(optionsOf('osu_latency').sizes).toEqual(Array.from({ length: 23 }, (_, i) => 2 ** i));
    expect(optionsOf('osu_allreduce').sizes.at(0)).toBe(4);
    expect(optionsOf('osu_bw', { minbytes: '1M' }).sizes).toEqual([2 ** 20, 2 ** 21, 2 ** 22]);
    expect(optionsOf('osu_barrier').sizes).toEqual([0]);
    expect(optionsOf('osu_iallreduce').api).toBe('promise');
  });

  it.each<readonly [name: string, raw: Partial<RawOptions>, message: string]>([
    ['osu_latency', { check: '3' }, 'osu_latency takes no --check: that is of the benchmarks of nccl-tests'],
    ['osu_allreduce', { datatype: 'all' }, 'osu_allreduce measures one type and one operator, not all'],
    ['osu_iallreduce', { api: 'sync' }, 'osu_iallreduce computes while its calls run: blocking calls cannot (--api promise)'],
    ['osu_bw', { datatype: 'flaot' }, "unknown datatype 'flaot'; did you mean float?"],
  ])('%s refuses %o', (name, raw, message) => {
    expect(() => optionsOf(name, raw)).toThrow(message);
  });

  it('refuse numbers of ranks that they are not for', async () => {
    const [comm] = await world(1);
    if (comm === undefined) throw new Error('no rank');
    await expect(runMpi(comm, optionsOf('osu_bw'), silent)).rejects.toThrow('osu_bw is between two ranks, not 1: --ranks 2');
    await expect(runMpi(comm, optionsOf('osu_mbw_mr'), silent)).rejects.toThrow(
      'osu_mbw_mr is between pairs of ranks, and 1 is odd',
    );
  });
});
