import { counted } from '../counted.js';
import type { MeasuredTable } from '../planner/log/table.js';
import { transportsOf } from '../planner/plan/overview/connections.js';
import { curveSizes } from '../planner/plan/overview/forecast.js';
import { formatBytes, formatTime, formatWay } from '../planner/plan/overview/format.js';
import { isQuickToPredict } from '../planner/plan/predicted-calls.js';
import { predictCall, simulatorOf } from '../planner/plan/prediction.js';
import { collectivesOfTests } from '../planner/schedule/schedule.js';
import { timelineOf } from '../planner/simulate/timeline.js';
import { choose } from '../planner/tuning/choose.js';
import { collectives } from '../planner/tuning/names.js';
import { predictionPicture } from '../view/choice/predictions.js';
import { clusterModel } from '../view/cluster/model.js';
import { clusterPicture } from '../view/cluster/picture.js';
import type { ShownCluster, ShownMotion, ShownPart, ShownTimes } from './messages.js';
import type { Planned } from './show.js';
import type { StudioState } from './state.js';

/** The contents of the state's view, where it is one of those that are made when they are looked at. */
export function partOf(made: Planned, state: StudioState, tables: readonly MeasuredTable[]): ShownPart | undefined {
  switch (state.view) {
    case 'cluster':
      return shownCluster(made, state);
    case 'choice':
      return shownTimes(made, state, tables);
    case 'motion':
      return shownMotion(made, state);
    default:
      return undefined;
  }
}

function shownCluster({ source, prepared, plan }: Planned, { channel = 0, graph }: StudioState): ShownCluster {
  const transports = transportsOf(plan, prepared, source.parameters);
  const drawn = { graph, channel: Math.min(channel, plan.nChannels - 1) };
  return {
    view: 'cluster',
    picture: clusterPicture(clusterModel(source.title, plan, prepared, transports, drawn)),
    nChannels: plan.nChannels,
  };
}

/** Sizes of predictions: 1 KiB to 4 GiB by four. */
const predictedSizes = Array.from({ length: 12 }, (_, step) => 2 ** (10 + 2 * step));

function shownTimes(
  { source, prepared, plan, tuning }: Planned,
  { collective }: StudioState,
  tables: readonly MeasuredTable[],
): ShownTimes {
  const { nRanks } = plan.nodes;
  const isQuick = nRanks > 1 && isQuickToPredict(nRanks, predictedSizes.length);
  const simulator = isQuick ? simulatorOf(prepared, source.parameters, plan, tuning) : undefined;
  const measured = tables
    .filter((table) => collectivesOfTests[table.collective ?? ''] === collective)
    .flatMap(({ rows, nRanks: ranks }) =>
      rows.map(({ bytes, timeUs, type }) => ({
        bytes,
        timeUs,
        label: `nccl-tests${ranks === undefined ? '' : `, ${counted(ranks, 'rank')}`}, ${type}`,
      })),
    )
    .filter(({ bytes, timeUs }) => bytes > 0 && timeUs > 0);
  const sizes = [...new Set([...predictedSizes, ...(isQuick ? measured.map(({ bytes }) => bytes) : [])])].sort((a, b) => a - b);
  const modelled = collectives.find((name) => name === collective);
  return {
    view: 'choice',
    note:
      simulator === undefined
        ? nRanks === 1
          ? 'One rank exchanges nothing.'
          : `${nRanks} ranks are too many to simulate while you look: tccl plan --predict does.`
        : undefined,
    picture: predictionPicture({
      title: collective,
      believed:
        modelled === undefined
          ? []
          : curveSizes(sizes[0] ?? 1, sizes.at(-1) ?? 1).flatMap((bytes) => {
              const choice = choose(tuning, modelled, bytes);
              return choice === undefined ? [] : [{ bytes, choice }];
            }),
      predicted: sizes.flatMap((bytes) =>
        simulator === undefined ? [] : predictCall(simulator, collective, bytes, { environment: source.simulated }),
      ),
      measured,
    }),
  };
}

/** Ranks and slices at most of a call that is shown in motion. */
const MOST_MOVING_RANKS = 128;
const MOST_SLICES = 20_000;

function shownMotion({ source, prepared, plan, tuning }: Planned, { collective, bytes, channel = 0 }: StudioState): ShownMotion {
  const base = { view: 'motion', nChannels: plan.nChannels } as const;
  const { nRanks } = plan.nodes;
  const modelled = collectives.find((name) => name === collective) ?? 'AllReduce';
  if (nRanks > MOST_MOVING_RANKS)
    return {
      ...base,
      motion: undefined,
      summary: `${nRanks} ranks are more than the ${MOST_MOVING_RANKS} that can be shown in motion: take fewer machines, or tccl trace.`,
    };
  const simulator = simulatorOf(prepared, source.parameters, plan, tuning);
  const timeline = timelineOf(simulator, modelled, bytes, { environment: source.simulated });
  if (timeline === undefined)
    return {
      ...base,
      motion: undefined,
      summary: nRanks === 1 ? 'One rank exchanges nothing.' : 'NCCL has no algorithm for it.',
    };
  const { simulated, slices: all } = timeline;
  const drawn = Math.min(channel, Math.max(0, simulated.nChannels - 1));
  const slices = all.filter((slice) => slice.channel === drawn);
  const way = formatWay(simulated.choice);
  const summary = `${modelled} of ${formatBytes(bytes)}: ${way}, ${counted(simulated.nChannels, 'channel')}, ${formatTime(simulated.timeUs)} as simulated, ${formatTime(simulated.launchUs)} of it the launch. ${counted(slices.length, 'slice')} on channel ${drawn}.`;
  if (slices.length > MOST_SLICES)
    return { ...base, motion: undefined, summary: `${summary} These are too many to draw: choose a smaller size.` };
  const pairs = new Map(
    slices.flatMap(({ rank, to }) => to.flatMap((peer) => (peer < 0 ? [] : [[`${rank}>${peer}`, [rank, peer] as const]]))),
  );
  const graph = simulated.choice?.algorithm === 'Ring' ? 'ring' : 'tree';
  const transports = transportsOf(plan, prepared, source.parameters);
  const model = clusterModel(source.title, plan, prepared, transports, { graph, channel: drawn, pairs: [...pairs.values()] });
  return {
    ...base,
    summary: pairs.size === 0 ? `${summary} All of it goes through the NVSwitches, which is not drawn.` : summary,
    motion: {
      stage: clusterPicture(model),
      slices,
      ranks: model.rows.flatMap((row) => (row.kind === 'node' ? row.gpus.map(({ rank }) => rank) : [])),
      startUs: Math.min(...slices.map(({ startUs }) => startUs)),
      endUs: Math.max(...slices.map(({ endUs }) => endUs)),
    },
  };
}
