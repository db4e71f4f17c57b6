import { aftermath } from '../codes.js';
import { type LogFinding, namedRanks } from '../finding.js';
import type { LogPlace } from '../line.js';

type Fields = Readonly<Record<string, unknown>>;

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
      if (failed.length > 0) findings.push(asyncError(name, failed.map(rankOf), undefined, place));
      findings.push(...statusFindings(name, groupsBy(ranks, statusOf), place), ...countFindings(name, countsOf(ranks), place));
      return findings;
    })
    .slice(0, MOST_FINDINGS);
}

const MOST_FINDINGS = 4;

/** Ranks with the same report of RAS; without their numbers where it gives only a count. */
interface RankGroup<Value> {
  readonly value: Value;
  readonly size: number;
  readonly ranks: number[];
}

function groupsBy<Value extends string | number>(ranks: readonly Fields[], valueOf: (rank: Fields) => Value): RankGroup<Value>[] {
  const groups = new Map<Value, number[]>();
  for (const rank of ranks) groups.set(valueOf(rank), [...(groups.get(valueOf(rank)) ?? []), rankOf(rank)]);
  return [...groups].map(([value, all]) => ({ value, size: all.length, ranks: all }));
}

/** Text of `ncclras` for it. */
function statusOf({ status }: Fields): string {
  if (!isFields(status)) return 'RUNNING';
  if (status['abort_flag'] === true) return 'ABORT';
  if (status['finalize_called'] === true || status['destroy_flag'] === true) return 'FINALIZE';
  return Number(status['init_state'] ?? 0) === 0 ? 'RUNNING' : 'INIT';
}

type Counts = ReadonlyMap<string, readonly RankGroup<number>[]>;

function countsOf(ranks: readonly Fields[]): Counts {
  const counts = (rank: Fields) => (isFields(rank['collective_counts']) ? rank['collective_counts'] : {});
  const operations = new Set(ranks.flatMap((rank) => Object.keys(counts(rank))));
  return new Map(
    [...operations].map((operation) => [operation, groupsBy(ranks, (rank) => Number(counts(rank)[operation] ?? 0))]),
  );
}

/** Ranks that have launched other numbers of operations than most. */
function countFindings(name: string, counts: Counts, place: LogPlace): LogFinding[] {
  const behind = new Map<number, string>();
  const ahead = new Map<number, string>();
  let told: LogFinding | undefined;
  for (const [operation, groups] of counts) {
    if (groups.length < 2) continue;
    // Of two halves the one that launched fewer is behind.
    const usual = [...groups].sort((a, b) => b.size - a.size || b.value - a.value)[0]?.value ?? 0;
    const least = Math.min(...groups.map(({ value }) => value));
    const most = Math.max(...groups.map(({ value }) => value));
    for (const { value, ranks } of groups)
      for (const rank of ranks) if (value !== usual) (value < usual ? behind : ahead).set(rank, operation);
    const ranksAt = (wanted: number) => groups.filter(({ value }) => value === wanted).flatMap(({ ranks }) => ranks);
    told ??=
      least < usual
        ? behindOthers(name, operation, ranksAt(least), least, usual, place)
        : aheadOfOthers(name, operation, ranksAt(most), most, usual, ranksAt(usual), place);
  }
  const astray = [...behind].find(([rank]) => ahead.has(rank));
  if (astray !== undefined) {
    const [rank, instead] = astray;
    return [callsOther(name, rank, ahead.get(rank) ?? '', instead, place)];
  }
  return told === undefined ? [] : [told];
}

/** Ranks that are in another state of their communicator than most. */
function statusFindings(name: string, groups: readonly RankGroup<string>[], place: LogPlace): LogFinding[] {
  const [usual, ...others] = [...groups].sort((a, b) => b.size - a.size);
  const [other] = others.filter(({ ranks }) => ranks.length > 0);
  return usual === undefined || other === undefined ? [] : [otherStatus(name, other, usual.value, place)];
}

/** Lines of `ncclras` as text: its sections on incomplete, dead, failed and mismatched ranks. */
export class RasText {
  readonly #findings: LogFinding[] = [];
  readonly #dead: { readonly process: string; readonly place: LogPlace }[] = [];
  #communicator = '';
  #section = '';
  #place: LogPlace = { file: 0, line: 1 };
  #counts = new Map<string, RankGroup<number>[]>();
  #statuses: RankGroup<string>[] = [];
  #errors: RankGroup<string>[] = [];
  #missing: number[] = [];
  #operation = '';
  /** The group whose ranks the next lines list. */
  #listed: number[] | undefined;

  read(text: string, place: LogPlace): void {
    const [, communicator, section] = /^#\d+-\d+ \(([0-9a-f]{8,16})\) (\w+)/.exec(text) ?? [];
    const heading = communicator === undefined ? /^(INCOMPLETE|DEAD|TIMEOUT|Warnings|Errors)\s*$/.exec(text)?.[1] : section;
    if (heading !== undefined) {
      this.#close();
      this.#communicator = communicator ?? '';
      this.#section = heading;
      this.#place = place;
      return;
    }
    this.#operation = /ranks have different (\w+) operation counts/.exec(text)?.[1] ?? this.#operation;
    this.#readGroup(text);
    const [, pid, node] = /^\s*Process (\d+) on node (\S+) managing/.exec(text) ?? [];
    if (pid !== undefined && this.#section === 'DEAD') this.#dead.push({ process: `${pid} on ${node ?? ''}`, place });
  }

  finish(): LogFinding[] {
    this.#close();
    return [...deadProcesses(this.#dead), ...this.#findings].slice(0, MOST_FINDINGS);
  }

  /** `2 ranks have status ABORT` and `Rank 3 -- GPU …` for each, or `Rank 3 has status ABORT -- …`. */
  #readGroup(text: string): void {
    const [, number, rank, rest = ''] = /^\s*(?:(\d+) ranks?|Rank (\d+)) (\S.*)$/.exec(text) ?? [];
    if (number === undefined && rank === undefined) return;
    if (rest.startsWith('-- ')) {
      if (this.#listed !== undefined) this.#listed.push(Number(rank));
      else if (this.#section === 'INCOMPLETE') this.#missing.push(Number(rank));
      return;
    }
    const size = Number(number ?? 1);
    const ranks = rank === undefined ? [] : [Number(rank)];
    const [, count] = /^ha(?:ve|s) (?:launched up to operation (\d+)|not launched any operations)/.exec(rest) ?? [];
    const status = /^ha(?:ve|s) status (\w+)/.exec(rest)?.[1];
    const error = /^reported ([^-]{3,60}?)\s*(?:--|$)/.exec(rest)?.[1];
    if (status !== undefined) this.#statuses.push({ value: status, size, ranks });
    else if (error !== undefined) this.#errors.push({ value: error, size, ranks });
    else if (/^ha(?:ve|s) (?:not )?launched/.test(rest)) {
      const known = this.#counts.get(this.#operation) ?? [];
      this.#counts.set(this.#operation, [...known, { value: Number(count ?? 0), size, ranks }]);
    } else return;
    this.#listed = ranks;
  }

  #close(): void {
    const [name, place] = [this.#communicator, this.#place];
    if (this.#missing.length > 0)
      this.#findings.push(
        ranksMissing(
          name,
          this.#missing.map((rank) => ({ rank })),
          place,
        ),
      );
    for (const { value, ranks } of this.#errors.slice(0, 1)) this.#findings.push(asyncError(name, ranks, value, place));
    this.#findings.push(...statusFindings(name, this.#statuses, place), ...countFindings(name, this.#counts, place));
    this.#missing = [];
    this.#statuses = [];
    this.#errors = [];
    this.#counts = new Map();
    this.#listed = undefined;
  }
}

function deadProcesses(dead: readonly { readonly process: string; readonly place: LogPlace }[]): LogFinding[] {
  const [first] = dead;
  if (first === undefined) return [];
  const named = dead
    .slice(0, 4)
    .map(({ process }) => process)
    .join(', ');
  return [
    {
      code: 'process-dead',
      severity: 'error',
      kind: 'fault',
      explains: aftermath,
      problem: `RAS considers ${dead.length === 1 ? 'process' : `${dead.length} processes`} ${named}${dead.length > 4 ? ', …' : ''} dead`,
      cause: 'they ended, or their hosts cannot be reached',
      remedy: 'look at the logs of these processes and at their hosts',
      places: [first.place],
    },
  ];
}

function ranksMissing(name: string, missing: readonly Fields[], place: LogPlace): LogFinding {
  const ranks = missing.map(rankOf);
  const dead = missing.filter((rank) => isFields(rank['status']) && rank['status']['considered_dead'] === true).map(rankOf);
  return {
    code: 'rank-missing',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: aftermath,
    problem: `RAS has no answer from ${namedRanks(ranks)} of communicator ${name}${dead.length === 0 ? '' : `; ${namedRanks(dead)} ${dead.length === 1 ? 'is' : 'are'} considered dead`}`,
    cause: 'those processes died, or their hosts cannot be reached',
    remedy: `look at the logs and hosts of ${namedRanks(ranks)}`,
    places: [place],
  };
}

function asyncError(name: string, ranks: readonly number[], error: string | undefined, place: LogPlace): LogFinding {
  const subject = ranks.length === 0 ? 'several ranks' : namedRanks(ranks);
  const what = error === undefined ? 'an asynchronous error' : `reported: ${error}`;
  return {
    code: 'async-error',
    severity: 'error',
    kind: 'failure',
    ranks,
    explains: aftermath,
    problem: `${subject} of communicator ${name} ${error === undefined && ranks.length === 1 ? 'has ' : error === undefined ? 'have ' : ''}${what}`,
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
    explains: aftermath,
    problem: `${ranks.length === 0 ? 'ranks' : namedRanks(ranks)} of communicator ${name} launched ${least} ${operation} operations, others ${most}`,
    cause: 'these ranks did not make the call that the others wait in: they are elsewhere in the program or stuck',
    remedy: `py-spy dump of ${ranks.length === 0 ? 'the ranks that ncclras -v lists' : namedRanks(ranks)}; run ncclras again: while the numbers grow, the job runs`,
    places: [place],
  };
}

function aheadOfOthers(
  name: string,
  operation: string,
  ahead: readonly number[],
  most: number,
  usual: number,
  others: readonly number[],
  place: LogPlace,
): LogFinding {
  return {
    ...behindOthers(name, operation, others, usual, most, place),
    problem: `${namedRanks(ahead)} of communicator ${name} launched ${most} ${operation} operations, the others ${usual}`,
    cause:
      'the others have not made the call that these wait in: they are slower, or stuck elsewhere in the program; or these made one call too many',
  };
}

function callsOther(name: string, rank: number, operation: string, instead: string, place: LogPlace): LogFinding {
  return {
    ...behindOthers(name, operation, [rank], 0, 0, place),
    code: 'calls-differ',
    problem: `rank ${rank} of communicator ${name} launched more ${operation} and fewer ${instead} operations than the others`,
    cause: `it called ${operation} where the others called ${instead}: code paths differ between ranks`,
  };
}

const statusCauses: Readonly<Record<string, string>> = {
  INIT: 'they did not come out of making the communicator',
  ABORT: 'they gave the communicator up: an error there, or a watchdog',
  FINALIZE: 'they are done and destroy the communicator: they made fewer calls, or the others still wait',
  NOCOMM: 'their processes have no such communicator, or no longer',
};

function otherStatus(name: string, { value, ranks }: RankGroup<string>, usual: string, place: LogPlace): LogFinding {
  return {
    code: 'rank-status',
    severity: 'error',
    kind: 'failure',
    ranks,
    explains: aftermath,
    problem: `${namedRanks(ranks)} of communicator ${name} ${ranks.length === 1 ? 'has' : 'have'} status ${value}, the others ${usual}`,
    cause: statusCauses[value] ?? 'the ranks do not agree about the state of their communicator',
    remedy: `look at the logs and stacks of ${namedRanks(ranks)}`,
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
