import { type IntervalClass, intervalClassOf } from '../../src/planner/simulate/interval.js';
import { type Distance, distanceOf, type SizeClass, sizeClasses } from '../../src/planner/simulate/measured-calls.js';
import { callKind, type LeftOutCall } from './left-out.js';
import { type MeasuredCall, PCIE } from './measured.js';
import { sizeTitles } from './size-titles.js';

/** Classes of calls with intervals of their own, and the box of PCIe cards. */
type Place = IntervalClass | 'cards';

export const placeTitles: Readonly<Record<Place, string>> = {
  oneHost: 'one node: all-reduce, all-gather, reduce-scatter',
  oneHostPairs: 'one node: all-to-all, send and receive',
  hosts: '2 to 10 nodes: all-reduce, all-gather, reduce-scatter',
  hostsPairs: '2 to 10 nodes: all-to-all, send and receive',
  cards: 'L40S over PCIe, not fitted',
};
export const places = Object.keys(placeTitles) as Place[];
const distances: readonly Distance[] = ['measured', 'calls', 'gpus'];

/** Logarithms of measured by predicted time. */
type Bounds = readonly [least: number, most: number];
type Spreads = ReadonlyMap<string, Bounds>;

/**
 * Widens intervals, as logarithms, for the few machines that they come from: with these, intervals that are computed without a
 * machine hold eight of ten of its measurements.
 */
const FEW_MACHINES = 1.1;

/** Weight of a measurement, one of so many of a machine, so that large tables decide less than their rows. */
const weightOf = (count: number) => 1 / Math.sqrt(count);

/** The class of a measured call. */
export function placeOf({ fabric, collective, hosts }: MeasuredCall): Place {
  return fabric === PCIE ? 'cards' : intervalClassOf(collective, hosts);
}

function keyOf(place: Place, distance: Distance, size: SizeClass): string {
  return `${place} ${distance} ${size}`;
}

function keyOfCall(each: LeftOutCall): string {
  const kind = callKind(each.call);
  const place = placeOf(each.call);
  return keyOf(place, place === 'cards' ? 'measured' : distanceOf(kind, each.kinds).distance, kind.size);
}

function ratioOf({ call, predictedUs }: LeftOutCall): number {
  return Math.log(call.timeUs / predictedUs);
}

/** True for calls that intervals come from: those on an empty stream, and of two cards, have others. */
function isUsual({ call }: LeftOutCall): boolean {
  return call.environment.launch === 'queued' && (call.fabric !== PCIE || call.simulator.nRanks > 2);
}

/**
 * Intervals by class, distance and size. Between hosts few machines were measured, so that the side of their errors is chance:
 * there both sides are alike. A distance without measurements takes the next larger one's interval, and no distance has a
 * narrower one than a smaller distance.
 */
function spreadsOf(calls: readonly LeftOutCall[]): Spreads {
  const groups = new Map<string, LeftOutCall[]>();
  for (const each of calls.filter(isUsual)) {
    const key = keyOfCall(each);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  const spreads = new Map<string, Bounds>();
  for (const place of places) {
    const factor = place === 'cards' ? 1 : FEW_MACHINES;
    for (const size of sizeClasses) {
      let [least, most] = [0, 0];
      let missing: Distance[] = [];
      for (const distance of distances) {
        const group = groups.get(keyOf(place, distance, size)) ?? [];
        missing.push(distance);
        if (group.length === 0) continue;
        const [low, high] = boundsOf(group, place);
        [least, most] = [Math.min(least, factor * low), Math.max(most, factor * high)];
        for (const each of missing) spreads.set(keyOf(place, each, size), [least, most]);
        missing = [];
      }
      if (most > least) for (const each of missing) spreads.set(keyOf(place, each, size), [least, most]);
    }
  }
  return spreads;
}

function boundsOf(group: readonly LeftOutCall[], place: Place): Bounds {
  const clusterOf = ({ left, call }: LeftOutCall) => `${left.by} ${left.name} ${call.machine}`;
  const counts = new Map<string, number>();
  for (const each of group) counts.set(clusterOf(each), (counts.get(clusterOf(each)) ?? 0) + 1);
  const weighted = (value: (ratio: number) => number) =>
    group.map((each) => [value(ratioOf(each)), weightOf(counts.get(clusterOf(each)) ?? 1)] as const);
  if (place.startsWith('hosts')) {
    const both = quantile(weighted(Math.abs), 0.8);
    return [-both, both];
  }
  const ratios = weighted((ratio) => ratio);
  return [quantile(ratios, 0.1), quantile(ratios, 0.9)];
}

function quantile(weighted: readonly (readonly [value: number, weight: number])[], part: number): number {
  const sorted = [...weighted].sort((a, b) => a[0] - b[0]);
  const wanted = part * sorted.reduce((sum, [, weight]) => sum + weight, 0);
  let sum = 0;
  for (const [value, weight] of sorted) {
    sum += weight;
    if (sum >= wanted) return value;
  }
  return sorted.at(-1)?.[0] ?? 0;
}

/** The intervals of src/planner/simulate/interval.ts, as they follow from fits that left something out. */
export function spreadsText(calls: readonly LeftOutCall[]): string {
  const spreads = spreadsOf(calls);
  const lines = places.flatMap((place) => [
    `  ${place}: {`,
    ...distances.map((distance) => {
      const sizes = sizeClasses.flatMap((size) => {
        const bounds = spreads.get(keyOf(place, distance, size));
        return bounds === undefined ? [] : [`${size}: [${bounds.map((log) => Number(Math.exp(log).toFixed(2))).join(', ')}]`];
      });
      return `    ${distance}: { ${sizes.join(', ')} },`;
    }),
    '  },',
  ]);
  return `${lines.join('\n')}\n`;
}

/** Share of measurements inside their intervals. */
export interface Coverage {
  readonly title: string;
  readonly size: SizeClass;
  readonly calls: number;
  /** Inside the intervals that tccl prints for a cluster as far from the rest as the left-out one was. */
  readonly printed: number;
  /** Inside intervals that were computed without the measurements' machine, too; undefined where it is the only one. */
  readonly withoutIt: number | undefined;
}

/** Coverage by class of calls and size. */
export function coverageOf(calls: readonly LeftOutCall[]): Coverage[] {
  const machines = [...new Set(calls.map(({ call }) => call.machine))];
  const without = new Map(machines.map((machine) => [machine, spreadsOf(calls.filter(({ call }) => call.machine !== machine))]));
  return places.flatMap((place) =>
    sizeClasses.flatMap((size): Coverage[] => {
      const rows = calls.filter((each) => placeOf(each.call) === place && callKind(each.call).size === size);
      if (rows.length === 0) return [];
      const judged = rows.flatMap((each) => {
        const bounds = without.get(each.call.machine)?.get(keyOfCall(each));
        return bounds === undefined ? [] : [bounds[0] <= ratioOf(each) && ratioOf(each) <= bounds[1]];
      });
      return [
        {
          title: placeTitles[place],
          size,
          calls: rows.length,
          printed: share(rows.map(isInside)),
          withoutIt: judged.length === 0 ? undefined : share(judged),
        },
      ];
    }),
  );
}

/** True for a measurement within the interval that tccl prints. */
export function isInside({ call, predictedUs, kinds }: LeftOutCall): boolean {
  const { simulator, collective, bytes, environment, timeUs } = call;
  const { least, most } = simulator.interval(collective, bytes, environment, false, kinds);
  return predictedUs * least <= timeUs && timeUs <= predictedUs * most;
}

function share(all: readonly boolean[]): number {
  return all.filter((each) => each).length / all.length;
}

/** The coverage of intervals in Markdown. */
export function coverageTable(calls: readonly LeftOutCall[]): string {
  const percent = (part: number | undefined) => (part === undefined ? 'none' : `${(100 * part).toFixed(0)} %`);
  return [
    '| left out | size | rows | inside | inside intervals of the others |',
    '|---|---|--:|--:|--:|',
    ...coverageOf(calls).map(
      ({ title, size, calls: count, printed, withoutIt }) =>
        `| ${title} | ${sizeTitles[size]} | ${count} | ${percent(printed)} | ${percent(withoutIt)} |`,
    ),
  ].join('\n');
}
