import type { ScheduledCollective } from '../schedule/schedule.js';

/** Measured by predicted time: eight of ten measurements lie between. */
interface Interval {
  readonly least: number;
  readonly most: number;
}

/** By class, and by size: below 1 MiB, below 128 MiB, and above. */
type BySize = readonly [Interval, Interval, Interval];

const intervals: Readonly<Record<'oneNode' | 'oneNodePairs' | 'nodes' | 'nodesPairs', BySize>> = {
  oneNode: [
    { least: 0.91, most: 1.28 },
    { least: 0.93, most: 1.16 },
    { least: 0.93, most: 1.09 },
  ],
  oneNodePairs: [
    { least: 0.87, most: 1.45 },
    { least: 0.83, most: 1.1 },
    { least: 0.97, most: 1.14 },
  ],
  // There are no measurements of small sizes between nodes: a factor of two.
  nodes: [
    { least: 0.5, most: 2 },
    { least: 0.86, most: 1.23 },
    { least: 0.97, most: 1.05 },
  ],
  nodesPairs: [
    { least: 0.5, most: 2 },
    { least: 0.95, most: 1.25 },
    { least: 0.95, most: 1.08 },
  ],
};

/** On windows: 15 published times of two machines (docs/notes/tuning.md) are too few, so a factor of two. */
const onWindows: Interval = { least: 0.5, most: 2 };

/** Errors of predictions on machines that no parameter came from (docs/notes/simulate.md). */
export function intervalOf(
  collective: ScheduledCollective,
  bytes: number,
  isSeveralNodes: boolean,
  isOnWindows = false,
): Interval {
  if (isOnWindows) return onWindows;
  const isPairs = collective === 'AllToAll' || collective === 'SendRecv' || collective === 'Gather' || collective === 'Scatter';
  const [small, middle, large] =
    intervals[isSeveralNodes ? (isPairs ? 'nodesPairs' : 'nodes') : isPairs ? 'oneNodePairs' : 'oneNode'];
  return bytes < 2 ** 20 ? small : bytes < 2 ** 27 ? middle : large;
}
