import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../src/planner/parameters.js';
import { loadOfLinks } from '../../../src/planner/plan/overview/fullest-link.js';
import { prepareCluster } from '../../../src/planner/plan/cluster.js';
import { planPrepared } from '../../../src/planner/plan/plan.js';
import { buildSystem } from '../../../src/planner/topology/build/build-system.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { computePaths } from '../../../src/planner/topology/paths/compute-paths.js';
import { draw } from '../../../src/view/machine/boxes.js';
import { linkUses } from '../../../src/view/machine/loads.js';
import { matrixPicture } from '../../../src/view/machine/matrix.js';
import { drawList } from './draw-list.js';

function drawingOf(name: string) {
  const root = machine(name);
  const system = buildSystem(root, { parameters: defaultParameters });
  return draw(name, system, computePaths(system, defaultParameters), root);
}

// After a wanted change of a view: npx vitest run -u, and look at what changed.
describe('the matrix of paths', () => {
  it.each(['dgx-1v', 'hgx-a100-4', 'dgx-h100', 'gb200-tray', 'ac922', 'pcie-8-a6000'])('of %s', async (name) => {
    await expect(drawList(matrixPicture(drawingOf(name)))).toMatchFileSnapshot(`golden/matrix-${name}.txt`);
  });

  it('on a phone has its width, and numbers over its columns', () => {
    const { marks, width } = matrixPicture(drawingOf('dgx-h100'), undefined, 350);
    expect(width).toBeLessThanOrEqual(350);
    expect(marks.flatMap((mark) => (mark.kind === 'text' && mark.y === 68 ? [mark.text] : [])).join('')).toBe('0123456701234567');
  });

  it('has small cells without text for a rack, and a cell for each pair', () => {
    const drawing = drawingOf('gb200-nvl72');
    const { marks } = matrixPicture(drawing);
    const cells = marks.filter((mark) => mark.kind === 'rect' && mark.subject !== undefined);
    expect(cells).toHaveLength(drawing.endpoints.length ** 2);
    expect(marks.filter((mark) => mark.kind === 'text' && mark.look === 'onband').length).toBeLessThan(12);
  });
});

it('uses of links: one ring of an H100 loads one NIC in each direction, and every NVLink', () => {
  const prepared = prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] }, defaultParameters);
  const plan = planPrepared(prepared, defaultParameters);
  const local = prepared[0]!.systems[0]!;
  const ring = prepared[0]!.host.nodes[0]!.graphs.ring;
  const uses = linkUses(local, loadOfLinks(local, ring, [0], plan.graphs.ring));
  const loaded = [...uses].filter(([, { usedGBps }]) => usedGBps > 0).map(([key]) => key);
  const ports = loaded.filter((key) => key.includes('NET/'));
  expect(ports).toHaveLength(2);
  expect(loaded.filter((key) => key.endsWith('>NVS')).length).toBe(7);
  for (const { usedGBps, gbps } of uses.values()) expect(usedGBps).toBeLessThanOrEqual(gbps);
});
