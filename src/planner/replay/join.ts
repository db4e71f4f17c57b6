import { counted } from '../../counted.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import type { RankCall, RankTrace } from './trace.js';

/** A call of a communicator with the parts of all ranks that recorded it. */
export interface JobCall {
  /** Number among the calls of the job, in the order in which the first rank made them. */
  readonly index: number;
  readonly group: string;
  readonly groupName: string;
  /** Ranks of the communicator in its order; undefined where nothing says which. */
  readonly members: readonly number[] | undefined;
  /** Number of its ranks. */
  readonly size: number;
  readonly operation: string;
  readonly collective: ScheduledCollective | undefined;
  readonly bytes: number;
  readonly type: RankCall['type'];
  /** By rank. */
  readonly parts: ReadonlyMap<number, RankCall>;
}

/** Calls of a job, and what was missing or did not fit. */
export interface Joined {
  readonly calls: readonly JobCall[];
  /** One line each. */
  readonly notes: readonly string[];
}

/** Calls by which the list of one rank may begin later than that of another. */
const MOST_SHIFT = 64;

/**
 * Joins the calls of all ranks: by sequence number, or where recordings have none by their place among the calls of the
 * communicator.
 *
 * @param nRanks of the job
 */
export function joinCalls(traces: readonly RankTrace[], nRanks: number): Joined {
  const notes: string[] = [];
  const parts = new Map<string, Map<number, RankCall>>();
  const groups = new Map<string, Map<number, RankCall[]>>();
  for (const { rank, calls } of traces) {
    for (const call of calls) {
      let lists = groups.get(call.group);
      if (lists === undefined) groups.set(call.group, (lists = new Map<number, RankCall[]>()));
      const list = lists.get(rank);
      if (list === undefined) lists.set(rank, [call]);
      else list.push(call);
    }
  }
  let unnumbered = 0;
  let shifted = 0;
  const membersOf = new Map<string, readonly number[] | undefined>();
  for (const [group, lists] of groups) {
    membersOf.set(group, membersOfGroup(lists, nRanks));
    const isNumbered = [...lists.values()].every((list) => list.every(({ sequence }) => sequence !== undefined));
    if (!isNumbered) unnumbered++;
    const [reference] = [...lists.values()].sort((a, b) => b.length - a.length);
    for (const [rank, list] of lists) {
      const shift = isNumbered || reference === undefined ? 0 : shiftOf(list, reference);
      if (shift !== 0) shifted++;
      list.forEach((call, place) => {
        const key = `${group} ${isNumbered ? (call.sequence ?? '') : String(place + shift)}`;
        const own = parts.get(key);
        if (own === undefined) parts.set(key, new Map<number, RankCall>([[rank, call]]));
        else if (!own.has(rank)) own.set(rank, call);
      });
    }
  }
  const calls = [...parts.values()].map((own, index) => jobCall(own, index, membersOf));
  const differing = [...parts.values()].filter(isDifferent).length;
  const partial = calls.filter(({ parts: own, size }) => own.size < size).length;
  if (unnumbered > 0 && traces.length > 1)
    notes.push(
      `${counted(unnumbered, 'communicator')} without sequence numbers: calls are joined by their place${
        shifted === 0 ? '' : `; ${counted(shifted, 'list')} of a rank that begin elsewhere were moved to fit`
      }`,
    );
  if (differing > 0)
    notes.push(
      `${counted(differing, 'call')} with another name or size on some ranks: those of the rank with the most data count`,
    );
  const absent = Array.from({ length: nRanks }, (_, rank) => rank).filter((rank) => !traces.some((trace) => trace.rank === rank));
  if (absent.length > 0)
    notes.push(
      `no trace of ${absent.length === 1 ? 'rank' : `${absent.length} ranks:`} ${listed(absent)}: calls begin when the other ranks come, and measured times contain the waits for the missing ones`,
    );
  const ofKnown = absent.length > 0 ? 0 : partial;
  if (ofKnown > 0)
    notes.push(`${counted(ofKnown, 'call')} not recorded by all ranks: they begin when the ranks that recorded them come`);
  return { calls, notes };
}

function jobCall(
  own: ReadonlyMap<number, RankCall>,
  index: number,
  membersOf: ReadonlyMap<string, readonly number[] | undefined>,
): JobCall {
  const most = [...own.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a));
  const { group, groupName, operation, collective, bytes, type } = most;
  const members = membersOf.get(group);
  const size = members?.length ?? Math.max(own.size, most.size);
  return { index, group, groupName, members, size, operation, collective, bytes, type, parts: own };
}

/** The ranks of a communicator: those it lists, those that recorded it if these are all, or all of the job if it has as many. */
function membersOfGroup(lists: ReadonlyMap<number, readonly RankCall[]>, nRanks: number): readonly number[] | undefined {
  const calls = [...lists.values()].flat();
  const known = calls.find(({ members }) => members !== undefined)?.members;
  if (known !== undefined) return known;
  const size = calls.reduce((most, call) => Math.max(most, call.size), 0);
  if (size === nRanks) return Array.from({ length: nRanks }, (_, rank) => rank);
  return size === 0 || size === lists.size ? [...lists.keys()].sort((a, b) => a - b) : undefined;
}

function isDifferent(own: ReadonlyMap<number, RankCall>): boolean {
  const [first, ...others] = own.values();
  return others.some(({ operation, bytes }) => operation !== first?.operation || bytes !== first.bytes);
}

/** The number of calls by which a list begins later than another, so that most calls are alike; the smallest of several. */
function shiftOf(list: readonly RankCall[], reference: readonly RankCall[]): number {
  const alike = (shift: number) =>
    list.filter(({ operation, bytes }, place) => {
      const other = reference[place + shift];
      return other !== undefined && other.operation === operation && other.bytes === bytes;
    }).length;
  let best = { shift: 0, alike: alike(0) };
  for (let shift = 1; shift <= MOST_SHIFT && best.alike < list.length; shift++)
    for (const each of [shift, -shift]) {
      const count = alike(each);
      if (count > best.alike) best = { shift: each, alike: count };
    }
  return best.shift;
}

/** `0-3, 8`. */
export function listed(ranks: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const rank of ranks) {
    const last = runs.at(-1);
    if (last !== undefined && rank === last[1] + 1) last[1] = rank;
    else runs.push([rank, rank]);
  }
  return runs.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(', ');
}
