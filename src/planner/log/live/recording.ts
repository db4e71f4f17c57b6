import { InputError } from '../../../errors.js';
import { parseJson } from '../../readers/json.js';
import type { RasReport } from '../../readers/ras.js';
import { readReport } from '../../readers/ras-report.js';
import type { TextPlace } from '../../readers/section.js';
import type { JobStatus } from './job-watch.js';
import { Jobs } from './jobs.js';

/** A line of the file that `tccl watch --record` writes. */
export interface RecordedReport {
  readonly tcclWatch: 1;
  /** ISO 8601. */
  readonly time: string;
  readonly source: string;
  /** As RAS gave it. */
  readonly report: string;
}

/** Default time without a launch after which a job is stuck. */
export const STUCK_MS = 60_000;

/** A job of a recording: its status at the end, and its last two reports. */
export interface RecordedJob {
  readonly status: JobStatus;
  readonly reports: readonly RasReport[];
}

/** The jobs of a recording. */
export function replayWatch(text: string, place: TextPlace): RecordedJob[] {
  const jobs = new Jobs(STUCK_MS);
  const last = new Map<number, RasReport[]>();
  for (const line of text.split('\n')) {
    const sample = recorded(line);
    if (sample === undefined) continue;
    const { report } = readReport(sample.report, place);
    const { number } = jobs.add(sample.source, { report, atMs: Date.parse(sample.time) });
    last.set(number, [...(last.get(number) ?? []).slice(-1), report]);
  }
  return jobs.all.map(({ number, status }) => ({ status, reports: last.get(number) ?? [] }));
}

/** The last line may be cut. */
function recorded(line: string): RecordedReport | undefined {
  try {
    const value = parseJson(line);
    return isRecorded(value) ? value : undefined;
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

function isRecorded(value: unknown): value is RecordedReport {
  return typeof value === 'object' && value !== null && 'tcclWatch' in value && 'report' in value && 'time' in value;
}
