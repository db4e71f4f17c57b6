import { aftermath } from '../rules/codes.js';
import { type LogFinding, namedRanks } from './finding.js';
import { adviceFor } from './flight-advice.js';
import type { FlightCall, FlightMessage, FlightRecording } from '../../readers/flight.js';

/** A group of ranks in recordings: several may have the same name, each with ranks of its own. */
export interface FlightGroup {
  readonly name: string;
  /** Undefined where no recording has it. */
  readonly ranks: readonly number[] | undefined;
  /** Name for messages. */
  readonly title: string;
  readonly members: readonly FlightRecording[];
}

/** A finding, with the ranks that it blames and those that wait for them. */
interface Hold {
  readonly finding: LogFinding;
  readonly blamed: readonly number[];
  readonly waiting: readonly number[];
}

/** Most findings that are reported. */
const MOST_FINDINGS = 3;

/**
 * Compares the recordings of all ranks, group by group: missing ranks, ranks with another call, the position of all; then
 * messages. Ranks that are missing in one group because they wait in another are a consequence.
 */
export function checkFlight(recordings: readonly FlightRecording[]): LogFinding[] {
  const groups = groupsOf(recordings);
  const isAlone = recordings.length === 1;
  const holds = [...groups.flatMap((group) => checkGroup(group, isAlone)), ...groups.flatMap(checkMessages)];
  const waits = (rank: number, hold: Hold) => holds.some((other) => other !== hold && other.waiting.includes(rank));
  const isRoot = (hold: Hold) => hold.blamed.length === 0 || hold.blamed.some((rank) => !waits(rank, hold));
  const roots = holds.filter((hold) => hold.blamed.length > 0 && isRoot(hold));
  // Ranks that wait for each other in a circle have no first one.
  const told = holds.map((hold) => (roots.length > 0 && !isRoot(hold) ? asConsequence(hold) : withWaiting(hold)));
  return [...told.filter(({ kind }) => kind !== 'symptom'), ...told.filter(({ kind }) => kind === 'symptom')].slice(
    0,
    MOST_FINDINGS,
  );
}

function withWaiting({ finding, blamed, waiting }: Hold): LogFinding {
  const others = waiting.filter((rank) => !blamed.includes(rank));
  return blamed.length === 0 || others.length === 0 ? finding : { ...finding, waiting: others };
}

function asConsequence({ finding }: Hold): LogFinding {
  return { ...finding, code: 'group-waits', kind: 'symptom', cause: 'these ranks wait in another group themselves' };
}

/** The groups that recordings are about. */
export function groupsOf(recordings: readonly FlightRecording[]): FlightGroup[] {
  const known = new Map<string, { readonly name: string; readonly ranks: readonly number[] | undefined }>();
  for (const { groups } of recordings)
    for (const [name, ranks] of groups) if (ranks.length > 0) known.set(`${name} ${ranks.join()}`, { name, ranks });
  const named = [...known.values()];
  for (const { rank, calls, messages } of recordings)
    for (const { group: name } of [...calls, ...messages])
      if (!named.some((group) => group.name === name && group.ranks?.includes(rank) === true))
        known.set(name, { name, ranks: undefined });
  return [...known.values()].map(({ name, ranks }) => ({
    name,
    ranks,
    title:
      named.filter((other) => other.name === name).length > 1 && ranks !== undefined ? `${name} (${namedRanks(ranks)})` : name,
    members: recordings.filter((recording) =>
      ranks === undefined
        ? [...recording.calls, ...recording.messages].some(({ group }) => group === name) &&
          !named.some((other) => other.name === name && other.ranks?.includes(recording.rank) === true)
        : ranks.includes(recording.rank),
    ),
  }));
}

function checkGroup({ name, ranks: told, title, members }: FlightGroup, isAlone: boolean): Hold[] {
  const byRank = members.map((recording) => ({ recording, calls: recording.calls.filter((each) => each.group === name) }));
  const open = byRank.flatMap(({ calls }) => calls.find(isOpen)?.sequence ?? []);
  const sequence = Math.min(...open);
  if (!Number.isFinite(sequence)) return [];
  const there = byRank.flatMap(({ recording, calls }) => {
    const own = calls.findLast((each) => each.sequence === sequence);
    return own === undefined ? [] : [{ recording, own }];
  });
  const [first] = there;
  if (first === undefined) return [];
  const inside = there.filter(({ own }) => isOpen(own)).map(({ recording }) => recording.rank);
  const differs = there.find(
    ({ own }) => own.operation !== first.own.operation || (comparable(own) && own.input !== first.own.input),
  );
  if (differs !== undefined) return [{ finding: callsDiffer(title, sequence, [first, differs]), blamed: [], waiting: inside }];
  const behind = byRank.filter(({ calls }) => (calls.at(-1)?.sequence ?? -1) < sequence).map(({ recording }) => recording);
  if (behind.length > 0)
    return [
      {
        finding: ranksBehind(title, first.own, behind, there.length, members),
        blamed: behind.map(({ rank }) => rank),
        waiting: inside,
      },
    ];
  if (members.length === 1) {
    const finding = onlyOne(title, first.own, first.recording, told?.length);
    return [{ finding: isAlone ? { ...finding, severity: 'info', kind: 'note' } : finding, blamed: [], waiting: inside }];
  }
  const unrecorded = told?.filter((rank) => !members.some((each) => each.rank === rank)) ?? [];
  if (unrecorded.length > 0)
    return [{ finding: notRecorded(title, first.own, unrecorded, first.recording), blamed: unrecorded, waiting: inside }];
  const recordingsOf = (all: typeof there) => all.map(({ recording }) => recording);
  const unfinished = there.filter(({ own }) => isOpen(own));
  if (unfinished.length < there.length)
    return [
      {
        finding: leftInside(title, first.own, recordingsOf(unfinished), there.length - unfinished.length),
        blamed: inside,
        waiting: byRank
          .filter(({ calls }) => calls.some((each) => isOpen(each) && each.sequence > sequence))
          .map(({ recording }) => recording.rank),
      },
    ];
  const waiting = there.filter(({ own }) => own.state === 'scheduled');
  const isHalf = waiting.length > 0 && waiting.length < there.length;
  return [
    {
      finding: isHalf ? notStarted(title, first.own, recordingsOf(waiting)) : allInside(title, first.own, recordingsOf(there)),
      blamed: isHalf ? waiting.map(({ recording }) => recording.rank) : [],
      waiting: inside,
    },
  ];
}

function isOpen({ state }: { readonly state: string }): boolean {
  return state !== 'completed';
}

/** Messages in flight without their other end: the peer never called, as far as its recording goes back. */
function checkMessages({ name, ranks, title, members }: FlightGroup): Hold[] {
  const open = members.flatMap((recording) =>
    recording.messages
      .filter((message) => message.group === name && isOpen(message))
      .map((message) => ({ recording, message, peer: ranks?.[message.peer] ?? message.peer })),
  );
  const alone = open.filter(({ recording, message, peer }) => {
    const other = members.find(({ rank }) => rank === peer);
    if (other === undefined) return false;
    const own = ranks?.indexOf(recording.rank) ?? recording.rank;
    const isAlike = (each: FlightMessage) => each.group === name && each.signals > 0 === message.signals > 0;
    const theirs = other.messages.filter((each) => isAlike(each) && each.peer === own && each.direction !== message.direction);
    const mine = recording.messages.filter(
      (each) => isAlike(each) && each.peer === message.peer && each.direction === message.direction,
    );
    if (theirs.some(isOpen)) return false;
    // The other end may have completed: a small message is sent before it is received.
    return recording.isCut || other.isCut || numberOf(theirs) < numberOf(mine);
  });
  const [first] = alone;
  if (first !== undefined) {
    const { recording, message, peer } = first;
    return [
      {
        finding: messageUnmatched(title, recording, message, members.find(({ rank }) => rank === peer) ?? recording),
        blamed: [peer],
        waiting: alone.filter((each) => each.peer === peer).map((each) => each.recording.rank),
      },
    ];
  }
  const [stuck] = open;
  if (stuck === undefined) return [];
  const other = members.find(({ rank }) => rank === stuck.peer);
  if (other === undefined)
    return [
      {
        finding: notRecorded(title, described(stuck.message), [stuck.peer], stuck.recording),
        blamed: [stuck.peer],
        waiting: [stuck.recording.rank],
      },
    ];
  const both = [stuck.recording, other];
  return [{ finding: allInside(title, described(stuck.message), both), blamed: [], waiting: both.map(({ rank }) => rank) }];
}

/** Number of messages, or of signals. */
function numberOf(messages: readonly FlightMessage[]): number {
  return messages.reduce((sum, { signals }) => sum + Math.max(1, signals), 0);
}

function described({ group, direction, peer, signals, state, calledAt, order }: FlightMessage): FlightCall {
  const [name, peers] = direction === 'send' ? ['send', 'to'] : ['recv', 'from'];
  return {
    group,
    sequence: -1,
    operation: `${signals === 0 ? name : direction === 'send' ? 'signal' : 'waitSignal'} ${peers} ${peer}`,
    input: '',
    state,
    calledAt,
    order,
  };
}

/** Calls for which all ranks give the same shape. */
function comparable({ operation }: FlightCall): boolean {
  return (
    /^_?(?:all_?reduce|all_?gather|reduce_?scatter|barrier)/i.test(operation) && !/ \+ |coalesced|_v$|uneven/i.test(operation)
  );
}

interface At {
  readonly recording: FlightRecording;
  readonly own: FlightCall;
}

function callsDiffer(group: string, sequence: number, [a, b]: readonly [At, At]): LogFinding {
  const told = ({ recording, own }: At) =>
    `rank ${recording.rank} ${own.operation} of ${own.input}${own.calledAt === '' ? '' : ` at ${own.calledAt}`}`;
  return {
    code: 'calls-differ',
    severity: 'error',
    kind: 'fault',
    ranks: [a.recording.rank, b.recording.rank],
    explains: aftermath,
    problem: `ranks call different collectives as number ${sequence} of group ${group}: ${told(a)}, ${told(b)}`,
    cause: 'code paths differ between ranks: a condition on the rank, uneven data, another order of calls',
    remedy: 'compare the two places in the program',
    places: [a.recording.place, b.recording.place],
  };
}

function ranksBehind(
  group: string,
  call: FlightCall,
  behind: readonly FlightRecording[],
  there: number,
  members: readonly FlightRecording[],
): LogFinding {
  const ranks = behind.map(({ rank }) => rank);
  const [first] = behind;
  const { text, calledAt } = whereabouts(first);
  return {
    code: 'rank-behind',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: aftermath,
    problem: `${namedRanks(ranks)} never called ${called(call, group)}, in which ${there} of ${members.length} ranks wait; rank ${first?.rank ?? ''} ${text}`,
    cause: 'these ranks are elsewhere: other code, an exception, slow data or a checkpoint, or they are stuck in another group',
    remedy: `${adviceFor(members).stacks(namedRanks(ranks))}; look at what follows ${calledAt === '' ? 'their last call' : calledAt}`,
    places: behind.slice(0, 4).map(({ place }) => place),
  };
}

function notRecorded(
  group: string,
  call: FlightCall,
  ranks: readonly number[],
  witness: FlightRecording | undefined,
): LogFinding {
  return {
    code: 'rank-absent',
    severity: 'warning',
    kind: 'failure',
    ranks,
    explains: [],
    problem: `of ${namedRanks(ranks)} there is no recording, and all others wait in ${called(call, group)}`,
    cause: 'those processes died or were too stuck to write one',
    remedy: `look at the logs and stacks of ${namedRanks(ranks)} first`,
    places: witness === undefined ? [] : [witness.place],
  };
}

/** A single recording shows only the position of its own rank. */
function onlyOne(group: string, call: FlightCall, recording: FlightRecording, size: number | undefined): LogFinding {
  return {
    code: 'rank-absent',
    severity: 'warning',
    kind: 'failure',
    ranks: recording.rank < 0 ? [] : [recording.rank],
    explains: [],
    problem: `${recording.rank < 0 ? 'the rank of this file' : `rank ${recording.rank}`} waits in ${called(call, group)}${call.calledAt === '' ? '' : ` at ${call.calledAt}`}; of the other ${size === undefined ? '' : `${size - 1} `}ranks no recording was given`,
    cause: 'one recording does not show which rank is behind',
    remedy: 'give the recordings of all ranks; a rank that wrote none died or is stuck',
    places: [recording.place],
  };
}

function notStarted(group: string, call: FlightCall, waiting: readonly FlightRecording[]): LogFinding {
  const ranks = waiting.map(({ rank }) => rank);
  return {
    code: 'rank-not-started',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: aftermath,
    problem: `${namedRanks(ranks)} enqueued ${called(call, group)}, but ${ranks.length === 1 ? 'its GPU has' : 'their GPUs have'} not begun it; the others have`,
    cause: 'the GPU is busy or stuck with work before it on that stream: a kernel that hangs, or a collective of another group',
    remedy: `\`nvidia-smi\` and \`dmesg -T\` (Xid) on the hosts of ${namedRanks(ranks)}; what runs before it on that stream`,
    places: waiting.slice(0, 4).map(({ place }) => place),
  };
}

function allInside(group: string, call: FlightCall, members: readonly FlightRecording[]): LogFinding {
  return {
    code: 'collective-stuck',
    severity: 'error',
    kind: 'failure',
    ranks: members.map(({ rank }) => rank),
    explains: aftermath,
    problem: `${call.sequence < 0 ? `${namedRanks(members.map(({ rank }) => rank))} are at both ends of ${called(call, group)}` : `all ${members.length} ranks are in ${called(call, group)}, of ${call.input},`} and none comes out`,
    ...adviceFor(members).allInside,
    places: members.slice(0, 4).map(({ place }) => place),
  };
}

function leftInside(group: string, call: FlightCall, left: readonly FlightRecording[], completed: number): LogFinding {
  const ranks = left.map(({ rank }) => rank);
  return {
    code: 'rank-behind',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: aftermath,
    problem: `${namedRanks(ranks)} ${ranks.length === 1 ? 'has' : 'have'} not come out of ${called(call, group)}, which ${completed} other ${completed === 1 ? 'rank has' : 'ranks have'} completed`,
    ...adviceFor(left).leftInside(namedRanks(ranks)),
    places: left.slice(0, 4).map(({ place }) => place),
  };
}

function messageUnmatched(
  group: string,
  recording: FlightRecording,
  { direction, signals, calledAt }: FlightMessage,
  other: FlightRecording,
): LogFinding {
  const at = calledAt === '' ? '' : ` at ${calledAt}`;
  const [from, to] = signals === 0 ? ['receive from', 'send to'] : ['get a signal from', 'signal'];
  const [here, there] = direction === 'recv' ? [from, to] : [to, from];
  return {
    code: 'message-unmatched',
    severity: 'error',
    kind: 'fault',
    ranks: [recording.rank, other.rank],
    explains: aftermath,
    problem: `rank ${recording.rank} waits to ${here} rank ${other.rank} (group ${group}${at}), which does not ${there} it: it ${whereabouts(other).text}`,
    cause: 'the ranks do not agree about their messages: number, order, or a stage of the pipeline that ended early',
    remedy: `compare the sends and receives of both ranks; ${adviceFor([recording]).stacks(`rank ${other.rank}`)}`,
    places: [recording.place, other.place],
  };
}

/** `all_reduce (number 7 of group 0)`. */
function called({ operation, sequence }: FlightCall, group: string): string {
  return `${operation} (${sequence < 0 ? '' : `number ${sequence} of `}group ${group})`;
}

/** A rank's position by its recording: in a call or a message, or after its last one. */
function whereabouts(recording: FlightRecording | undefined): { readonly text: string; readonly calledAt: string } {
  const calls = [...(recording?.messages.map(described) ?? []), ...(recording?.calls ?? [])].sort((a, b) => a.order - b.order);
  const last = calls.findLast(isOpen) ?? calls.at(-1);
  if (last === undefined) return { text: 'recorded no call at all', calledAt: '' };
  const at = last.calledAt === '' ? '' : `, ${last.calledAt}`;
  const number = last.sequence < 0 ? '' : `number ${last.sequence} of `;
  return {
    text: `${isOpen(last) ? 'stands in' : 'called last'} ${last.operation} (${number}group ${last.group}${at})`,
    calledAt: last.calledAt,
  };
}
