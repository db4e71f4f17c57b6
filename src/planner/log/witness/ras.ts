import { type LogFinding, namedRanks } from '../finding.js';
import type { LogPlace } from '../line.js';

type Fields = Readonly<Record<string, unknown>>;
const consequences = ['watchdog-timeout', 'rank-absent', 'remote-closed', 'exit-child', 'exit-signal', 'store-lost'];

/** True if a value of JSON is what `ncclras -f json` prints. */
export function isRasJson(value: unknown): value is Fields {
  return isFields(value) && Array.isArray(value['communicators']) && 'nccl_version' in value;
}

/** Communicators of NCCL's RAS whose ranks are missing, failed, or have launched different numbers of operations. */
export function checkRasJson(value: Fields, place: LogPlace): LogFinding[] {
  return (value['communicators'] as readonly unknown[])
    .filter(isFields)
    .flatMap((communicator) => {
      const name = typeof communicator['hash'] === 'string' ? communicator['hash'] : '';
      const ranks = listOf(communicator['ranks']);
      const missing = listOf(communicator['missing_ranks']);
      const findings: LogFinding[] = [];
      if (missing.length > 0) findings.push(ranksMissing(name, missing, place));
      const failed = ranks.filter((rank) => isFields(rank['status']) && Number(rank['status']['async_error'] ?? 0) !== 0);
      if (failed.length > 0) findings.push(asyncError(name, failed.map(rankOf), place));
      const behind = lagging(ranks);
      if (behind !== undefined)
        findings.push(behindOthers(name, behind.operation, behind.ranks, behind.least, behind.most, place));
      return findings;
    })
    .slice(0, 4);
}

/** The ranks that have launched fewer operations of a kind than most. */
function lagging(
  ranks: readonly Fields[],
): { readonly operation: string; readonly ranks: number[]; readonly least: number; readonly most: number } | undefined {
  const counts = ranks.map((rank) => (isFields(rank['collective_counts']) ? rank['collective_counts'] : {}));
  for (const operation of Object.keys(counts[0] ?? {})) {
    const numbers = counts.map((each) => Number(each[operation] ?? 0));
    const most = Math.max(...numbers);
    const least = Math.min(...numbers);
    if (most === least) continue;
    return { operation, least, most, ranks: ranks.filter((_, index) => numbers[index] === least).map(rankOf) };
  }
  return undefined;
}

/** Lines of `ncclras` as text: its sections on incomplete, dead and mismatched ranks. */
export class RasText {
  readonly #findings: LogFinding[] = [];
  #communicator = '';
  #section = '';
  #operation = '';
  #launched: { readonly rank: number; readonly count: number; readonly place: LogPlace }[] = [];
  #most = -1;

  read(text: string, place: LogPlace): void {
    const [, communicator, section] = /^#\d+-\d+ \(([0-9a-f]{8,16})\) (\w+)/.exec(text) ?? [];
    if (communicator !== undefined) {
      this.#close();
      this.#communicator = communicator;
      this.#section = section ?? '';
    } else if (/^(?:INCOMPLETE|DEAD|TIMEOUT)$/.test(text.trim())) {
      this.#close();
      this.#section = text.trim();
    }
    const [, operation] = /ranks have different (\w+) operation counts/.exec(text) ?? [];
    if (operation !== undefined) {
      this.#close();
      this.#operation = operation;
    }
    const [, most] = /^\s*\d+ ranks have launched up to operation (\d+)/.exec(text) ?? [];
    if (most !== undefined) this.#most = Math.max(this.#most, Number(most));
    const [, rank, count] = /^\s*Rank (\d+) has (?:launched up to operation (\d+)|not launched any operations)/.exec(text) ?? [];
    if (rank !== undefined) this.#launched.push({ rank: Number(rank), count: Number(count ?? 0), place });
    this.#readMissing(text, place);
  }

  finish(): LogFinding[] {
    this.#close();
    return this.#findings.slice(0, 4);
  }

  #readMissing(text: string, place: LogPlace): void {
    const [, rank] = /^\s*Rank (\d+) -- GPU/.exec(text) ?? [];
    if (rank !== undefined && this.#section === 'INCOMPLETE')
      this.#findings.push(ranksMissing(this.#communicator, [{ rank: Number(rank) }], place));
    const [, pid, node] = /^\s*Process (\d+) on node (\S+) managing/.exec(text) ?? [];
    if (pid === undefined || this.#section !== 'DEAD') return;
    this.#findings.push({
      code: 'process-dead',
      severity: 'error',
      kind: 'fault',
      explains: consequences,
      problem: `RAS considers process ${pid} on ${node ?? ''} dead`,
      cause: 'the process ended or its host cannot be reached',
      remedy: `look at the log of that process and at ${node ?? 'its host'}`,
      places: [place],
    });
  }

  #close(): void {
    const counts = this.#launched.map(({ count }) => count);
    const most = Math.max(this.#most, ...counts);
    const least = Math.min(...counts);
    const [first] = this.#launched;
    if (first !== undefined && least < most) {
      this.#findings.push(
        behindOthers(
          this.#communicator,
          this.#operation,
          this.#launched.filter(({ count }) => count === least).map(({ rank }) => rank),
          least,
          most,
          first.place,
        ),
      );
    }
    this.#launched = [];
    this.#most = -1;
  }
}

function ranksMissing(name: string, missing: readonly Fields[], place: LogPlace): LogFinding {
  const ranks = missing.map(rankOf);
  const dead = missing.filter((rank) => isFields(rank['status']) && rank['status']['considered_dead'] === true).map(rankOf);
  return {
    code: 'rank-missing',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: consequences,
    problem: `RAS has no answer from ${namedRanks(ranks)} of communicator ${name}${dead.length === 0 ? '' : `; ${namedRanks(dead)} ${dead.length === 1 ? 'is' : 'are'} considered dead`}`,
    cause: 'those processes died, or their hosts cannot be reached',
    remedy: `look at the logs and hosts of ${namedRanks(ranks)}`,
    places: [place],
  };
}

function asyncError(name: string, ranks: readonly number[], place: LogPlace): LogFinding {
  return {
    code: 'async-error',
    severity: 'error',
    kind: 'failure',
    ranks,
    explains: consequences,
    problem: `${namedRanks(ranks)} of communicator ${name} ${ranks.length === 1 ? 'has' : 'have'} an asynchronous error`,
    cause: 'the network or a GPU failed there',
    remedy: 'look at NCCL WARN lines of these ranks',
    places: [place],
  };
}

function behindOthers(
  name: string,
  operation: string,
  ranks: readonly number[],
  least: number,
  most: number,
  place: LogPlace,
): LogFinding {
  return {
    code: 'rank-behind',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: consequences,
    problem: `${namedRanks(ranks)} of communicator ${name} launched ${least} ${operation} operations, others ${most}`,
    cause: 'these ranks did not make the call that the others wait in: they are elsewhere in the program or stuck',
    remedy: `py-spy dump of ${namedRanks(ranks)}`,
    places: [place],
  };
}

function rankOf(rank: Fields): number {
  return Number(rank['rank'] ?? -1);
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
