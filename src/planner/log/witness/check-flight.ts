import { type LogFinding, namedRanks } from '../finding.js';
import type { FlightCall, FlightRecording } from './flight.js';

const consequences = [
  'watchdog-timeout',
  'watchdog-stuck',
  'rank-absent',
  'rank-behind',
  'remote-closed',
  'exit-signal',
  'exit-child',
  'store-lost',
  'dump-signal',
];

/** Compares the recordings of all ranks, group by group: who did not come, who called something else, where all stand. */
export function checkFlight(recordings: readonly FlightRecording[]): LogFinding[] {
  const groups = new Set(recordings.flatMap(({ calls }) => calls.map(({ group }) => group)));
  return [...groups].flatMap((group) => checkGroup(group, recordings)).slice(0, 3);
}

function checkGroup(group: string, recordings: readonly FlightRecording[]): LogFinding[] {
  const told = recordings.map(({ groups }) => groups.get(group)).find((ranks) => ranks !== undefined && ranks.length > 0);
  const members = recordings.filter(
    ({ rank, calls }) => (told?.includes(rank) ?? false) || calls.some((each) => each.group === group),
  );
  const byRank = members.map((recording) => ({ recording, calls: recording.calls.filter((each) => each.group === group) }));
  const open = byRank.flatMap(({ calls }) => calls.find(({ state }) => state !== 'completed')?.sequence ?? []);
  const sequence = Math.min(...open);
  if (!Number.isFinite(sequence)) return [];
  const there = byRank.flatMap(({ recording, calls }) => {
    const own = calls.findLast((each) => each.sequence === sequence);
    return own === undefined ? [] : [{ recording, own }];
  });
  const [first] = there;
  if (first === undefined) return [];
  const differs = there.find(
    ({ own }) => own.operation !== first.own.operation || (comparable(own) && own.input !== first.own.input),
  );
  if (differs !== undefined) return [callsDiffer(group, sequence, [first, differs])];
  const behind = byRank.filter(({ calls }) => (calls.at(-1)?.sequence ?? -1) < sequence).map(({ recording }) => recording);
  if (behind.length > 0) return [ranksBehind(group, first.own, behind, there.length, members)];
  const unrecorded = told?.filter((rank) => !members.some((each) => each.rank === rank)) ?? [];
  if (unrecorded.length > 0) return [notRecorded(group, first.own, unrecorded, there[0]?.recording)];
  const waiting = there.filter(({ own }) => own.state === 'scheduled');
  return [
    waiting.length > 0 && waiting.length < there.length
      ? notStarted(
          group,
          first.own,
          waiting.map(({ recording }) => recording),
        )
      : allInside(
          group,
          first.own,
          there.map(({ recording }) => recording),
        ),
  ];
}

/** All ranks give the same shape to these. */
function comparable({ operation }: FlightCall): boolean {
  return /^_?(?:all_?reduce|all_?gather|reduce_?scatter|barrier)/i.test(operation) && !/coalesced|_v$|uneven/i.test(operation);
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
    explains: consequences,
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
  const last = first?.calls.findLast(({ state }) => state !== 'completed') ?? first?.calls.at(-1);
  const where =
    last === undefined
      ? 'recorded no call at all'
      : `${last.state === 'completed' ? 'called last' : 'stands in'} ${last.operation} (number ${last.sequence} of group ${last.group}${last.calledAt === '' ? '' : `, ${last.calledAt}`})`;
  return {
    code: 'rank-behind',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: consequences.filter((code) => code !== 'rank-behind'),
    problem: `${namedRanks(ranks)} never called ${call.operation} (number ${call.sequence} of group ${group}), in which ${there} of ${members.length} ranks wait; rank ${first?.rank ?? ''} ${where}`,
    cause: 'these ranks are elsewhere: other code, an exception, slow data or a checkpoint, or they are stuck in another group',
    remedy: `py-spy dump of ${namedRanks(ranks)}; look at what follows ${last?.calledAt === undefined || last.calledAt === '' ? 'their last call' : last.calledAt}`,
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
    problem: `of ${namedRanks(ranks)} there is no recording, and all others of group ${group} wait in ${call.operation} (number ${call.sequence})`,
    cause: 'those processes died or were too stuck to write one',
    remedy: `look at the logs and stacks of ${namedRanks(ranks)} first`,
    places: witness === undefined ? [] : [witness.place],
  };
}

function notStarted(group: string, call: FlightCall, waiting: readonly FlightRecording[]): LogFinding {
  const ranks = waiting.map(({ rank }) => rank);
  return {
    code: 'rank-not-started',
    severity: 'error',
    kind: 'fault',
    ranks,
    explains: consequences,
    problem: `${namedRanks(ranks)} enqueued ${call.operation} (number ${call.sequence} of group ${group}), but ${ranks.length === 1 ? 'its GPU has' : 'their GPUs have'} not begun it; the others have`,
    cause: 'the GPU is busy or stuck with work before it on that stream: a kernel that hangs, or a collective of another group',
    remedy: `nvidia-smi and dmesg -T | grep -i xid on the hosts of ${namedRanks(ranks)}; what runs before it on that stream`,
    places: waiting.slice(0, 4).map(({ place }) => place),
  };
}

function allInside(group: string, call: FlightCall, members: readonly FlightRecording[]): LogFinding {
  return {
    code: 'collective-stuck',
    severity: 'error',
    kind: 'failure',
    ranks: members.map(({ rank }) => rank),
    explains: consequences,
    problem: `all ${members.length} ranks of group ${group} are in ${call.operation} (number ${call.sequence}, ${call.input}) and none comes out`,
    cause: 'the ranks agree, so the program is not at fault: the network, a GPU or a NIC stands still',
    remedy: "look at NCCL's log, dmesg and NIC counters of these hosts; run nccl-tests between pairs of them",
    places: members.slice(0, 4).map(({ place }) => place),
  };
}
