import { transportsOf } from '../planner/plan/overview/connections.js';
import { clusterModel } from '../view/cluster/model.js';
import { clusterPicture } from '../view/cluster/picture.js';
import type { ShownCluster, ShownPart } from './messages.js';
import type { Planned } from './show.js';
import type { StudioState } from './state.js';

/** The contents of the state's view, where it is one of those that are made when they are looked at. */
export function partOf(made: Planned, state: StudioState): ShownPart | undefined {
  switch (state.view) {
    case 'cluster':
      return shownCluster(made, state);
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
