import type { RawOptions } from '../../../src/perf/options.js';

/** The command line's defaults. */
export const rawOptions: RawOptions = {
  minbytes: '32M',
  maxbytes: '32M',
  stepbytes: '1M',
  stepfactor: '1',
  agg_iters: '1',
  check: '1',
  op: 'sum',
  datatype: 'float',
  root: '0',
  average: '1',
  blocking: '0',
  api: 'sync',
  memory: 'shared',
};
