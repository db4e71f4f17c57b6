import { GraphId } from '../../graph/graph.js';
import { choose } from '../../tuning/choose.js';
import { flips } from '../../tuning/flips.js';
import { algorithms, type Collective, type NcclAlgorithm, protocols } from '../../tuning/names.js';
import type { Tuning } from '../../tuning/tune.js';
import { predict } from '../../tuning/predict.js';
import { formatBytes, formatTime, formatWay } from '../../plan/overview/format.js';
import type { Draft } from '../answer.js';
import type { PartialWay } from '../grammar/question.js';
import { nodeViews, searchOf, type Situation } from '../situation.js';
import { rate } from '../format.js';
import { ofSearch, searchEvidence } from './channels.js';
import { claimName, limitOf, matches, mainReasons } from './choice.js';

/** Sizes at which an allowed candidate is compared with the choice. */
const samples = [2 ** 15, 2 ** 22, 2 ** 30];

/** Explains why an algorithm or protocol is not used for a collective, or at which sizes it is. */
export function answerWay(situation: Situation, collective: Collective, what: PartialWay): Draft {
  const { tuning } = situation;
  if (what.algorithm === 'NVLS' && collective === 'AllReduce' && isUsable(tuning, 'NVLSTree') && !isUsable(tuning, 'NVLS')) {
    const joined = answerWay(situation, collective, { ...what, algorithm: 'NVLSTree' });
    return {
      ...joined,
      title: `NVLS is used between nodes as NVLSTree`,
      sentences: [
        'NVLSTree takes the place of NVLS between nodes: the NVSwitch reduces within each, and trees join the nodes.',
        ...joined.sentences,
      ],
    };
  }
  const ways = algorithms
    .flatMap((algorithm) => protocols.map((protocol) => ({ algorithm, protocol })))
    .filter((way) => matches(way, what));
  const usable = ways.filter(
    ({ algorithm, protocol }) =>
      tuning.model[collective][algorithm][protocol].disabled.length === 0 &&
      tuning.model[collective][algorithm][protocol].bandwidthGBps > 0,
  );
  const name = claimName(what);
  const reasons = mainReasons(
    ways.flatMap(({ algorithm, protocol }) => tuning.model[collective][algorithm][protocol].disabled),
    what,
  );
  const hardware = what.algorithm === 'NVLS' || what.algorithm === 'NVLSTree' ? nvlsSentences(situation) : [];
  const sentences =
    usable.length === 0
      ? [`${name} cannot be used for ${collective} here.`, ...reasons, ...hardware]
      : [...whereUsed(situation, collective, what, usable), ...limitSentences(situation, collective, usable), ...hardware];
  return {
    title:
      usable.length === 0
        ? `no ${name}`
        : isChosen(tuning, collective, what)
          ? `${name} is used for ${collective}`
          : `${name} is not used for ${collective}`,
    sentences,
    evidence: {
      collective,
      asked: { algorithm: what.algorithm ?? null, protocol: what.protocol ?? null },
      usable: usable.length > 0,
      reasons: ways.map(({ algorithm, protocol }) => ({
        algorithm,
        protocol,
        because: tuning.model[collective][algorithm][protocol].disabled.map(({ why }) => why),
      })),
      nvls: nodeViews(situation).map((view) => ({
        name: view.name,
        nvSwitches: view.local.system.nvSwitches.length,
        computeCapability: (view.local.system.gpus[0]?.sm ?? 0) / 10,
        search: searchEvidence(searchOf(view, GraphId.NVLS)),
      })),
    },
  };
}

function isUsable({ model }: Tuning, algorithm: NcclAlgorithm): boolean {
  return model.AllReduce[algorithm].Simple.bandwidthGBps > 0;
}

/** True if it is the choice at some size. */
function isChosen(tuning: Tuning, collective: Collective, what: PartialWay): boolean {
  const first = choose(tuning, collective, 8);
  const all = [first, ...flips(tuning, collective, 8, 2 ** 36).map(({ to }) => to)];
  return all.some((way) => way !== undefined && way !== null && matches(way, what));
}

/** Hardware and settings that decide whether NVLink SHARP is available. */
function nvlsSentences(situation: Situation): string[] {
  const { parameters, plan } = situation;
  if (parameters.nvlsEnable === 0) return ['NCCL_NVLS_ENABLE=0 switches NVLink SHARP off.'];
  return nodeViews(situation).flatMap((view) => {
    const { system, inter } = view.local;
    const sm = Math.min(...system.gpus.map((gpu) => gpu.sm));
    const missing = [
      ...(system.nvSwitches.length === 0 ? ['it has no NVSwitch'] : []),
      ...(sm < 90 ? [`its GPUs have compute capability ${(sm / 10).toFixed(1)}, where 9.0 is needed`] : []),
      ...(system.gpus.length < 2 ? ['it has one GPU'] : []),
      ...(system.hardware.some((dev) => system.gpus.filter((gpu) => gpu.parent === dev.index).length > 1)
        ? ['several ranks share a GPU']
        : []),
    ];
    if (missing.length > 0) return [`${view.name} has no NVLink SHARP because ${missing.join(' and ')}.`];
    const record = searchOf(view, GraphId.NVLS);
    if (record === undefined) return [];
    const found = ofSearch(record, inter, 'NVLS').map((sentence) => `${view.name}: ${sentence}`);
    const lost =
      plan.nvls === undefined && (record.result?.nChannels ?? 0) > 0
        ? [`${view.name} has channels for it, but some other node has none, so no node uses it.`]
        : [];
    return [...found, ...lost];
  });
}

/** Of a usable candidate: the sizes at which it is the choice, or its distance to the choice. */
function whereUsed(
  { tuning }: Situation,
  collective: Collective,
  what: PartialWay,
  usable: readonly { readonly algorithm: string; readonly protocol: string }[],
): string[] {
  const name = claimName(what);
  const changes = flips(tuning, collective, 8, 2 ** 36);
  const first = choose(tuning, collective, 8) ?? null;
  const stretches = [{ bytes: 8, to: first }, ...changes].map(({ bytes, to }, index, all) => ({
    from: bytes,
    way: to,
    until: all[index + 1]?.bytes,
  }));
  const own = stretches.filter(({ way }) => way !== null && matches(way, what));
  if (own.length > 0) {
    const where = own
      .map(({ from, until, way }) =>
        `${formatWay(way)} ${from === 8 ? '' : `from ${formatBytes(from)} `}${until === undefined ? 'on' : `up to ${formatBytes(until)}`}`.replace(
          /\s+/g,
          ' ',
        ),
      )
      .join(', ');
    return [`${name} is used for ${collective}: ${where}.`];
  }
  return [
    `${name} can be used for ${collective}, but is the fastest at no size.`,
    ...samples.flatMap((bytes) => {
      const predictions = predict(tuning, collective, bytes);
      const best = predictions
        .filter(
          (each) =>
            each.timeUs !== null &&
            usable.some(({ algorithm, protocol }) => algorithm === each.algorithm && protocol === each.protocol),
        )
        .sort((a, b) => (a.timeUs ?? 0) - (b.timeUs ?? 0))[0];
      const chosen = choose(tuning, collective, bytes);
      if (best === undefined || chosen === undefined) return [];
      return [
        `At ${formatBytes(bytes)} ${formatWay(best)} would take ${formatTime(best.timeUs ?? 0)} (${rate(best.bandwidthGBps ?? 0)}, ${formatTime(best.latencyUs ?? 0)} latency), ${formatWay(chosen)} takes ${formatTime(chosen.timeUs)}.`,
      ];
    }),
  ];
}

function limitSentences(
  { tuning }: Situation,
  collective: Collective,
  usable: readonly Parameters<typeof limitOf>[2][],
): string[] {
  return usable.flatMap((way) => {
    const text = limitOf(tuning, collective, way);
    return text === undefined ? [] : [`${text}.`];
  });
}
