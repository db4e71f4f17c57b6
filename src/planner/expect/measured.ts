import type { TestRun } from '../log/job/table.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import type { DataTypeName } from '../tuning/names.js';

/** Measurements of one run of a benchmark. */
export interface Results {
  readonly collective: ScheduledCollective;
  /** Undefined if the results lack it. */
  readonly nRanks: number | undefined;
  /** Hosts by name; empty if the results lack them. */
  readonly hosts: readonly string[];
  readonly run: TestRun;
  /** Variables of NCCL of the run, if the results have them. */
  readonly variables: Readonly<Record<string, string>>;
  /** µs below which times are those of the calling program rather than of NCCL. Default: 0. */
  readonly shortestUs?: number;
  readonly rows: readonly ResultRow[];
}

/** One size. */
export interface ResultRow {
  readonly bytes: number;
  readonly type: DataTypeName;
  /** The faster of out of place and in place. */
  readonly timeUs: number;
  /** Place of the row: `line 12`, `results[3]`. */
  readonly place: string;
}

/** Types by the names of nccl-tests and PyTorch, where these differ from the planner's. */
export const typesByName: Readonly<Record<string, DataTypeName>> = {
  char: 'int8',
  half: 'float16',
  float: 'float32',
  double: 'float64',
  f8e4m3: 'float8e4m3',
  f8e5m2: 'float8e5m2',
  fp8_e4m3: 'float8e4m3',
  fp8_e5m2: 'float8e5m2',
};
