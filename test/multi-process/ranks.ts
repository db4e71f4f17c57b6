import { expect } from 'vitest';
import { fixture, tccl, type Finished } from './cli.js';

/**
 * Milliseconds within which a failure reaches all ranks, on a busy machine too. All other events that would end a wait take
 * longer: a silent host is given up after some 15 s, and jobs have `--grace 20` in these tests.
 */
export const AT_ONCE_MS = 10_000;

export interface Outcome extends Finished {
  /** Lines of standard output that are JSON, in the order in which they came. */
  readonly records: readonly Record<string, unknown>[];
}

/** Requires that the three other ranks of four reported at once that rank 1 died. */
export function expectDeathOfRank1({ records, stderr }: Outcome): void {
  expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
    [0, 'RANK_DIED', 1],
    [2, 'RANK_DIED', 1],
    [3, 'RANK_DIED', 1],
  ]);
  for (const record of records) expect(record['ms']).toBeLessThan(AT_ONCE_MS);
}

/** Runs `fixtures/<program>` as `nRanks` processes under `tccl run`. */
export async function runRanks(
  nRanks: number,
  program: string,
  args: readonly string[] = [],
  { env = {}, flags = [] }: { env?: Record<string, string>; flags?: readonly string[] } = {},
): Promise<Outcome> {
  const finished = await tccl(
    ['run', '-n', String(nRanks), '--no-prefix', ...flags, '--', process.execPath, fixture(program), ...args],
    { env },
  );
  const lines = finished.stdout.split('\n').filter((line) => line.startsWith('{'));
  return { ...finished, records: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}
