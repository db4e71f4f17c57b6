import { counted } from '../../../counted.js';
import { graphOf } from '../../tuning/input.js';
import { ringSteps } from '../../tuning/formulas.js';
import { choiceOf } from '../../tuning/choose.js';
import { flips } from '../../tuning/flips.js';
import type { NcclAlgorithm, Collective } from '../../tuning/names.js';
import { predict, type Prediction } from '../../tuning/predict.js';
import { describeReason, type Reason } from '../../tuning/reasons.js';
import type { Tuning } from '../../tuning/tune.js';
import { formatBytes, formatTime, formatWay } from '../../plan/overview/format.js';
import type { PredictedRow } from '../../plan/prediction.js';
import type { Draft, Evidence } from '../answer.js';
import type { PartialWay } from '../grammar/question.js';
import { predicted, type Situation } from '../situation.js';
import { more, rate } from '../format.js';
import { usesWindows } from '../../windows.js';
import { answerWithWindows } from './symmetric.js';
import { predictedText } from './time.js';

/** A prediction that can be used. */
type Usable = Prediction & { readonly timeUs: number; readonly latencyUs: number; readonly bandwidthGBps: number };

/** Sizes between which the range of a choice is searched. */
const LEAST_BYTES = 8;
const MOST_BYTES = 2 ** 36;

/** A call, the choice that a question assumes, and the one that it compares with: an algorithm, a protocol, or both. */
export interface ChoiceQuestion {
  readonly collective: Collective;
  readonly bytes: number;
  readonly claimed: PartialWay | undefined;
  readonly instead: PartialWay | undefined;
}

/** Explains the choice of algorithm and protocol at a size: the time of each candidate, and the cause of the difference. */
export function answerChoice(situation: Situation, { collective, bytes, claimed, instead }: ChoiceQuestion): Draft {
  const { tuning } = situation;
  const onWindows = usesWindows(situation.parameters) ? answerWithWindows(situation, collective, bytes) : undefined;
  if (onWindows !== undefined && 'answer' in onWindows) return onWindows.answer;
  const all = predict(tuning, collective, bytes);
  const usable = all.filter(isUsable).sort((a, b) => a.timeUs - b.timeUs);
  const [chosen] = usable;
  if (chosen === undefined) return nothingLeft(tuning, collective, bytes, all);

  const sentences = [
    `NCCL does ${collective} of ${formatBytes(bytes)} with ${formatWay(chosen)}: its model expects ${formatTime(chosen.timeUs)}, the least of ${counted(usable.length, 'candidate')}.`,
  ];
  if (claimed !== undefined && !matches(chosen, claimed)) {
    sentences.unshift(`${claimName(claimed)} is not what NCCL takes here.`);
  }
  // Compared with the candidate of the question, otherwise with the next one.
  const asked = instead ?? (claimed !== undefined && !matches(chosen, claimed) ? claimed : undefined);
  const rival =
    usable.find(
      (each) => each !== chosen && (asked === undefined ? each.algorithm !== chosen.algorithm : matches(each, asked)),
    ) ?? (asked === undefined ? usable[1] : undefined);
  if (rival !== undefined) sentences.push(...difference(tuning, collective, bytes, chosen, rival));
  else if (asked !== undefined) sentences.push(...whyNot(all, chosen, asked));
  sentences.push(...stretch(tuning, collective, bytes, chosen));
  if (onWindows !== undefined) sentences.push(onWindows.remark);
  const simulated = simulatedTimes(situation, collective, bytes, rival === undefined ? [chosen] : [chosen, rival]);
  if (simulated.length > 0)
    sentences.push(
      `By the simulation ${simulated.map(({ way, row }) => `${formatWay(way)} takes ${predictedText(row)}`).join('; ')}.`,
    );

  return {
    title: `${formatWay(chosen)} for ${collective} of ${formatBytes(bytes)}`,
    sentences,
    evidence: {
      collective,
      bytes,
      chosen: { algorithm: chosen.algorithm, protocol: chosen.protocol, timeUs: chosen.timeUs },
      candidates: usable.map(({ algorithm, protocol, timeUs, latencyUs, bandwidthGBps }) => ({
        algorithm,
        protocol,
        timeUs,
        latencyUs,
        bandwidthGBps,
      })),
      simulated: simulated.map(({ way, row }) => ({
        algorithm: way.algorithm,
        protocol: way.protocol,
        timeUs: row.timeUs,
        leastUs: row.leastUs,
        mostUs: row.mostUs,
      })),
      excluded: all
        .filter(({ timeUs }) => timeUs === null)
        .map(({ algorithm, protocol, reasons }) => ({ algorithm, protocol, because: reasons.map(({ why }) => why) })),
    },
  };
}

function simulatedTimes(
  situation: Situation,
  collective: Collective,
  bytes: number,
  ways: readonly Usable[],
): { readonly way: Usable; readonly row: PredictedRow }[] {
  return ways.flatMap((way) => {
    const row = predicted(situation, collective, bytes, { choice: choiceOf(situation.tuning, collective, bytes, way) });
    return row === undefined ? [] : [{ way, row }];
  });
}

function isUsable(prediction: Prediction): prediction is Usable {
  return prediction.timeUs !== null;
}

export function matches(way: { readonly algorithm: string; readonly protocol: string }, part: PartialWay): boolean {
  return (
    (part.algorithm === undefined || part.algorithm === way.algorithm) &&
    (part.protocol === undefined || part.protocol === way.protocol)
  );
}

export function claimName({ algorithm, protocol }: PartialWay): string {
  return [algorithm, protocol].filter((part) => part !== undefined).join(' ');
}

function nothingLeft(tuning: Tuning, collective: Collective, bytes: number, all: readonly Prediction[]): Draft {
  const reasons = all.map(({ algorithm, protocol, reasons: [reason] }) =>
    reason === undefined ? `${algorithm} ${protocol} has no bandwidth.` : `${algorithm} ${protocol}: ${describeReason(reason)}`,
  );
  return {
    title: `nothing is left for ${collective} of ${formatBytes(bytes)}`,
    sentences: [
      `NCCL has nothing to choose from for ${collective} with ${counted(tuning.input.nRanks, 'rank')} and fails the call.`,
      ...reasons,
    ],
    evidence: { collective, bytes, chosen: null },
  };
}

/** Explains the difference in time between two candidates: latency, bandwidth, and their causes. */
function difference(tuning: Tuning, collective: Collective, bytes: number, chosen: Usable, rival: Usable): string[] {
  const moving = ({ timeUs, latencyUs }: Usable) => timeUs - latencyUs;
  const latency = rival.latencyUs - chosen.latencyUs;
  const transfer = moving(rival) - moving(chosen);
  const parts = [
    {
      us: latency,
      text: `${signed(latency)} from latency (${formatTime(rival.latencyUs)} instead of ${formatTime(chosen.latencyUs)})`,
    },
    {
      us: transfer,
      text: `${signed(transfer)} from bandwidth (${rate(rival.bandwidthGBps)} instead of ${rate(chosen.bandwidthGBps)})`,
    },
  ].sort((a, b) => b.us - a.us);
  const steps = [chosen, rival]
    .map(({ algorithm }) => stepsOf(tuning, collective, algorithm))
    .filter((text) => text !== undefined);
  const limits = [chosen, rival].map((each) => limitOf(tuning, collective, each)).filter((text) => text !== undefined);
  return [
    `${formatWay(rival)} would take ${formatTime(rival.timeUs)}, ${more(rival.timeUs, chosen.timeUs)}: ${parts.map(({ text }) => text).join(', ')}.`,
    ...[...new Set(steps)].map((text) => `Latency: ${text}.`),
    ...limits.map((text) => `Bandwidth: ${text}.`),
    ...(bytes <= latencyRules(chosen, rival) ? ['At this size latency decides.'] : []),
  ];
}

/** The size below which the candidate with less latency is faster; 0 without one. */
function latencyRules(a: Usable, b: Usable): number {
  const faster = a.bandwidthGBps > b.bandwidthGBps ? a : b;
  const nimbler = a.latencyUs < b.latencyUs ? a : b;
  if (faster === nimbler) return 0;
  const other = faster === a ? b : a;
  return (1000 * (faster.latencyUs - other.latencyUs)) / (1 / other.bandwidthGBps - 1 / faster.bandwidthGBps);
}

function signed(us: number): string {
  return us < 0 ? `-${formatTime(-us)}` : `+${formatTime(us)}`;
}

/** Number of consecutive steps; undefined where steps do not matter. */
function stepsOf({ input }: Tuning, collective: Collective, algorithm: NcclAlgorithm): string | undefined {
  const { nRanks, nNodes, graphs } = input;
  const others = Math.trunc(nRanks / nNodes) - 1;
  const levels = Math.floor(Math.log2(nNodes));
  switch (algorithm) {
    case 'Ring': {
      const goesAround = collective === 'Broadcast' || collective === 'Reduce';
      if (goesAround && graphs.ring.sameChannels) return 'NCCL counts one step for such a ring, whose channels are all alike';
      const between = nNodes === 1 || goesAround ? 0 : collective === 'AllReduce' ? 2 * (nNodes - 1) : nNodes - 1;
      const all = ringSteps(collective, nRanks);
      return `a ring waits for ${counted(all, 'step')}${between > 0 ? `, ${between} of them between nodes` : ''}`;
    }
    case 'Tree':
      return `a tree goes up and down: 2 x (${counted(others, 'step')} within a node${nNodes > 1 ? ` + ${counted(levels, 'level')} of nodes` : ''})`;
    case 'NVLS':
      return 'NVLS is one exchange with the NVSwitch';
    case 'NVLSTree':
      return `NVLSTree is one exchange with the NVSwitch and 2 x ${counted(levels, 'level')} of nodes`;
    case 'PAT':
      return `PAT has ${counted(levels, 'step')} between nodes and a part for each of ${counted(nRanks, 'rank')}`;
    case 'CollNetDirect':
    case 'CollNetChain':
      return undefined;
  }
}

/** Bound on the bandwidth of a candidate. */
export function limitOf(
  { input, model }: Tuning,
  collective: Collective,
  { algorithm, protocol }: Pick<Prediction, 'algorithm' | 'protocol'>,
): string | undefined {
  const { limit } = model[collective][algorithm][protocol];
  const graph = input.graphs[graphOf[algorithm]];
  const channels = `${counted(graph.nChannels, 'channel')} of ${rate(input.nNodes <= 2 ? graph.bwIntra : graph.bwInter)}`;
  switch (limit) {
    case null:
      return undefined;
    case 'graph':
      return `${formatWay({ algorithm, protocol })} is bounded by the channels of the search, ${channels}`;
    case 'll':
      return `${formatWay({ algorithm, protocol })} is bounded by what LL reaches on ${input.nNodes === 1 ? 'such GPUs' : 'such CPUs between nodes'}`;
    case 'channel':
      return `${formatWay({ algorithm, protocol })} is bounded by what one channel of it carries on such GPUs (${counted(graph.nChannels, 'channel')})`;
    case 'switch':
      return `${formatWay({ algorithm, protocol })} is bounded by what the NVSwitch reduces for ${counted(graph.nChannels, 'head')} of ${rate(graph.bwIntra)}`;
    case 'network':
      return `${formatWay({ algorithm, protocol })} is bounded by what ${counted(graph.nChannels, 'head')} bring out of the node, ${rate(graph.bwInter)} each`;
  }
}

function whyNot(all: readonly Prediction[], chosen: Usable, asked: PartialWay): string[] {
  const same = matches(chosen, asked);
  if (same) return [];
  const reasons = all.filter((each) => matches(each, asked)).flatMap((each) => each.reasons);
  return [`${claimName(asked)} cannot be used here. ${mainReasons(reasons, asked).join(' ')}`];
}

/**
 * Reasons against the candidates of the question, each once; that an algorithm has only one protocol is not a reason against it.
 */
export function mainReasons(reasons: readonly Reason[], { algorithm, protocol }: PartialWay): string[] {
  const telling = reasons.filter(
    ({ why }) => (why !== 'simple-only' || protocol !== undefined) && (why !== 'no-such-algorithm' || algorithm !== undefined),
  );
  return [...new Set(telling.map(describeReason))];
}

/** The sizes between which the choice stays the same. */
function stretch(tuning: Tuning, collective: Collective, bytes: number, chosen: Usable): string[] {
  const changes = flips(tuning, collective, LEAST_BYTES, MOST_BYTES);
  const from = changes.filter((flip) => flip.bytes <= bytes).at(-1);
  const to = changes.find((flip) => flip.bytes > bytes);
  const before = from === undefined ? '' : `from ${formatBytes(from.bytes)} on (below: ${formatWay(from.from)})`;
  const after = to === undefined ? '' : `up to ${formatBytes(to.bytes)} (then ${formatWay(to.to)})`;
  const where = [before, after].filter((part) => part !== '').join(' ');
  return [`${formatWay(chosen)} is the choice ${where === '' ? 'at all sizes' : where}.`];
}

/** A choice as evidence. */
export function wayEvidence(way: { readonly algorithm: string; readonly protocol: string } | null): Evidence {
  return way === null ? null : { algorithm: way.algorithm, protocol: way.protocol };
}
