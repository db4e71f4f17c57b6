import { expect, it } from 'vitest';
import { bandwidths, collectives } from '../../../src/perf/collectives.js';

const collective = (name: string) => collectives.find((one) => one.name === name)!;

it("bus bandwidth is nccl-tests': 2(n-1)/n of all-reduce's, all of broadcast's", () => {
  expect(bandwidths(collective('all_reduce'), 4e6, 1000, 2)).toEqual({ algbwGBps: 4, busbwGBps: 4 });
  expect(bandwidths(collective('all_reduce'), 4e6, 1000, 8)).toEqual({ algbwGBps: 4, busbwGBps: 7 });
  expect(bandwidths(collective('all_reduce'), 4e6, 1000, 1)).toEqual({ algbwGBps: 4, busbwGBps: 0 });
  expect(bandwidths(collective('broadcast'), 4e6, 1000, 8)).toEqual({ algbwGBps: 4, busbwGBps: 4 });
  expect(bandwidths(collective('all_reduce'), 8, 0, 2)).toEqual({ algbwGBps: 0, busbwGBps: 0 });
});
