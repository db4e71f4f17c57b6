import type { MachinePicture } from '../../planner/plan/overview/html.js';
import { computePaths } from '../../planner/topology/paths/compute-paths.js';
import { draw } from '../../planner/topology/view/drawing.js';
import { drawingSvg } from '../../planner/topology/view/svg.js';
import type { ClusterInput } from '../cluster-input.js';

/** Drawings of the machines of a cluster, without racks of many hosts, which are too large for a page. */
export function machinePictures({ machines, parameters }: Pick<ClusterInput, 'machines' | 'parameters'>): MachinePicture[] {
  return machines
    .filter(({ system }) => system.hostHashes.length <= MOST_HOSTS)
    .map(({ title, system, root }) => ({
      name: title,
      svg: drawingSvg(draw(title, system, computePaths(system, parameters), root)),
    }));
}

const MOST_HOSTS = 2;
