import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { plan } from '../../../../src/planner/plan/plan.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { predict } from '../../../../src/planner/tuning/predict.js';
import { flips } from '../../../../src/planner/tuning/flips.js';
import type { Collective, NcclAlgorithm, Protocol } from '../../../../src/planner/tuning/names.js';
import { tuneFor } from '../../../../src/planner/tuning/tune.js';
import { header, madeInput } from './made-input.js';

const MIB = 2 ** 20;

/** Four Rubin GPUs on each node, two channels of 100 GB/s. */
function made(ncclVersion = '2.32.6', nNodes = 1, compCap = 107) {
  const ring = { ...header(2), bwIntra: 100, bwInter: 40, typeIntra: PathType.NVL };
  const input = madeInput({
    ...{ ncclVersion, nNodes, nRanks: 4 * nNodes, minCompCap: compCap, maxCompCap: compCap, nChannels: 2 },
    graphs: { ring, tree: ring },
  });
  return tuneFor(input, { ...defaultParameters, ncclVersion });
}

const timeUs = (
  tuning: ReturnType<typeof made>,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  bytes: number,
) => predict(tuning, collective, bytes).find((each) => each.algorithm === algorithm && each.protocol === protocol)?.timeUs ?? 0;

describe("NCCL 2.32.6's model of Rubin", () => {
  it('is a pipeline of slices', () => {
    // 32 MiB a channel, slices of 1 MiB. The first takes 6 steps of 7.13 us and 10.486 us, 46 others (32 x 6/4 - 1 in all) 10.486
    // us each: 588.0 us, so 57.06 GB/s a channel and 114.1 on both. Smoothly below 4/6 x 200 GB/s these are 111.3; and 8.4 us.
    expect(timeUs(made(), 'AllReduce', 'Ring', 'Simple', 64 * MIB)).toBeCloseTo(611.4, 0);
    // A tree's slices of 512 KiB pass links twice; with Blackwell's limit of 70 GB/s a channel it has 4/6 x 2 x 70 at most.
    const { bandwidthGBps } = predict(made(), 'AllReduce', 64 * MIB).find(
      (each) => each.algorithm === 'Tree' && each.protocol === 'Simple',
    )!;
    expect(bandwidthGBps).toBeGreaterThan(60);
    expect(bandwidthGBps).toBeLessThan(93.4);
  });

  it('has more latency between nodes, and the speed of the slower links', () => {
    const [one, two] = [made('2.32.6', 1), made('2.32.6', 2)];
    for (const protocol of ['LL', 'LL128', 'Simple'] as const)
      expect(timeUs(two, 'AllGather', 'Ring', protocol, 1024)).toBeGreaterThan(timeUs(one, 'AllGather', 'Ring', protocol, 1024));
    // 7/8 of the data pass two channels of 40 GB/s.
    const large = timeUs(two, 'AllGather', 'Ring', 'Simple', 1024 * MIB);
    expect(large).toBeGreaterThan((1024 * MIB * 7) / 8 / 80e3);
    expect(large).toBeLessThan((1.25 * 1024 * MIB * 7) / 8 / 80e3);
  });

  it('is not that of 2.32.3, nor that of Blackwell', () => {
    const of = (version: string, compCap = 107) => timeUs(made(version, 1, compCap), 'AllReduce', 'Ring', 'Simple', MIB);
    expect(of('2.32.3')).toBe(of('2.32.3', 100));
    expect(of('2.32.6')).not.toBe(of('2.32.3'));
    expect(of('2.32.6', 100)).toBe(of('2.32.3', 100));
  });

  it('plans trays of Vera Rubin, with 48 channels of NVLink SHARP on one', () => {
    const of = (ncclVersion: string) =>
      plan({ hosts: [{ machine: machine('vr200-tray'), count: 1 }] }, { ...defaultParameters, ncclVersion });
    expect(of('2.32.6').nvls?.nChannels).toBe(48);
    expect(of('2.32.3').nvls?.nChannels).toBe(24);
  });

  it('has no time that is not a number, and sizes at which the choice changes', () => {
    for (const nNodes of [1, 2, 8]) {
      const tuning = made('2.32.6', nNodes);
      for (const collective of ['AllReduce', 'AllGather', 'ReduceScatter', 'Broadcast'] as const)
        for (const bytes of [1, 100, 4096, MIB, 2 ** 34])
          for (const { timeUs: us } of predict(tuning, collective, bytes)) if (us !== null) expect(us).toBeGreaterThan(0);
      expect(flips(tuning, 'AllReduce', 64, 2 ** 32).length).toBeGreaterThan(0);
    }
  });
});
