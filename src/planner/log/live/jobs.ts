import { JobWatch, type JobStatus, type WatchSample } from './job-watch.js';

/** A job as it was seen last. */
export interface WatchedJob {
  /** Its number, from 1, in the order in which jobs were first seen. */
  readonly number: number;
  readonly status: JobStatus;
  /** The source of its last report. */
  readonly source: string;
}

/** Tells reports of several jobs apart, which may answer at one port. */
export class Jobs {
  readonly #stuckMs: number;
  readonly #jobs: { readonly number: number; readonly watch: JobWatch; source: string; status: JobStatus; atMs: number }[] = [];

  /** @param stuckMs milliseconds without a launch after which a job is stuck */
  constructor(stuckMs: number) {
    this.#stuckMs = stuckMs;
  }

  get all(): readonly WatchedJob[] {
    return this.#jobs;
  }

  /** Takes a report, and returns the job that it is about. */
  add(source: string, sample: WatchSample): WatchedJob {
    const known = this.#jobs.find(({ watch }) => watch.has(sample.report)) ?? this.#silent(source, sample);
    if (known !== undefined) {
      known.source = source;
      known.atMs = sample.atMs;
      known.status = known.watch.add(sample);
      return known;
    }
    const watch = new JobWatch(this.#stuckMs);
    const made = { number: this.#jobs.length + 1, watch, source, status: watch.add(sample), atMs: sample.atMs };
    this.#jobs.push(made);
    return made;
  }

  /** Jobs of a source that did not answer since `atMs`. */
  missing(source: string, atMs: number): WatchedJob[] {
    return this.#jobs.filter((job) => job.source === source && job.atMs < atMs);
  }

  /** Text names no communicator of a healthy job: it is the only one of its source. */
  #silent(source: string, { report }: WatchSample) {
    if (report.isComplete && report.communicators.length > 0) return undefined;
    const [only, ...others] = this.#jobs.filter((job) => job.source === source);
    return others.length === 0 ? only : undefined;
  }
}
