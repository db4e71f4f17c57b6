import { compareVersions } from '../../versions/version.js';
import type { LogFinding } from './finding.js';
import type { LogPlace } from '../lines/line.js';
import type { LoggedProcess, LogModel } from '../job/model.js';
import { hasEnded, isInitialised } from '../job/outcome.js';
import { versionsOf } from '../rules/versions-of.js';

/** Hosts of one job that run different releases of NCCL or of its network plugin. */
export function checkReleases(model: LogModel): LogFinding[] {
  if (hasEnded(model)) return [];
  const versions = byLine(model);
  return [...versions, ...(versions.length > 0 ? [] : byWording(model)), ...plugins(model)];
}

type VersionedProcess = LoggedProcess & { readonly version: NonNullable<LoggedProcess['version']> };

function releaseOf({ version }: VersionedProcess): string {
  return version.text.split('+', 1)[0] ?? '';
}

function versioned({ processes }: LogModel): VersionedProcess[] {
  return processes.filter((process): process is VersionedProcess => process.version !== undefined);
}

/** False for processes that wrote to one file one after the other: jobs of their own. */
function areTogether(a: LoggedProcess, b: LoggedProcess): boolean {
  if (a.first.file !== b.first.file || a.last.file !== b.last.file) return true;
  return a.first.line <= b.last.line && b.first.line <= a.last.line;
}

/** The first two processes of different hosts, at one time, that differ in what `of` gives. */
function differing<Process extends LoggedProcess>(
  processes: readonly Process[],
  of: (process: Process) => string,
): readonly [Process, Process] | undefined {
  const firsts: Process[] = [];
  for (const process of processes) {
    const other = firsts.find((first) => of(first) !== of(process) && first.host !== process.host && areTogether(first, process));
    if (other !== undefined) return [other, process];
    if (!firsts.some((first) => of(first) === of(process) && first.host === process.host)) firsts.push(process);
  }
  return undefined;
}

const explains = ['init-unfinished', 'channels-differ', 'remote-closed', 'calls-differ', 'calls-failed'] as const;
const CAUSE = 'images, wheels or LD_LIBRARY_PATH differ between hosts';
const REMEDY = '`pip list` on every host; use one image';

/** By the lines `NCCL version`, also where no communicator was made. */
function byLine(model: LogModel): LogFinding[] {
  // A version that is the beginning of another comes from a cut line.
  const all = versioned(model);
  const whole = all.filter(
    ({ version: { text } }) => !all.some(({ version }) => version.text !== text && version.text.startsWith(text)),
  );
  const inOne = model.communicators.some(
    ({ ranks }) => new Set([...ranks.values()].flatMap(({ process }) => process.version?.text.split('+', 1)[0] ?? [])).size > 1,
  );
  const found = inOne || isInitialised(model) ? undefined : differing(whole, releaseOf);
  if (found === undefined) return [];
  const [a, b] = found;
  return [
    {
      code: 'version-mixed',
      severity: 'error',
      kind: 'fault',
      explains,
      problem: `hosts run different NCCL: ${releaseOf(a)} on ${a.host}, ${releaseOf(b)} on ${b.host}`,
      cause: CAUSE,
      remedy: REMEDY,
      places: [a.version.place, b.version.place],
    },
  ];
}

/** By texts of warnings that no version of NCCL has together. */
function byWording(model: LogModel): LogFinding[] {
  const versions = versioned(model);
  for (const { rule, matches, who } of model.hits) {
    const { since, until } = versionsOf(rule);
    const [first] = matches;
    const host = who.find((name) => /:\d+$/.test(name))?.replace(/:\d+$/, '');
    if (first === undefined || host === undefined || versions.some((each) => each.host === host)) continue;
    const other = versions.find(
      (process) =>
        isDuring(process, first.place) &&
        ((since !== undefined && compareVersions(releaseOf(process), since) < 0) ||
          (until !== undefined && compareVersions(releaseOf(process), until) > 0)),
    );
    if (other === undefined) continue;
    const words = since === undefined ? `up to ${until ?? ''}` : until === undefined ? `from ${since}` : `${since} to ${until}`;
    return [
      {
        code: 'version-mixed',
        severity: 'error',
        kind: 'fault',
        explains,
        problem: `${other.host} runs NCCL ${releaseOf(other)}, but ${host} warns in words that only versions ${words} have`,
        cause: CAUSE,
        remedy: REMEDY,
        places: [other.version.place, first.place],
      },
    ];
  }
  return [];
}

/** True for a line in another file, or between the first and last line of the process: of the same job. */
function isDuring({ first, last }: LoggedProcess, place: LogPlace): boolean {
  return first.file !== place.file || last.file !== place.file || (first.line <= place.line && place.line <= last.line);
}

/** Network plugins of hosts that cannot read each other's handles. */
function plugins(model: LogModel): LogFinding[] {
  if (isInitialised(model)) return [];
  const named = model.processes.flatMap((process) => {
    const text =
      process.pluginRelease?.text ??
      (process.plugin === undefined ? undefined : `${process.plugin.name} v${process.plugin.version}`);
    const place = process.pluginRelease?.place ?? process.plugin?.place;
    return text === undefined || place === undefined ? [] : [{ ...process, pluginText: text, place }];
  });
  const found = differing(named, ({ pluginText }) => pluginText);
  if (found === undefined) return [];
  const [a, b] = found;
  return [
    {
      code: 'net-mismatch',
      severity: 'error',
      kind: 'failure',
      explains: ['init-unfinished', 'remote-closed', 'ib-retry-exceeded', 'calls-failed', 'address-family'],
      problem: `hosts have different network plugins: ${a.pluginText} on ${a.host}, ${b.pluginText} on ${b.host}`,
      cause: 'images or LD_LIBRARY_PATH differ; two versions of a plugin may not understand each other',
      remedy: 'use one image on all hosts; the lines NET/… of each host show what it loaded',
      places: [a.place, b.place],
    },
  ];
}
