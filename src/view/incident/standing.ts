import { type FlightGroup, groupsOf } from '../../planner/log/checks/flight.js';
import { heldInit } from '../../planner/log/checks/init.js';
import { lateRanks, latest } from '../../planner/log/checks/ras.js';
import { type LogFinding, namedRanks } from '../../planner/log/checks/finding.js';
import { type LoggedCommunicator, type LogModel, Stage } from '../../planner/log/job/model.js';
import type { Timeout } from '../../planner/log/job/watchdog.js';
import type { FlightRecording } from '../../planner/readers/flight.js';
import type { RasCommunicator } from '../../planner/readers/ras.js';

/**
 * Positions of the ranks of one group on a scale that all of them share: the operations of the group, or the stages of init. Of
 * a job that stands still it is the timeline: logs and recordings have no common clock.
 */
export interface Standings {
  readonly title: string;
  /** Names of the positions. */
  readonly steps: readonly string[];
  /** Ranks of the same position together. */
  readonly rows: readonly StandingRow[];
}

/** Ranks with one position. */
export interface StandingRow {
  readonly ranks: readonly number[];
  /** `ranks 0-2, 4`; how many they are, where their numbers are not known. */
  readonly name: string;
  /** Steps that they have completed. */
  readonly done: number;
  /** True if they are within the next step. */
  readonly isInside: boolean;
  readonly text: string;
  readonly role: Role;
}

/** Part of a rank in an incident: others wait for it, it waits, its process ended, or none of these. */
export type Role = 'late' | 'waits' | 'gone' | 'rank';

/** Ranks that wait for others, by a finding. */
export interface Wait {
  readonly late: readonly number[];
  readonly waiting: readonly number[];
  readonly why: string;
}

const MOST_STEPS = 8;
const MOST_GROUPS = 6;
/** Ranks of a group whose positions are compared. */
const MOST_RANKS = 100_000;

/** Roles of ranks in an incident. */
export class Roles {
  readonly waits: readonly Wait[];
  readonly #roles = new Map<number, Role>();

  /** @param gone ranks whose processes have ended */
  constructor(waits: readonly Wait[], gone: readonly number[]) {
    this.waits = waits;
    this.#set(gone, 'gone');
    for (const { late, waiting } of waits) {
      this.#set(late, 'late');
      this.#set(waiting, 'waits');
    }
  }

  of(rank: number): Role {
    return this.#roles.get(rank) ?? 'rank';
  }

  /** The first statement about a rank holds. */
  #set(ranks: readonly number[], role: Role): void {
    for (const rank of ranks) if (!this.#roles.has(rank)) this.#roles.set(rank, role);
  }
}

/** Roles by the files of a job, and the findings about it, the likeliest cause first. */
export function rolesOf(model: LogModel, findings: readonly LogFinding[]): Roles {
  const found = findings.flatMap(({ ranks = [], waiting = [], problem }) =>
    ranks.length === 0 || waiting.length === 0 ? [] : [{ late: ranks, waiting, why: problem }],
  );
  const held = model.communicators
    .map(heldInit)
    .filter(({ blamed }) => blamed.length > 0)
    .map(({ blamed, waiting }) => ({ late: blamed, waiting, why: `init waits for ${namedRanks(blamed)}` }));
  return new Roles(
    [...found, ...held],
    model.deaths.flatMap(({ ranks, wentOn }) => (wentOn ? [] : ranks)),
  );
}

/** Positions of ranks by their numbers of calls. */
export function standingsOfCalls(title: string, positions: readonly Position[], roles: Roles): Standings {
  return numbered(title, positions, String, roles);
}

/** Positions of ranks in each group that the files are about and that does not go on. */
export function standingsOf(model: LogModel, roles: Roles): Standings[] {
  const timeouts = grouped(model.timeouts, ({ group }) => group);
  return [
    ...groupsOf(model.recordings).flatMap((group) => ofRecordings(group, roles)),
    ...latest(model.ras).flatMap((communicator) => ofRas(communicator, roles)),
    ...(model.recordings.length > 0 ? [] : [...timeouts].flatMap(([group, all]) => ofTimeouts(group, all, roles))),
    ...model.communicators.flatMap((communicator) => ofInit(communicator, roles)),
  ].slice(0, MOST_GROUPS);
}

/** A rank, or ranks of one report, by numbers of operations. */
export interface Position {
  readonly ranks: readonly number[];
  /** Number of ranks, where `ranks` lacks some. */
  readonly size?: number;
  /** Number of the last operation that they completed, or launched. */
  readonly last: number;
  readonly isInside: boolean;
  readonly text: string;
}

function ofRecordings({ name, title, members, ranks }: FlightGroup, roles: Roles): Standings[] {
  const positions = members.flatMap((recording) => positionOf(recording, name));
  if (!positions.some(({ isInside }) => isInside)) return [];
  const unrecorded = (ranks ?? []).filter((rank) => !members.some((member) => member.rank === rank));
  const operations = new Map(
    members.flatMap(({ calls }) =>
      calls.filter(({ group }) => group === name).map(({ sequence, operation }) => [sequence, operation] as const),
    ),
  );
  const stepName = (number: number) => `${number} ${operations.get(number) ?? ''}`.trim();
  const standings = numbered(`Calls of group ${title}`, positions, stepName, roles);
  return [{ ...standings, rows: [...standings.rows, ...silentRows(unrecorded, 'no recording', roles)] }];
}

function positionOf({ rank, calls }: FlightRecording, group: string): Position[] {
  const own = calls.filter((call) => call.group === group);
  const open = own.find(({ state }) => state !== 'completed');
  const latestCall = own.at(-1);
  if (latestCall === undefined) return [];
  const { operation, calledAt, sequence, state } = open ?? latestCall;
  const at = calledAt === '' ? '' : ` at ${calledAt}`;
  return [
    open === undefined
      ? { ranks: [rank], last: sequence, isInside: false, text: `completed ${sequence}, ${operation}${at}` }
      : { ranks: [rank], last: sequence - 1, isInside: true, text: `in ${sequence}, ${operation}${at} (${state})` },
  ];
}

function ofRas(communicator: RasCommunicator, roles: Roles): Standings[] {
  const gone = communicator.missing.map(({ rank }) => rank);
  return [...communicator.counts].flatMap(([operation, groups]) => {
    if (groups.length < 2 && gone.length === 0) return [];
    const late = lateRanks(communicator, operation);
    const positions = groups.map(({ value, size, ranks }) => ({
      // RAS lists the few that differ from most: where the others are late, they are the rest.
      ranks: value === late?.least && groups.filter((each) => each.value === value).length === 1 ? late.ranks : ranks,
      size,
      last: value,
      isInside: false,
      text: `launched ${value}`,
    }));
    const title = `Launches of ${operation} in communicator ${communicator.name}`;
    const standings = numbered(title, positions, String, roles);
    return [{ ...standings, rows: [...standings.rows, ...silentRows(gone, 'gave no data', roles)] }];
  });
}

function ofTimeouts(group: string, timeouts: readonly Timeout[], roles: Roles): Standings[] {
  const operations = new Map(timeouts.map(({ sequence, operation }) => [sequence, operation]));
  const positions = timeouts
    .filter(({ sequence }) => sequence >= 0)
    .map(({ rank, sequence, operation }) => ({
      ranks: [rank],
      last: sequence - 1,
      isInside: true,
      text: `timed out in ${sequence}, ${operation}`,
    }));
  if (positions.length === 0) return [];
  const title = `Collectives of group ${group === '' ? 'of the job' : group}`;
  return [numbered(title, positions, (number) => `${number} ${operations.get(number) ?? ''}`.trim(), roles)];
}

/** Positions by numbers, on the last ones of them. */
function numbered(title: string, positions: readonly Position[], nameOf: (number: number) => string, roles: Roles): Standings {
  const furthest = Math.max(...positions.map(({ last, isInside }) => last + (isInside ? 1 : 0)));
  const least = Math.min(...positions.map(({ last }) => last));
  const first = Math.max(0, furthest - MOST_STEPS + 1, Math.min(least, furthest - 2));
  const rows = positions.flatMap(({ ranks, size, last, isInside, text }) => {
    const base = { done: Math.max(0, last - first + 1), isInside: isInside && last >= first - 1, text };
    const unnamed = (size ?? ranks.length) - ranks.length;
    return [
      ...ranks.map((rank) => ({ ...base, ranks: [rank], name: '', role: roles.of(rank) })),
      ...(unnamed > 0 ? [{ ...base, ranks: [], name: `${unnamed} ranks`, role: 'rank' as const }] : []),
    ];
  });
  return { title, steps: Array.from({ length: furthest - first + 1 }, (_, index) => nameOf(first + index)), rows: folded(rows) };
}

const initSteps = ['addresses', 'topology', 'channels', 'connecting', 'done'];

const stageTexts: Readonly<Record<Stage, string>> = {
  [Stage.BEGUN]: 'began init',
  [Stage.TOPOLOGY]: 'has its topology',
  [Stage.CHANNELS]: 'has its channels',
  [Stage.CONNECTING]: 'is connecting',
  [Stage.CONNECTED]: 'has connected rings and trees',
  [Stage.DONE]: 'completed init',
};

function ofInit(communicator: LoggedCommunicator, roles: Roles): Standings[] {
  const { ranks, id } = communicator;
  const { absent } = heldInit(communicator);
  const isOpen = [...ranks.values()].some(({ completed, started }) => completed === undefined && started !== undefined);
  if (!isOpen) return [];
  const rows = [...ranks.values()].slice(0, MOST_RANKS).map(({ rank, stage, completed }) => {
    const reached = completed === undefined ? stage : Stage.DONE;
    return {
      ranks: [rank],
      name: '',
      done: reached,
      isInside: reached < Stage.DONE,
      text: stageTexts[reached],
      role: roles.of(rank),
    };
  });
  return [
    {
      title: `Init of communicator ${id}`,
      steps: initSteps,
      rows: [...folded(rows), ...silentRows(absent, 'no line at all', roles)],
    },
  ];
}

function silentRows(ranks: readonly number[], text: string, roles: Roles): StandingRow[] {
  return folded(
    ranks.map((rank) => {
      const role = roles.of(rank);
      return { ranks: [rank], name: '', done: 0, isInside: false, text, role: role === 'rank' ? 'gone' : role };
    }),
  );
}

/** Rows of one position together, the least advanced first. */
function folded(rows: readonly StandingRow[]): StandingRow[] {
  const groups = grouped(rows, ({ done, isInside, text, role, name }) => [done, isInside, text, role, name].join(' '));
  return [...groups.values()]
    .flatMap((group): StandingRow[] => {
      const [first] = group;
      if (first === undefined) return [];
      const ranks = group.flatMap((row) => [...row.ranks]).sort((a, b) => a - b);
      return [{ ...first, ranks, name: ranks.length === 0 ? first.name : namedRanks(ranks) }];
    })
    .sort((a, b) => a.done - b.done || Number(a.isInside) - Number(b.isInside) || (a.ranks[0] ?? 0) - (b.ranks[0] ?? 0));
}

function grouped<Each>(all: readonly Each[], keyOf: (each: Each) => string): Map<string, Each[]> {
  const groups = new Map<string, Each[]>();
  for (const each of all) {
    const group = groups.get(keyOf(each));
    if (group === undefined) groups.set(keyOf(each), [each]);
    else group.push(each);
  }
  return groups;
}
