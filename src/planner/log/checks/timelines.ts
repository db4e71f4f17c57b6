import type { TimedCall } from '../../readers/timeline.js';
import type { LogFinding } from './finding.js';

/** Fewest collectives of a group from which a late rank can be found. */
const FEWEST_CALLS = 5;
/** A rank is late by at least this share of the collective's time, and by at least this time. */
const LATE_SHARE = 0.5;
const LATE_US = 200;
/** The share of collectives in which the same rank must be last. */
const LATE_CALLS = 0.6;

/** Collectives that end on all ranks together: of others, such as a broadcast, the root is done first. */
const symmetricPattern = /^(?:all|reduce_?scatter|barrier)/i;

/** Ranks that come last to most collectives, for which the others wait. */
export function checkTimelines(timed: readonly TimedCall[]): LogFinding[] {
  const groups = new Map<string, Map<string, Map<number, TimedCall>>>();
  for (const call of timed) {
    if (!symmetricPattern.test(call.operation)) continue;
    const calls = groups.get(call.group) ?? new Map<string, Map<number, TimedCall>>();
    groups.set(call.group, calls);
    // NCCL numbers the calls of each collective by themselves.
    const key = `${call.operation} ${call.sequence}`;
    const ranks = calls.get(key) ?? new Map<number, TimedCall>();
    calls.set(key, ranks);
    ranks.set(call.rank, call);
  }
  return [...groups].flatMap(([group, calls]) => lateRank(group, calls)).slice(0, 3);
}

function lateRank(group: string, calls: ReadonlyMap<string, ReadonlyMap<number, TimedCall>>): LogFinding[] {
  const members = Math.max(...[...calls.values()].map(({ size }) => size));
  const complete = [...calls.values()].filter(({ size }) => size === members && members > 1);
  if (complete.length < FEWEST_CALLS) return [];
  const late = new Map<number, { readonly call: TimedCall; readonly waitUs: number; readonly typicalUs: number }[]>();
  for (const ranks of complete) {
    const sorted = [...ranks.values()].sort((a, b) => a.durationUs - b.durationUs);
    const [shortest] = sorted;
    const middle = sorted[Math.max(1, Math.floor(sorted.length / 2))];
    if (shortest === undefined || middle === undefined) continue;
    const waitUs = middle.durationUs - shortest.durationUs;
    if (waitUs < LATE_US || waitUs < LATE_SHARE * middle.durationUs) continue;
    const known = late.get(shortest.rank) ?? [];
    late.set(shortest.rank, [...known, { call: shortest, waitUs, typicalUs: middle.durationUs }]);
  }
  const [worst] = [...late.values()].sort((a, b) => b.length - a.length);
  const [first] = worst ?? [];
  if (worst === undefined || first === undefined || worst.length < LATE_CALLS * complete.length) return [];
  const { call } = first;
  const wait = middleOf(worst.map(({ waitUs }) => waitUs));
  const typical = middleOf(worst.map(({ typicalUs }) => typicalUs));
  return [
    {
      code: 'rank-late',
      severity: 'warning',
      kind: 'fault',
      ranks: [call.rank],
      explains: ['bandwidth-low'],
      problem: `rank ${call.rank}${call.host === '' ? '' : ` (${call.host})`} comes last to ${worst.length} of ${complete.length} collectives of group ${call.groupName ?? group}: the others wait ${ms(wait)} of the ${ms(typical)} that one takes them`,
      cause: 'that rank takes longer before the collective: slow data, more work, or a GPU that is hot, throttled or has errors',
      remedy: `\`nvidia-smi -q\` (clocks, event reasons, ECC) on the host of rank ${call.rank}; compare its step with that of another rank in a profile`,
      places: worst.slice(0, 4).map(({ call: { place } }) => place),
    },
  ];
}

function middleOf(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function ms(us: number): string {
  return us >= 1000 ? `${(us / 1000).toFixed(1)} ms` : `${us.toFixed(0)} us`;
}
