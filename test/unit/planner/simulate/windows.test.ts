import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Parameters, parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { prepareCluster } from '../../../../src/planner/plan/cluster.js';
import { planPrepared } from '../../../../src/planner/plan/plan.js';
import { simulatorOf } from '../../../../src/planner/plan/prediction.js';
import type { Simulator } from '../../../../src/planner/simulate/simulate.js';
import { measuredPhysics, withPhysics } from '../../../../src/planner/simulate/physics.js';
import { applyOverrides } from '../../../../src/planner/plan/overrides.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { chooseWithWindows } from '../../../../src/planner/tuning/symmetric/symmetric.js';
import { tune } from '../../../../src/planner/tuning/tune.js';

const MIB = 2 ** 20;

interface Made {
  readonly count?: number;
  readonly gpus?: readonly number[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly windows?: Parameters['windows'];
}

function made(name: string, options: Made = {}): Simulator {
  return both(name, options).simulator;
}

function both(name: string, { count = 1, gpus, environment = {}, windows = 'both' }: Made) {
  const { parameters } = parametersFromEnvironment(environment, { ncclVersion: '2.30.7', windows });
  const root = applyOverrides(machine(name), gpus === undefined ? {} : { gpus });
  const prepared = prepareCluster({ hosts: [{ machine: root, count }] }, parameters);
  const plan = planPrepared(prepared, parameters);
  const tuning = tune(plan, parameters);
  return { simulator: simulatorOf(prepared, parameters, plan, tuning), tuning };
}

/** Published times, in the order of the table in docs/notes/tuning.md. */
const published = [
  // https://github.com/NVIDIA/Megatron-LM/pull/5596: 8 H100, NCCL 2.29, the time of the kernel without its launch.
  ...(
    [
      ['AllGather', 2, 10.9],
      ['AllGather', 8, 27.4],
      ['AllGather', 32, 95.3],
      ['AllGather', 128, 363.2],
      ['ReduceScatter', 2, 10.8],
      ['ReduceScatter', 8, 28.8],
      ['ReduceScatter', 32, 100.5],
    ] as const
  ).map(([collective, mib, publishedUs]) => ({
    name: `${collective} ${mib} MiB`,
    ...{ collective, bytes: mib * MIB, publishedUs, ctas: undefined },
    ...{ machine: 'dgx-h100', launchUs: 0, gpus: undefined },
  })),
  // https://github.com/NVIDIA/nccl/pull/2344 and 2307: two B200.
  ...(
    [
      [4, 12, 29.4],
      [4, 64, 13.6],
      [1, 32, 10.71],
      [8, 64, 16.71],
      [16, 64, 23.14],
    ] as const
  ).map(([mib, ctas, publishedUs]) => ({
    name: `${mib} MiB on ${ctas} CTAs`,
    ...{ collective: 'ReduceScatter' as const, bytes: mib * MIB, publishedUs, ctas },
    ...{ machine: 'dgx-b200', launchUs: undefined, gpus: [0, 1] },
  })),
];

/** Simulated time of a published call, and that of NCCL's model. */
function timesOf({ collective, bytes, ctas, machine: name, launchUs, gpus }: (typeof published)[number]) {
  const environment = ctas === undefined ? {} : { NCCL_SYM_KERNEL: 'ReduceScatter_LD', NCCL_SYM_CTAS: String(ctas) };
  const { simulator, tuning } = both(name, { environment, ...(gpus === undefined ? {} : { gpus }) });
  const physics = launchUs === undefined ? measuredPhysics : withPhysics(measuredPhysics, { 'launchUs.hopper': launchUs });
  const way = chooseWithWindows(tuning, collective, bytes, { dataType: 'bfloat16' });
  return {
    simulated: simulator.simulate(collective, bytes, { onWindows: true, physics, dataType: 'bfloat16' }),
    believedUs: way.kind === 'symmetric' ? way.timeUs : 0,
  };
}

describe('simulated time on symmetric windows', () => {
  it.each(published)('is near the published time of $name on $machine', (call) => {
    const { simulated } = timesOf(call);
    expect(simulated?.kernel).toMatch(call.ctas === undefined ? /MC$/ : /_LD$/);
    expect((simulated?.timeUs ?? 0) / call.publishedUs).toBeGreaterThan(0.79);
    expect((simulated?.timeUs ?? 0) / call.publishedUs).toBeLessThan(1.2);
  });

  it('stands beside published times in docs/notes/tuning.md', () => {
    const lines = readFileSync(new URL('../../../../docs/notes/tuning.md', import.meta.url), 'utf8').split('\n');
    const digits = (us: number) => String(Number(us.toPrecision(3)));
    const rows = lines.filter((line) => / MiB(?: on \d+ CTAs)? \| [\d.]+ \|/.test(line));
    expect(rows.map((line) => line.split(' | ').slice(1).join(' | '))).toEqual(
      published.map((call) => {
        const { simulated, believedUs } = timesOf(call);
        return `${call.name} | ${digits(call.publishedUs)} | ${digits(simulated?.timeUs ?? 0)} | ${digits(believedUs)} |`;
      }),
    );
  });

  it('is that of the general kernel where no symmetric kernel does the call', () => {
    const simulator = made('dgx-h100');
    for (const options of [{ dataType: 'int32' }, { operator: 'max' }] as const)
      expect(simulator.simulate('AllReduce', MIB, { ...options, onWindows: true })).toEqual(
        simulator.simulate('AllReduce', MIB, options),
      );
    expect(simulator.simulate('AllToAll', MIB, { onWindows: true })?.kernel).toBeUndefined();
    const without = made('dgx-h100', { windows: 'none' });
    expect(without.simulate('AllReduce', MIB, { onWindows: true })?.choice).toBeDefined();
  });

  it('cannot be shorter than the links that the kernel uses need, whatever NCCL believes', () => {
    const size = 1024 * MIB;
    // An NVLink of H100 carries 450 GB/s in each direction; a reduction in the switch sends each byte once.
    for (const collective of ['AllReduce', 'AllGather', 'ReduceScatter'] as const)
      expect(made('dgx-h100').simulate(collective, size, { onWindows: true })?.timeUs).toBeGreaterThan(size / 450e3);
  });

  it('depends on the NVLinks of the machine, which NCCL has no figure of', () => {
    const timeUs = (name: string) => made(name).simulate('AllGather', 256 * MIB, { onWindows: true })?.timeUs ?? 0;
    // H800 has 8 NVLinks a GPU where H100 has 18.
    expect(timeUs('hgx-h800-8') / timeUs('dgx-h100')).toBeGreaterThan(2);
  });

  it('waits for the network between domains, once for each domain in AllGather', () => {
    const timeUs = (collective: 'AllGather' | 'ReduceScatter', count: number) =>
      made('dgx-h100', { count }).simulate(collective, 1024, { onWindows: true })?.timeUs ?? 0;
    // Not told whether InfiniBand or RoCE.
    const { netHopUs, roceHopUs } = measuredPhysics.common;
    expect(timeUs('AllGather', 4) - timeUs('AllGather', 2)).toBeCloseTo(2 * (netHopUs + roceHopUs / 2), 0);
    expect(timeUs('ReduceScatter', 4) - timeUs('ReduceScatter', 2)).toBeCloseTo(0, 0);
    // Each NIC of 50 GB/s carries the data of the other domain, a sixteenth for each of its ranks.
    const large = made('dgx-h100', { count: 2 }).simulate('AllGather', 1024 * MIB, { onWindows: true });
    expect(large?.timeUs).toBeGreaterThan((1024 * MIB) / 16 / 50e3);
  });

  it('starts copy engines in place of a kernel', () => {
    const environment = { NCCL_CTA_POLICY: 'ZERO' };
    const simulated = made('dgx-b200', { environment }).simulate('AllGather', 256 * MIB, { onWindows: true });
    expect(simulated).toMatchObject({ kernel: 'copy engines', nChannels: 0, launchUs: 0 });
    // 7/8 of the data come over links of 900 GB/s.
    expect(simulated?.timeUs).toBeGreaterThan((224 * MIB) / 900e3);
  });
});
