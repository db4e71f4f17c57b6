/**
 * `the fit has no measurement of AllGather, SendRecv between hosts with A100; of the network tcpx: intervals are wider`;
 * undefined where everything was measured.
 *
 * @param unmeasured what an interval names
 */
export function unmeasuredText(unmeasured: readonly string[]): string | undefined {
  if (unmeasured.length === 0) return undefined;
  // Collectives that differ in their name alone share the rest.
  const byRest = new Map<string, Set<string>>();
  for (const words of unmeasured) {
    const [first = '', ...rest] = words.split(' ');
    const key = rest.join(' ');
    byRest.set(key, (byRest.get(key) ?? new Set()).add(first));
  }
  const parts = [...byRest].map(([rest, first]) => `${[...first].join(', ')} ${rest}`);
  return `the fit has no measurement of ${parts.join('; of ')}: intervals are wider`;
}
