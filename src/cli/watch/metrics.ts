import type { Gauge } from 'prom-client';
import { MetricsServer } from '../metrics-server.js';
import type { JobState } from '../../planner/log/live/job-watch.js';
import type { WatchedJob } from '../../planner/log/live/jobs.js';

const states: readonly JobState[] = ['unknown', 'healthy', 'suspect', 'stuck', 'dead'];

/** Serves the states of jobs to Prometheus. */
export class Metrics {
  readonly #server: MetricsServer;
  readonly #state: Gauge<'job' | 'state'>;
  readonly #still: Gauge<'job'>;
  readonly #ranks: Gauge<'job'>;
  readonly #least: Gauge<'job' | 'communicator'>;
  readonly #most: Gauge<'job' | 'communicator'>;
  readonly #behind: Gauge<'job' | 'communicator' | 'rank' | 'host' | 'pid' | 'gpu'>;
  readonly #up: Gauge<'source'>;

  private constructor(server: MetricsServer) {
    this.#server = server;
    this.#state = server.gauge('job_state', '1 for the state that a job is in', 'job', 'state');
    this.#still = server.gauge('job_still_seconds', 'time for which no rank has launched an operation', 'job');
    this.#ranks = server.gauge('job_ranks', 'ranks of the largest communicator', 'job');
    this.#least = server.gauge(
      'communicator_launched_least',
      'operations that the last rank has launched',
      'job',
      'communicator',
    );
    this.#most = server.gauge('communicator_launched_most', 'operations that the first rank has launched', 'job', 'communicator');
    this.#behind = server.gauge(
      'rank_behind',
      'operations by which others are ahead of a rank',
      'job',
      'communicator',
      'rank',
      'host',
      'pid',
      'gpu',
    );
    this.#up = server.gauge('source_up', '1 where a source answered in the last round', 'source');
  }

  /** See MetricsServer.listen(). */
  static async listen(address: string): Promise<Metrics> {
    return new Metrics(await MetricsServer.listen('watch', address));
  }

  get address(): string {
    return this.#server.address;
  }

  update(jobs: readonly WatchedJob[], sources: readonly { readonly name: string; readonly isUp: boolean }[]): void {
    this.#server.reset();
    for (const { name, isUp } of sources) this.#up.set({ source: name }, Number(isUp));
    for (const { number, status } of jobs) {
      const job = String(number);
      for (const state of states) this.#state.set({ job, state }, Number(state === status.state));
      this.#still.set({ job }, status.stillMs / 1000);
      if (status.ranks !== undefined) this.#ranks.set({ job }, status.ranks);
      for (const { name: communicator, launched } of status.communicators) {
        if (launched === undefined) continue;
        this.#least.set({ job, communicator }, launched.least);
        this.#most.set({ job, communicator }, launched.most);
      }
      for (const { communicator, rank, host = '', pid = '', gpu = '', behind } of status.late)
        this.#behind.set({ job, communicator, rank, host, pid, gpu }, behind);
    }
  }

  close(): void {
    this.#server.close();
  }
}
