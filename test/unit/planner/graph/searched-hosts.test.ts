import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { searchHost } from '../../../../src/planner/graph/search-host.js';
import { searchHostOnce } from '../../../../src/planner/graph/searched-hosts.js';
import type { Parameters } from '../../../../src/planner/parameters.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { type LocalSystem, localSystems } from '../../../../src/planner/topology/local-systems.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { releases } from '../../../../src/planner/versions/version.js';
import { runs } from '../../../runs.js';
import { build, cpu, gpu, nic, parametersWith, pciSwitch, systemXml } from '../topology/machine.js';

/** Two GPUs and two NICs, each pair below a switch; how it is wired and numbered may differ. */
const small = (speed: number, secondRank = 1) =>
  systemXml(
    cpu(
      0,
      pciSwitch('10', gpu('11', 1 - secondRank) + nic('12', 0, `speed="${speed}" port="1" gdr="1"`)) +
        pciSwitch('20', gpu('21', secondRank) + nic('22', 1)),
      'arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="17"',
    ),
  );

function local(root = small(200_000), changes: Partial<Parameters> = {}, nRanks = 4): readonly [LocalSystem, Parameters] {
  const parameters = parametersWith(changes);
  const [first] = localSystems(build(root, parameters), parameters, nRanks);
  if (first === undefined) throw new Error('no ranks');
  return [first, parameters];
}

describe('hosts that are equal for the search', () => {
  it.each([
    ['from another file', local()],
    ['of a larger cluster', local(undefined, {}, 64)],
    ['with a variable that only tuning reads', local(undefined, { ll128C2c: 0 })],
    ['of a version whose search is the same', local(undefined, { ncclVersion: '2.30.3' }), { ncclVersion: '2.30.4' }],
  ])('are searched once: %s', (_, [system, parameters], changes: Partial<Parameters> = {}) => {
    expect(searchHostOnce(system, parameters)).toBe(searchHostOnce(...local(undefined, changes)));
  });

  it.each([
    ['another machine', local(small(100_000))],
    ['other ranks', local(small(200_000, 0))],
    ['no ranks outside', local(undefined, {}, 2)],
    ['other rules', local(undefined, { ncclVersion: '2.18.1' })],
    ['NCCL_CROSS_NIC', local(undefined, { crossNic: 1 })],
    ['NCCL_NETDEVS_POLICY', local(undefined, { netDevicesPolicy: { kind: 'max', count: 1 } })],
    ['NCCL_MNNVL_RAIL_PER_HOST', local(undefined, { mnnvlRailPerHost: 1 })],
    ['NCCL_MNNVL_SCATTER_NETS_ENABLE', local(undefined, { mnnvlScatterNets: 0 })],
    ['paths of other types', local(undefined, { netGdrLevel: PathType.LOC })],
  ])('are others with %s', (_, [system, parameters]) => {
    expect(searchHostOnce(system, parameters)).not.toBe(searchHostOnce(...local()));
  });

  it('are searched anew for CollNet, and for a listener', () => {
    const [system, parameters] = local();
    const graphs = searchHostOnce(system, parameters);
    expect(searchHostOnce(system, parameters, { collnet: true }).collnetChain).toBeDefined();
    const events: string[] = [];
    expect(searchHostOnce(system, parameters, { trace: ({ kind }) => events.push(kind) })).toEqual(graphs);
    expect(events.filter((kind) => kind === 'result')).toHaveLength(2);
  });
});

it('graphs are those of a search, whatever was searched before', () => {
  const roots = [small(200_000), small(100_000), small(50_000, 0), ...['pcie-8-l40s', 'gh200'].map((name) => machine(name))];
  fc.assert(
    fc.property(
      fc.constantFrom(...roots),
      fc.constantFrom(...releases),
      fc.record({
        crossNic: fc.constantFrom(0, 1, 2),
        pxnDisable: fc.constantFrom(0, 1),
        netDevicesPolicy: fc.constantFrom<Parameters['netDevicesPolicy']>({ kind: 'auto' }, { kind: 'max', count: 1 }),
      }),
      fc.boolean(),
      (root, ncclVersion, changes, alone) => {
        const [system, parameters] = local(root, { ...changes, ncclVersion }, alone ? undefined : 1024);
        expect(searchHostOnce(system, parameters)).toEqual(searchHost(system, parameters));
      },
    ),
    { numRuns: runs(60, 600) },
  );
});
