import { describe, expect, it } from 'vitest';
import {
  applyOverrides,
  machine,
  type Overrides,
  parametersFromEnvironment,
  prepareCluster,
  simulatorOf,
  type Simulator,
} from '../../../../src/planner/index.js';
import { defaultEnvironment, type Network } from '../../../../src/planner/simulate/environment.js';
import { measuredPhysics, withPhysics } from '../../../../src/planner/simulate/physics.js';
import { isThorough, runs } from '../../../runs.js';

function simulator(name: string, hosts: number, overrides: Overrides = {}, environment: Record<string, string> = {}): Simulator {
  const { parameters } = parametersFromEnvironment(environment);
  return simulatorOf(
    prepareCluster({ hosts: [{ machine: applyOverrides(machine(name), overrides), count: hosts }] }, parameters),
    parameters,
  );
}

const MiB = 2 ** 20;

describe('simulated time', () => {
  it('is the same each time, and for another simulator of the same cluster', () => {
    const times = () => [64, MiB, 256 * MiB].map((bytes) => simulator('dgx-h100', 1).simulate('AllReduce', bytes)?.timeUs);
    expect(times()).toEqual(times());
  });

  it('of a large call follows its links: a ring on NVLinks of half the bandwidth takes twice as long', () => {
    const ring = simulator('dgx-h100', 1, {}, { NCCL_ALGO: 'Ring', NCCL_PROTO: 'Simple' });
    const slow = withPhysics(measuredPhysics, { nvlinkPayload: measuredPhysics.common.nvlinkPayload / 4 });
    const half = withPhysics(measuredPhysics, { nvlinkPayload: measuredPhysics.common.nvlinkPayload / 8 });
    const time = (physics: typeof slow) => ring.simulate('AllGather', 2 ** 34, { physics })!.timeUs;
    expect(time(half) / time(slow)).toBeGreaterThan(1.9);
    expect(time(half) / time(slow)).toBeLessThan(2);
  });

  it('of a small call grows by a hop for each rank of a ring', () => {
    const ring = (gpus: number) =>
      simulator('dgx-h100', 1, { gpus }, { NCCL_ALGO: 'Ring', NCCL_PROTO: 'LL' }).simulate('AllGather', 8 * gpus)!.timeUs;
    expect(ring(8) - ring(7)).toBeCloseTo(ring(7) - ring(6), 1);
    expect(ring(8)).toBeGreaterThan(ring(7));
  });

  it('of a scatter follows the root’s links, not those of the others', () => {
    const host = simulator('dgx-h100', 1);
    const scatter = host.simulate('Scatter', 1024 * MiB)!.timeUs;
    const all = host.simulate('AllToAll', 1024 * MiB)!.timeUs;
    expect(scatter / all).toBeGreaterThan(0.7);
    expect(scatter / all).toBeLessThan(1.3);
  });

  it('of hosts on a fabric that is oversubscribed by two takes twice as long', () => {
    // On 16 channels thread blocks would be the limit of the faster one.
    const hosts = simulator('dgx-h100', 4, {}, { NCCL_ALGO: 'Ring', NCCL_PROTO: 'Simple', NCCL_MIN_NCHANNELS: '32' });
    const environment = { launch: 'queued', skewUs: undefined, network: 'verbs' } as const;
    const time = (oversubscription: number) =>
      hosts.simulate('AllReduce', 2 ** 33, { environment: { ...environment, oversubscription } })!.timeUs;
    expect(time(2) / time(1)).toBeGreaterThan(1.8);
    expect(time(2) / time(1)).toBeLessThan(2.05);
  });

  it('of a thread that launches on all GPUs is at least that of its launches; longer calls hide them', () => {
    const host = simulator('dgx-h100', 1);
    const environment = { ...defaultEnvironment, gpusPerThread: 8 };
    const slow = withPhysics(measuredPhysics, { launchCallUs: 10 });
    expect(host.simulate('AllReduce', 64, { physics: slow, environment })!.timeUs).toBeCloseTo(80, 0);
    const ratio = (bytes: number) =>
      host.simulate('AllReduce', bytes, { environment })!.timeUs / host.simulate('AllReduce', bytes)!.timeUs;
    expect(ratio(64)).toBeGreaterThan(1.1);
    expect(ratio(64 * MiB)).toBeLessThan(1.01);
  });

  it('of a call on an empty stream is at least that of its launch; longer calls hide it', () => {
    const host = simulator('dgx-h200', 1);
    const time = (bytes: number, launch: 'queued' | 'single') =>
      host.simulate('AllReduce', bytes, { environment: { ...defaultEnvironment, launch } })!.timeUs;
    const { singleCallUs } = measuredPhysics.common;
    expect(time(64, 'queued')).toBeLessThan(singleCallUs / 2);
    expect(time(64, 'single')).toBeCloseTo(singleCallUs, 0);
    expect(time(256 * MiB, 'single') / time(256 * MiB, 'queued')).toBeLessThan(1.01);
    // PyTorch on eight H200 (docs/notes/measured/more-hosts.csv).
    expect(Math.abs(time(512 * 1024, 'single') / 38.3 - 1)).toBeLessThan(0.12);
  });

  it('of a hop between hosts depends on protocol and network', () => {
    const time = (protocol: string, changes: object, network: Network = 'infiniband', bytes = 64) =>
      simulator('dgx-h100', 2, { gpus: 1 }, { NCCL_ALGO: 'Ring', NCCL_PROTO: protocol }).simulate('AllGather', bytes, {
        physics: withPhysics(measuredPhysics, changes),
        environment: { ...defaultEnvironment, network },
      })!.timeUs;
    const longer = (protocol: string, changes: object) => time(protocol, changes) - time(protocol, {});
    const { netLlHopUs, netHopUs } = measuredPhysics.common;
    expect(longer('LL', { netLlHopUs: netLlHopUs + 5 })).toBeCloseTo(5, 6);
    expect(longer('LL', { netHopUs: netHopUs + 5 })).toBe(0);
    expect(longer('Simple', { netHopUs: netHopUs + 5 })).toBeCloseTo(5, 6);
    expect(time('Simple', {}, 'tcpx') - time('Simple', {})).toBeCloseTo(20, 6);
    const { roceHopUs, efaHopUs, efaRendezvousUs } = measuredPhysics.common;
    expect(time('LL', {}, 'roce') - time('LL', {})).toBeCloseTo(roceHopUs, 6);
    expect(time('LL', {}, 'verbs') - time('LL', {})).toBeCloseTo(roceHopUs / 2, 6);
    expect(time('LL', {}, 'efa') - time('LL', {})).toBeCloseTo(efaHopUs, 6);
    // A rank's half of an all-gather, on a wire that carries LL's flags too: from 8 KiB on, it waits for the receiver.
    const later = (bytes: number) => time('LL', {}, 'efa', bytes) - time('LL', { efaRendezvousUs: 0 }, 'efa', bytes);
    expect(later(8000)).toBe(0);
    expect(later(8192)).toBeCloseTo(efaRendezvousUs, 6);
  });

  it('of a ring on 16 channels is that of its thread blocks, on 32 that of its NICs', () => {
    // 325 GB/s of two hosts with 8 H200 on 16 channels (docs/notes/measured/more-hosts.csv), 390 elsewhere on 32.
    const bus = (channels: string) => {
      const hosts = simulator('dgx-h200', 2, {}, { NCCL_ALGO: 'Ring', NCCL_PROTO: 'Simple', NCCL_MIN_NCHANNELS: channels });
      return ((2 ** 33 / hosts.simulate('AllGather', 2 ** 33)!.timeUs / 1000) * 15) / 16;
    };
    expect(Math.abs(bus('16') / 325 - 1)).toBeLessThan(0.04);
    expect(Math.abs(bus('32') / 390 - 1)).toBeLessThan(0.04);
  });

  it('of sums of 8-bit numbers is longer, of copies not', () => {
    const host = simulator('dgx-b200', 1, { gpus: 2 });
    const ratio = (collective: 'AllGather' | 'ReduceScatter') =>
      host.simulate(collective, 512 * MiB, { dataType: 'int8' })!.timeUs /
      host.simulate(collective, 512 * MiB, { dataType: 'float16' })!.timeUs;
    // 1.22 was measured.
    expect(ratio('ReduceScatter')).toBeGreaterThan(1.04);
    expect(ratio('AllGather')).toBe(1);
  });

  it('of send and receive between hosts has two accesses to memory of the host for each slice', () => {
    const hosts = simulator('dgx-h100', 10, { gpus: 1 });
    const time = (netSendUs: number) =>
      hosts.simulate('SendRecv', 1024 * MiB, { physics: withPhysics(measuredPhysics, { netSendUs }) })!.timeUs;
    // Two channels with slices of 128 KiB.
    expect(time(4) - time(3)).toBeCloseTo((2 * 1024 * MiB) / 2 / (128 * 1024), -2);
  });

  it('of all-to-all between hosts has a chunk’s copy by the few warps of each message at both ends', () => {
    const hosts = simulator('dgx-h100', 10, { gpus: 4 });
    const { pairsBlockRatio } = measuredPhysics.common;
    const { copyBlockGBps } = measuredPhysics.of.hopper;
    const time = (ratio: number) =>
      hosts.simulate('AllToAll', 256 * MiB, { physics: withPhysics(measuredPhysics, { pairsBlockRatio: ratio }) })!.timeUs;
    const chunkUs = (128 * 1024) / (copyBlockGBps * pairsBlockRatio) / 1000;
    // A block has up to eight messages at once. The NICs hide all other copies.
    expect((time(pairsBlockRatio / 2) - time(pairsBlockRatio)) / chunkUs).toBeGreaterThan(8);
  });

  it('of a small call on cards of a faster clock is shorter: a launch takes as many cycles', () => {
    const time = (launchUs: number) =>
      simulator('pcie-2-l40s', 1).simulate('AllGather', 1024, {
        physics: withPhysics(measuredPhysics, { 'launchUs.ampere': launchUs }),
      })!.timeUs;
    // Boost clocks of 1.41 and 2.52 GHz.
    expect(time(10) - time(0)).toBeCloseTo((10 * 1.41) / 2.52, 6);
    // Two L40S take 5.3 us (docs/notes/measured/aiconfigurator.csv).
    expect(Math.abs(time(measuredPhysics.of.ampere.launchUs) / 5.3 - 1)).toBeLessThan(0.2);
  });

  it('of one rank is undefined', () => {
    expect(simulator('dgx-h100', 1, { gpus: 1 }).simulate('AllReduce', MiB)).toBeUndefined();
  });
});

it('LL between nodes is limited by memory of the CPU: LL128 is faster from some MiB on', () => {
  const timeOf = (protocol: string) =>
    simulator('dgx-h100', 2, {}, { NCCL_ALGO: 'Ring', NCCL_PROTO: protocol }).simulate('AllReduce', 16 * MiB)!.timeUs;
  // 39 GB/s between two nodes, of which a ring moves 15/8 of the data.
  expect(timeOf('LL')).toBeGreaterThan((16 * MiB * 15) / 8 / 39e3);
  expect(timeOf('LL128')).toBeLessThan(timeOf('LL') / 2);
});

describe('CollNetDirect', () => {
  const withSharp = (gpus: number, nics: number) =>
    simulator('dgx-h100', 2, { gpus, nics, sharp: true }, { NCCL_COLLNET_ENABLE: '1', NCCL_ALGO: 'CollNetDirect' });

  it.each([2, 4, 8])('of %i GPUs a node sends each byte to the network once: as fast as their NICs, not faster', (gpus) => {
    const nicsUs = 2 ** 30 / (gpus * 50e3);
    const { timeUs } = withSharp(gpus, gpus).simulate('AllReduce', 2 ** 30)!;
    expect(timeUs).toBeGreaterThan(nicsUs);
    expect(timeUs).toBeLessThan(2 * nicsUs);
  });

  it('repeats its rounds within 2 percent', () => {
    const cluster = withSharp(8, 8);
    for (const collective of ['AllReduce', 'AllGather', 'ReduceScatter'] as const) {
      const whole = cluster.simulate(collective, 2 ** 30, { onSlice: () => undefined })!.timeUs;
      expect(Math.abs(cluster.simulate(collective, 2 ** 30)!.timeUs / whole - 1), collective).toBeLessThan(0.02);
    }
  });
});

describe('shortcuts of a simulation', () => {
  const nHosts = runs(12, 32);
  it.each([['AllReduce'], ['AllGather'], ['ReduceScatter'], ['AllToAll'], ['SendRecv']] as const)(
    `hosts that are alike, at ${8 * nHosts} ranks: %s within 2 percent`,
    (collective) => {
      const cluster = simulator('dgx-h100', nHosts, {}, { NCCL_ALGO: 'Ring' });
      for (const bytes of [8 * nHosts * 64, 64 * MiB]) {
        const folded = cluster.simulate(collective, bytes)!.timeUs;
        const whole = cluster.simulate(collective, bytes, { unfolded: true })!.timeUs;
        expect(Math.abs(folded / whole - 1), `${bytes} bytes: ${folded} folded, ${whole} whole`).toBeLessThan(0.02);
      }
    },
  );

  it.each(
    (isThorough ? ['Tree', 'NVLSTree'] : ['Tree']).flatMap((algorithm) =>
      (isThorough ? [64, 41] : [41]).map((hosts) => [hosts, algorithm] as const),
    ),
  )('deep trees of %i hosts that are alike: %s within 2 percent', (hosts, algorithm) => {
    const cluster = simulator('dgx-h100', hosts, {}, { NCCL_ALGO: algorithm });
    for (const bytes of [64 * 1024, 64 * MiB]) {
      const folded = cluster.simulate('AllReduce', bytes)!.timeUs;
      const whole = cluster.simulate('AllReduce', bytes, { unfolded: true })!.timeUs;
      expect(Math.abs(folded / whole - 1), `${bytes} bytes: ${folded} folded, ${whole} whole`).toBeLessThan(0.02);
    }
  });

  it.each([
    ['AllReduce', 'Ring'],
    ['AllReduce', 'NVLS'],
    ['AllGather', 'Ring'],
    ['AllToAll', ''],
  ] as const)('repeated rounds: %s %s within 2 percent', (collective, algorithm) => {
    const host = simulator('dgx-h100', 1, {}, algorithm === '' ? {} : { NCCL_ALGO: algorithm });
    const all = host.simulate(collective, 2 ** 33, { onSlice: () => undefined })!.timeUs;
    expect(Math.abs(host.simulate(collective, 2 ** 33)!.timeUs / all - 1)).toBeLessThan(0.02);
  });
});
