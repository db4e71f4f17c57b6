import { startFixture, type Fixture } from '../multi-process/fixtures/processes.js';

/** End of a case on a rank; `code` is `none` without an error. */
export interface CaseEnd {
  readonly code: string;
  readonly message?: string;
  /** Rank or ranks that the error names. */
  readonly about?: number;
  readonly ranks?: readonly number[];
  readonly atMs?: number;
}

export interface StartedCase {
  /** Resolves once all ranks of an exchange have met. */
  readonly began: Promise<unknown>;
  /** By rank. */
  readonly ended: readonly Promise<CaseEnd>[];
}

/** Two ranks on each of two hosts that stay for many cases; cases.mjs describes these. */
export class StandingRanks {
  readonly fixtures: readonly Fixture[];
  readonly #root: string;
  #nextPort: number;
  #number = 0;

  /** @param root address of the first host */
  constructor(on: readonly (readonly string[])[], root: string, firstPort: number, env: Record<string, string> = {}) {
    this.#root = root;
    this.#nextPort = firstPort;
    this.fixtures = [0, 1, 2, 3].map((rank) => {
      const host = rank < 2 ? 0 : 1;
      const own = { TCCL_RANK: String(rank), TCCL_NRANKS: '4', TCCL_HOSTID: `host ${host}`, ...env };
      return startFixture('cases.mjs', [], own, on[host], 'pipe');
    });
  }

  /** Gives all ranks a case. @param envOf variables of each host in this case */
  begin(what: object, envOf: (host: number) => Record<string, string> = () => ({})): StartedCase {
    const number = ++this.#number;
    const common = {
      TCCL_COMM_ID: `${this.#root}:${this.#nextPort++}`,
      TCCL_TEST_CONFIG: '{}',
      TCCL_ALGO: '',
      TCCL_SOCKET_IFNAME: '',
      TCCL_TIMEOUT: '60',
    };
    for (const [rank, { child }] of this.fixtures.entries()) {
      const env = { ...common, ...envOf(rank < 2 ? 0 : 1) };
      child.stdin?.write(`${JSON.stringify({ ...what, env })}\n`);
    }
    const lines = (name: string): Promise<Record<string, unknown>>[] =>
      this.fixtures.map((rank) => rank.line((line) => line[name] === number));
    // Few cases look at it.
    const began = Promise.all(lines('began'));
    began.catch(() => undefined);
    return { began, ended: lines('ended') as Promise<unknown>[] as Promise<CaseEnd>[] };
  }

  stop(): void {
    for (const { child } of this.fixtures) child.kill('SIGKILL');
  }
}
