import { counted } from '../../counted.js';
import { formatBytes, formatTime, predictedWay } from '../../planner/plan/overview/format.js';
import type { ComparedCall, ComparedRank, Replay } from '../../planner/replay/replay.js';
import { tableLines } from '../screen.js';
import { type CallKind, callKinds, communicationOf, signedPercent } from './sums.js';

/** Rows that are shown of calls and of ranks; JSON has all. */
const MOST_ROWS = 16;

/** `waits  the others wait 22.1 ms for rank 3, which comes last to 11 of 12 calls`; nothing where ranks come together. */
export function waitLine({ ranks, calls }: Replay): string[] {
  const [latest] = [...ranks].sort((a, b) => b.heldUpUs - a.heldUpUs);
  const waitUs = ranks.reduce((sum, rank) => sum + rank.waitUs, 0);
  if (latest === undefined || latest.heldUpUs === 0) return [];
  const last = calls.filter(({ measured }) => measured.lastRank === latest.rank).length;
  const joined = calls.filter(({ measured }) => measured.lastRank !== undefined).length;
  return [
    `waits  ranks wait ${formatTime(waitUs)} in calls, all together; ${formatTime(latest.heldUpUs)} of it for rank ${latest.rank}, which comes last to ${last} of ${counted(joined, 'call')}`,
  ];
}

/** Calls, measured beside predicted. */
export function callLines(replay: Replay, isEach: boolean, width: number | undefined): string[] {
  const kinds = callKinds(replay, isEach);
  const shown = isEach ? kinds : kinds.slice(0, MOST_ROWS);
  return [
    ...tableLines(
      {
        heading: ['call', 'group', 'ranks', 'size', 'count', 'measured', 'predicted', 'off', 'interval', 'replayed', 'by'],
        rows: shown.map((kind) => rowOf(kind, isEach)),
        ...{ texts: [0, 1], spare: [8, 1, 2], enough: 20 },
      },
      width,
    ),
    ...(shown.length < kinds.length ? [`  ${kinds.length - shown.length} more kinds of calls (--json has all)`] : []),
  ];
}

function rowOf({ first, count, measuredUs, predictedUs, replayedUs }: CallKind, isEach: boolean): string[] {
  const { measured, predicted } = first;
  const { call, lastRank } = measured;
  const timed = (us: number | undefined) => (us === undefined ? '-' : formatTime(us));
  const late = isEach && lastRank !== undefined && measured.waitUs > 0 ? `, rank ${lastRank} last` : '';
  return [
    call.operation,
    call.groupName,
    String(call.size),
    call.bytes === 0 ? '-' : formatBytes(call.bytes),
    String(count),
    timed(measuredUs),
    timed(predictedUs),
    measuredUs === undefined || predictedUs === undefined ? '-' : signedPercent(predictedUs, measuredUs),
    predicted === undefined ? '-' : `${formatTime(predicted.leastUs)} to ${formatTime(predicted.mostUs)}`,
    timed(replayedUs),
    `${predicted === undefined ? 'measured' : (predictedWay(predicted) ?? 'messages between pairs')}${late}`,
  ];
}

/** Ranks, those that hold up others most first where not all are shown. */
export function rankLines({ ranks }: Replay, width: number | undefined): string[] {
  const isCut = ranks.length > MOST_ROWS;
  const shown = isCut ? [...ranks].sort((a, b) => b.heldUpUs - a.heldUpUs).slice(0, MOST_ROWS) : ranks;
  return [
    ...tableLines(
      {
        heading: ['rank', 'step', 'replayed step', 'transfers', 'waits', 'exposed', 'replayed exposed', 'holds up'],
        rows: shown.map(rankRow),
        ...{ texts: [], spare: [], enough: 11 },
      },
      width,
    ),
    ...(isCut ? [`  ${ranks.length - shown.length} more ranks, for which others wait less (--json has all)`] : []),
  ];
}

function rankRow(rank: ComparedRank): string[] {
  const { measuredUs, replayedUs, transferUs, waitUs, exposedUs, replayedExposedUs, heldUpUs } = rank;
  return [
    String(rank.rank),
    ...[measuredUs, replayedUs, transferUs, waitUs, exposedUs, replayedExposedUs, heldUpUs].map(formatTime),
  ];
}

/** The job on another cluster, or with other settings. */
export interface Supposed {
  readonly replay: Replay;
  /** The cluster, the version of NCCL, and variables that are set. */
  readonly title: string;
  readonly notes: readonly string[];
}

/** A supposed replay beside that of the job as it ran: predicted times are compared with predicted ones. */
export function supposedLines(replay: Replay, { replay: then, title }: Supposed, width: number | undefined): string[] {
  const [before, after] = [communicationOf(replay), communicationOf(then)];
  const kinds = callKinds(replay, false).slice(0, MOST_ROWS);
  return [
    `what if  ${title}`,
    `step     ${formatTime(replay.replayedUs)} in the replay, then ${formatTime(then.replayedUs)} (${signedPercent(then.replayedUs, replay.replayedUs)})`,
    `calls    ${formatTime(before.predictedUs)} predicted, then ${formatTime(after.predictedUs)} (${signedPercent(after.predictedUs, before.predictedUs)})`,
    '',
    ...tableLines(
      {
        heading: ['call', 'group', 'ranks', 'size', 'count', 'replay', 'then', 'change', 'by'],
        rows: kinds.map(({ first, count }) => supposedRow(first, count, then.calls[first.measured.call.index])),
        ...{ texts: [0, 1], spare: [1, 2], enough: 20 },
      },
      width,
    ),
  ];
}

function supposedRow({ measured: { call }, predicted }: ComparedCall, count: number, then: ComparedCall | undefined): string[] {
  const [beforeUs, afterUs] = [predicted?.timeUs, then?.predicted?.timeUs];
  return [
    call.operation,
    call.groupName,
    String(call.size),
    call.bytes === 0 ? '-' : formatBytes(call.bytes),
    String(count),
    beforeUs === undefined ? '-' : formatTime(beforeUs),
    afterUs === undefined ? '-' : formatTime(afterUs),
    beforeUs === undefined || afterUs === undefined ? '-' : signedPercent(afterUs, beforeUs),
    then?.predicted === undefined ? 'measured' : (predictedWay(then.predicted) ?? 'messages between pairs'),
  ];
}
