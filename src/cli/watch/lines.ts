import { seconds } from '../times.js';
import { counted } from '../../counted.js';
import type { JobState, JobStatus, WatchedCommunicator } from '../../planner/log/live/job-watch.js';
import type { WatchedJob } from '../../planner/log/live/jobs.js';
import { type Colors, colorsFor } from '../output.js';
import { tableLines } from '../screen.js';

const stateColors: Readonly<Record<JobState, keyof Colors>> = {
  unknown: 'dim',
  healthy: 'green',
  suspect: 'yellow',
  stuck: 'red',
  dead: 'red',
};

/** `23:16:47`, local time. */
export function clock(time: Date): string {
  return time.toTimeString().slice(0, 8);
}

/** A line for a change of a job's state, and one for what to do. */
export function changeLine(job: WatchedJob, time: Date, colors: Colors): string {
  const { state, why, advice, stillMs } = job.status;
  const still = state === 'suspect' || state === 'stuck' ? ` (still for ${seconds(stillMs)})` : '';
  const first = `${clock(time)} ${title(job)}: ${colors[stateColors[state]](state)}${still}: ${why}`;
  return advice === undefined ? first : `${first}\n         ${colors.dim('→')} ${advice}`;
}

/** A job as it stands on a terminal. */
export function blockLines(job: WatchedJob, width: number): string[] {
  const { status } = job;
  const { state, why, advice } = status;
  const paint = colorsFor(process.stdout)[stateColors[state]];
  return [
    '',
    `${title(job)}: ${paint(state)} for ${seconds(status.stateMs)}`,
    `  ${why}`,
    ...(advice === undefined ? [] : [`  → ${advice}`]),
    ...table(status, width),
  ];
}

const MOST_ROWS = 8;

function table({ communicators }: JobStatus, width: number): string[] {
  if (communicators.length === 0) return [];
  const sorted = [...communicators].sort(
    (a, b) => Number(b.isUneven) - Number(a.isUneven) || b.stillMs - a.stillMs || (b.size ?? 0) - (a.size ?? 0),
  );
  const rows = sorted.slice(0, MOST_ROWS).map(row);
  return [
    ...tableLines({ heading, rows, texts: [0], spare: [1], enough: 20 }, width),
    ...(sorted.length > MOST_ROWS ? [`  and ${counted(sorted.length - MOST_ROWS, 'other communicator')}`] : []),
  ];
}

const heading = ['communicator', 'ranks', 'launched', 'without a launch for'];

function row({ name, size, launched, stillMs, isUneven }: WatchedCommunicator): string[] {
  const range =
    launched === undefined
      ? '?'
      : launched.least === launched.most
        ? String(launched.least)
        : `${launched.least} to ${launched.most}`;
  return [name, size === undefined ? '?' : String(size), range, `${seconds(stillMs)}${isUneven ? ', ranks differ' : ''}`];
}

function title({ number, status: { ranks, version } }: WatchedJob): string {
  const facts = [
    ranks === undefined ? undefined : counted(ranks, 'rank'),
    version === undefined ? undefined : `NCCL ${version}`,
  ].filter((each) => each !== undefined);
  return `job ${number}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`;
}
