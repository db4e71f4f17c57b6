import { describe, expect, it } from 'vitest';
import { InvalidUsageError } from '../../../../src/errors.js';
import { Pattern } from '../../../../src/planner/graph/graph.js';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { CpuArch, CpuVendor } from '../../../../src/planner/topology/system.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { type NcclAlgorithm, collectives, type Protocol } from '../../../../src/planner/tuning/names.js';
import { describeReason } from '../../../../src/planner/tuning/reasons.js';
import { tuneFor } from '../../../../src/planner/tuning/tune.js';
import { h100Input, header, madeInput } from './made-input.js';

const tuned = (input = madeInput(), environment: Record<string, string> = {}) =>
  tuneFor(input, parametersFromEnvironment(environment).parameters);
const allReduce = (algorithm: NcclAlgorithm, protocol: Protocol, ...from: Parameters<typeof tuned>) =>
  tuned(...from).model.AllReduce[algorithm][protocol];
const reasons = (...from: Parameters<typeof allReduce>) => allReduce(...from).disabled.map(describeReason);

describe('bandwidth, worked by hand', () => {
  // Two channels of 20 GB/s are 40 on the bus; each byte goes around 14 times among 8 ranks.
  it.each<[NcclAlgorithm, Protocol, number, string]>([
    ['Ring', 'Simple', (40 * 8) / 14, 'graph'],
    ['Ring', 'LL', (20 * 8) / 14, 'graph'],
    ['Ring', 'LL128', (40 * 0.92 * 8) / 14, 'graph'],
    ['Tree', 'Simple', (40 * 0.92) / 2, 'graph'],
    ['Tree', 'LL', (40 * 0.92) / 3.8 / 2, 'graph'],
    ['Tree', 'LL128', (40 * 0.92 * 120) / 128 / 2, 'graph'],
  ])('%s %s', (algorithm, protocol, gbps, limit) => {
    const model = allReduce(algorithm, protocol);
    expect(model.bandwidthGBps).toBeCloseTo(gbps, 4);
    expect(model.limit).toBe(limit);
  });

  it('of rings with LL is limited by CPUs: 22.5 GB/s with AMD on two nodes, 39 with Intel', () => {
    const fast = { ring: header(8) };
    expect(allReduce('Ring', 'LL', madeInput({ graphs: fast })).bandwidthGBps).toBeCloseTo((39 * 8) / 14, 4);
    const amd = allReduce('Ring', 'LL', madeInput({ graphs: fast, cpuVendor: CpuVendor.AMD }));
    expect(amd.bandwidthGBps).toBeCloseTo((22.5 * 8) / 14, 4);
    expect(amd.limit).toBe('ll');
  });

  it('of trees is limited by a channel of such GPUs', () => {
    const model = allReduce('Tree', 'Simple', madeInput({ nNodes: 4, nRanks: 16, graphs: { tree: header(2, { bwInter: 48 }) } }));
    expect(model).toMatchObject({ bandwidthGBps: Math.fround(17.8), limit: 'channel' });
  });

  it('of plain trees is 15 % less', () => {
    const [plain, balanced] = [Pattern.TREE, Pattern.BALANCED_TREE].map(
      (maxTreePattern) => allReduce('Tree', 'Simple', madeInput({ maxTreePattern })).bandwidthGBps,
    );
    expect(plain).toBeCloseTo(0.85 * balanced!, 4);
  });

  it('of NVLink SHARP is that of seven of eight heads, twice, at 85 %', () => {
    // 8 heads × 48 GB/s × 0.85 × 7/8 × 2 = 571.2, but no more than 48 a head leave the node; 8 ranks, 14 steps.
    expect(allReduce('NVLS', 'Simple', h100Input(1))).toMatchObject({ limit: 'network' });
    expect(allReduce('NVLS', 'Simple', h100Input(1)).bandwidthGBps).toBeCloseTo((8 * 48 * 8) / 14, 3);
    const slow = h100Input(1, { graphs: { nvls: header(8, { bwIntra: 24, bwInter: 48 }) } });
    expect(allReduce('NVLS', 'Simple', slow)).toMatchObject({ limit: 'switch' });
    expect(allReduce('NVLS', 'Simple', slow).bandwidthGBps).toBeCloseTo((((8 * 24 * 0.85 * 7) / 8) * 2 * 8) / 14, 3);
  });
});

describe('latency, worked by hand', () => {
  it.each<[NcclAlgorithm, Protocol, number]>([
    // 14 steps, two of them between nodes.
    ['Ring', 'LL', 6.6 + 12 * 1.0 + 2 * 2.7],
    ['Ring', 'LL128', 14 + 12 * 1.9 + 2 * 4.0],
    ['Ring', 'Simple', 8.4 + 12 * 3.4 + 2 * 14],
    // Up and down: three ranks within a node, one level of nodes.
    ['Tree', 'LL', 6.8 + 2 * (3 * 0.6 + 5.0)],
    ['Tree', 'Simple', 8.4 + 2 * (3 * 4.0 + 14)],
  ])('%s %s', (algorithm, protocol, us) => {
    expect(allReduce(algorithm, protocol).latencyUs).toBeCloseTo(us, 4);
  });

  it('includes the cost of posting to the network: 2 µs on AMD, three times with Simple', () => {
    const amd = madeInput({ cpuVendor: CpuVendor.AMD });
    expect(allReduce('Ring', 'LL', amd).latencyUs).toBeCloseTo(6.6 + 12 * 2 + 2 * 2.7, 4);
    expect(allReduce('Ring', 'Simple', amd).latencyUs).toBeCloseTo(8.4 + 12 * 6 + 2 * 14, 4);
    expect(allReduce('Ring', 'Simple', amd, { NCCL_NET_OVERHEAD: '0' }).latencyUs).toBeCloseTo(8.4 + 12 * 3.4 + 2 * 14, 4);
  });

  it('includes that of the NIC, with Simple twice', () => {
    const slowNic = madeInput({ graphs: { ring: header(2, { latencyInter: 5 }) } });
    expect(allReduce('Ring', 'LL', slowNic).latencyUs).toBeCloseTo(6.6 + 12 + 2 * 7.7, 4);
    expect(allReduce('Ring', 'Simple', slowNic).latencyUs).toBeCloseTo(8.4 + 12 * 3.4 + 2 * 24, 4);
  });

  it('prefers trees on Power: their step over PCI costs as much as that of rings', () => {
    const pci = (cpuArch: number) =>
      madeInput({ nNodes: 1, nRanks: 4, cpuArch, graphs: { tree: header(2, { typeIntra: PathType.PIX }) } });
    expect(allReduce('Tree', 'Simple', pci(CpuArch.X86)).latencyUs).toBeCloseTo(8.4 + 2 * 3 * 4.0, 4);
    expect(allReduce('Tree', 'Simple', pci(CpuArch.POWER)).latencyUs).toBeCloseTo(8.4 + 2 * 3 * 5.7, 4);
  });
});

describe('disabled algorithms and protocols', () => {
  it('name the variable that excludes them', () => {
    const environment = { NCCL_ALGO: 'ring;allreduce:tree', NCCL_PROTO: '^LL' };
    expect(reasons('Ring', 'LL', madeInput(), environment)).toEqual([
      'NCCL_ALGO=ring;allreduce:tree leaves it out.',
      'NCCL_PROTO=^LL leaves it out.',
    ]);
    expect(reasons('Tree', 'Simple', madeInput(), environment)).toEqual([]);
    expect(tuned(madeInput(), environment).model.Broadcast.Ring.Simple.disabled).toEqual([]);
  });

  it('keep the bandwidth that they would have', () => {
    expect(allReduce('Ring', 'Simple', madeInput(), { NCCL_ALGO: 'tree' })).toMatchObject({
      bandwidthGBps: 0,
      wouldBeGBps: allReduce('Ring', 'Simple').bandwidthGBps,
      latencyUs: allReduce('Ring', 'Simple').latencyUs,
    });
  });

  it('LL128 by paths: up to PXB, from Hopper on up to PXN, unless NCCL_LL128_C2C=0', () => {
    const at = (typeInter: PathType, minCompCap: number) =>
      madeInput({ minCompCap, maxCompCap: minCompCap, graphs: { ring: header(2, { typeInter }) } });
    expect(reasons('Ring', 'LL128', at(PathType.PXB, 80))).toEqual([]);
    expect(reasons('Ring', 'LL128', at(PathType.PXN, 80))).toEqual([
      'LL128 needs paths between GPU and NIC of type PXB or nearer; here they are PXN.',
    ]);
    expect(reasons('Ring', 'LL128', at(PathType.PXN, 90))).toEqual([]);
    expect(reasons('Ring', 'LL128', at(PathType.PXN, 90), { NCCL_LL128_C2C: '0' })).toHaveLength(1);
    expect(reasons('Ring', 'LL128', at(PathType.PHB, 90))).toHaveLength(1);
    expect(reasons('Ring', 'LL128', madeInput({ graphs: { ring: header(2, { typeIntra: PathType.PHB }) } }))).toEqual([
      'LL128 needs paths between GPUs of type NVB or nearer; here they are PHB.',
    ]);
  });

  it('LL128 between generations only from Hopper on', () => {
    expect(reasons('Ring', 'LL128', madeInput({ minCompCap: 80, maxCompCap: 90 }))[0]).toContain('from 8.0 to 9.0');
    expect(reasons('Ring', 'LL128', madeInput({ minCompCap: 90, maxCompCap: 100 }))).toEqual([]);
  });

  it('LL128 on request, also by excluding another one', () => {
    const far = madeInput({ graphs: { ring: header(2, { typeInter: PathType.SYS }) } });
    expect(reasons('Ring', 'LL128', far)).toHaveLength(1);
    for (const NCCL_PROTO of ['LL128', '^LL', 'allreduce:LL128,LL'])
      expect(reasons('Ring', 'LL128', far, { NCCL_PROTO })).toEqual([]);
  });

  it('NVLink SHARP without switch, alone, across nodes', () => {
    expect(reasons('NVLS', 'Simple')[0]).toContain('There is no NVLink SHARP');
    expect(reasons('NVLS', 'Simple', h100Input(1))).toEqual([]);
    expect(reasons('NVLSTree', 'Simple', h100Input(1))).toEqual(['NVLSTree joins several nodes; there is one.']);
    expect(reasons('NVLS', 'Simple', h100Input(2))[0]).toContain('needs a network that reduces');
    expect(reasons('NVLSTree', 'Simple', h100Input(2))).toEqual([]);
    expect(reasons('NVLSTree', 'LL', h100Input(2))).toEqual(['NCCL has NVLSTree with protocol Simple only, not with LL.']);
  });

  it('PAT unless there is one rank a node, or it is requested', () => {
    const pat = (input = madeInput(), environment: Record<string, string> = {}) =>
      tuned(input, environment).model.AllGather.PAT.Simple.disabled.map(describeReason);
    expect(pat()[0]).toContain('one rank a node only; there are 8 ranks on 2 nodes');
    expect(pat(madeInput(), { NCCL_PAT_ENABLE: '1' })).toEqual([]);
    expect(pat(madeInput({ nNodes: 8 }))).toEqual([]);
    expect(pat(madeInput({ nNodes: 8 }), { NCCL_PAT_ENABLE: '0' })).toEqual(['NCCL_PAT_ENABLE=0 switches PAT off.']);
    expect(pat(madeInput({ nNodes: 8, minCompCap: 50 }))[0]).toContain('the oldest has 5.0');
  });

  const collnet = { headCount: 8, chainSupport: true, chainDepth: 8, directHeads: 8, directDepth: 2 };
  const reducing = { collnetChain: header(8), collnetDirect: header(8), nvls: header(8) };

  it('reduction in the network without switches, heads, or chains that reach it', () => {
    const input = h100Input(4, { collnet, graphs: reducing });
    for (const algorithm of ['CollNetDirect', 'CollNetChain', 'NVLS'] as const)
      expect(reasons(algorithm, 'Simple', input)).toEqual([]);
    expect(reasons('CollNetDirect', 'Simple', { ...input, nvSwitch: false })).toEqual([
      'CollNetDirect is used on machines with NVSwitch only.',
    ]);
    expect(reasons('CollNetChain', 'Simple', { ...input, collnet: { ...collnet, chainSupport: false } })).toHaveLength(1);
    expect(
      tuned({ ...input, collnet: { ...collnet, headCount: 4 } }).model.AllGather.NVLS.Simple.disabled.map(describeReason),
    ).toEqual(['Between nodes it takes a head for each rank of a node; there are 4 heads for up to 8 ranks.']);
  });

  it('a list with an unknown name is refused, except for one rank, which reads none', () => {
    expect(() => tuned(madeInput(), { NCCL_ALGO: 'butterfly' })).toThrow(InvalidUsageError);
    expect(tuned(madeInput({ nRanks: 1, nNodes: 1 }), { NCCL_ALGO: 'butterfly' }).model.AllReduce.Ring.Simple.disabled).toEqual([
      { why: 'one-rank' },
    ]);
  });

  it('every reason is a sentence', () => {
    for (const input of [
      madeInput(),
      h100Input(1),
      h100Input(3),
      madeInput({ nRanks: 1, nNodes: 1 }),
      madeInput({ minCompCap: 60 }),
    ]) {
      const { model } = tuned(input);
      for (const collective of collectives) {
        for (const byProtocol of Object.values(model[collective])) {
          for (const { disabled } of Object.values(byProtocol))
            for (const reason of disabled) expect(describeReason(reason)).toMatch(/^[A-Z].*\.$/);
        }
      }
    }
  });
});

describe('threads', () => {
  it.each<[Record<string, string>, [ring: number, ll128: number]]>([
    [{}, [512, 640]],
    [{ NCCL_NTHREADS: '256', NCCL_LL128_NTHREADS: '320' }, [256, 320]],
    [{ NCCL_NTHREADS: '100' }, [512, 640]],
    [{ NCCL_NTHREADS: '32', NCCL_LL128_NTHREADS: '32' }, [64, 160]],
    [{ NCCL_NTHREADS: '2048', NCCL_LL128_NTHREADS: '2048' }, [512, 640]],
    [{ NCCL_NTHREADS: '-1' }, [512, 640]],
  ])('%o', (environment, [simple, ll128]) => {
    const { maxThreads } = tuned(madeInput(), environment);
    expect([maxThreads.Ring.Simple, maxThreads.Ring.LL128]).toEqual([simple, ll128]);
  });

  it('are 256 for rings no faster than PCI', () => {
    const slow = madeInput({ graphs: { ring: header(1, { bwIntra: 12 }) } });
    expect(tuned(slow).maxThreads.Ring.Simple).toBe(256);
    expect(tuned(slow).maxThreads.Tree.Simple).toBe(512);
  });

  it.each([
    ['', [8, 8, 64], [64, 8, 64]],
    ['4 8 32 16 8 128', [4, 8, 32], [16, 8, 128]],
    ['1 -1 3', [1, 8, 3], [64, 8, 64]],
    ['5,6,7', [5, 8, 64], [64, 8, 64]],
    ['x', [8, 8, 64], [64, 8, 64]],
  ])('thresholds from NCCL_THREAD_THRESHOLDS=%s', (text, tree, ring) => {
    const { threadThresholds } = tuned(madeInput(), { NCCL_THREAD_THRESHOLDS: text });
    expect(Object.values(threadThresholds.Tree)).toEqual(tree);
    expect(Object.values(threadThresholds.Ring)).toEqual(ring);
  });
});

it('is a plain value', () => {
  const tuning = tuned(h100Input(2));
  expect(JSON.parse(JSON.stringify(tuning))).toEqual(tuning);
});
