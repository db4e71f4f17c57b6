import { InvalidArgumentError } from '../../errors.js';

/** The version for which the planner decides by default. */
export const defaultVersion = '2.30.7';

/** Versions of which recorded answers are compared with the planner's, newest first. */
export const comparedVersions = [
  '2.30.7',
  '2.29.7',
  '2.28.9',
  '2.27.5',
  '2.27.3',
  '2.26.2',
  '2.21.5',
  '2.20.5',
  '2.19.3',
  '2.18.5',
] as const;

/** Releases of NCCL, newest first. */
export const releases: readonly string[] = [
  '2.32.6',
  '2.32.3',
  '2.31.2',
  '2.30.7',
  '2.30.4',
  '2.30.3',
  '2.29.7',
  '2.29.3',
  '2.29.2',
  '2.28.9',
  '2.28.7',
  '2.28.3',
  '2.27.7',
  '2.27.6',
  '2.27.5',
  '2.27.3',
  '2.26.6',
  '2.26.5',
  '2.26.3',
  '2.26.2',
  '2.25.1',
  '2.24.3',
  '2.23.4',
  '2.22.3',
  '2.21.5',
  '2.20.5',
  '2.20.3',
  '2.19.4',
  '2.19.3',
  '2.19.1',
  '2.18.6',
  '2.18.5',
  '2.18.3',
  '2.18.1',
];

/** The oldest release for which all rules are known. */
const OLDEST_COVERED = '2.18.5';

/**
 * The releases that the planner covers, newest first; those without recorded answers are read from source. Older ones decide
 * differently in ways that have no rules yet.
 */
export const coveredVersions: readonly string[] = releases.slice(0, releases.indexOf(OLDEST_COVERED) + 1);

/** True where recorded answers of that version are compared with the planner's. */
export function isCompared(version: string): boolean {
  return (comparedVersions as readonly string[]).includes(version);
}

/**
 * A covered version from the text of a user, log or package: `2.26.2`, `v2.26.2-1`, `2.26.2+cuda12.2`.
 *
 * @throws InvalidArgumentError `UNKNOWN_NAME` for others; the message names the nearest covered ones
 */
export function ncclVersion(text: string): string {
  const version = /^v?([0-9]+\.[0-9]+\.[0-9]+)(?:-[0-9]+)?(?:\+\S*)?$/.exec(text.trim())?.[1];
  if (version === undefined) throw new InvalidArgumentError('UNKNOWN_NAME', noVersion(text));
  if (coveredVersions.includes(version)) return version;
  throw new InvalidArgumentError('UNKNOWN_NAME', `NCCL ${version} ${notCovered(version)}`);
}

function noVersion(text: string): string {
  const [, series] = /^v?([0-9]+\.[0-9]+)$/.exec(text.trim()) ?? [];
  if (series === undefined) return `'${text}' is no version of NCCL: write three numbers, as ${defaultVersion}`;
  const ofSeries = coveredVersions.filter((version) => version.startsWith(`${series}.`));
  if (ofSeries.length === 0) return `NCCL ${series} ${notCovered(series)}`;
  return `'${text}' is no version of NCCL: write three numbers; covered of ${series}: ${ofSeries.join(', ')}`;
}

/** `is not covered; …`: the nearest covered versions, and known differences. */
export function notCovered(version: string): string {
  const { older, newer } = nearestVersions(version);
  if (older !== undefined && newer !== undefined)
    return `is not covered; the nearest that are: ${older} and ${newer} (tccl nccl rules --from ${older} --to ${newer} lists what changed between them)`;
  return `is not covered; the nearest that is: ${older ?? newer ?? ''}.${older === undefined ? ` ${KNOWN_OF_OLDER}` : ''} (tccl nccl versions lists all)`;
}

/** Read from the differences of tags v2.18.1-1 and v2.18.3-1 to v2.18.5-1. */
const KNOWN_OF_OLDER =
  'Up to 2.18.5 changed, among others, the NICs that a GPU takes, the speeds tried between Hopper hosts, trees on Hopper, and LL128 over NVLink by way of a GPU';

/** The covered versions next to a version: the newest that is not newer, and the oldest that is newer. */
export function nearestVersions(version: string): { readonly older: string | undefined; readonly newer: string | undefined } {
  return {
    older: coveredVersions.find((covered) => compareVersions(covered, version) <= 0),
    newer: coveredVersions.findLast((covered) => compareVersions(covered, version) > 0),
  };
}

/** Negative where `a` is older than `b`, 0 where they are the same. */
export function compareVersions(a: string, b: string): number {
  const left = a.split('.').map(Number);
  const right = b.split('.').map(Number);
  for (let part = 0; part < Math.max(left.length, right.length); part++) {
    const difference = (left[part] ?? 0) - (right[part] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
