import { describe, expect, it } from 'vitest';
import {
  costTable,
  costTableCsv,
  COST_TABLE_VERSION,
  defaultEnvironment,
  defaultParameters,
  machine,
  predictCollectives,
  prepareCluster,
  simulatorOf,
} from '../../../../src/planner/index.js';

const MiB = 2 ** 20;
const rows = costTable({ hosts: [{ machine: machine('dgx-h100'), count: 3 }] }, defaultParameters, [1024, MiB]);

describe('a table of costs', () => {
  it('has the groups of 2, 4, … GPUs of a host and of 1, 2, 4, … hosts, and the whole', () => {
    const groups = new Set(rows.map(({ ranks, hosts }) => `${ranks} on ${hosts}`));
    expect([...groups]).toEqual(['2 on 1', '4 on 1', '8 on 1', '16 on 2', '24 on 3']);
    for (const { timeUs, leastUs, mostUs } of rows) {
      expect(leastUs).toBeLessThan(timeUs);
      expect(mostUs).toBeGreaterThan(timeUs);
    }
  });

  it('has the times that a plan of the group predicts', () => {
    const simulator = simulatorOf(
      prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] }, defaultParameters),
      defaultParameters,
    );
    const predicted = predictCollectives(simulator, [1024, MiB]).flatMap(({ collective, rows: own }) =>
      own.map(({ bytes, timeUs }) => [collective, bytes, timeUs]),
    );
    const own = rows.filter(({ ranks }) => ranks === 16).map(({ collective, bytes, timeUs }) => [collective, bytes, timeUs]);
    expect(own).toEqual(predicted);
  });

  it('has all ranks only where hosts differ', () => {
    const hosts = [
      { machine: machine('dgx-h100'), count: 1 },
      { machine: machine('dgx-h200'), count: 1 },
    ];
    expect(new Set(costTable({ hosts }, defaultParameters, [MiB]).map(({ ranks }) => ranks))).toEqual(new Set([16]));
  });

  it('follows the environment', () => {
    const slow = costTable({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] }, defaultParameters, [1024], {
      environment: { ...defaultEnvironment, network: 'sockets' },
    }).find(({ ranks, collective }) => ranks === 16 && collective === 'AllReduce');
    const fast = rows.find(({ ranks, collective, bytes }) => ranks === 16 && collective === 'AllReduce' && bytes === 1024);
    expect(slow?.timeUs ?? 0).toBeGreaterThan((fast?.timeUs ?? Infinity) + 40);
  });

  it('is CSV with the columns of its version', () => {
    const [head, first] = costTableCsv(rows).split('\n');
    expect([COST_TABLE_VERSION, head]).toEqual([
      1,
      'collective,bytes,ranks,hosts,timeUs,leastUs,mostUs,algorithm,protocol,measured',
    ]);
    expect(first).toMatch(/^AllReduce,1024,2,1,\d+\.\d\d,\d+\.\d\d,\d+\.\d\d,\w+,\w+,yes$/);
    expect(costTableCsv(rows).trimEnd().split('\n')).toHaveLength(rows.length + 1);
  });
});
