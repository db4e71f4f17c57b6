import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { CpuArch } from '../../../../src/planner/topology/system.js';
import { choose } from '../../../../src/planner/tuning/choose.js';
import type { TuningInput } from '../../../../src/planner/tuning/input.js';
import type { Collective, NcclAlgorithm, Protocol } from '../../../../src/planner/tuning/names.js';
import { predict } from '../../../../src/planner/tuning/predict.js';
import { tuneFor } from '../../../../src/planner/tuning/tune.js';
import { h100Input, madeInput } from './made-input.js';

const tuned = (input: TuningInput, environment: Record<string, string> = {}) =>
  tuneFor(input, parametersFromEnvironment(environment, input.ncclVersion).parameters);
const latency = (
  input: TuningInput,
  collective: Collective,
  bytes: number,
  algorithm: NcclAlgorithm = 'Ring',
  protocol: Protocol = 'Simple',
) =>
  predict(tuned(input), collective, bytes).find((each) => each.algorithm === algorithm && each.protocol === protocol)
    ?.latencyUs ?? 0;

/** Eight B200 on one host. */
const b200 = (ncclVersion: string, nNodes = 1) => h100Input(nNodes, { ncclVersion, minCompCap: 100, maxCompCap: 100 });

describe('the plateau of rings with Simple on one node of Blackwell GPUs', () => {
  // From 64 bytes a rank and channel on: 8 ranks, 16 channels.
  const below = 64 * 8 * 16 - 1;
  const factor = (version: string, collective: Collective, bytes = below + 1) =>
    latency(b200(version), collective, bytes) / latency(b200(version), collective, below);

  it('is 1.4 for AllGather and ReduceScatter from 2.31.2 on, and for AllReduce from 2.32.3 on', () => {
    expect(factor('2.30.7', 'AllGather')).toBe(1);
    expect(factor('2.31.2', 'AllGather')).toBeCloseTo(1.4, 5);
    expect(factor('2.31.2', 'ReduceScatter')).toBeCloseTo(1.4, 5);
    expect(factor('2.31.2', 'AllReduce')).toBe(1);
    expect(factor('2.32.3', 'Broadcast')).toBe(1);
  });

  it('grows with steps of the ring in 2.32.3, and is a tenth less for shares of 512 KiB', () => {
    // 7 steps: 1 + 0.4 × (1 - (0.1 / 0.4) ^ 6); 14 steps: ^ 13.
    expect(factor('2.32.3', 'AllGather')).toBeCloseTo(1 + 0.4 * (1 - 0.25 ** 6), 5);
    expect(factor('2.32.3', 'AllReduce')).toBeCloseTo(1 + 0.4 * (1 - 0.25 ** 13), 5);
    const share = (kib: number) => factor('2.32.3', 'AllReduce', kib * 1024 * 8 * 16);
    expect(share(256)).toBeCloseTo(1.4, 5);
    expect(share(384)).toBeCloseTo(1.35, 5);
    expect(share(512)).toBeCloseTo(1.3, 5);
    expect(share(4096)).toBeCloseTo(1.3, 5);
  });
});

describe('NVLSTree on Blackwell with ARM CPUs', () => {
  const arm = (ncclVersion: string, values: Partial<TuningInput> = {}) =>
    h100Input(2, {
      ncclVersion,
      nRanks: 8,
      localRanks: 4,
      minLocalRanks: 4,
      maxLocalRanks: 4,
      minCompCap: 100,
      maxCompCap: 100,
      cpuArch: CpuArch.ARM,
      minNetGBps: 96,
      ...values,
    });
  const share = (input: TuningInput, bytes: number) => {
    const tuning = tuned(input);
    const found = predict(tuning, 'AllReduce', bytes).find(
      ({ algorithm, timeUs }) => algorithm === 'NVLSTree' && timeUs !== null,
    );
    return (found?.bandwidthGBps ?? NaN) / tuning.model.AllReduce.NVLSTree.Simple.bandwidthGBps;
  };
  const MiB = 2 ** 20;

  it('has the factors of trees with four ranks a node and NICs of 96 GB/s, up to a size', () => {
    expect(share(arm('2.30.7'), 16 * MiB)).toBe(1);
    expect(share(arm('2.31.2'), 16 * MiB)).toBeLessThan(1);
    expect(share(arm('2.31.2', { minNetGBps: 48 }), 16 * MiB)).toBe(1);
    expect(share(arm('2.31.2', { minLocalRanks: 3 }), 16 * MiB)).toBe(1);
    expect(share(arm('2.32.3'), 16 * MiB)).toBeLessThan(1);
    expect([share(arm('2.31.2'), 128 * MiB) < 1, share(arm('2.32.3'), 128 * MiB) < 1]).toEqual([true, false]);
  });
});

describe('PAT with several ranks a node', () => {
  const heads = (nHeads: number) => ({ nChannels: 16, nHeads, chunkBytes: 64 * 1024, treeMaxChunkBytes: 64 * 1024 });

  it('is a last choice: it is taken where nothing else is left', () => {
    const input = h100Input(2, { ncclVersion: '2.31.2', nvls: heads(8), minLocalRanks: 8 });
    expect(choose(tuned(input), 'AllGather', 2 ** 20)?.algorithm).toBe('Ring');
    expect(choose(tuned(input, { NCCL_ALGO: 'PAT' }), 'AllGather', 2 ** 20)).toMatchObject({
      algorithm: 'PAT',
      chunkBytes: 64 * 1024,
      timeUs: Math.fround(1.7014117331926443e38),
    });
    expect(choose(tuned({ ...input, ncclVersion: '2.30.7' }, { NCCL_ALGO: 'PAT' }), 'AllGather', 2 ** 20)?.algorithm).not.toBe(
      'PAT',
    );
  });

  it('names the heads that are missing', () => {
    const tuning = tuned(h100Input(2, { ncclVersion: '2.31.2', nvls: heads(4), minLocalRanks: 8 }));
    expect(tuning.model.AllGather.PAT.Simple.disabled).toEqual([{ why: 'pat-heads', heads: 4, fewest: 8, most: 8 }]);
  });
});

describe('NCCL_ALGO since 2.31', () => {
  it('for one collective does not affect the others, unless NCCL_PROTO names them', () => {
    const input = madeInput({ ncclVersion: '2.31.2' });
    const chosen = (environment: Record<string, string>, collective: Collective) =>
      choose(tuned(input, environment), collective, 2 ** 20)?.algorithm;
    expect(chosen({ NCCL_ALGO: 'allreduce:tree' }, 'AllReduce')).toBe('Tree');
    expect(chosen({ NCCL_ALGO: 'allreduce:tree' }, 'Broadcast')).toBe('Ring');
    expect(chosen({ NCCL_ALGO: 'allreduce:tree', NCCL_PROTO: 'Simple' }, 'Broadcast')).toBeUndefined();
  });
});

describe('of two candidates with equal time', () => {
  it('the last wins since 2.31', () => {
    const input = madeInput({ ncclVersion: '2.31.2' });
    const tuning = tuned(input);
    const { Ring } = tuning.model.Broadcast;
    const equal = { ...Ring, LL: Ring.Simple, LL128: Ring.Simple };
    const model = { ...tuning.model, Broadcast: { ...tuning.model.Broadcast, Ring: equal } };
    expect(choose({ ...tuning, model }, 'Broadcast', 1)?.protocol).toBe('Simple');
    const older = { ...input, ncclVersion: '2.30.7' };
    expect(choose({ ...tuning, input: older, model }, 'Broadcast', 1)?.protocol).toBe('LL');
  });
});
