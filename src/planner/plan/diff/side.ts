import type { Plan } from '../plan.js';
import type { PreparedHosts } from '../cluster.js';
import type { Side } from './compare.js';

/** A plan to compare, with the machines that its hosts see. */
export function sideOf(title: string, prepared: readonly PreparedHosts[], plan: Plan): Side {
  const systems = new Map(
    prepared.flatMap(({ host, systems: locals }) =>
      host.nodes.flatMap((node, index) => {
        const local = locals[index];
        return local === undefined ? [] : [[node, local] as const];
      }),
    ),
  );
  return { title, plan, systems };
}
