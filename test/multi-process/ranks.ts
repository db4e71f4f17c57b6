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
