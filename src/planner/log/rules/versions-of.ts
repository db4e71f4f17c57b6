import { compareVersions } from '../../versions/version.js';
import { ncclVersions } from './nccl-versions.js';
import type { LineRule } from './rule.js';

/** Versions of NCCL, both ends included; no bound where the oldest or the newest known version has the text. */
interface VersionRange {
  readonly since?: string;
  readonly until?: string;
}

/** The versions of NCCL whose source contains the texts of a rule. No bounds where a part of them comes from other programs. */
export function versionsOf({ needles }: Pick<LineRule, 'needles'>): VersionRange {
  const ranges = needles.map((needle) => ncclVersions.get(needle));
  const known = ranges.filter((range) => range !== undefined);
  if (known.length < ranges.length) return {};
  const since = known.map((range) => range.since);
  const until = known.map((range) => range.until);
  const oldest = since.includes(undefined) ? undefined : since.sort((a = '', b = '') => compareVersions(a, b))[0];
  const newest = until.includes(undefined) ? undefined : until.sort((a = '', b = '') => compareVersions(b, a))[0];
  return { ...(oldest === undefined ? {} : { since: oldest }), ...(newest === undefined ? {} : { until: newest }) };
}
