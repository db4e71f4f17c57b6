import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../src/planner/parameters.js';
import { prepareCluster } from '../../../src/planner/plan/cluster.js';
import { planPrepared } from '../../../src/planner/plan/plan.js';
import { predictCall, simulatorOf } from '../../../src/planner/plan/prediction.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { choose } from '../../../src/planner/tuning/choose.js';
import { tune } from '../../../src/planner/tuning/tune.js';
import { type CallTimes, predictionPicture } from '../../../src/view/choice/predictions.js';
import { textWidth } from '../../../src/view/draw/picture.js';
import { drawList } from './draw-list.js';

const sizes = [2 ** 10, 2 ** 20, 2 ** 30];

function timesOf(name: string, count: number): CallTimes {
  const prepared = prepareCluster({ hosts: [{ machine: machine(name), count, name }] }, defaultParameters);
  const plan = planPrepared(prepared, defaultParameters);
  const tuning = tune(plan, defaultParameters);
  const simulator = simulatorOf(prepared, defaultParameters, plan, tuning);
  return {
    title: 'AllReduce',
    believed: sizes.flatMap((bytes) => {
      const choice = choose(tuning, 'AllReduce', bytes);
      return choice === undefined ? [] : [{ bytes, choice }];
    }),
    predicted: sizes.flatMap((bytes) => predictCall(simulator, 'AllReduce', bytes)),
    measured: [],
  };
}

// After a wanted change of a view: npx vitest run -u, and look at what changed.
describe('belief, prediction and measurement', () => {
  it.each([
    ['dgx-1v', 1],
    ['hgx-a100-4', 1],
    ['dgx-h100', 2],
    ['gb200-tray', 2],
    ['ac922', 1],
    ['pcie-8-a6000', 2],
  ])('of %s, %d of them', async (name, count) => {
    const picture = predictionPicture(timesOf(name, count));
    expect(JSON.stringify(picture)).not.toMatch(/NaN|null|undefined/);
    await expect(drawList(picture)).toMatchFileSnapshot(`golden/times-${count}-${name}.txt`);
  });

  it.each([335, 640])('fits a place of %d pixels', (width) => {
    for (const mark of predictionPicture(timesOf('hgx-a100-4', 2), width).marks)
      if (mark.kind === 'text')
        expect(mark.x + (mark.anchor === undefined ? textWidth(mark.text, 11) : 0)).toBeLessThanOrEqual(width);
  });

  it('says of a measurement where it is in the interval', () => {
    const times = timesOf('hgx-a100-4', 1);
    const most = times.predicted[1]?.mostUs ?? 0;
    const measured = [1.1, 0.9].map((part) => ({ bytes: 2 ** 20, timeUs: most * part, label: 'nccl-tests' }));
    const tips = predictionPicture({ ...times, measured }).marks.flatMap(({ look, tip }) =>
      look === 'measured' ? [tip ?? ''] : [],
    );
    expect(tips.filter((tip) => tip !== '')).toEqual([
      expect.stringContaining('slower than the interval'),
      expect.stringContaining('within the interval'),
    ]);
  });

  it('of nothing says so', () => {
    const picture = predictionPicture({ title: 'AllReduce', believed: [], predicted: [], measured: [] });
    expect(JSON.stringify(picture)).not.toMatch(/NaN|null|Infinity/);
  });
});
