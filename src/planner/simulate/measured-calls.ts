import type { ScheduledCollective } from '../schedule/schedule.js';
import { generationOf } from '../tuning/constants.js';

/** Sizes with one interval: below 1 MiB, below 128 MiB, and from there on. */
export const sizeClasses = ['small', 'middle', 'large'] as const;
/** One of {@link sizeClasses}. */
export type SizeClass = (typeof sizeClasses)[number];

/** The class of a size in bytes. */
export function sizeClassOf(bytes: number): SizeClass {
  return bytes < 2 ** 20 ? 'small' : bytes < 2 ** 27 ? 'middle' : 'large';
}

/** Calls of a collective on GPUs of one kind, on one host or between hosts. */
export interface CallKind {
  /** Compute capability × 10. */
  readonly compCap: number;
  readonly isBetweenHosts: boolean;
  readonly collective: ScheduledCollective;
  readonly size: SizeClass;
}

/** Kinds of calls as keys: {@link kindKey}. */
export type MeasuredKinds = ReadonlySet<string>;

/** A key of a kind of calls. GB300 and B300 count as GB200 and B200. */
export function kindKey({ compCap, isBetweenHosts, collective, size }: CallKind): string {
  return `${placeKey({ compCap, isBetweenHosts })} ${collective} ${size}`;
}

function placeKey({ compCap, isBetweenHosts }: Pick<CallKind, 'compCap' | 'isBetweenHosts'>): string {
  return `${isDatacentreBlackwell(compCap) ? 100 : compCap} ${isBetweenHosts ? 'hosts' : 'host'}`;
}

function isDatacentreBlackwell(compCap: number): boolean {
  return compCap >= 100 && compCap < 120;
}

/** Measurements that a kind has at least to count as measured. */
export const LEAST_MEASUREMENTS = 3;

const ring: readonly ScheduledCollective[] = ['AllReduce', 'AllGather', 'ReduceScatter'];

/** By place, collectives and the first letters of size classes. A test compares them with the files in docs/notes/. */
const measured: readonly (readonly [
  compCap: number,
  isBetweenHosts: boolean,
  collectives: readonly ScheduledCollective[],
  sizes: readonly SizeClass[],
])[] = [
  [80, false, [...ring, 'AllToAll'], sizeClasses],
  [90, false, [...ring, 'AllToAll'], sizeClasses],
  [90, false, ['SendRecv'], ['middle', 'large']],
  [100, false, [...ring, 'AllToAll'], sizeClasses],
  [80, true, ['AllReduce'], sizeClasses],
  [90, true, ring, sizeClasses],
  [90, true, ['AllToAll', 'SendRecv'], ['middle', 'large']],
];

/** The kinds of calls that measurements of the fit are of. */
export const measuredKinds: MeasuredKinds = new Set(
  measured.flatMap(([compCap, isBetweenHosts, collectives, sizes]) =>
    collectives.flatMap((collective) => sizes.map((size) => kindKey({ compCap, isBetweenHosts, collective, size }))),
  ),
);

/** Distance of calls from those that were measured: `calls` have others of the same GPUs and place beside them, `gpus` none. */
export type Distance = 'measured' | 'calls' | 'gpus';

/** The distance of a kind of calls, in words, too; none for one that was measured. */
export function distanceOf(
  kind: CallKind,
  kinds: MeasuredKinds = measuredKinds,
): { readonly distance: Distance; readonly words: string | undefined } {
  if (kinds.has(kindKey(kind))) return { distance: 'measured', words: undefined };
  const where = `${kind.isBetweenHosts ? 'between hosts with ' : 'on '}${gpusText(kind.compCap)}`;
  const place = `${placeKey(kind)} `;
  if (![...kinds].some((key) => key.startsWith(place))) return { distance: 'gpus', words: `calls ${where}` };
  const others = sizeClasses.filter((size) => kinds.has(kindKey({ ...kind, size })));
  const size = others.length === 0 ? '' : ` ${sizeWords[kind.size]}`;
  return { distance: 'calls', words: `${kind.collective}${size} ${where}` };
}

const sizeWords: Readonly<Record<SizeClass, string>> = {
  small: 'below 1 MiB',
  middle: 'of 1 to 128 MiB',
  large: 'from 128 MiB on',
};

/** `Hopper`; `GPUs of compute capability 8.9` where the generation has others, too. */
function gpusText(compCap: number): string {
  if (compCap === 80) return 'A100';
  if (compCap === 90) return 'Hopper';
  if (isDatacentreBlackwell(compCap)) return 'Blackwell';
  if (generationOf(compCap) === 'volta') return 'Volta';
  return `GPUs of compute capability ${(compCap / 10).toFixed(1)}`;
}
