import { counted } from '../../counted.js';
import type { JobCall, Joined } from './job-call.js';
import { isOfPairs, joinMessages, unevenMessages } from './join-messages.js';
import { shiftOf } from './shift.js';
import type { RankCall, RankTrace } from './trace.js';

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
      if (isOfPairs(call)) continue;
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
      const shift = isNumbered || reference === undefined ? 0 : shiftOf(list, reference, isAlike);
      if (shift !== 0) shifted++;
      list.forEach((call, place) => {
        const key = `${group} ${isNumbered ? (call.sequence ?? '') : String(place + shift)}`;
        const own = parts.get(key);
        if (own === undefined) parts.set(key, new Map<number, RankCall>([[rank, call]]));
        else if (!own.has(rank)) own.set(rank, call);
      });
    }
  }
  const collectives = [...parts.values()].map((own, index) => jobCall(own, index, membersOf));
  const messages = joinMessages(traces, collectives.length);
  const calls = [...collectives, ...messages.calls];
  const differing = [...parts.values()].filter(isDifferent).length;
  const partial = calls.filter(({ parts: own, size }) => own.size < size).length;
  if (unnumbered > 0 && traces.length > 1)
    notes.push(
      `${counted(unnumbered, 'communicator')} without sequence numbers: calls are joined by their place${
        shifted === 0 ? '' : `; ${counted(shifted, 'list')} of a rank that begin elsewhere were moved to fit`
      }`,
    );
  notes.push(...messages.notes);
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
  const messages = collective === 'AllToAll' ? unevenMessages(own) : undefined;
  return { index, group, groupName, members, size, operation, collective, bytes, type, messages, parts: own };
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
  // Ranks of an uneven all-to-all have parts of other sizes.
  if (first?.messages !== undefined) return others.some(({ operation }) => operation !== first.operation);
  return others.some(({ operation, bytes }) => operation !== first?.operation || bytes !== first.bytes);
}

function isAlike(call: RankCall, other: RankCall): boolean {
  return call.operation === other.operation && call.bytes === other.bytes;
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
