import type { TuningInput } from '../tuning/input.js';
import { CpuArch } from '../topology/system.js';
import { LinkType, PathType } from '../topology/types.js';
import type { Predicted } from './interval.js';
import type { SimulatedCluster } from './routes.js';

/** Properties of a cluster by which its predictions are more or less sure. */
export function predictedOf(
  { merged: { graphs, nodes }, machines }: SimulatedCluster,
  { minCompCap, maxLocalRanks, cpuArch }: TuningInput,
): Omit<Predicted, 'launch' | 'network'> {
  const systems = [...machines.values()].map(({ system }) => system);
  return {
    compCap: minCompCap,
    // A host may count as several nodes.
    nHosts: new Set(nodes.rankBase).size,
    gpusPerHost: maxLocalRanks,
    hasNvlink:
      graphs.ring.typeIntra <= PathType.NVB && systems.every(({ links }) => links.type.some((type) => type === LinkType.NVL)),
    hostsOfDomain: Math.max(1, ...systems.map(({ hostHashes }) => hostHashes.length)),
    isArm: cpuArch === CpuArch.ARM,
  };
}
