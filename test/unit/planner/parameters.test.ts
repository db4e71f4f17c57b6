import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defaultParameters, isPlanned, parametersFromEnvironment, parameterTable } from '../../../src/planner/parameters.js';
import { ncclVariables, outsideThePlan } from '../../../src/planner/nccl-variables.js';
import { PathType } from '../../../src/planner/topology/types.js';

const read = (environment: Record<string, string>) => parametersFromEnvironment(environment);

describe('parametersFromEnvironment', () => {
  it('gives the defaults for an empty environment', () => {
    expect(read({})).toEqual({ parameters: defaultParameters, notes: [] });
  });

  it('reads integers in any base and ignores what follows them', () => {
    expect(read({ NCCL_CROSS_NIC: '0x1' }).parameters.crossNic).toBe(1);
    expect(read({ NCCL_NET_GDR_READ: '-1' }).parameters.netGdrRead).toBe(-1);
    const { parameters, notes } = read({ NCCL_PXN_DISABLE: '1 # no' });
    expect(parameters.pxnDisable).toBe(1);
    expect(notes[0]?.message).toContain('NCCL reads 1');
  });

  it('treats an empty or too large integer as unset', () => {
    expect(read({ NCCL_CROSS_NIC: '' }).parameters.crossNic).toBe(2);
    expect(read({ NCCL_CROSS_NIC: '99999999999999999999' }).parameters.crossNic).toBe(2);
  });

  it('reads numbers of threads as NCCL does, and reports the number that it uses instead', () => {
    expect(read({ NCCL_NTHREADS: '256', NCCL_LL128_NTHREADS: '0' })).toMatchObject({
      parameters: { maxThreads: 256, ll128Threads: undefined },
      notes: [],
    });
    const { parameters, notes } = read({ NCCL_NTHREADS: '100', NCCL_LL128_NTHREADS: '64' });
    expect(parameters).toMatchObject({ maxThreads: 512, ll128Threads: 160 });
    expect(notes.map(({ message }) => message)).toEqual([
      'NCCL_NTHREADS=100 is not a multiple of 32 from 64 to 512, so NCCL takes 512',
      'NCCL_LL128_NTHREADS=64 is not a multiple of 32 from 160 to 640, so NCCL takes 160',
    ]);
  });

  it('reads path levels by exact name or by the older numbers', () => {
    expect(read({ NCCL_P2P_LEVEL: 'NVL' }).parameters.p2pLevel).toBe(PathType.NVL);
    expect(read({ NCCL_P2P_LEVEL: '3' }).parameters.p2pLevel).toBe(PathType.PHB);
    expect(read({ NCCL_NET_GDR_LEVEL: '9' }).parameters.netGdrLevel).toBe(PathType.SYS);
    expect(read({ NCCL_P2P_LEVEL: '' }).parameters.p2pLevel).toBeUndefined();
    const { parameters, notes } = read({ NCCL_P2P_LEVEL: 'nvl' });
    expect(parameters.p2pLevel).toBeUndefined();
    expect(notes[0]?.message).toContain('did you mean NVL?');
  });

  it('reads the merge level by its beginning and an unknown one as LOC', () => {
    expect(read({ NCCL_NET_MERGE_LEVEL: 'PORTS' }).parameters.netMergeLevel).toBe(PathType.NVL);
    expect(read({ NCCL_NET_MERGE_LEVEL: 'NVL' }).parameters.netMergeLevel).toBe(PathType.LOC);
  });

  it('reads the policy for network devices in any case', () => {
    expect(read({ NCCL_NETDEVS_POLICY: 'max:2' }).parameters.netDevicesPolicy).toEqual({ kind: 'max', count: 2 });
    expect(read({ NCCL_NETDEVS_POLICY: 'all' }).parameters.netDevicesPolicy).toEqual({ kind: 'all' });
    const { parameters, notes } = read({ NCCL_NETDEVS_POLICY: 'MAX:0' });
    expect(parameters.netDevicesPolicy).toEqual({ kind: 'auto' });
    expect(notes).toHaveLength(1);
  });

  it('reports an unknown name of NCCL with the nearest known one, and ignores other names', () => {
    const { notes } = read({ NCCL_P2P_LEVELS: 'NVL', NCCL_DEBUG: 'INFO', HOME: '/root' });
    expect(notes).toEqual([
      { variable: 'NCCL_P2P_LEVELS', message: 'NCCL has no variable NCCL_P2P_LEVELS; did you mean NCCL_P2P_LEVEL?' },
    ]);
  });

  it('gives a remedy for a variable that changes NCCL but no plan', () => {
    const { notes } = read({ NCCL_IB_HCA: 'mlx5_0', NCCL_NET: '', NCCL_IB_TIMEOUT: '22' });
    expect(notes).toEqual([{ variable: 'NCCL_IB_HCA', message: expect.stringContaining('overrides.nics') as unknown }]);
    for (const variable of outsideThePlan.keys())
      expect([ncclVariables.has(variable), isPlanned(variable)], variable).toEqual([true, false]);
  });

  it.each([
    ['NCCL_MIN_NCHANNELS', '-3', 'is outside 0 to 64: NCCL takes it as 0'],
    ['NCCL_MAX_NCHANNELS', '0', 'is outside 1 to 64: NCCL takes it as 1'],
    ['NCCL_MAX_NCHANNELS', '0x41', 'is outside 1 to 64: NCCL limits it to its most, 64'],
    ['NCCL_CROSS_NIC', '7', 'is outside 0 to 2: NCCL searches as with 0'],
    ['NCCL_P2P_DISABLE', '2', 'is outside 0 to 1: NCCL takes it as 0'],
    ['NCCL_PXN_C2C', '2', 'is outside 0 to 1: NCCL takes it as 1'],
    ['NCCL_NET_OVERHEAD', '-5', 'is below 0: NCCL takes it, and so believes in less time than none'],
    ['NCCL_NET_GDR_READ', '2', 'is above 1: NCCL takes it as 1'],
  ])('reports %s=%s as out of range, with the effect', (variable, value, problem) => {
    expect(read({ [variable]: value }).notes).toEqual([
      { variable, isMisread: true, message: `${variable}=${value} ${problem}` },
    ]);
  });

  it('reports no value in its range, nor the number that means unset', () => {
    const environment = { NCCL_MIN_NCHANNELS: '0', NCCL_MAX_NCHANNELS: '-2', NCCL_CROSS_NIC: '1', NCCL_NET_GDR_READ: '-1' };
    expect(read(environment).notes).toEqual([]);
  });

  it('has a row of docs/reference/nccl-variables.md for every setting, with its value when unset', () => {
    const unset = (field: keyof typeof defaultParameters): string => {
      const value = defaultParameters[field];
      if (field === 'netMergeLevel') return 'PORT';
      if (value === undefined || value === Number.MAX_SAFE_INTEGER) return '';
      return typeof value === 'object' ? value.kind.toUpperCase() : String(value);
    };
    const rows = parameterTable.map(({ field, variable, doc }) => `| \`${variable}\` | ${unset(field)} | ${doc} |`);
    const page = readFileSync('docs/reference/nccl-variables.md', 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `NCCL_'));
    expect(page.slice(0, rows.length)).toEqual(rows);
    expect([...outsideThePlan.keys()].filter((variable) => !page.some((line) => line.includes(`\`${variable}\``)))).toEqual([]);
  });

  it('documents every setting under a name of its own', () => {
    expect(new Set(parameterTable.map(({ variable }) => variable)).size).toBe(parameterTable.length);
    for (const { variable, doc } of parameterTable) {
      expect(ncclVariables.has(variable), variable).toBe(true);
      expect(doc.length).toBeGreaterThan(20);
    }
  });
});
