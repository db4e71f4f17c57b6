import { expect, it } from 'vitest';
import { perfOptions } from '../../../src/perf/options.js';
import { formatFooter, formatG, formatHeader, formatRowHalf, formatRowHead, formatShortest } from '../../../src/perf/table.js';
import { rawOptions } from './raw-options.js';

// The lines below were printed by C with nccl-tests' own format strings (its src/util.cu); two columns and a line are ours.
const titles = `\
#                                                              out-of-place                       in-place             out-of-p  in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong        min      min
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)               (us)     (us)
`;
const rows = `\
           8             2     float     sum      -1     0.23    0.03    0.03       0  12345.7  123.46  100000  1.23457e+06
 17179869184    4294967296  bfloat16    none       3  1234568   12346   1e+06    N/A  1.2e+08    0.00    0.00      12
`;
const footer = `\
# time: mean of the calls in a row, which follow each other without a barrier; min: of their fastest tenth
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 7.12346 
#
# Collective test concluded: all_reduce_perf
#
`;

it("the header ends with nccl-tests' three lines of titles", () => {
  const header = formatHeader(
    perfOptions('all_reduce', { ...rawOptions, minbytes: '8', maxbytes: '64K', stepfactor: '2' }),
    '1.2.3',
    2,
    ['Rank  0', 'Rank  1'],
  );
  expect(header).toBe(`\
# tccl perf version 1.2.3
# Collective test starting: all_reduce_perf
# nRanks 2 minBytes 8 maxBytes 65536 step: 2(factor) warmup iters: by time iters: by time agg iters: 1 validation: 1 time of: 1(avg) api: sync arrays: alloc
#
# Using devices
#  Rank  0
#  Rank  1
#
${titles}`);
});

it("rows are nccl-tests' to the column", () => {
  const small =
    formatRowHead({ bytes: 8, count: 2, type: 'float', operator: 'sum', root: -1 }) +
    formatRowHalf({ iterations: 20, timeUs: 0.23456, shortestUs: 0.2, algbwGBps: 0.0341, busbwGBps: 0.0341, wrong: 0 }) +
    formatRowHalf({
      iterations: 20,
      timeUs: 12345.678,
      shortestUs: 12000,
      algbwGBps: 123.456,
      busbwGBps: 99999.96,
      wrong: 1234567,
    });
  const large =
    formatRowHead({ bytes: 17179869184, count: 4294967296, type: 'bfloat16', operator: 'none', root: 3 }) +
    formatRowHalf({
      iterations: 20,
      timeUs: 1234567.8,
      shortestUs: 0,
      algbwGBps: 12345.67,
      busbwGBps: 1234567.8,
      wrong: undefined,
    }) +
    formatRowHalf({ iterations: 20, timeUs: 123456789, shortestUs: 0, algbwGBps: 0, busbwGBps: 0, wrong: 12 });
  expect(`${small}\n${large}\n`).toBe(rows);
});

it('the shortest times follow behind them', () => {
  const half = { iterations: 20, timeUs: 1, shortestUs: 0.876, algbwGBps: 1, busbwGBps: 1, wrong: 0 };
  expect(formatShortest(half, { ...half, shortestUs: 1234.5 })).toBe('      0.88  1234.50');
  expect(formatShortest(half, undefined)).toBe('      0.88      N/A');
});

it("the footer is nccl-tests', after a line on times", () => {
  expect(formatFooter('all_reduce', 0, 7.123456789)).toBe(footer);
  expect(formatFooter('all_reduce', 3, 1)).toContain('# Out of bounds values : 3 FAILED\n');
});

it('numbers print as C prints %g', () => {
  const values = [0, 1, 1.5, 100000, 123456.7, 999999.6, 1234567, 1e-4, 1.23456789e-5, 1e20, 3e-100, 0.1];
  expect(values.map(formatG).join('|')).toBe('0|1|1.5|100000|123457|1e+06|1.23457e+06|0.0001|1.23457e-05|1e+20|3e-100|0.1');
});
