import { counted } from '../../../counted.js';
import type { LogFinding } from './finding.js';
import type { LogModel } from '../job/model.js';
import type { LoggedRun } from '../job/table.js';

/** Runs of nccl-tests that failed, or that another run followed before they had printed a result. */
export function checkRuns({ runs }: LogModel): LogFinding[] {
  const failed = runs.filter((run) => run.failed !== undefined);
  const cut = runs.filter(
    (run, index) => run.failed === undefined && run.ended === undefined && runs[index + 1]?.started.file === run.started.file,
  );
  return [...failedRuns(failed, runs), ...cutRuns(cut)];
}

function failedRuns(failed: readonly LoggedRun[], all: readonly LoggedRun[]): LogFinding[] {
  const [first] = failed;
  if (first?.failed === undefined) return [];
  const { text } = first.failed;
  return [
    {
      code: 'test-failed',
      severity: 'error',
      kind: 'symptom',
      explains: ['remote-closed', 'nccl-unhandled-cuda', 'nccl-unhandled-system', 'nccl-invalid', 'exit-child', 'exit-signal'],
      problem: `${all.length === 1 ? 'the test' : `${failed.length} of ${counted(all.length, 'test')}`} of nccl-tests failed: ${named(first)}${text === '' ? '' : ` ('${text}')`}${culprits(failed, all)}`,
      cause: text.includes('unhandled system error')
        ? 'a system call failed: in a container most often /dev/shm is too small, between hosts a TCP connection; a warning of NCCL before it says which'
        : 'a warning of NCCL before it says why, on this host or on the one that left first',
      remedy: 'run this test alone with NCCL_DEBUG=INFO; give the output of all hosts; in a container `df -h /dev/shm` first',
      places: failed.flatMap((run) => run.failed?.place ?? []).slice(0, 8),
    },
  ];
}

/** Hosts that are in all failed runs and in no good one. */
function culprits(failed: readonly LoggedRun[], all: readonly LoggedRun[]): string {
  if (failed.length < 2) return '';
  const good = new Set(all.filter((run) => !failed.includes(run)).flatMap(({ hosts }) => hosts));
  const common = (failed[0]?.hosts ?? []).filter((host) => failed.every(({ hosts }) => hosts.includes(host)));
  const alone = common.filter((host) => !good.has(host));
  return alone.length === 0
    ? ''
    : `; ${alone.slice(0, 4).join(', ')} ${alone.length === 1 ? 'is' : 'are'} in all failed ones and in no good one`;
}

function cutRuns(cut: readonly LoggedRun[]): LogFinding[] {
  const [first] = cut;
  if (first === undefined) return [];
  return [
    {
      code: 'test-unfinished',
      severity: 'info',
      kind: 'note',
      problem: `${counted(cut.length, 'test')} of nccl-tests printed no result before the next one began: ${named(first)}`,
      cause: 'it hung or died, and the script went on',
      remedy: 'run this test alone with NCCL_DEBUG=INFO',
      places: cut.slice(0, 8).map(({ started }) => started),
    },
  ];
}

function named({ collective, hosts, nRanks }: LoggedRun): string {
  const where = hosts.length === 0 ? '' : ` between ${hosts.slice(0, 4).join(' and ')}${hosts.length > 4 ? ' and more' : ''}`;
  return `${collective ?? 'a test'}${nRanks === undefined ? '' : ` of ${counted(nRanks, 'rank')}`}${hosts.length === 1 ? ` on ${hosts[0] ?? ''}` : where}`;
}
