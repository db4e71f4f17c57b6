import { computePaths } from '../../planner/topology/paths/compute-paths.js';
import type { Picture } from '../../view/draw/picture.js';
import { draw } from '../../view/machine/boxes.js';
import { machinePicture } from '../../view/machine/picture.js';
import type { ClusterInput } from '../cluster-input.js';

/** Pictures of the machines of a cluster; equal hosts of a rack are drawn once. */
export function machinePictures({ machines, parameters }: Pick<ClusterInput, 'machines' | 'parameters'>): Picture[] {
  return machines.map(({ title, system, root }) => machinePicture(draw(title, system, computePaths(system, parameters), root)));
}
