import { transportsOf } from '../../planner/plan/overview/connections.js';
import { clusterModel } from '../../view/cluster/model.js';
import { clusterPicture } from '../../view/cluster/picture.js';
import type { ShownCluster } from '../messages.js';
import type { PartInput } from './input.js';
import { shownFaults } from './why.js';

/** A channel through every host and network port. */
export function shownCluster({ made, state: { channel = 0, graph }, width }: PartInput): ShownCluster {
  const { source, prepared, plan } = made;
  const transports = transportsOf(plan, prepared, source.parameters);
  const drawn = { graph, channel: Math.min(channel, plan.nChannels - 1) };
  return {
    view: 'cluster',
    picture: clusterPicture(clusterModel(source.title, plan, prepared, transports, drawn), width),
    nChannels: plan.nChannels,
    findings: shownFaults(made),
  };
}
