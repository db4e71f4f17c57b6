import { counted } from '../../../counted.js';
import { aftermath } from '../rules/codes.js';
import { type LogFinding, namedRanks } from './finding.js';
import type { LogModel } from '../job/model.js';
import { firstSuspicion } from './suspicions.js';
import type { Timeout } from '../job/watchdog.js';

/** Compares the ranks' positions when PyTorch's watchdog gave up: other calls, ranks that are behind, ranks without output. */
export function checkTimeouts(model: LogModel): LogFinding[] {
  const { timeouts } = model;
  const groups = new Map<string, Timeout[]>();
  for (const timeout of timeouts) groups.set(timeout.group, [...(groups.get(timeout.group) ?? []), timeout]);
  const findings = [...groups.values()].flatMap((group) => compare(firstOfEachRank(group), model));
  const barriers = barrier(model);
  return [...(barriers.length > 0 ? barriers : busyRank(model)), ...firstCollective(model), ...findings].slice(0, 2);
}

/** Barriers of PyTorch are all-reduces of one element. */
const BARRIER_ELEMENTS = 1;

/** All ranks that gave up did so in a barrier: another one is busy, or died. */
function barrier(model: LogModel): LogFinding[] {
  const { timeouts, progress, communicators } = model;
  const [first] = timeouts;
  const isBarrier = ({ operation, elements }: Timeout) =>
    operation === 'BARRIER' || (/^(?:ALLREDUCE|_?ALLGATHER\w*|BROADCAST)$/.test(operation) && elements === BARRIER_ELEMENTS);
  if (first === undefined || !timeouts.every(isBarrier)) return [];
  if (new Set(timeouts.map(({ sequence }) => sequence)).size > 1) return [];
  // The first collective of ranks whose init is in the log says more: data may not pass at all.
  if (first.sequence === 1 && communicators.length > 0) return [];
  const ranks = [...new Set(timeouts.map(({ rank }) => rank))].sort((a, b) => a - b);
  const minutes = first.timeoutMs === undefined ? '' : ` for ${Math.round(first.timeoutMs / 60_000)} minutes`;
  const others = missingRanks(timeouts, model);
  const missing = others.length > 0 ? `; ${namedRanks(others)} ${others.length === 1 ? 'is' : 'are'} not among them` : '';
  return [
    {
      code: 'barrier-timeout',
      severity: 'error',
      kind: 'failure',
      ranks,
      explains: aftermath,
      problem: `${namedRanks(ranks)} waited${minutes} in a barrier (${first.operation} of one element${first.sequence < 0 ? '' : `, number ${first.sequence}`}), to which another rank did not come${missing}${progress?.percent === undefined ? '' : `; '${progress.name}' was at ${progress.percent} %`}`,
      ...barrierReason(first.sequence),
      places: timeouts.slice(0, 4).map(({ place }) => place),
    },
  ];
}

/** A bar that has run for this share of the limit or more, and for not much longer, began when the others began to wait. */
const busyShares = [0.95, 1.2] as const;

/** A progress bar ran as long as the others waited: a rank did work of its own. */
function busyRank({ timeouts, progress }: LogModel): LogFinding[] {
  const [first] = timeouts;
  if (first?.timeoutMs === undefined || progress?.seconds === undefined) return [];
  const share = progress.seconds / (first.timeoutMs / 1000);
  if (share < busyShares[0] || share > busyShares[1]) return [];
  return [
    {
      code: 'barrier-timeout',
      severity: 'error',
      kind: 'failure',
      explains: aftermath,
      problem: `a rank worked on something of its own while ${namedRanks(timeouts.map(({ rank }) => rank))} waited in ${first.operation}: ${progress.name === '' ? 'its progress bar' : `'${progress.name}'`} ${progress.percent === undefined ? 'was logged' : `was at ${progress.percent} % after`} ${Math.round(progress.seconds / 60)} minutes${progress.percent === undefined ? ' before' : ''}, and the limit is ${Math.round(first.timeoutMs / 60_000)}`,
      cause: 'that work (reading or preparing data, an evaluation, a checkpoint) takes longer than the limit of a collective',
      remedy: 'do the work before the job, or on all ranks alike; or a longer limit: init_process_group(timeout=…), ddp_timeout',
      places: [first.place],
    },
  ];
}

/** Barriers of a job's beginning follow its preparations, later ones its steps. */
const EARLY_BARRIERS = 10;

function barrierReason(number: number): Pick<LogFinding, 'cause' | 'remedy'> {
  const remedy =
    'the log of the rank that is missing; then a longer limit (init_process_group(timeout=…), ddp_timeout), or the work done before the job';
  if (number > EARLY_BARRIERS)
    return {
      cause:
        'the missing rank has fewer batches than the others (uneven data), is busy longer than the limit (an evaluation, a checkpoint, slow data), or died',
      remedy: `compare how many batches each rank gets (DistributedSampler, drop_last; the length of a streaming data set); ${remedy}`,
    };
  const busy =
    'another rank, mostly rank 0, is busy with what the others wait for (preprocessing of data, a download, a checkpoint), longer than the limit; or it died';
  // No data have passed yet, so it may also be that none can.
  return number === 1
    ? {
        cause: `${busy}; or data do not pass between the GPUs at all (P2P: the driver, ACS, an IOMMU, a VM)`,
        remedy: `a run with NCCL_P2P_DISABLE=1 decides: if it works, P2P is broken (\`nvidia-smi topo -p2p r\`, \`lspci -vvv\`); else ${remedy}`,
      }
    : { cause: busy, remedy };
}

/** The first collective of a group never ended, after an init that succeeded: data do not pass, or a rank did not call it. */
function firstCollective(model: LogModel): LogFinding[] {
  const { timeouts, communicators } = model;
  const [first] = timeouts;
  const ranks = communicators.flatMap((communicator) => [...communicator.ranks.values()]);
  if (first === undefined || timeouts.some(({ sequence, completed }) => sequence > 1 || (completed ?? 0) > 0)) return [];
  if (first.sequence < 0 || ranks.length === 0 || ranks.some(({ completed }) => completed === undefined)) return [];
  return [
    {
      code: 'first-collective-stuck',
      severity: 'error',
      kind: 'failure',
      ranks: [...new Set(timeouts.map(({ rank }) => rank))].sort((a, b) => a - b),
      explains: aftermath,
      problem: `the first collective (${first.operation}) did not end, though ${counted(ranks.length, 'rank')} completed init: no data have passed yet`,
      cause:
        'the ways that NCCL chose do not carry data (P2P, GPUDirect RDMA or the network), or a rank never called it; what was warned of before init is not the cause, because init went through',
      remedy: firstSuspicion(model),
      places: timeouts.slice(0, 4).map(({ place }) => place),
    },
  ];
}

function firstOfEachRank(timeouts: readonly Timeout[]): Timeout[] {
  const first = new Map<number, Timeout>();
  for (const timeout of timeouts) {
    const known = first.get(timeout.rank);
    if (known === undefined || timeout.sequence < known.sequence) first.set(timeout.rank, timeout);
  }
  return [...first.values()].sort((a, b) => a.rank - b.rank);
}

function compare(timeouts: readonly Timeout[], model: LogModel): LogFinding[] {
  const [first] = timeouts;
  if (first === undefined || timeouts.length < 2) return first === undefined ? [] : absent(timeouts, model);
  const sameCall = timeouts.filter(({ sequence }) => sequence === first.sequence);
  const other = sameCall.find(({ operation, elements }) => operation !== first.operation || elements !== first.elements);
  if (other !== undefined && isMismatch(first, other)) return [differ(first, other)];
  const most = Math.max(...timeouts.map(({ sequence }) => sequence));
  const behind = timeouts.filter(({ sequence }) => sequence < most);
  if (behind.length > 0 && behind.length < timeouts.length) return [late(behind, timeouts, most)];
  return absent(timeouts, model);
}

/** Broadcast, scatter and messages have other sizes on other ranks. */
function isMismatch(a: Timeout, b: Timeout): boolean {
  return a.operation !== b.operation || !/^(?:GATHER|SCATTER|SEND|RECV|ALLTOALL|COALESCED)/.test(a.operation);
}

function differ(a: Timeout, b: Timeout): LogFinding {
  return {
    code: 'calls-differ',
    severity: 'error',
    kind: 'fault',
    ranks: [a.rank, b.rank],
    explains: aftermath,
    problem: `ranks ${a.sequence < 0 ? 'hang in different collectives' : `call different collectives as number ${a.sequence}`}: rank ${a.rank} ${called(a)}, rank ${b.rank} ${called(b)}`,
    cause: 'code paths differ between ranks: a condition on the rank, uneven data, unused parameters, another order of calls',
    remedy: 'compare the stacks of both ranks at that call (flight recorder, TORCH_DISTRIBUTED_DEBUG=DETAIL)',
    places: [a.place, b.place],
  };
}

function called({ operation, elements }: Timeout): string {
  return `${operation}${elements === undefined ? '' : ` of ${counted(elements, 'element')}`}`;
}

function late(behind: readonly Timeout[], all: readonly Timeout[], most: number): LogFinding {
  const ranks = behind.map(({ rank }) => rank);
  const least = Math.min(...behind.map(({ sequence }) => sequence));
  return {
    code: 'rank-behind',
    severity: 'error',
    kind: 'failure',
    ranks,
    waiting: all.filter((each) => !behind.includes(each)).map(({ rank }) => rank),
    explains: aftermath,
    problem: `${namedRanks(ranks)} ${ranks.length === 1 ? 'hangs' : 'hang'} in collective ${least} (${behind[0]?.operation ?? ''}), the others in ${most}: they are not in the same call`,
    cause: 'these ranks called one collective less or more than the others, or the network lost the data of one',
    remedy: `\`py-spy dump\` of ${namedRanks(ranks)}; compare the stacks with another rank's`,
    places: [...behind.slice(0, 3), ...all.filter((each) => !behind.includes(each)).slice(0, 1)].map(({ place }) => place),
  };
}

/** The group of all ranks: older versions of PyTorch do not name it. */
const wholeGroup = /^(?:0\b|ID 0\b|$)|default_pg/;

/** Ranks of a group that did not give up, where most did. */
function missingRanks(
  timeouts: readonly Timeout[],
  { communicators, knownRanks }: Pick<LogModel, 'communicators' | 'knownRanks'>,
) {
  const reporting = new Set(timeouts.map(({ rank }) => rank));
  const sizes = communicators.filter(({ nRanksKnown }) => nRanksKnown).map(({ nRanks }) => nRanks);
  const isWhole = timeouts.every(({ group }) => wholeGroup.test(group));
  // Ranks count from 0, so a gap between those that gave up is a rank, too.
  const size = Math.max(...sizes, ...[...reporting].map((rank) => rank + 1), isWhole ? knownRanks.count : 0);
  const missing = Array.from({ length: Math.min(size, 100_000) }, (_, rank) => rank).filter((rank) => !reporting.has(rank));
  return missing.length >= size / 2 ? [] : missing;
}

/** Ranks without a time-out line where others have one: they never made that call, or died. */
function absent(timeouts: readonly Timeout[], { communicators, knownRanks }: LogModel): LogFinding[] {
  const [first] = timeouts;
  if (first === undefined) return [];
  const isWhole = wholeGroup.test(first.group);
  const missing = missingRanks(timeouts, { communicators, knownRanks });
  if (missing.length === 0) return [];
  const count = new Set(timeouts.map(({ rank }) => rank)).size;
  const [silent] = isWhole ? missing.flatMap((rank) => knownRanks.last.get(rank) ?? []) : [];
  const last = silent === undefined ? '' : `; its last line is '${silent.text}'`;
  return [
    {
      code: 'rank-absent',
      severity: 'error',
      kind: 'failure',
      ranks: missing,
      waiting: [...new Set(timeouts.map(({ rank }) => rank))],
      explains: aftermath,
      problem: `${namedRanks(missing)}${isWhole ? '' : ` of group ${first.group}`} ${missing.length === 1 ? 'is' : 'are'} not among the ${count} that timed out in ${callText(timeouts)}${last}`,
      cause:
        silent === undefined
          ? 'that rank did not call the collective (it is elsewhere in its code, or died), or its output is not here'
          : 'that rank did not call the collective: it is busy with something else, hangs, or died without a word',
      remedy: `look at the log and the stack (\`py-spy dump\`) of ${namedRanks(missing)} first`,
      places: [...(silent === undefined ? [] : [silent.place]), ...timeouts.slice(0, 4).map(({ place }) => place)],
    },
  ];
}

/** Says of PyTorch's time-outs which operation, which number, and which ranks. */
export function withCall(finding: LogFinding, { timeouts }: LogModel): LogFinding {
  const [first] = timeouts;
  if (finding.code !== 'watchdog-timeout' || first === undefined) return finding;
  const own = firstOfEachRank(timeouts.filter(({ group }) => group === first.group));
  return {
    ...finding,
    ranks: own.map(({ rank }) => rank),
    problem: `${finding.problem}: ${namedRanks(own.map(({ rank }) => rank))} in ${callText(own)}`,
  };
}

/** `ALLREDUCE of 26214400 elements, number 7213, after 10 minutes`, of the first rank. */
function callText([first]: readonly Timeout[]): string {
  if (first === undefined) return '';
  const { sequence, timeoutMs } = first;
  const seconds = (timeoutMs ?? 0) / 1000;
  const limit =
    timeoutMs === undefined ? '' : `, after ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} minutes`}`;
  return `${called(first)}${sequence < 0 ? '' : `, number ${sequence}`}${limit}`;
}
