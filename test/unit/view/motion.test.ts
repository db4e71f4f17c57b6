import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../src/planner/parameters.js';
import { prepareCluster } from '../../../src/planner/plan/cluster.js';
import { transportsOf } from '../../../src/planner/plan/overview/connections.js';
import { planPrepared } from '../../../src/planner/plan/plan.js';
import { simulatorOf } from '../../../src/planner/plan/prediction.js';
import { timelineOf, type TimelineSlice } from '../../../src/planner/simulate/timeline.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { clusterModel } from '../../../src/view/cluster/model.js';
import { clusterPicture } from '../../../src/view/cluster/picture.js';
import { placeAlong } from '../../../src/view/motion/along.js';
import { chunksAt, fifosAt, lanesPicture, type Motion, motionPicture } from '../../../src/view/motion/motion.js';
import { drawList } from './draw-list.js';

function motionOf(name: string, count: number, bytes: number): Motion {
  const prepared = prepareCluster({ hosts: [{ machine: machine(name), count, name }] }, defaultParameters);
  const plan = planPrepared(prepared, defaultParameters);
  const timeline = timelineOf(simulatorOf(prepared, defaultParameters, plan), 'AllReduce', bytes);
  const slices = timeline?.slices.filter(({ channel }) => channel === 0) ?? [];
  const pairs = new Map(slices.flatMap(({ rank, to }) => to.map((peer) => [`${rank}>${peer}`, [rank, peer] as const])));
  const graph = timeline?.simulated.choice?.algorithm === 'Ring' ? 'ring' : 'tree';
  const channel = { graph, channel: 0, pairs: [...pairs.values()] } as const;
  return {
    stage: clusterPicture(clusterModel(name, plan, prepared, transportsOf(plan, prepared, defaultParameters), channel)),
    slices,
    ranks: Array.from({ length: plan.nodes.nRanks }, (_, rank) => rank),
    startUs: Math.min(...slices.map(({ startUs }) => startUs)),
    endUs: Math.max(...slices.map(({ endUs }) => endUs)),
  };
}

// After a wanted change of a view: npx vitest run -u, and look at what changed.
describe('a call in time', () => {
  it.each([
    ['dgx-1v', 1],
    ['dgx-a100', 2],
    ['hgx-a100-4', 1],
    ['ac922', 2],
    ['pcie-8-a6000', 1],
    ['dgx-h100', 2],
  ])('on %s, %d of them', async (name, count) => {
    const motion = motionOf(name, count, 65_536);
    const middleUs = (motion.startUs + motion.endUs) / 2;
    const pictures = [motionPicture(motion, middleUs), lanesPicture(motion, middleUs)];
    expect(JSON.stringify(pictures)).not.toMatch(/NaN|null|undefined/);
    // The stage has its own golden files: what moves is what is behind it.
    const moving = pictures.map((picture, index) =>
      index === 0 ? { ...picture, marks: picture.marks.slice(motion.stage.marks.length) } : picture,
    );
    await expect(moving.map(drawList).join('\n')).toMatchFileSnapshot(`golden/motion-${count}-${name}.txt`);
  });

  it('a dot for each slice on its way lies on its connection, and FIFOs are empty at the end', () => {
    const motion = motionOf('dgx-a100', 2, 65_536);
    let most = 0;
    for (const { startUs } of motion.slices) {
      const chunks = chunksAt(motion.slices, startUs);
      const dots = motionPicture(motion, startUs).marks.filter(({ look }) => look === 'chunk');
      expect(dots).toHaveLength(chunks.length);
      most = Math.max(most, chunks.length);
    }
    expect(most).toBeGreaterThan(1);
    expect(fifosAt(motion.slices, motion.endUs)).toEqual(new Map());
  });

  it('counts what was sent and not taken', () => {
    const slice = (rank: number, from: readonly number[], to: readonly number[], startUs: number): TimelineSlice => ({
      rank,
      channel: 0,
      worker: 0,
      startUs,
      endUs: startUs + 1,
      bytes: 1,
      what: 'send',
      from,
      to,
    });
    const slices = [slice(0, [], [1], 0), slice(0, [], [1], 1), slice(1, [0], [], 3)];
    expect(fifosAt(slices, 2)).toEqual(new Map([['0>1', 2]]));
    expect(fifosAt(slices, 4)).toEqual(new Map([['0>1', 1]]));
  });
});

it('places along a path are at parts of its length', () => {
  expect(placeAlong('M0 0L10 0L10 10', 0)).toEqual([0, 0]);
  expect(placeAlong('M0 0L10 0L10 10', 0.75)).toEqual([10, 5]);
  const [x, y] = placeAlong('M0 0Q5 10 10 0', 0.5);
  expect(x).toBeCloseTo(5);
  expect(y).toBeCloseTo(5);
  expect(placeAlong('M0 0C0 0 8 0 8 0', 1)).toEqual([8, 0]);
});
