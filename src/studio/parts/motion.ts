import { counted } from '../../counted.js';
import { transportsOf } from '../../planner/plan/overview/connections.js';
import { formatBytes, formatTime, formatWay } from '../../planner/plan/overview/format.js';
import { simulatorOf } from '../../planner/plan/prediction.js';
import { timelineOf } from '../../planner/simulate/timeline.js';
import { collectives } from '../../planner/tuning/names.js';
import { clusterModel } from '../../view/cluster/model.js';
import { clusterPicture } from '../../view/cluster/picture.js';
import type { ShownMotion } from '../messages.js';
import type { Planned } from '../planned.js';
import type { StudioState } from '../state.js';

/** Ranks and slices at most of a call that is shown in motion. */
const MOST_MOVING_RANKS = 128;
const MOST_SLICES = 20_000;

/** A call in time, on one channel. */
export function shownMotion(
  { source, prepared, plan, tuning }: Planned,
  { collective, bytes, channel = 0 }: StudioState,
  width: number | undefined,
): ShownMotion {
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
      stage: clusterPicture(model, width),
      slices,
      ranks: model.rows.flatMap((row) => (row.kind === 'node' ? row.gpus.map(({ rank }) => rank) : [])),
      startUs: Math.min(...slices.map(({ startUs }) => startUs)),
      endUs: Math.max(...slices.map(({ endUs }) => endUs)),
    },
  };
}
