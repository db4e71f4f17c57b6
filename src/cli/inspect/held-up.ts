import { readHost } from './host-report.js';
import { jobsOf } from './job.js';
import { verdictOn } from './verdict.js';

/** Shortest wait that holds up a job. */
const STUCK_MS = 500;

/** Text about the ranks that hold up a job whose ranks are all on this host; undefined if they move, or show nothing. */
export function holdOf(launcher: number): string | undefined {
  const job = jobsOf([readHost()]).find(({ ranks }) => ranks.some(({ process }) => process?.parent === launcher));
  if (job === undefined || job.ranks.length < job.nRanks) return undefined;
  const { state, causes } = verdictOn(job, STUCK_MS);
  return state === 'stuck' && causes.length > 0 ? causes.map(({ text }) => text).join('; ') : undefined;
}
