import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { computePaths } from '../../../src/planner/topology/paths/compute-paths.js';
import { planned } from '../../../src/studio/planned.js';
import { sourceOf } from '../../../src/studio/source.js';
import { stateOf } from '../../../src/studio/state.js';
import { stagesOf } from '../../../src/view/learn/stages.js';
import { draw } from '../../../src/view/machine/boxes.js';

function stages(machine: string, nodes: number) {
  const made = planned(sourceOf(stateOf(`machine=${machine}&nodes=${nodes}`), undefined)!);
  const { root, system } = made.source.machines[0]!;
  return stagesOf({ ...made, system, drawing: draw(machine, system, computePaths(system, made.source.parameters), root) });
}

describe('the stages of NCCL', () => {
  it.each([
    ['dgx-h100', 2],
    ['dgx-1v', 1],
    ['ac922', 3],
    ['pcie-8-a6000', 2],
    ['gb200-nvl72', 1],
    ['hgx-a100-4', 9],
  ])('of %s, %d nodes, have values and a page', (machine, nodes) => {
    const all = stages(machine, nodes);
    expect(all).toHaveLength(11);
    for (const { title, sentences, values, page } of all) {
      expect(sentences, title).toHaveLength(3);
      expect(values.length, title).toBeGreaterThan(0);
      expect(values.join('\n'), title).not.toMatch(/NaN|undefined|Infinity|\[object/);
      expect(existsSync(page), page).toBe(true);
    }
  });

  it('of two DGX H100', async () => {
    const text = stages('dgx-h100', 2).map(({ title, values }) => [title, ...values.map((value) => `  ${value}`), ''].join('\n'));
    await expect(text.join('\n')).toMatchFileSnapshot('golden/stages-2-dgx-h100.txt');
  });
});
