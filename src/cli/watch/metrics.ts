import { createServer, type Server } from 'node:http';
import { Gauge, Registry } from 'prom-client';
import { InvalidArgumentError, SystemError } from '../../errors.js';
import type { JobState } from '../../planner/log/live/job-watch.js';
import type { WatchedJob } from '../../planner/log/live/jobs.js';
import { addressText } from './ras-client.js';

const states: readonly JobState[] = ['unknown', 'healthy', 'suspect', 'stuck', 'dead'];

/** Serves the states of jobs to Prometheus, at `/metrics`. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #server: Server;
  readonly #state = this.#gauge('job_state', '1 for the state that a job is in', 'job', 'state');
  readonly #still = this.#gauge('job_still_seconds', 'time for which no rank has launched an operation', 'job');
  readonly #ranks = this.#gauge('job_ranks', 'ranks of the largest communicator', 'job');
  readonly #least = this.#gauge(
    'communicator_launched_least',
    'operations that the last rank has launched',
    'job',
    'communicator',
  );
  readonly #most = this.#gauge(
    'communicator_launched_most',
    'operations that the first rank has launched',
    'job',
    'communicator',
  );
  readonly #behind = this.#gauge(
    'rank_behind',
    'operations by which others are ahead of a rank',
    'job',
    'communicator',
    'rank',
    'host',
    'pid',
    'gpu',
  );
  readonly #up = this.#gauge('source_up', '1 where a source answered in the last round', 'source');

  private constructor() {
    this.#server = createServer((request, response) => {
      if (request.url !== '/metrics') {
        response.writeHead(404).end('tccl watch: metrics are at /metrics\n');
        return;
      }
      void this.#registry.metrics().then((text) => {
        response.setHeader('Content-Type', this.#registry.contentType);
        response.end(text);
      });
    });
  }

  /**
   * Listens at `:PORT` or `HOST:PORT`; without a host on all interfaces, as Prometheus' exporters do.
   *
   * @throws InvalidArgumentError where it is no address, SystemError where the port cannot be had
   */
  static async listen(address: string): Promise<Metrics> {
    const [, bracketed, host = '', port] = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(address) ?? [];
    if (port === undefined || Number(port) > 65_535)
      throw new InvalidArgumentError('ARGUMENT_TYPE', `--prometheus ${address}: expected :PORT or HOST:PORT`);
    const metrics = new Metrics();
    const at = bracketed ?? host;
    await new Promise<void>((resolve, reject) => {
      metrics.#server.once('error', (error: NodeJS.ErrnoException) => {
        const why = error.code === 'EADDRINUSE' ? 'another program has the port' : error.message;
        reject(new SystemError('NETWORK', `--prometheus ${address}: ${why}`));
      });
      metrics.#server.listen(Number(port), at === '' ? undefined : at, resolve);
    });
    // The server alone keeps no process alive.
    metrics.#server.unref();
    return metrics;
  }

  /** The address in use, as `127.0.0.1:9400`. */
  get address(): string {
    const bound = this.#server.address();
    return bound === null || typeof bound === 'string' ? '' : addressText({ host: bound.address, port: bound.port });
  }

  update(jobs: readonly WatchedJob[], sources: readonly { readonly name: string; readonly isUp: boolean }[]): void {
    this.#registry.resetMetrics();
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
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #gauge<Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> {
    return new Gauge({ name: `tccl_watch_${name}`, help, labelNames, registers: [this.#registry] });
  }
}
