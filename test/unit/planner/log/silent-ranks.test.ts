import { describe, expect, it } from 'vitest';
import { diagnoseJob } from '../../../../src/planner/log/verdict/diagnosis.js';
import type { LogFinding } from '../../../../src/planner/log/checks/finding.js';
import { readFiles } from './read.js';

/** Lines of PyTorch 2.5 about a time-out, of a rank. */
const timedOut = (rank: number, sequence = 7213, operation = 'ALLREDUCE') =>
  `[rank${rank}]:[E1120 10:31:03.123 ProcessGroupNCCL.cpp:616] [Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=${sequence}, OpType=${operation}, NumelIn=26214400, NumelOut=26214400, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.
[rank${rank}]:[E1120 10:31:03.223 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank ${rank}] Exception (either an error or timeout) detected by watchdog at work: ${sequence}, last enqueued NCCL work: ${sequence + 1}, last completed NCCL work: ${sequence - 1}.
`;
const first = (files: Readonly<Record<string, string>>): LogFinding | undefined =>
  diagnoseJob(readFiles(files)).verdict.causes[0];
const without = (silent: number, count: number) =>
  Array.from({ length: count }, (_, rank) => rank).filter((rank) => rank !== silent);

describe('time-outs of PyTorch without a line of NCCL', () => {
  it('name the rank whose file has no time-out, by its last line', () => {
    const files = Object.fromEntries(without(5, 8).map((rank) => [`logs/rank${rank}.log`, timedOut(rank)]));
    expect(first({ ...files, 'logs/rank5.log': 'step 1200 loss 2.11\nwrites a checkpoint\n\n' })).toMatchObject({
      code: 'rank-absent',
      ranks: [5],
      problem:
        "rank 5 is not among the 7 that timed out in ALLREDUCE of 26214400 elements, number 7213, after 10 minutes; its last line is 'writes a checkpoint'",
    });
  });

  it('name the rank that lacks between those that gave up, and the last one by the size that a launcher prints', () => {
    const text = (silent: number) =>
      without(silent, 8)
        .map((rank) => timedOut(rank))
        .join('');
    expect(first({ 'job.out': text(5) })).toMatchObject({ code: 'rank-absent', ranks: [5] });
    expect(first({ 'job.out': text(7) })?.code).toBe('watchdog-timeout');
    const sizes = ['I1120 10:01:03 api.py:860]   global_world_sizes=[8, 8, 8, 8]', 'WORLD_SIZE=8', '[rank7]: step 1'];
    for (const line of sizes)
      expect(first({ 'job.out': `${line}\n${text(7)}` })).toMatchObject({ code: 'rank-absent', ranks: [7] });
  });

  it('name no rank where most gave no word: the launcher ended them before their watchdogs came', () => {
    expect(first({ 'job.out': `WORLD_SIZE=8\n${timedOut(0)}${timedOut(3)}` })).toMatchObject({
      code: 'watchdog-timeout',
      problem: expect.stringMatching(/ranks 0, 3 in ALLREDUCE of 26214400 elements, number 7213, after 10 minutes$/) as string,
    });
  });

  it('name the rank that lags by its number', () => {
    const files = {
      'job.out':
        without(2, 4)
          .map((rank) => timedOut(rank, 812))
          .join('') + timedOut(2, 809),
    };
    expect(first(files)).toMatchObject({ code: 'rank-behind', ranks: [2], problem: expect.stringContaining('809') as string });
  });
});
