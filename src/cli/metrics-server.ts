import { createServer, type Server } from 'node:http';
import { Gauge, Registry } from 'prom-client';
import { InvalidArgumentError, SystemError } from '../errors.js';

/** Serves gauges to Prometheus, at `/metrics`. */
export class MetricsServer {
  readonly #registry = new Registry();
  readonly #server: Server;
  readonly #prefix: string;

  private constructor(command: string) {
    this.#prefix = `tccl_${command}_`;
    this.#server = createServer((request, response) => {
      if (request.url !== '/metrics') {
        response.writeHead(404).end(`tccl ${command}: metrics are at /metrics\n`);
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
   * @param command whose metrics they are
   * @throws InvalidArgumentError where it is no address, SystemError where the port cannot be had
   */
  static async listen(command: string, address: string): Promise<MetricsServer> {
    const [, bracketed, host = '', port] = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(address) ?? [];
    if (port === undefined || Number(port) > 65_535)
      throw new InvalidArgumentError('ARGUMENT_TYPE', `--prometheus ${address}: expected :PORT or HOST:PORT`);
    const metrics = new MetricsServer(command);
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
    if (bound === null || typeof bound === 'string') return '';
    return `${bound.address.includes(':') ? `[${bound.address}]` : bound.address}:${bound.port}`;
  }

  gauge<Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> {
    return new Gauge({ name: this.#prefix + name, help, labelNames, registers: [this.#registry] });
  }

  /** Drops all values, before new ones are set. */
  reset(): void {
    this.#registry.resetMetrics();
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
