import { describe, expect, it } from 'vitest';
import { defaultParameters, parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import type { Collective } from '../../../../src/planner/tuning/names.js';
import { chooseWithWindows, predictKernels } from '../../../../src/planner/tuning/symmetric/symmetric.js';
import { symmetricSettings } from '../../../../src/planner/tuning/symmetric/input.js';
import { type Tuning, tuneFor } from '../../../../src/planner/tuning/tune.js';
import type { Windows } from '../../../../src/planner/windows.js';
import { h100Input, header } from './made-input.js';

interface Made {
  readonly nccl?: string;
  readonly windows?: Windows;
  readonly nNodes?: number;
  readonly ranks?: number;
  readonly compCap?: number;
  readonly nvls?: boolean;
  readonly directNvLink?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Hosts with an NVSwitch whose calls are on symmetric windows. */
function made(options: Made = {}): Tuning {
  const { nccl = '2.30.7', windows = 'both', nNodes = 1, ranks = 8, compCap = 90, nvls = true, directNvLink = true } = options;
  const { parameters } = parametersFromEnvironment(options.environment ?? {}, { ncclVersion: nccl, windows });
  const input = h100Input(nNodes, {
    ncclVersion: nccl,
    nRanks: ranks * nNodes,
    localRanks: ranks,
    minLocalRanks: ranks,
    maxLocalRanks: ranks,
    minCompCap: compCap,
    maxCompCap: compCap,
    minNetGBps: 48.5,
    ...(nvls ? {} : { nvls: null, graphs: { nvls: header(0) } }),
    symmetric: {
      windows,
      allDirectP2p: true,
      allDirectNvLink: directNvLink,
      domainRanks: ranks,
      hasNics: true,
      settings: symmetricSettings(parameters),
    },
  });
  return tuneFor(input, parameters);
}

const kernelOf = (tuning: Tuning, collective: Collective, bytes: number) => {
  const way = chooseWithWindows(tuning, collective, bytes);
  return way.kind === 'symmetric' ? way.kernel : way.kind === 'general' ? way.because.why : way.kind;
};

describe('time of symmetric kernels', () => {
  // Results of NCCL's own formulas of 2.30.7, compiled as they stand.
  it.each([
    [90, 2, 'AllReduce', 'AllReduce_AGxLL_R', 1024, 4.89249182, 1],
    [90, 8, 'AllReduce', 'AllReduce_AGxLL_R', 1024, 4.98954868, 2],
    [90, 8, 'AllReduce', 'AllReduce_RSxLDMC_AGxSTMC', 1024, 8.11390114, 1],
    [90, 8, 'AllGather', 'AllGather_LLMC', 8 * 1024, 4.96489191, 3],
    [90, 8, 'ReduceScatter', 'ReduceScatter_LD', 8 * 1024, 8.15643501, 1],
    [100, 8, 'AllGather', 'AllGather_STMC', 8 * 1024, 13.3207579, 1],
    [100, 4, 'AllReduce', 'AllReduce_RSxLDMC_AGxSTMC', 1024, 19.8147221, 1],
    [100, 8, 'ReduceScatter', 'ReduceScatter_LL', 8 * 1024, 11.5228214, 2],
  ] as const)('of sm %i, %i GPUs: %s %s', (compCap, ranks, collective, kernel, bytes, timeUs, ctas) => {
    // Two GPUs do not multicast.
    const found = predictKernels(made({ compCap, ranks }), collective, bytes).find((each) => each.kernel === kernel);
    expect(found).toEqual({ kernel, timeUs: Math.fround(timeUs), ctas, reasons: [] });
  });

  it.each([
    [90, 'ReduceScatter_RailA2A_LsaLD', 1024, 15.3315926, 1],
    [90, 'ReduceScatter_RailA2A_LsaLDMC', 123904, 110.144981, 1],
    [90, 'ReduceScatter_RailA2A_LsaLD', 30232576, 1439.30359, 32],
    [100, 'ReduceScatter_RailA2A_LsaLD', 123904, 98.1507339, 1],
    [100, 'ReduceScatter_RailA2A_LsaLDMC', 10077184, 327.781036, 16],
  ] as const)('between two hosts of sm %i: %s of %i bytes a rank', (compCap, kernel, bytes, timeUs, ctas) => {
    const found = predictKernels(made({ compCap, nNodes: 2 }), 'ReduceScatter', 16 * bytes).find(
      (each) => each.kernel === kernel,
    );
    expect(found?.ctas).toBe(ctas);
    expect(found?.timeUs).toBeCloseTo(timeUs, 2);
  });
});

describe('choice on symmetric windows', () => {
  it('goes from LL with multicast to the NVSwitch on H100', () => {
    const tuning = made();
    expect(kernelOf(tuning, 'AllReduce', 1024)).toBe('AllReduce_AGxLLMC_R');
    expect(kernelOf(tuning, 'AllReduce', 64 << 20)).toBe('AllReduce_RSxLDMC_AGxSTMC');
    expect(kernelOf(tuning, 'AllGather', 64 << 20)).toBe('AllGather_STMC');
    expect(kernelOf(tuning, 'ReduceScatter', 64 << 20)).toBe('ReduceScatter_LDMC');
    expect(kernelOf(tuning, 'Broadcast', 64 << 20)).toBe('collective');
  });

  it('needs a version, windows, NVLink and floats', () => {
    expect(kernelOf(made({ nccl: '2.26.2' }), 'AllReduce', 1024)).toBe('too-old');
    expect(kernelOf(made({ windows: 'none' }), 'AllReduce', 1024)).toBe('no-windows');
    expect(kernelOf(made({ directNvLink: false }), 'AllReduce', 1024)).toBe('no-nvlink');
    expect(kernelOf(made({ nccl: '2.28.9', directNvLink: false }), 'AllReduce', 1024)).toBe('AllReduce_AGxLLMC_R');
    expect(kernelOf(made({ environment: { NCCL_WIN_ENABLE: '0' } }), 'AllReduce', 1024)).toBe('windows-off');
    const because = (options: object) => {
      const way = chooseWithWindows(made(), 'AllReduce', 1024, options);
      return way.kind === 'general' ? way.because : way.kind;
    };
    expect(because({ dataType: 'int32' })).toEqual({ why: 'type', dataType: 'int32' });
    expect(because({ operator: 'max' })).toEqual({ why: 'operator', operator: 'max' });
    expect(because({ operator: 'avg' })).toBe('symmetric');
    expect(because({ operations: 2 })).toBe('symmetric');
  });

  it('averages since 2.30.3, and serves groups since 2.28.3, not with LL', () => {
    const average = chooseWithWindows(made({ nccl: '2.29.7' }), 'AllReduce', 1024, { operator: 'avg' });
    expect(average.kind).toBe('general');
    expect(chooseWithWindows(made({ nccl: '2.27.5' }), 'AllReduce', 1024, { operations: 2 }).kind).toBe('general');
    expect(chooseWithWindows(made(), 'AllReduce', 1024, { operations: 2 })).toMatchObject({
      kernel: 'AllReduce_RSxLDMC_AGxSTMC',
    });
  });

  it('does not multicast for two GPUs since 2.29.7, nor without NVLink SHARP', () => {
    expect(kernelOf(made({ ranks: 2, nccl: '2.28.9' }), 'AllReduce', 64 << 20)).toBe('AllReduce_RSxLDMC_AGxSTMC');
    expect(kernelOf(made({ ranks: 2 }), 'AllReduce', 64 << 20)).toBe('AllReduce_RSxLD_AGxST');
    expect(kernelOf(made({ nvls: false }), 'AllReduce', 64 << 20)).toBe('AllReduce_RSxLD_AGxST');
  });

  it('takes the window of one buffer where that is enough', () => {
    expect(kernelOf(made({ windows: 'receive' }), 'AllGather', 64 << 20)).toBe('AllGather_STMC');
    expect(kernelOf(made({ windows: 'send' }), 'ReduceScatter', 64 << 20)).toBe('ReduceScatter_LDMC');
    expect(kernelOf(made({ windows: 'receive', nccl: '2.28.9' }), 'AllGather', 64 << 20)).toBe('no-windows');
    // LL kernels are left, which give way to a general kernel with another protocol.
    expect(kernelOf(made({ windows: 'send' }), 'AllReduce', 1024)).toBe('AllReduce_AGxLLMC_R');
    expect(kernelOf(made({ windows: 'send' }), 'AllReduce', 64 << 20)).toBe('general-not-ll');
  });

  it('gives way to general kernels other than LL in 2.29.2 even with both windows', () => {
    const environment = { NCCL_PROTO: 'Simple' };
    expect(kernelOf(made({ nccl: '2.29.2', environment }), 'AllReduce', 1024)).toBe('general-not-ll');
    expect(kernelOf(made({ nccl: '2.29.7', environment }), 'AllReduce', 1024)).toBe('AllReduce_AGxLLMC_R');
  });

  it('uses LL kernels without windows if NCCL_SYM_NOWIN_ENABLE says so', () => {
    const environment = { NCCL_SYM_NOWIN_ENABLE: '1' };
    expect(kernelOf(made({ windows: 'none', environment }), 'AllReduce', 1024)).toBe('AllReduce_AGxLLMC_R');
    expect(kernelOf(made({ windows: 'none', environment, nccl: '2.28.9' }), 'AllReduce', 1024)).toBe('no-windows');
  });

  it('crosses nodes for AllGather and ReduceScatter since GPUs drive NICs', () => {
    expect(kernelOf(made({ nNodes: 2 }), 'AllReduce', 1 << 20)).toBe('several-domains');
    expect(kernelOf(made({ nNodes: 2 }), 'AllGather', 1 << 20)).toBe('AllGather_RailRing_LsaSTMC');
    expect(kernelOf(made({ nNodes: 2, nccl: '2.29.2' }), 'AllGather', 1 << 20)).toBe('AllGather_GinHier_MCRing');
    expect(kernelOf(made({ nNodes: 2, nccl: '2.28.9' }), 'AllGather', 1 << 20)).toBe('several-nodes');
    expect(kernelOf(made({ nNodes: 2, environment: { NCCL_GIN_ENABLE: '0' } }), 'AllGather', 1 << 20)).toBe('no-gin');
    const environment = { NCCL_SYM_GIN_KERNELS_ENABLE: '0' };
    expect(kernelOf(made({ nNodes: 2, environment }), 'ReduceScatter', 1 << 20)).toBe('no-kernel');
  });

  it('counts with 32 bits', () => {
    const reasons = (bytes: number) =>
      predictKernels(made(), 'AllReduce', bytes).map(({ reasons: all }) =>
        all.map(({ why }) => why).filter((why) => why === 'size'),
      );
    expect(reasons(2 ** 31 - 1024).flat()).toEqual([]);
    expect(reasons(2 ** 31).flat()).toHaveLength(2);
    expect(kernelOf(made(), 'AllReduce', 2 ** 36)).toBe('no-kernel');
  });
});

describe('variables of symmetric kernels', () => {
  it('NCCL_SYM_KERNEL names one kernel exactly, and others are left to general kernels', () => {
    const environment = { NCCL_SYM_KERNEL: 'AllReduce_RSxLD_AGxST' };
    expect(kernelOf(made({ environment }), 'AllReduce', 1024)).toBe('AllReduce_RSxLD_AGxST');
    expect(kernelOf(made({ environment }), 'AllGather', 1024)).toBe('no-kernel');
    expect(kernelOf(made({ environment: { NCCL_SYM_KERNEL: 'allreduce_rsxld_agxst' } }), 'AllReduce', 1024)).toBe('no-kernel');
  });

  it('NCCL_SYM_KERNEL is a list since 2.31.2, which leaves out all that it does not name', () => {
    const environment = { NCCL_SYM_KERNEL: 'allreduce:AllReduce_RSxLD_AGxST,AllReduce_AGxLL_R' };
    const tuning = made({ environment, nccl: '2.31.2' });
    expect(kernelOf(tuning, 'AllReduce', 1024)).toBe('AllReduce_AGxLL_R');
    expect(kernelOf(tuning, 'AllGather', 64 << 20)).toBe('AllGather_STMC');
    expect(tuning.model.AllReduce.Ring.Simple.disabled).toContainEqual({
      why: 'asked',
      variable: 'NCCL_SYM_KERNEL',
      value: environment.NCCL_SYM_KERNEL,
    });
    expect(() => made({ environment: { NCCL_SYM_KERNEL: 'AllReduce_XYZ' }, nccl: '2.31.2' })).toThrow('NCCL_SYM_KERNEL');
    expect(kernelOf(made({ environment: { NCCL_ALGO: 'Ring' }, nccl: '2.31.2' }), 'AllReduce', 1024)).toBe('no-kernel');
    expect(kernelOf(made({ environment: { NCCL_ALGO: 'Ring' } }), 'AllReduce', 1024)).toBe('AllReduce_AGxLLMC_R');
  });

  it('NCCL_SYM_CTAS and NCCL_MAX_CTAS set the number of CTAs', () => {
    const ctas = (environment: Record<string, string>) =>
      predictKernels(made({ environment }), 'AllReduce', 64 << 20).map((kernel) => kernel.ctas);
    expect(ctas({ NCCL_SYM_CTAS: '5' })).toEqual([5, 5, null, 5, 5]);
    expect(Math.max(...ctas({ NCCL_MAX_CTAS: '3' }).map(Number))).toBe(3);
  });

  it('NCCL_SYM_TMA_ENABLE is on by default since 2.31.2', () => {
    const whyNot = (options: Made) =>
      predictKernels(made({ compCap: 100, ...options }), 'AllGather', 1 << 20).find(({ kernel }) => kernel === 'AllGather_TmaST')
        ?.reasons;
    expect(whyNot({})).toEqual([{ why: 'tma-off' }]);
    expect(whyNot({ nccl: '2.31.2' })).toEqual([]);
    expect(whyNot({ nccl: '2.31.2', compCap: 90 })).toEqual([{ why: 'tma-old-gpu', compCap: 90 }]);
    expect(whyNot({ environment: { NCCL_SYM_TMA_ENABLE: '1' } })).toEqual([]);
  });
});

describe('model of symmetric kernels since 2.31.2', () => {
  it('takes one CTA or an even number', () => {
    for (const collective of ['AllReduce', 'AllGather', 'ReduceScatter'] as const)
      for (let bytes = 1024; bytes < 2 ** 30; bytes *= 4)
        for (const { ctas } of predictKernels(made({ nccl: '2.31.2', compCap: 100, nvls: false }), collective, bytes))
          expect(ctas === null || ctas === 1 || ctas % 2 === 0).toBe(true);
  });

  it('copies by TMA where each CTA has a whole step', () => {
    const fewest = (bytes: number) =>
      predictKernels(made({ nccl: '2.31.2', compCap: 100 }), 'ReduceScatter', bytes).find(
        ({ kernel }) => kernel === 'ReduceScatter_TmaLD',
      );
    expect(fewest(8 * (8 * 16384 - 1024))?.reasons).toEqual([{ why: 'tma-size', fewest: 8 * 16384 }]);
    expect(fewest(8 * 8 * 16384)?.ctas).toBe(1);
  });
});

describe('copy engines', () => {
  const large = 8 * 4 * (8 * 2 ** 20) + 8 * 4;

  it('gather large data on Blackwell since 2.29.2', () => {
    expect(kernelOf(made({ compCap: 100 }), 'AllGather', large)).toBe('copy engines');
    expect(kernelOf(made({ compCap: 100 }), 'AllGather', large - 32)).toBe('AllGather_STMC');
    expect(kernelOf(made({ compCap: 100, nccl: '2.28.9' }), 'AllGather', large)).toBe('AllGather_STMC');
    expect(kernelOf(made(), 'AllGather', large)).toBe('AllGather_STMC');
    const environment = { NCCL_SYM_CE_THRESHOLD: '1024' };
    expect(kernelOf(made({ compCap: 100, environment }), 'AllGather', 1 << 20)).toBe('copy engines');
  });

  it('leave four times as much to TMA since 2.31.2 where it does not multicast', () => {
    const tuning = made({ compCap: 100, nccl: '2.31.2', nvls: false });
    expect(kernelOf(tuning, 'AllGather', 2 * large)).toBe('AllGather_TmaST');
    expect(kernelOf(tuning, 'AllGather', 4 * large)).toBe('copy engines');
  });

  it('do what NCCL_CTA_POLICY leaves to them', () => {
    const environment = { NCCL_CTA_POLICY: 'ZERO' };
    expect(kernelOf(made({ environment, nccl: '2.28.9' }), 'AllGather', 1024)).toBe('copy engines');
    expect(kernelOf(made({ environment, windows: 'receive', nccl: '2.29.2' }), 'AllGather', 1024)).toBe('copy engines');
    expect(kernelOf(made({ environment, nNodes: 2 }), 'AllGather', 1024)).toBe('copy engines');
    expect(kernelOf(made({ environment, nNodes: 2, nccl: '2.30.4' }), 'AllGather', 1024)).toBe('AllGather_RailRing_LsaSTMC');
    expect(kernelOf(made({ environment }), 'AllReduce', 1024)).toBe('AllReduce_AGxLLMC_R');
  });
});

it('parameters without windows are those of a program that registers nothing', () => {
  expect(defaultParameters.windows).toBe('none');
});
