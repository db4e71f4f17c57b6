import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defaultVersion } from '../../../../src/planner/versions/version.js';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { checkPlan } from '../../../../src/planner/plan/checks/check-plan.js';
import { type ClusterHosts, prepareCluster } from '../../../../src/planner/plan/cluster.js';
import { keepNics, named } from '../../../../src/planner/plan/machine-edits.js';
import { planPrepared } from '../../../../src/planner/plan/plan.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import type { Finding, FindingCode } from '../../../../src/planner/topology/doctor/finding.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { tune } from '../../../../src/planner/tuning/tune.js';

function check(
  hosts: readonly ClusterHosts[],
  environment: Readonly<Record<string, string>> = {},
  nccl = defaultVersion,
): Finding[] {
  const { parameters } = parametersFromEnvironment(environment, nccl);
  const cluster = { hosts };
  const prepared = prepareCluster(cluster, parameters);
  const plan = planPrepared(prepared, parameters);
  return checkPlan({ cluster, parameters, environment, prepared, plan, tuning: tune(plan, parameters), roots: new Map() });
}

const codes = (findings: readonly Finding[]) => findings.map(({ code }) => code);

function find(findings: readonly Finding[], code: FindingCode): Finding & { gbps: { is: number; couldBe: number } } {
  const found = findings.find((finding) => finding.code === code);
  if (found?.gbps === undefined) throw new Error(`no finding ${code} with a loss among ${codes(findings).join(' ') || 'none'}`);
  return { ...found, gbps: found.gbps };
}

/** Leonardo: PXN leaves the search without a tree. */
const leonardo = () => parseXml(readFileSync('test/unit/planner/cases/leonardo.xml', 'utf8')).root;

it('sound clusters have no finding', () => {
  for (const name of ['dgx-h100', 'dgx-a100', 'gb300-tray', 'perlmutter'])
    expect(codes(check([{ machine: machine(name), count: name === 'gb300-tray' ? 1 : 2 }])), name).toEqual([]);
});

describe('searches', () => {
  it('that find no tree are named, with what would help', () => {
    const finding = find(check([{ machine: leonardo(), count: 2 }], {}, '2.27.3'), 'search-failed');
    expect(finding.severity).toBe('warning');
    expect(finding.consequence).toContain('NCCL_ALGO=Tree crashes');
    expect(finding.gbps.couldBe).toBeGreaterThan(2 * finding.gbps.is);
    expect(find(check([{ machine: leonardo(), count: 2 }], { NCCL_ALGO: 'Tree' }, '2.27.3'), 'search-failed').severity).toBe(
      'error',
    );
    expect(codes(check([{ machine: leonardo(), count: 2 }], { NCCL_PXN_DISABLE: '1' }, '2.27.3'))).not.toContain('search-failed');
  });
});

describe('hosts', () => {
  it('with different numbers of NICs keep to the least', () => {
    const half = machine('dgx-h100');
    keepNics(4)(half);
    const finding = find(
      check([
        { machine: machine('dgx-h100'), count: 1, name: 'a' },
        { machine: half, count: 1, name: 'b' },
      ]),
      'nic-counts-differ',
    );
    expect(finding.problem).toContain('a 8, b 4');
    expect(finding.gbps.is).toBeLessThan(0.7 * finding.gbps.couldBe);
  });

  it('whose NICs have other numbers cross planes', () => {
    const crossed = machine('dgx-h100');
    const [first, second] = named(crossed, 'net');
    first?.attributes.set('name', 'mlx5_1');
    second?.attributes.set('name', 'mlx5_0');
    const hosts = (other: XmlElement) => [
      { machine: machine('dgx-h100'), count: 1, name: 'a' },
      { machine: other, count: 1, name: 'b' },
    ];
    const finding = find(check(hosts(crossed)), 'planes-crossed');
    expect(finding.problem).toContain('2 NICs of 8');
    expect(finding.gbps.is).toBeCloseTo(0.75 * finding.gbps.couldBe);
    expect(codes(check(hosts(machine('dgx-h100'))))).toEqual([]);
  });

  it('whose rings may not change the port lose where nodes are four', () => {
    // On 16 channels thread blocks would be the limit before the NICs.
    const four = [{ machine: machine('dgx-h100'), count: 4 }];
    const finding = find(check(four, { NCCL_CROSS_NIC: '0', NCCL_MIN_NCHANNELS: '32' }), 'cross-nic-off');
    expect(finding.gbps.is).toBeLessThan(0.9 * finding.gbps.couldBe);
    expect(finding.consequence).toMatch(/^3\d\d instead of 38\d GB\/s of bus bandwidth/);
    expect(codes(check(four, { NCCL_CROSS_NIC: '1' }))).toEqual([]);
    expect(codes(check([{ machine: machine('gh200-4'), count: 2 }], { NCCL_CROSS_NIC: '0' }))).toEqual([]);
  });

  it('that are trays of one rack lose NVLink between them', () => {
    const finding = find(check([{ machine: machine('gb300-tray'), count: 4 }]), 'domain-split');
    expect(finding.remedy).toContain('gb300-nvl16');
    expect(finding.gbps.couldBe).toBeGreaterThan(1.5 * finding.gbps.is);
    expect(codes(check([{ machine: machine('gb300-nvl16'), count: 1 }]))).toEqual([]);
  });
});

describe('ports', () => {
  it('of one card are merged by NCCL, and apart in a file', () => {
    const two = [{ machine: machine('oci-h100'), count: 2 }];
    const finding = find(check(two), 'ports-merged');
    expect(finding.problem).toContain('8 cards');
    expect(find(check(two, { NCCL_IB_MERGE_NICS: '0' }), 'ports-merged').severity).toBe('warning');
    expect(codes(check(two, { NCCL_NET_MERGE_LEVEL: 'LOC' }))).not.toContain('ports-merged');
    expect(codes(check(two, {}, '2.19.4'))).not.toContain('ports-merged');
  });
});

describe('variables', () => {
  it('out of range are named, with their loss', () => {
    const two = [{ machine: machine('dgx-h100'), count: 2 }];
    for (const [name, value] of [
      ['NCCL_MIN_NCHANNELS', '-3'],
      ['NCCL_CROSS_NIC', '7'],
    ] as const)
      expect(find(check(two, { [name]: value }), 'variable-range').problem).toContain(`${name}=${value} is outside`);
    const finding = find(check([{ machine: machine('dgx-a100'), count: 2 }], { NCCL_MAX_NCHANNELS: '0' }), 'variable-range');
    expect(finding.severity).toBe('warning');
    expect(finding.gbps.couldBe).toBeGreaterThan(2 * finding.gbps.is);
    expect(codes(check(two, { NCCL_MAX_NCHANNELS: '16' }))).toEqual([]);
  });
});
