import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../../../src/errors.js';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { CpuArch, CpuVendor } from '../../../../src/planner/topology/system.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { busFactor, choose } from '../../../../src/planner/tuning/choose.js';
import { flips } from '../../../../src/planner/tuning/flips.js';
import { collectives, dataTypes, operators } from '../../../../src/planner/tuning/names.js';
import { predict } from '../../../../src/planner/tuning/predict.js';
import { describeReason } from '../../../../src/planner/tuning/reasons.js';
import { tuneFor } from '../../../../src/planner/tuning/tune.js';
import { h100Input, header, madeInput } from './made-input.js';

const tuned = (input = madeInput(), environment: Record<string, string> = {}) =>
  tuneFor(input, parametersFromEnvironment(environment).parameters);
const KiB = 1024;
const MiB = 1024 * KiB;

const gbps = fc.constantFrom(0.12, 3, 6, 12, 20, 24, 40, 48, 90);
const graph = fc
  .record({
    bwIntra: gbps,
    bwInter: gbps,
    sameChannels: fc.boolean(),
    latencyInter: fc.constantFrom(0, 1.5, 10),
    typeIntra: fc.constantFrom(...Object.values(PathType)),
    typeInter: fc.constantFrom(...Object.values(PathType)),
  })
  .chain((values) => fc.integer({ min: 2, max: 32 }).map((nChannels) => header(nChannels, values)));

/** Any communicator that could be. */
const tunings = fc
  .record({
    nNodes: fc.integer({ min: 1, max: 600 }),
    localRanks: fc.integer({ min: 1, max: 36 }),
    nChannels: fc.integer({ min: 1, max: 64 }),
    minCompCap: fc.constantFrom(90, 100),
    nvSwitch: fc.boolean(),
    cpuArch: fc.constantFrom(CpuArch.X86, CpuArch.ARM),
    cpuVendor: fc.constantFrom(CpuVendor.INTEL, CpuVendor.AMD),
    ring: graph,
    tree: graph,
    nvls: graph,
    collnetChain: graph,
    collnetDirect: graph,
    collnet: fc.boolean(),
  })
  .filter(({ nNodes, localRanks }) => nNodes * localRanks > 1)
  .map(({ ring, tree, nvls, collnetChain, collnetDirect, collnet, localRanks, nNodes, ...values }) =>
    tuned(
      madeInput({
        ...values,
        nNodes,
        localRanks,
        maxLocalRanks: localRanks,
        nRanks: nNodes * localRanks,
        maxCompCap: 100,
        nvls: localRanks === 1 ? null : { nChannels: 16, nHeads: 8, chunkBytes: 128 * KiB, treeMaxChunkBytes: 128 * KiB },
        collnet: collnet ? { headCount: 8, chainSupport: true, chainDepth: localRanks, directHeads: 8, directDepth: 2 } : null,
        graphs: { ring, tree, nvls: localRanks === 1 ? header(0) : nvls, collnetChain, collnetDirect },
      }),
    ),
  );
const sizes = fc.oneof(
  fc.integer({ min: 1, max: 4096 }),
  fc.integer({ min: 0, max: 36 }).map((power) => 2 ** power),
  fc.integer({ min: 1, max: 2 ** 40 }),
);
const calls = fc.record({
  dataType: fc.constantFrom(...dataTypes),
  operator: fc.constantFrom(...operators),
  operations: fc.integer({ min: 1, max: 40 }),
});

describe('for any communicator and call', () => {
  it('the choice has the least time of all usable candidates, and is the first of equal ones', () => {
    fc.assert(
      fc.property(tunings, fc.constantFrom(...collectives), sizes, calls, (tuning, collective, bytes, options) => {
        const usable = predict(tuning, collective, bytes, options).filter(({ timeUs }) => timeUs !== null);
        const least = Math.min(...usable.map(({ timeUs }) => timeUs ?? Infinity));
        const chosen = choose(tuning, collective, bytes, options);
        const first = usable.find(({ timeUs }) => timeUs === least);
        expect(chosen && [chosen.algorithm, chosen.protocol, chosen.timeUs]).toEqual(
          first && [first.algorithm, first.protocol, least],
        );
      }),
    );
  });

  it('unusable candidates have a reason, and usable ones have none', () => {
    fc.assert(
      fc.property(tunings, fc.constantFrom(...collectives), sizes, calls, (tuning, collective, bytes, options) => {
        for (const { timeUs, reasons } of predict(tuning, collective, bytes, options)) {
          expect(timeUs === null).toBe(reasons.length > 0);
          if (timeUs !== null) expect(timeUs).toBeGreaterThan(0);
        }
      }),
    );
  });

  it('channels, threads and chunks are within their limits', () => {
    fc.assert(
      fc.property(tunings, fc.constantFrom(...collectives), sizes, (tuning, collective, bytes) => {
        const chosen = choose(tuning, collective, bytes);
        if (chosen === undefined) return;
        expect(chosen.nChannels).toBeGreaterThanOrEqual(1);
        expect(chosen.nChannels).toBeLessThanOrEqual(Math.max(tuning.input.nChannels, tuning.input.nvls?.nChannels ?? 0));
        expect(chosen.nThreads % 32).toBe(0);
        expect(chosen.nThreads).toBeGreaterThanOrEqual(96);
        expect(chosen.nThreads).toBeLessThanOrEqual(640);
        expect(chosen.chunkBytes % { LL: 16, LL128: 1920, Simple: 512 }[chosen.protocol]).toBe(0);
        expect(chosen.chunkBytes).toBeGreaterThan(0);
        expect((chosen.algorithmGBps * chosen.timeUs * 1000) / bytes).toBeCloseTo(1, 9);
      }),
    );
  });

  it('flips are where the choice changes, and nowhere else', () => {
    fc.assert(
      fc.property(
        tunings,
        fc.constantFrom(...collectives),
        fc.array(sizes, { minLength: 20, maxLength: 40 }),
        (tuning, collective, probes) => {
          const [low, high] = [1, 2 ** 36];
          const found = flips(tuning, collective, low, high);
          const way = (bytes: number) => {
            const chosen = choose(tuning, collective, bytes);
            return chosen === undefined ? null : { algorithm: chosen.algorithm, protocol: chosen.protocol };
          };
          for (const { bytes, from, to } of found) expect([way(bytes - 1), way(bytes)]).toEqual([from, to]);
          for (const bytes of probes.filter((probe) => probe <= high)) {
            expect(way(bytes)).toEqual(found.findLast((flip) => flip.bytes <= bytes)?.to ?? way(low));
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('choose', () => {
  it('takes fewer channels, then fewer threads, for less data', () => {
    const ring = tuned(madeInput(), { NCCL_ALGO: 'ring', NCCL_PROTO: 'simple' });
    const at = (bytes: number) => {
      const { nChannels, nThreads } = choose(ring, 'AllReduce', bytes)!;
      return [nChannels, nThreads];
    };
    // 64 bytes for each of 512 threads: 32 KiB a channel; one warp more synchronises.
    expect(at(4 * 32 * KiB)).toEqual([4, 544]);
    expect(at(4 * 32 * KiB - 1)).toEqual([3, 544]);
    expect(at(32 * KiB)).toEqual([1, 544]);
    expect(at(32 * KiB - 1)).toEqual([1, 288]);
    expect(at(8 * KiB)).toEqual([1, 160]);
    expect(at(1)).toEqual([1, 96]);
  });

  it('moves four steps of the buffer as one chunk in rings', () => {
    const ring = tuned(madeInput(), { NCCL_ALGO: 'ring', NCCL_PROTO: 'simple' });
    expect(choose(ring, 'AllReduce', MiB)?.chunkBytes).toBe(2 * MiB);
    expect(choose(ring, 'Broadcast', MiB)?.chunkBytes).toBe(512 * KiB);
    const ll128 = tuned(madeInput(), { NCCL_ALGO: 'ring', NCCL_PROTO: 'LL128' });
    expect(choose(ll128, 'AllReduce', MiB)?.chunkBytes).toBe(((4_915_200 / 8) * 15) / 16);
    const ll = tuned(madeInput(), { NCCL_ALGO: 'ring', NCCL_PROTO: 'LL' });
    expect(choose(ll, 'AllReduce', MiB)?.chunkBytes).toBe(32 * KiB);
  });

  it('gives bus bandwidth as nccl-tests does', () => {
    const chosen = choose(tuned(), 'AllReduce', 64 * MiB)!;
    expect(chosen.busGBps / chosen.algorithmGBps).toBe(14 / 8);
    expect(collectives.map((collective) => busFactor(collective, 4))).toEqual([1, 1, 0.75, 0.75, 1.5]);
  });

  it('is undefined without candidates, and predict gives the reasons', () => {
    const tuning = tuned(madeInput(), { NCCL_ALGO: 'PAT' });
    expect(choose(tuning, 'AllReduce', 8)).toBeUndefined();
    expect(
      predict(tuning, 'AllReduce', 8)
        .find(({ algorithm }) => algorithm === 'Ring')
        ?.reasons.map(describeReason),
    ).toEqual(['NCCL_ALGO=PAT leaves it out.']);
    expect(flips(tuning, 'AllReduce', 8, MiB)).toEqual([]);
  });

  it('is a copy for one rank', () => {
    expect(choose(tuned(madeInput({ nRanks: 1, nNodes: 1 })), 'AllReduce', MiB)).toMatchObject({
      algorithm: 'Ring',
      protocol: 'Simple',
      timeUs: 0,
      chunkBytes: 0,
      algorithmGBps: 0,
    });
  });

  it('reproduces that NCCL multiplies in 32 bits: 64 channels among 16,384 ranks count as no data', () => {
    const ll = { NCCL_PROTO: 'LL' };
    const ranks = (nChannels: number) =>
      tuned(madeInput({ nRanks: 16_384, nNodes: 2048, localRanks: 8, maxLocalRanks: 8, nChannels }), ll);
    // 64 × 512 threads × 8 bytes × 16,384 ranks = 2^32.
    expect(choose(ranks(64), 'Broadcast', 8)).toMatchObject({ nChannels: 64, nThreads: 512 });
    expect(choose(ranks(60), 'Broadcast', 8)).toMatchObject({ nChannels: 1, nThreads: 96 });
  });
});

describe('properties of a call that matter', () => {
  const h100 = tuned(h100Input(1));
  const nvls = (options: object, collective: 'AllReduce' | 'AllGather' = 'AllReduce') =>
    predict(h100, collective, MiB, options).find(({ algorithm, protocol }) => algorithm === 'NVLS' && protocol === 'Simple')!;

  it('the NVSwitch reduces float32 by sum only, integers by sum and maximum, and no averages or 8-bit numbers', () => {
    expect(nvls({}).timeUs).not.toBeNull();
    expect(nvls({ operator: 'max' }).reasons.map(describeReason)).toEqual(['The NVSwitch cannot reduce float32 with max.']);
    expect(nvls({ operator: 'max', dataType: 'int32' }).timeUs).not.toBeNull();
    expect(nvls({ operator: 'avg', dataType: 'float16' }).timeUs).toBeNull();
    expect(nvls({ dataType: 'int8' }).timeUs).toBeNull();
  });

  it('all-gather only copies: type and operator do not matter', () => {
    for (const options of [{ dataType: 'float8e4m3' }, { dataType: 'int8' }, { operator: 'avg' }] as const) {
      expect(predict(h100, 'AllGather', MiB, options)).toEqual(predict(h100, 'AllGather', MiB));
    }
  });

  it('8-bit floats use long rings only without alternatives, and need Hopper', () => {
    const time = (input: Parameters<typeof tuned>[0], dataType: 'float8e4m3' | 'float32') =>
      predict(tuned(input), 'AllReduce', 64 * MiB, { dataType }).find(
        ({ algorithm, protocol }) => algorithm === 'Ring' && protocol === 'Simple',
      )!;
    expect(time(h100Input(2), 'float8e4m3').timeUs).toBe(1024 * time(h100Input(2), 'float32').timeUs!);
    expect(time(h100Input(1), 'float8e4m3').timeUs).toBe(time(h100Input(1), 'float32').timeUs);
    expect(time(madeInput(), 'float8e4m3').reasons.map(describeReason)).toEqual([
      'NCCL reduces 8-bit floats from compute capability 9.0 on; the oldest GPU has 8.0.',
    ]);
  });

  it('grouped operations share the latency of trees by eight, that of rings not at all', () => {
    const latency = (operations: number) =>
      Object.fromEntries(
        predict(tuned(), 'AllReduce', 8, { operations })
          .filter(({ protocol }) => protocol === 'LL')
          .map(({ algorithm, latencyUs }) => [algorithm, latencyUs]),
      );
    expect(latency(8)['Tree']).toBe(latency(1)['Tree']);
    expect(latency(9)['Tree']).toBe(2 * latency(1)['Tree']!);
    expect(latency(8)['Ring']).toBe(8 * latency(1)['Ring']!);
  });

  it('rings between nodes reach a plateau at 64 bytes a channel and rank: 1.4 times the latency', () => {
    const latency = (bytes: number) =>
      predict(tuned(), 'AllReduce', bytes).find(({ algorithm, protocol }) => algorithm === 'Ring' && protocol === 'Simple')!
        .latencyUs!;
    const plateau = 64 * 4 * 8;
    expect(latency(plateau) / latency(plateau - 1)).toBeCloseTo(1.4, 5);
  });

  it.each([
    ['a size that is none', () => choose(h100, 'AllReduce', 1.5), 'a size of 1.5 bytes: it has to be a whole number above 0'],
    ['no data', () => predict(h100, 'AllReduce', 0), 'a size of 0 bytes'],
    ['an unknown collective', () => choose(h100, 'Allreduce' as never, 8), 'no collective Allreduce; did you mean AllReduce?'],
    [
      'an unknown type',
      () => choose(h100, 'AllReduce', 8, { dataType: 'float' as never }),
      'no data type float; did you mean float16?',
    ],
    ['an unknown operator', () => choose(h100, 'AllReduce', 8, { operator: 'mean' as never }), 'no operator mean'],
    [
      'half an operation',
      () => choose(h100, 'AllReduce', 8, { operations: 0.5 }),
      '0.5 operations: it has to be a whole number above 0',
    ],
    [
      'sizes the wrong way round',
      () => flips(h100, 'AllReduce', 16, 8),
      'sizes from 16 to 8: the second has to be at least the first',
    ],
  ])('%s is refused', (_, action, message) => {
    expect(action).toThrow(InvalidArgumentError);
    expect(action).toThrow(message);
  });
});
