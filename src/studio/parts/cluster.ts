import { transportsOf } from '../../planner/plan/overview/connections.js';
import { clusterModel } from '../../view/cluster/model.js';
import { clusterPicture } from '../../view/cluster/picture.js';
import type { ShownCluster } from '../messages.js';
import type { Planned } from '../planned.js';
import { doctorFindings } from './why.js';
import type { StudioState } from '../state.js';

/** A channel through every host and network port. */
export function shownCluster({ source, prepared, plan }: Planned, { channel = 0, graph }: StudioState): ShownCluster {
  const transports = transportsOf(plan, prepared, source.parameters);
  const drawn = { graph, channel: Math.min(channel, plan.nChannels - 1) };
  return {
    view: 'cluster',
    picture: clusterPicture(clusterModel(source.title, plan, prepared, transports, drawn)),
    nChannels: plan.nChannels,
    findings: doctorFindings(source),
  };
}
