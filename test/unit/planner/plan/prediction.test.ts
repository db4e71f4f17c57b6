import { describe, expect, it } from 'vitest';
import { predictionLines } from '../../../../src/cli/plan/prediction-text.js';
import { colorsFor } from '../../../../src/cli/output.js';
import {
  busFactor,
  choose,
  type Collective,
  defaultParameters,
  machine,
  planPrepared,
  predictCollectives,
  prepareCluster,
  simulatorOf,
  tune,
} from '../../../../src/planner/index.js';

const prepared = prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 1 }] }, defaultParameters);
const made = planPrepared(prepared, defaultParameters);
const tuning = tune(made, defaultParameters);
const sizes = [1024, 2 ** 20, 2 ** 30];

describe('predictions of a plan', () => {
  const predictions = predictCollectives(simulatorOf(prepared, defaultParameters, made, tuning), sizes);

  it('stand beside NCCL’s choice, with an interval around the time', () => {
    for (const { collective: name, rows } of predictions) {
      const collective = name as Collective;
      expect(rows.map(({ bytes }) => bytes)).toEqual(sizes);
      for (const { bytes, choice, timeUs, leastUs, mostUs, busGBps } of rows) {
        expect(leastUs).toBeLessThan(timeUs);
        expect(mostUs).toBeGreaterThan(timeUs);
        if (name === 'AllToAll' || name === 'SendRecv') {
          expect(choice).toBeUndefined();
        } else {
          expect(choice).toEqual(choose(tuning, collective, bytes));
          expect(busGBps).toBeCloseTo((bytes / timeUs / 1000) * busFactor(collective, 8), 6);
        }
      }
    }
  });

  it('know all-to-all and send and receive, for which NCCL has no model', () => {
    const text = predictionLines(predictions, colorsFor({ isTTY: false })).join('\n');
    expect(text).toContain('AllToAll');
    expect(text).toMatch(/SendRecv\n +size +algorithm +NCCL believes +predicted/);
  });

  it('never exceed the bandwidth of NVLinks', () => {
    for (const { rows } of predictions)
      for (const { busGBps, choice } of rows) if (choice?.algorithm !== 'NVLS') expect(busGBps).toBeLessThan(450);
  });
});
