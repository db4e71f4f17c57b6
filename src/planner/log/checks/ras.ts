import { counted } from '../../../counted.js';
import type { RankGroup, RasCommunicator, RasGone, RasProcess, RasReport } from '../../readers/ras.js';
import { aftermath } from '../rules/codes.js';
import { type LogFinding, namedRanks } from './finding.js';

const MOST_FINDINGS = 4;

/** Communicators of NCCL's RAS whose ranks are missing, failed, or have launched different numbers of operations. */
export function checkRas(reports: readonly RasReport[]): LogFinding[] {
  return [
    ...deadProcesses(reports.flatMap(({ dead }) => dead)),
    ...latest(reports).flatMap((communicator) => [
      ...missing(communicator, reports),
      ...errors(communicator),
      ...statuses(communicator),
      ...counts(communicator),
    ]),
    ...silentProcesses(reports),
    ...frozen(reports),
  ].slice(0, MOST_FINDINGS);
}

/** Of several reports the last one about each communicator. A text has a section for each kind of its trouble. */
export function latest(reports: readonly RasReport[]): RasCommunicator[] {
  const last = new Map<string, RasReport>();
  for (const report of reports) for (const { name } of report.communicators) last.set(name, report);
  return reports.flatMap((report) => report.communicators.filter(({ name }) => last.get(name) === report));
}

/** Ranks that have launched other numbers of operations than most. */
function counts(communicator: RasCommunicator): LogFinding[] {
  const behind = new Map<number, string>();
  const ahead = new Map<number, string>();
  let first: LogFinding | undefined;
  for (const [operation, groups] of communicator.counts) {
    if (groups.length < 2) continue;
    // Of two halves the one that launched fewer is behind.
    const usual = [...groups].sort((a, b) => b.size - a.size || b.value - a.value)[0]?.value ?? 0;
    for (const { value, ranks } of groups)
      for (const rank of ranks) if (value !== usual) (value < usual ? behind : ahead).set(rank, operation);
    const late = lateRanks(communicator, operation);
    if (late !== undefined) first ??= laggards(communicator, late);
  }
  const astray = [...behind].find(([rank]) => ahead.has(rank));
  if (astray !== undefined) {
    const [rank, instead] = astray;
    return [callsOther(communicator, rank, ahead.get(rank) ?? '', instead)];
  }
  return first === undefined ? [] : [first];
}

/** Ranks that launched fewer operations of one kind than others of their communicator, which wait for them. */
export interface LateRanks {
  readonly operation: string;
  /** Operations that they launched, and that those furthest ahead launched. */
  readonly least: number;
  readonly most: number;
  /** Empty where the report names none of them. */
  readonly ranks: readonly number[];
  readonly count: number;
  /** Those of the others that the report lists. */
  readonly ahead: readonly number[];
  readonly aheadCount: number;
}

/** The ranks with the smallest number hold all others, also where they are most and RAS lists only those ahead. */
export function lateRanks(communicator: RasCommunicator, operation: string): LateRanks | undefined {
  const groups = communicator.counts.get(operation) ?? [];
  if (groups.length < 2) return undefined;
  const least = Math.min(...groups.map(({ value }) => value));
  const most = Math.max(...groups.map(({ value }) => value));
  const late = groups.filter(({ value }) => value === least);
  const others = groups.filter(({ value }) => value !== least);
  const sum = (list: typeof groups) => list.reduce((total, { size }) => total + size, 0);
  const ahead = others.flatMap(({ ranks }) => [...ranks]);
  const listed = late.flatMap(({ ranks }) => [...ranks]);
  const size = communicator.size ?? sum(groups);
  const [count, aheadCount] = [sum(late), sum(others)];
  // Where all others are listed, the rest of the communicator is late.
  const ranks =
    listed.length !== count && ahead.length === aheadCount && size === sum(groups)
      ? Array.from({ length: Math.min(size, 100_000) }, (_, rank) => rank).filter((rank) => !ahead.includes(rank))
      : listed;
  return { operation, least, most, ranks, count, ahead, aheadCount };
}

function laggards(
  communicator: RasCommunicator,
  { operation, least, most, ranks, count, ahead, aheadCount }: LateRanks,
): LogFinding {
  const who = ranks.length === 0 || ranks.length > 16 ? counted(count, 'rank') : namedRanks(ranks);
  const front = ahead.length === 0 || ahead.length > 16 ? `the other ${aheadCount}` : namedRanks(ahead);
  const isMajority = count > aheadCount;
  return {
    code: 'rank-behind',
    severity: 'error',
    kind: 'fault',
    ranks,
    ...(ranks.length === 0 || ahead.length === 0 ? {} : { waiting: ahead }),
    explains: aftermath,
    problem: `${who} of communicator ${communicator.name} ${count === 1 ? 'lags' : 'lag'} behind: ${least} ${operation} operations launched, ${front} ${most}${isMajority ? `; ${ahead.length === 0 ? 'those few' : namedRanks(ahead)}, which RAS lists, are ahead and wait` : ''}`,
    cause: isMajority
      ? 'most ranks have not made the call that the few wait in: they are slower, or stuck elsewhere in the program; or the few made one call too many'
      : 'these ranks did not make the call that the others wait in: they are elsewhere in the program, stuck or dead',
    remedy: `\`py-spy dump\` of ${ranks.length === 0 ? 'ranks that are not listed' : isMajority ? `some of ${namedRanks(ranks)}` : namedRanks(ranks)}; run \`ncclras\` again: while the numbers grow, the job runs`,
    places: [communicator.place],
  };
}

/** Two reports of which the later one has the same counts: nothing moves. */
function frozen(reports: readonly RasReport[]): LogFinding[] {
  const seen = new Map<string, { readonly text: string; readonly communicator: RasCommunicator; readonly report: RasReport }>();
  for (const report of reports)
    for (const communicator of report.communicators) {
      if (communicator.counts.size === 0) continue;
      const text = JSON.stringify(
        [...communicator.counts].map(([operation, groups]) => [operation, groups.map(({ value, size }) => [value, size])]),
      );
      const before = seen.get(communicator.name);
      seen.set(communicator.name, { text, communicator, report });
      if (before?.text !== text || before.report === report) continue;
      const groups = [...communicator.counts.values()];
      if (groups.some((list) => list.length > 1) || groups.every(([only]) => (only?.value ?? 0) === 0)) continue;
      return [
        {
          code: 'collective-stuck',
          severity: 'error',
          kind: 'failure',
          explains: aftermath,
          problem: `nothing moves in communicator ${communicator.name}: two reports of RAS have the same numbers of operations on all ranks`,
          cause:
            'all ranks have launched the same operations and none completes the last one: a GPU, NVLink or the network stands still; or the job does something else for a long time',
          remedy:
            '`nvidia-smi` (GPUs at 100 % wait in a kernel); `dmesg -T` (Xid) and NIC counters of all hosts; `py-spy dump` of some ranks',
          places: [before.communicator.place, communicator.place],
        },
      ];
    }
  return [];
}

function statuses({ name, statuses: groups, place }: RasCommunicator): LogFinding[] {
  const [usual, ...others] = [...groups].sort((a, b) => b.size - a.size);
  const [other] = others.filter(({ ranks }) => ranks.length > 0);
  return usual === undefined || other === undefined ? [] : [otherStatus(name, other, usual.value, place)];
}

function deadProcesses(dead: RasReport['dead']): LogFinding[] {
  const [first] = dead;
  if (first === undefined) return [];
  const named = dead
    .slice(0, 4)
    .map(({ process, rank }) => whole(process, rank))
    .join(', ');
  const ranks = dead.flatMap(({ rank }) => rank ?? []);
  return [
    {
      code: 'process-dead',
      severity: 'error',
      kind: 'fault',
      ...(ranks.length === 0 ? {} : { ranks }),
      explains: aftermath,
      problem: `RAS considers ${dead.length === 1 ? 'process' : `${dead.length} processes`} ${named}${dead.length > 4 ? ', …' : ''} dead`,
      cause: 'they ended, or their hosts cannot be reached',
      remedy: 'look at the logs of these processes and at their hosts',
      places: [first.place],
    },
  ];
}

/** `4711 on 10.0.0.7 (rank 21, GPU 5)` */
function whole({ pid, host, gpu }: RasProcess, rank: number | undefined): string {
  const more = [...(rank === undefined ? [] : [`rank ${rank}`]), ...(gpu === undefined ? [] : [`GPU ${gpu}`])];
  return `${pid} on ${host}${more.length === 0 ? '' : ` (${more.join(', ')})`}`;
}

/** Processes without an answer where no communicator tells their ranks. */
function silentProcesses(reports: readonly RasReport[]): LogFinding[] {
  const { silent: all = [], dead = [] } = reports.at(-1) ?? {};
  const silent = all.filter((each) => !dead.includes(each));
  const [first] = silent;
  const isNamed = reports.some(({ communicators }) => communicators.some((each) => each.missing.length > 0));
  if (first === undefined || isNamed) return [];
  return [
    {
      code: 'rank-missing',
      severity: 'error',
      kind: 'fault',
      explains: aftermath,
      problem: `RAS has no answer from ${processesText(silent)}`,
      cause: 'those processes died or stand still, or their hosts cannot be reached',
      remedy: 'look at the logs of these processes and at their hosts',
      places: [first.place],
    },
  ];
}

function processesText(gone: readonly RasGone[]): string {
  const named = gone
    .slice(0, 4)
    .map(({ process }) => whole(process, undefined))
    .join(', ');
  return `${gone.length === 1 ? 'process' : 'processes'} ${named}${gone.length > 4 ? ', …' : ''}`;
}

function missing({ name, missing: all, processes, place }: RasCommunicator, reports: readonly RasReport[]): LogFinding[] {
  if (all.length === 0) return [];
  const known = all.flatMap(({ rank }) => {
    const process = processes.get(rank);
    return process === undefined || process.pid === 0 ? [] : [{ process, rank, place }];
  });
  const silent = known.length > 0 ? known : reports.flatMap((report) => (report.isComplete ? [] : report.silent));
  const who = silent.length === 0 ? '' : `, ${processesText(silent)}`;
  const ranks = all.map(({ rank }) => rank);
  const dead = all.filter(({ isDead }) => isDead).map(({ rank }) => rank);
  return [
    {
      code: 'rank-missing',
      severity: 'error',
      kind: 'fault',
      ranks,
      explains: aftermath,
      problem: `RAS has no answer from ${namedRanks(ranks)} of communicator ${name}${who}${dead.length === 0 ? '' : `; ${namedRanks(dead)} ${dead.length === 1 ? 'is' : 'are'} considered dead`}`,
      cause: 'those processes died or stand still, or their hosts cannot be reached',
      remedy: `look at the logs and hosts of ${namedRanks(ranks)}`,
      places: [place],
    },
  ];
}

function errors({ name, errors: [first], place }: RasCommunicator): LogFinding[] {
  if (first === undefined) return [];
  const { ranks, value } = first;
  const subject = ranks.length === 0 ? 'several ranks' : namedRanks(ranks);
  const what = value === '' ? `${ranks.length === 1 ? 'has' : 'have'} an asynchronous error` : `reported: ${value}`;
  return [
    {
      code: 'async-error',
      severity: 'error',
      kind: 'failure',
      ranks,
      explains: aftermath,
      problem: `${subject} of communicator ${name} ${what}`,
      cause: 'the network or a GPU failed there',
      remedy: 'look at NCCL WARN lines of these ranks',
      places: [place],
    },
  ];
}

function callsOther({ name, place }: RasCommunicator, rank: number, operation: string, instead: string): LogFinding {
  return {
    code: 'calls-differ',
    severity: 'error',
    kind: 'fault',
    ranks: [rank],
    explains: aftermath,
    problem: `rank ${rank} of communicator ${name} launched more ${operation} and fewer ${instead} operations than the others`,
    cause: `it called ${operation} where the others called ${instead}: code paths differ between ranks`,
    remedy: `\`py-spy dump\` of rank ${rank} and of another rank; compare where they are`,
    places: [place],
  };
}

const statusCauses: Readonly<Record<string, string>> = {
  INIT: 'they did not come out of making the communicator',
  ABORT: 'they gave the communicator up: an error there, or a watchdog',
  FINALIZE: 'they are done and destroy the communicator: they made fewer calls, or the others still wait',
  NOCOMM: 'their processes have no such communicator, or no longer',
};

function otherStatus(
  name: string,
  { value, ranks }: RankGroup<string>,
  usual: string,
  place: RasCommunicator['place'],
): LogFinding {
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
