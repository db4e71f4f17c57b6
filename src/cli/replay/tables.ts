import { formatBytes, formatTime, predictedWay } from '../../planner/plan/overview/format.js';
import type { ComparedCall, Replay } from '../../planner/replay/replay.js';
import { callHeading, callRow, MOST_ROWS, rankHeading, rankRow, ranksThatHoldUp } from '../../view/replay/rows.js';
import { callKinds, communicationOf, signedPercent } from '../../view/replay/sums.js';
import { tableLines } from '../screen.js';

/** Calls, measured beside predicted. */
export function callLines(replay: Replay, isEach: boolean, width: number | undefined): string[] {
  const kinds = callKinds(replay, isEach);
  const shown = isEach ? kinds : kinds.slice(0, MOST_ROWS);
  return [
    ...tableLines(
      {
        heading: callHeading,
        rows: shown.map((kind) => callRow(kind, isEach)),
        ...{ texts: [0, 1], spare: [8, 1, 2], enough: 20 },
      },
      width,
    ),
    ...(shown.length < kinds.length ? [`  ${kinds.length - shown.length} more kinds of calls (--json has all)`] : []),
  ];
}

/** Ranks, those that hold up others most first where not all are shown. */
export function rankLines({ ranks }: Replay, width: number | undefined): string[] {
  const shown = ranksThatHoldUp(ranks);
  return [
    ...tableLines({ heading: rankHeading, rows: shown.map(rankRow), ...{ texts: [], spare: [], enough: 11 } }, width),
    ...(shown.length < ranks.length
      ? [`  ${ranks.length - shown.length} more ranks, for which others wait less (--json has all)`]
      : []),
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
