import type { Gauge } from 'prom-client';
import { MetricsServer } from '../metrics-server.js';
import { waitsOf, type Job } from './job.js';
import type { JobState, Verdict } from './verdict.js';

const states: readonly JobState[] = ['moving', 'idle', 'waiting', 'stuck', 'failed'];

/** Serves the states of jobs and their ranks to Prometheus. */
export class JobMetrics {
  readonly #server: MetricsServer;
  readonly #state: Gauge<'job' | 'state'>;
  readonly #still: Gauge<'job'>;
  readonly #cause: Gauge<'job' | 'rank'>;
  readonly #calls: Gauge<'job' | 'rank' | 'host'>;
  readonly #waits: Gauge<'job' | 'rank' | 'host'>;
  readonly #memory: Gauge<'job' | 'rank' | 'host'>;

  private constructor(server: MetricsServer) {
    this.#server = server;
    this.#state = server.gauge('job_state', '1 for the state that a job is in', 'job', 'state');
    this.#still = server.gauge('job_still_seconds', 'longest wait without progress', 'job');
    this.#cause = server.gauge('rank_holds_up', '1 for a rank that others wait for', 'job', 'rank');
    this.#calls = server.gauge('rank_calls', 'collectives that a rank has called', 'job', 'rank', 'host');
    this.#waits = server.gauge('rank_wait_seconds', 'longest wait of a rank', 'job', 'rank', 'host');
    this.#memory = server.gauge('rank_memory_bytes', 'shared memory that a rank uses', 'job', 'rank', 'host');
  }

  /** See MetricsServer.listen(). */
  static async listen(address: string): Promise<JobMetrics> {
    return new JobMetrics(await MetricsServer.listen('inspect', address));
  }

  get address(): string {
    return this.#server.address;
  }

  update(judged: readonly { readonly job: Job; readonly verdict: Verdict }[]): void {
    this.#server.reset();
    for (const { job, verdict } of judged) {
      const { id } = job;
      for (const state of states) this.#state.set({ job: id, state }, Number(state === verdict.state));
      this.#still.set({ job: id }, verdict.stillMs / 1000);
      for (const rank of verdict.causes.flatMap(({ ranks }) => ranks)) this.#cause.set({ job: id, rank: String(rank) }, 1);
      for (const shown of job.ranks) {
        const labels = { job: id, rank: String(shown.rank), host: shown.host };
        this.#calls.set(labels, shown.nCalls);
        this.#memory.set(labels, shown.usedBytes);
        const [longest] = waitsOf(shown);
        this.#waits.set(labels, longest === undefined ? 0 : (job.atMs - longest.sinceMs) / 1000);
      }
    }
  }

  close(): void {
    this.#server.close();
  }
}
