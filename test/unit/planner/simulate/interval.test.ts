import { describe, expect, it } from 'vitest';
import { defaultParameters, machine, planPrepared, prepareCluster, simulatorOf } from '../../../../src/planner/index.js';
import { applyOverrides } from '../../../../src/planner/plan/overrides.js';
import type { ScheduledCollective } from '../../../../src/planner/schedule/schedule.js';
import { unmeasuredText } from '../../../../src/planner/simulate/unmeasured.js';

const MiB = 2 ** 20;

interface Call {
  readonly collective?: ScheduledCollective;
  readonly bytes?: number;
  readonly network?: 'infiniband' | 'roce' | 'efa' | 'tcpx';
  readonly launch?: 'queued' | 'graph';
}

function intervalsOf(name: string, hosts: number, { collective = 'AllReduce', bytes = 16 * MiB, ...environment }: Call = {}) {
  const prepared = prepareCluster({ hosts: [{ machine: machine(name), count: hosts }] }, defaultParameters);
  const interval = simulatorOf(prepared, defaultParameters).interval(collective, bytes, environment);
  const { least, most, usual, unmeasured } = interval;
  return { width: Math.log(most / least), usual: Math.log(usual.most / usual.least), unmeasured };
}

describe('the interval of a prediction', () => {
  const measured = intervalsOf('dgx-h100', 2, { network: 'infiniband' });

  it('is that of the class where calls like these were measured', () => {
    expect(measured.unmeasured).toEqual([]);
    expect(measured.width).toBe(measured.usual);
    expect(intervalsOf('dgx-h100', 10, { network: 'infiniband' })).toEqual(measured);
    expect(unmeasuredText([])).toBeUndefined();
  });

  it('is narrow on one host with measured GPUs', () => {
    for (const name of ['dgx-a100', 'dgx-h100', 'dgx-h200', 'dgx-b200', 'dgx-b300', 'gb200-tray'])
      expect(intervalsOf(name, 1, { bytes: 2 ** 30 }), name).toMatchObject({
        unmeasured: [],
        width: expect.closeTo(0.16, 1) as number,
      });
  });

  it('grows with hosts that nobody measured', () => {
    const [more, most] = [intervalsOf('dgx-h100', 16), intervalsOf('dgx-h100', 128)];
    expect(more.width).toBeGreaterThan(measured.width);
    expect(most.width).toBeGreaterThan(1.3 * measured.width);
    expect(most.usual).toBe(measured.width);
    expect(most.unmeasured).toEqual(['128 hosts, where 10 were measured']);
  });

  it('is wider for each property without a measurement, and says so', () => {
    const cases: readonly (readonly [string, number, Call, readonly string[]])[] = [
      ['dgx-b200', 2, {}, ['calls between hosts with Blackwell']],
      ['dgx-1v', 1, {}, ['calls on Volta']],
      ['dgx-h100', 2, { network: 'tcpx' }, ['the network tcpx']],
      ['dgx-h100', 1, { launch: 'graph' }, ['CUDA graphs']],
      [
        'dgx-h100',
        2,
        { collective: 'AllToAll', bytes: 1024, network: 'roce' },
        ['AllToAll below 1 MiB between hosts with Hopper'],
      ],
      ['dgx-a100', 2, { collective: 'AllGather' }, ['AllGather between hosts with A100']],
      ['dgx-a100', 1, { collective: 'SendRecv' }, ['SendRecv on A100']],
      ['gb200-nvl8', 1, {}, ['an NVLink domain of 2 hosts']],
      ['gh200-4', 2, {}, ['hosts with Arm CPUs']],
      ['pcie-8-l40s', 1, {}, ['GPUs without NVLinks']],
    ];
    for (const [name, hosts, call, unmeasured] of cases) {
      const found = intervalsOf(name, hosts, call);
      expect(found.unmeasured, name).toEqual(unmeasured);
      const isCounted = !unmeasured[0]?.includes('below 1 MiB');
      if (isCounted) expect(found.width, name).toBeGreaterThan(found.usual);
      else expect(found.width, name).toBeCloseTo(found.usual, 9);
    }
    expect(intervalsOf('dgx-b200', 2, { network: 'tcpx' }).width).toBeGreaterThan(intervalsOf('dgx-b200', 2).width);
  });

  it('is a little wider where nobody says whether the network is InfiniBand or RoCE', () => {
    const either = intervalsOf('dgx-h100', 2, { bytes: 1024 });
    for (const network of ['infiniband', 'roce', 'efa'] as const) {
      const known = intervalsOf('dgx-h100', 2, { bytes: 1024, network });
      expect(known.width).toBeCloseTo(known.usual, 9);
      expect(either.width).toBeGreaterThan(known.width);
    }
    expect(either.unmeasured).toEqual([]);
  });

  it('is that of one host where NCCL counts it as several nodes', () => {
    const root = machine('pcie-8-rtx4090');
    const prepared = prepareCluster(
      { hosts: [{ machine: applyOverrides(root, { gpus: [0, 4] }), count: 1 }] },
      defaultParameters,
    );
    expect(planPrepared(prepared, defaultParameters).nodes.nNodes).toBe(2);
    const { unmeasured } = simulatorOf(prepared, defaultParameters).interval('Broadcast', MiB);
    expect(unmeasured).toEqual(['calls on GPUs of compute capability 8.9']);
  });

  it('says in one sentence what was not measured', () => {
    const between = 'between hosts with A100';
    expect(unmeasuredText([`AllGather ${between}`, `SendRecv ${between}`, `SendRecv ${between}`, 'the network tcpx'])).toBe(
      'the fit has no measurement of AllGather, SendRecv between hosts with A100; of the network tcpx: intervals are wider',
    );
  });
});
