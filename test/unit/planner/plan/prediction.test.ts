import { describe, expect, it } from 'vitest';
import { callTables, intervalText, predictionIntervals } from '../../../../src/planner/plan/overview/calls.js';
import { forecast } from '../../../../src/planner/plan/overview/forecast.js';
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

  it('are tables, messages between pairs last, for which NCCL has no model', () => {
    const tables = callTables(forecast(tuning, sizes), predictions);
    expect(tables.map(({ title, kind }) => [title, kind])).toEqual([
      ['AllReduce', 'predicted'],
      ['AllGather, ReduceScatter', 'predicted'],
      ['Broadcast, Reduce', 'believed'],
      ['AllToAll', 'pairs'],
      ['SendRecv', 'pairs'],
    ]);
    for (const { kind, rows } of tables) {
      expect(rows.map(({ bytes }) => bytes)).toEqual(sizes);
      for (const { choice, predicted } of rows)
        expect([choice !== undefined, predicted !== undefined]).toEqual([kind !== 'pairs', kind !== 'believed']);
    }
  });

  it('have the intervals of their sizes', () => {
    expect(predictionIntervals(predictions).map(intervalText)).toEqual([
      'AllReduce, AllGather, ReduceScatter: 0.87 to 1.07, 0.87 to 1.14 from 1 MiB, 0.93 to 1.08 from 1 GiB',
      'AllToAll: 0.87 to 1.04, 0.81 to 1.04 from 1 MiB, 0.95 to 1.11 from 1 GiB',
      'SendRecv: 0.87 to 1.74, 0.81 to 1.04 from 1 MiB, 0.95 to 1.11 from 1 GiB',
    ]);
  });

  it('never exceed the bandwidth of NVLinks', () => {
    for (const { rows } of predictions)
      for (const { busGBps, choice } of rows) if (choice?.algorithm !== 'NVLS') expect(busGBps).toBeLessThan(450);
  });
});
