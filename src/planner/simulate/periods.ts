/** Rounds that are simulated before the steady state is measured, and rounds over which it is. */
const SETTLED_PERIODS = 4;
const SAMPLED_PERIODS = 2;

/**
 * Time of a call, from its first rounds of chunks: each further one takes as long as the last ones that are executed.
 *
 * @param periodBytes bytes of a round
 * @param timeOf executes a call of that many bytes
 */
export function timeByPeriods(bytes: number, periodBytes: number, timeOf: (bytes: number) => number): number {
  const kept = SETTLED_PERIODS + SAMPLED_PERIODS;
  const count = Math.floor(bytes / periodBytes);
  if (count <= kept + 1) return timeOf(bytes);
  const skipped = count - kept;
  const rest = bytes - skipped * periodBytes;
  const long = timeOf(rest);
  return long + (skipped * (long - timeOf(rest - SAMPLED_PERIODS * periodBytes))) / SAMPLED_PERIODS;
}
