import { counted } from '../../../counted.js';
import { type LogFinding, namedRanks } from './finding.js';
import { type LoggedCommunicator, type LoggedRank, type LogModel, Stage } from '../job/model.js';
import { hasEnded } from '../job/outcome.js';
import { firstSuspicion } from './suspicions.js';

const stageNames: Readonly<Record<Stage, string>> = {
  [Stage.BEGUN]: 'had begun',
  [Stage.TOPOLOGY]: 'had their topology',
  [Stage.CHANNELS]: 'had their channels',
  [Stage.CONNECTING]: 'were connecting',
  [Stage.CONNECTED]: 'were connected',
  [Stage.DONE]: 'were done',
};

/** The next step of init by the last one that a rank logged, and what stops it. */
export const stageHints: Readonly<Record<Stage, string>> = {
  [Stage.BEGUN]:
    'ranks exchange addresses over TCP next: a rank that did not start, a firewall, or an interface that others cannot reach (NCCL_SOCKET_IFNAME)',
  [Stage.TOPOLOGY]: 'ranks compare their topologies next: another rank is slower, or died',
  [Stage.CHANNELS]:
    'ranks connect next: P2P, CUDA IPC or shared memory inside a host (containers, ACS, /dev/shm), queue pairs or TCP between hosts (GIDs, firewall)',
  [Stage.CONNECTING]:
    'ranks were connecting: P2P, CUDA IPC or shared memory inside a host (containers, ACS, /dev/shm), queue pairs or TCP between hosts (GIDs, firewall)',
  [Stage.CONNECTED]: 'rings and trees are connected; NVLS, CollNet or a last barrier comes next',
  [Stage.DONE]: 'init is done',
};

/** Checks that every rank has finished init, and lists ranks that are missing. */
export function checkInit(communicator: LoggedCommunicator, model: LogModel): LogFinding[] {
  const { ranks, nRanks, nRanksKnown, id } = communicator;
  const absent = nRanksKnown ? absentRanks(communicator) : [];
  const open = [...ranks.values()].filter(({ completed }) => completed === undefined);
  if (open.length === 0) {
    if (absent.length === 0) return [];
    return [
      {
        code: 'rank-not-logged',
        severity: 'info',
        communicator: id,
        ranks: absent,
        problem: `${counted(ranks.size, 'rank')} of ${nRanks} finished init; of ${namedRanks(absent)} there is no line`,
        cause: 'their output is in other files, or NCCL_DEBUG was not set for them',
        remedy: 'give the files of all ranks, so that all of the communicator can be checked',
        places: [],
      },
    ];
  }

  if (![...ranks.values()].some(({ started }) => started !== undefined) && !saysNoStart(open)) {
    return [
      {
        code: 'init-unfinished',
        severity: 'info',
        communicator: id,
        ranks: open.map(({ rank }) => rank),
        problem: `of ${namedRanks(open.map(({ rank }) => rank))} there is neither a line 'Init START' nor 'Init COMPLETE', so it is unknown whether init finished`,
        cause: 'this is a part of a log, or INIT is not among NCCL_DEBUG_SUBSYS',
        remedy: 'give the whole log, of a job with INIT among NCCL_DEBUG_SUBSYS',
        places: open.slice(0, 4).map(({ last }) => last),
      },
    ];
  }
  const least = leastStage(open);
  const behind = open.filter(({ stage }) => stage <= least);
  const first = behind[0];
  const isLost = explainedByCutLines(open, model);
  const finished = ranks.size - open.length;
  const missing = absent.length === 0 ? '' : `; of ${namedRanks(absent)} there is no line at all`;
  // One of several ranks, without an end: probably the pasted beginning of a log.
  const isExcerpt = finished === 0 && nRanksKnown && ranks.size < nRanks && ranks.size <= Math.max(1, nRanks / 4);
  // A rank that is missing, or behind all others, is the cause; that all others stop at one point is its consequence.
  const isPointed = nRanksKnown && (absent.length > 0 || behind.length < open.length) && ranks.size > nRanks / 2;
  const size = nRanksKnown ? String(nRanks) : `at least ${nRanks}`;
  return [
    {
      code: 'init-unfinished',
      severity: isExcerpt || hasEnded(model) ? 'info' : isLost ? 'warning' : 'error',
      kind: isPointed ? 'symptom' : 'outcome',
      communicator: id,
      ranks: open.map(({ rank }) => rank),
      problem: `init finished on ${finished} of ${size} ranks; ${namedRanks(open.map(({ rank }) => rank))} wrote no 'Init COMPLETE'${missing}`,
      cause: isLost
        ? 'lines of the same hosts are cut, so theirs may be among those that are lost'
        : absent.length > 0
          ? `ranks wait for those that never came; ${namedRanks(behind.map(({ rank }) => rank))} ${stageNames[least]} when the log ends`
          : behind.length === open.length
            ? `all of them ${stageNames[least]} when the log ends: it hung or died there, or the log was cut; ${stageHints[least]}`
            : `${namedRanks(behind.map(({ rank }) => rank))} ${behind.length === 1 ? stageNames[least].replace('were', 'was').replace('their', 'its') : stageNames[least]} and came least far: the others wait for ${behind.length === 1 ? 'it' : 'them'}`,
      remedy:
        absent.length > 0
          ? `see whether ${namedRanks(absent)} ${absent.length === 1 ? 'was' : 'were'} started and can reach rank 0; or give their files too`
          : least === Stage.CONNECTING && behind.length === open.length
            ? firstSuspicion(model)
            : `look at the ${behind.length === 1 ? 'process' : 'processes'} of ${namedRanks(behind.map(({ rank }) => rank))}${first === undefined || first.process.host === '' ? '' : ` (${first.process.host}:${first.process.pid})`}, and at warnings of NCCL above`,
      places: behind.slice(0, 4).map(({ last }) => last),
    },
  ];
}

/** True if no rank of a communicator is missing or behind the others in init: they wait for none of their own. */
export function isEven(communicator: LoggedCommunicator): boolean {
  const isUniform = new Set([...communicator.ranks.values()].map(({ completed }) => completed === undefined)).size < 2;
  return isUniform && heldInit(communicator).blamed.length === 0;
}

/** Ranks of a communicator whose init did not end: those that others wait for (missing, or least advanced), and these. */
export function heldInit(communicator: LoggedCommunicator): {
  readonly absent: readonly number[];
  readonly blamed: readonly number[];
  readonly waiting: readonly number[];
} {
  const open = [...communicator.ranks.values()].filter(({ completed }) => completed === undefined);
  const absent = communicator.nRanksKnown ? absentRanks(communicator) : [];
  const least = leastStage(open);
  const behind = open.filter(({ stage }) => stage <= least);
  const late = absent.length > 0 || behind.length === open.length ? [] : behind;
  return {
    absent,
    blamed: open.length === 0 ? [] : [...absent, ...late.map(({ rank }) => rank)],
    waiting: open.filter((each) => !late.includes(each)).map(({ rank }) => rank),
  };
}

/** The least advanced stage. Ranks with channels are connecting: among few, which of them wrote a line of it is chance. */
function leastStage(open: readonly LoggedRank[]): Stage {
  const least = open.reduce<Stage>((lowest, { stage }) => (stage < lowest ? stage : lowest), Stage.DONE);
  const few = open.filter(({ stage }) => stage === least).length >= open.length / 2;
  const goOn = open.some(({ stage }) => stage === Stage.CONNECTING);
  return least === Stage.CHANNELS && few && goOn ? Stage.CONNECTING : least;
}

/** True for NCCL before 2.17, which writes nothing when init begins. */
function saysNoStart(ranks: readonly LoggedRank[]): boolean {
  const version = ranks.find(({ process }) => process.version !== undefined)?.process.version?.text;
  const [, minor] = /^2\.(\d+)\./.exec(version ?? '') ?? [];
  return minor !== undefined && Number(minor) < 17;
}

function absentRanks({ ranks, nRanks }: LoggedCommunicator): number[] {
  const absent: number[] = [];
  // A log may claim any number of ranks; a longer list is of no use.
  for (let rank = 0; rank < nRanks && absent.length < 100_000; rank++) if (!ranks.has(rank)) absent.push(rank);
  return absent;
}

/** True if at least as many lines of their hosts are not whole as ranks lack their last one. */
function explainedByCutLines(open: readonly LoggedRank[], { cutLines }: LogModel): boolean {
  const byHost = new Map<string, number>();
  for (const { process } of open) byHost.set(process.host, (byHost.get(process.host) ?? 0) + 1);
  let spare = cutLines.get('')?.count ?? 0;
  for (const [host, count] of byHost) spare -= Math.max(0, count - (cutLines.get(host)?.count ?? 0));
  return spare >= 0;
}

/** Checks that all ranks of a communicator have the same NCCL. */
export function checkVersions({ ranks, id }: LoggedCommunicator): LogFinding[] {
  const byVersion = new Map<string, LoggedRank[]>();
  for (const record of ranks.values()) {
    const text = record.process.version?.text;
    if (text === undefined) continue;
    const same = [...byVersion.keys()].find((other) => other === text);
    if (same === undefined) byVersion.set(text, [record]);
    else byVersion.get(same)?.push(record);
  }
  // A version that is the beginning of another comes from a cut line.
  const whole = [...byVersion].filter(
    ([text]) => ![...byVersion.keys()].some((other) => other !== text && other.startsWith(text)),
  );
  const releases = new Set(whole.map(([text]) => text.split('+', 1)[0]));
  if (releases.size < 2) return [];
  return [
    {
      code: 'version-mixed',
      severity: 'error',
      kind: 'fault',
      explains: ['init-unfinished', 'channels-differ'],
      communicator: id,
      ranks: whole.flatMap(([, records]) => records.map(({ rank }) => rank)).sort((a, b) => a - b),
      problem: `ranks have different NCCL: ${whole.map(([text, records]) => `${text} on ${namedRanks(records.map(({ rank }) => rank))}`).join(', ')}`,
      cause:
        'containers, wheels or LD_LIBRARY_PATH differ between hosts; versions may choose different algorithms for the same call, and then it hangs',
      remedy: 'use one image, or one LD_LIBRARY_PATH, on all hosts',
      places: whole.flatMap(([, [record]]) => (record?.process.version === undefined ? [] : [record.process.version.place])),
    },
  ];
}
