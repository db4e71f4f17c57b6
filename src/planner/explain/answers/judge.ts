import { wouldTell } from '../../expect/would-tell.js';
import { unmeasuredText } from '../../simulate/unmeasured.js';
import { counted } from '../../../counted.js';
import { hypothesesFor } from '../../expect/hypotheses.js';
import {
  bestFirst,
  type ExpectedTable,
  isLate,
  type TriedHypothesis,
  tryHypothesis,
  type Verdict,
  verdictOf,
} from '../../expect/expect.js';
import { formatBytes, formatRate, formatTime } from '../../plan/overview/format.js';
import { scheduledBusFactor, type PredictedRow } from '../../plan/prediction.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { Draft, Evidence } from '../answer.js';
import { rootsOf } from '../counterfactual/apply.js';
import { byWay } from '../format.js';
import type { Measured } from '../grammar/question.js';
import { predicted, type Situation, titleOf } from '../situation.js';
import { boundText } from './bandwidth.js';
import { hindrances } from './use.js';

/** Sizes whose bandwidth stands for a measurement without a size, and those among which its size is looked for. */
const largeSizes: readonly number[] = [2 ** 30, 2 ** 34];
const allSizes: readonly number[] = Array.from({ length: 14 }, (_, index) => 2 ** (14 + index));
/** Part of the expected bandwidth from which a measurement is only a little low. */
const LITTLE = 0.9;
/** Explanations that are named. */
const MOST_CAUSES = 3;
/** Largest ratio of two faults between which a measurement is said to lie. */
const MOST_SPAN = 4;
/** Largest deviation of a single fault that explains a measurement: natural logarithm of the ratio. */
const MOST_ERROR = 0.25;
/** Largest part of the difference that a fault may leave unexplained: a fault without effect explains nothing. */
const MOST_LEFT = 0.6;

/** Judges a measured bandwidth or time by the expected one, and names single faults that would explain a slow one. */
export function answerJudge(
  situation: Situation,
  measured: Measured,
  asked: ScheduledCollective | undefined,
  sizes: readonly number[],
  keepGoing: () => boolean,
): Draft {
  const collective = asked ?? 'AllReduce';
  const { nRanks } = situation.plan.nodes;
  const factor = scheduledBusFactor(collective, nRanks);
  const candidates = (sizes.length > 0 ? sizes.slice(0, 1) : measured.kind === 'time' ? [] : largeSizes).flatMap((bytes) => {
    const row = predicted(situation, collective, bytes);
    return row === undefined ? [] : [row];
  });
  const best = candidates.reduce<PredictedRow | undefined>(
    (most, row) => (most === undefined || row.busGBps > most.busGBps ? row : most),
    undefined,
  );
  if (best === undefined)
    return {
      title: measured.kind === 'time' && sizes.length === 0 ? 'a time is judged by its size' : 'there is nothing to compare with',
      sentences: [
        measured.kind === 'time' && sizes.length === 0
          ? `${formatTime(measured.value)} for which size? Ask as: all_reduce of 1 GiB takes ${formatTime(measured.value)}, is that good.`
          : 'One rank exchanges nothing.',
      ],
      evidence: { collective },
    };
  const busGBps = measuredBusGBps(measured, best.bytes, factor);
  const timeUs = (best.bytes / busGBps / 1000) * factor;
  const ratio = busGBps / best.busGBps;
  const verdict = verdictOf(timeUs, boundsOf(best));
  const said = measured.kind === 'time' ? formatTime(measured.value) : gbps(measured.value);
  const where = `${collective} of ${formatBytes(best.bytes)} on ${titleOf(situation)}`;
  const { tried, leftOut } = isLate({ verdict })
    ? triedHypotheses(situation, collective, best, { timeUs, verdict }, keepGoing)
    : { tried: [], leftOut: 0 };
  const causes = explanations(tried, Math.abs(Math.log(ratio)));
  const like = isLate({ verdict }) && sizes.length === 0 ? sizeWith(situation, collective, busGBps) : undefined;
  return {
    title:
      verdict === 'expected'
        ? `${said} is as expected: ${formatRate(best.busGBps)} GB/s of bus bandwidth for ${where}`
        : verdict === 'undecided'
          ? `${said} is ${percent(ratio)} of the ${formatRate(best.busGBps)} GB/s of bus bandwidth expected for ${where}; nobody measured enough to call that slow`
          : verdict === 'slow'
            ? `${said} is ${ratio >= LITTLE ? 'a little ' : ''}low: ${percent(ratio)} of the ${formatRate(best.busGBps)} GB/s of bus bandwidth that ${where} should reach`
            : `${said} is more than expected: ${percent(ratio)} of ${formatRate(best.busGBps)} GB/s of bus bandwidth for ${where}`,
    sentences: [
      `Expected are ${formatRate(best.busGBps)} GB/s, in eight of ten cases ${formatRate((best.busGBps * best.timeUs) / best.mostUs)} to ${formatRate((best.busGBps * best.timeUs) / best.leastUs)}: ${formatTime(best.timeUs)}${byWay(best)}.`,
      ...(verdict === 'undecided'
        ? [
            `${sentence(unmeasuredText(best.unmeasured ?? []))}: a healthy cluster may take as long. ${sentence(wouldTell(situation.plan.nodes.nNodes, situation.simulated.network)[0])}.`,
          ]
        : []),
      ...takenAs(measured, asked, busGBps, factor),
      ...(like === undefined
        ? []
        : [
            `If the call was smaller, it is no sign of a fault: ${collective} of ${formatBytes(like)} reaches about as much here.`,
          ]),
      ...(verdict === 'fast'
        ? [
            'A measurement above the interval mostly has another size, other units or another machine than this one. With two nodes a tree passes the speed of the network, and with one NVLink SHARP that of NVLink: ask why it is higher than the network.',
          ]
        : []),
      ...(isLate({ verdict }) ? causeSentences(causes, tried, { collective, bytes: best.bytes, factor, busGBps }) : []),
      ...(leftOut === 0 ? [] : [`${counted(leftOut, 'possible fault')} not tried, for lack of time.`]),
      ...boundText(situation, best),
      ...(verdict === 'fast' ? [] : hindrances(situation)),
    ],
    evidence: {
      collective,
      bytes: best.bytes,
      measured: { kind: measured.kind, value: measured.value },
      busGBps,
      expectedGBps: best.busGBps,
      leastUs: best.leastUs,
      mostUs: best.mostUs,
      ratio,
      verdict,
      leftOut,
      causes: causes.map(({ hypothesis, timesUs, error }): Evidence => ({
        code: hypothesis.code,
        what: hypothesis.what,
        check: hypothesis.check,
        timeUs: timesUs[0]?.[0] ?? null,
        error,
      })),
    },
  };
}

function measuredBusGBps({ kind, value }: Measured, bytes: number, factor: number): number {
  if (kind === 'time') return (bytes / value / 1000) * factor;
  return kind === 'algbw' ? value * factor : value;
}

function sentence(text = ''): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function percent(ratio: number): string {
  return `${ratio < 0.1 ? (100 * ratio).toFixed(1) : Math.round(100 * ratio)} %`;
}

/** A figure of the question, as it was written. */
function gbps(value: number): string {
  return `${Number(value.toPrecision(4))} GB/s`;
}

/** Meaning of the figure of the question. */
function takenAs({ kind, value }: Measured, asked: ScheduledCollective | undefined, busGBps: number, factor: number): string[] {
  const call = asked === undefined ? ', of AllReduce' : '';
  if (kind === 'bandwidth')
    return [
      `${gbps(value)} is taken for bus bandwidth${call}${factor === 1 ? '' : `; as algbw it would be ${formatRate(value * factor)} GB/s of bus bandwidth`}.`,
    ];
  if (kind === 'algbw') return [`${gbps(value)} of algbw are ${formatRate(busGBps)} GB/s of bus bandwidth${call}.`];
  return kind === 'time' ? [`That time is ${formatRate(busGBps)} GB/s of bus bandwidth${call}.`] : [];
}

/** A smaller size at which the bandwidth is expected. */
function sizeWith(situation: Situation, collective: ScheduledCollective, busGBps: number): number | undefined {
  return allSizes.find((bytes) => (predicted(situation, collective, bytes)?.busGBps ?? 0) >= busGBps);
}

function boundsOf({ leastUs, mostUs, usualMostUs = mostUs }: PredictedRow) {
  return { leastUs, mostUs, usualMostUs };
}

/** Tries all single faults on the call. */
function triedHypotheses(
  situation: Situation,
  collective: ScheduledCollective,
  row: PredictedRow,
  judged: { readonly timeUs: number; readonly verdict: Verdict },
  keepGoing: () => boolean,
): { readonly tried: readonly TriedHypothesis[]; readonly leftOut: number } {
  const table: ExpectedTable = {
    collective,
    environment: situation.simulated,
    unmeasured: [],
    isSlow: true,
    isUndecided: false,
    rows: [
      {
        bytes: row.bytes,
        type: 'float32',
        place: 'out of place',
        ...judged,
        expectedUs: row.timeUs,
        ...boundsOf(row),
        usualLeastUs: row.leastUs,
        isMeasured: row.unmeasured === undefined,
        busGBps: 0,
        expectedGBps: 0,
      },
    ],
  };
  const tried: TriedHypothesis[] = [];
  const hypotheses = hypothesesFor(rootsOf(situation), situation.plan.nodes.nNodes);
  for (const hypothesis of hypotheses) {
    if (!keepGoing()) break;
    tried.push(tryHypothesis(situation, [table], hypothesis));
  }
  return { tried, leftOut: hypotheses.length - tried.length };
}

/** Single faults under which the call takes about the measured time, the best first; of each family the best. */
function explanations(tried: readonly TriedHypothesis[], unexplained: number): TriedHypothesis[] {
  const possible = tried.filter(
    ({ error, refused, isContradicted }) =>
      refused === undefined && !isContradicted && error <= Math.min(MOST_ERROR, MOST_LEFT * unexplained),
  );
  return bestFirst(possible).slice(0, MOST_CAUSES);
}

interface MeasuredCall {
  readonly collective: ScheduledCollective;
  readonly bytes: number;
  readonly factor: number;
  readonly busGBps: number;
}

function causeSentences(causes: readonly TriedHypothesis[], tried: readonly TriedHypothesis[], call: MeasuredCall): string[] {
  if (causes.length === 0)
    return [
      `No single fault that was tried explains it${between(tried, call)} tccl expect CLUSTER RESULTS compares all sizes of a run, and more than one fault may be there.`,
    ];
  return causes.map((cause, place) => {
    const { what, check } = cause.hypothesis;
    return `${place === 0 ? 'It would be explained by' : 'Or by'} this: ${what}; ${call.collective} then reaches ${formatRate(reached(cause, call))} GB/s. Check: ${check}.`;
  });
}

function reached({ timesUs }: TriedHypothesis, { bytes, factor }: MeasuredCall): number {
  return (bytes / (timesUs[0]?.[0] ?? Infinity) / 1000) * factor;
}

/** Two faults of one family between which the measurement lies, the nearest pair. */
function between(tried: readonly TriedHypothesis[], call: MeasuredCall): string {
  const possible = tried.flatMap((each) =>
    each.refused === undefined ? [{ ...each.hypothesis, gbps: reached(each, call) }] : [],
  );
  const pairs = possible.flatMap((below) =>
    possible
      .filter(({ family, gbps }) => family === below.family && below.gbps < call.busGBps && call.busGBps < gbps)
      .map((above) => ({ below, above, span: above.gbps / below.gbps })),
  );
  const [pair] = pairs.sort((a, b) => a.span - b.span);
  if (pair === undefined || pair.span > MOST_SPAN) return ':';
  const { below, above } = pair;
  return `, but it lies between two: ${below.what} (${formatRate(below.gbps)} GB/s), and ${above.what} (${formatRate(above.gbps)} GB/s). Check: ${above.check}.`;
}
