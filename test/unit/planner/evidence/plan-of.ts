import { evidenceIn } from '../../../../src/planner/evidence/facts.js';
import { machineOf } from '../../../../src/planner/evidence/machine-of-tools.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { planToJson } from '../../../../src/planner/plan/plan-json.js';
import { plan } from '../../../../src/planner/plan/plan.js';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import type { Hardware } from '../../../../src/planner/topology/catalogue/hardware.js';
import { withoutEmptyBranches } from '../../../../src/planner/topology/combine/prune.js';
import { computePaths } from '../../../../src/planner/topology/paths/compute-paths.js';
import { NodeType, pathTypeNames } from '../../../../src/planner/topology/types.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';

/** The machine of the first host of a text. */
export function machineFrom(text: string, hardware?: Hardware): XmlElement {
  const [evidence] = evidenceIn({ text, fileName: 'a.txt' }) ?? [];
  if (evidence === undefined) throw new Error('nothing about a machine found');
  return withoutEmptyBranches(machineOf(evidence, hardware).root);
}

/** Path types between GPUs and NICs, by their numbers. */
export function pathTypes(root: XmlElement): string[] {
  const system = buildSystem(root, { parameters: defaultParameters });
  const paths = computePaths(system, defaultParameters);
  const gpus = [...system.gpus].sort((a, b) => a.dev - b.dev);
  const nets = [...system.nets].sort((a, b) => a.dev - b.dev);
  return gpus.flatMap((gpu) => [
    ...gpus.map(
      (to) =>
        `GPU${gpu.dev} GPU${to.dev} ${pathTypeNames[paths.type[paths.to(NodeType.GPU, system.gpus.indexOf(to)) + gpu.vertex] ?? 0]}`,
    ),
    ...nets.map(
      (to) =>
        `GPU${gpu.dev} NET${to.dev} ${pathTypeNames[paths.type[paths.to(NodeType.NET, system.nets.indexOf(to)) + gpu.vertex] ?? 0]}`,
    ),
  ]);
}

/** The plan of two, without the numbers of hops: outputs may have levels of switches, not all of them. */
export function summary(root: XmlElement): { readonly rings: unknown; readonly [name: string]: unknown } {
  const made = plan({ hosts: [{ machine: root, count: 2 }] });
  const { graphs, nChannels, rings, p2p } = planToJson(made) as Record<string, unknown>;
  const text = JSON.stringify({ graphs, nChannels, rings, p2p }, (key, value: unknown) => (key === 'nHops' ? undefined : value));
  return JSON.parse(text) as ReturnType<typeof summary>;
}
