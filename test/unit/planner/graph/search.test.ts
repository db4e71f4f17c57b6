import { describe, expect, it, vi } from 'vitest';
import { CrossNic, type HostGraphs, Pattern } from '../../../../src/planner/graph/graph.js';
import { channelRanks, netName } from '../../../../src/planner/graph/graph-json.js';
import { graphLines } from '../../../../src/planner/graph/graph-text.js';
import { ResidualBandwidth } from '../../../../src/planner/graph/residual-bandwidth.js';
import { Routes } from '../../../../src/planner/graph/routes.js';
import { searchHost, type SearchOptions } from '../../../../src/planner/graph/search-host.js';
import type { Parameters } from '../../../../src/planner/parameters.js';
import { findMachine } from '../../../../src/planner/topology/catalogue/machines.js';
import { localSystems } from '../../../../src/planner/topology/local-systems.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { inputError } from '../topology/input-error.js';
import {
  build,
  cpu,
  gpu,
  nic,
  nvSwitchLink,
  onlyLocalSystem,
  parametersWith,
  pciSwitch,
  systemXml,
} from '../topology/machine.js';

/** One of so many such hosts, searched. */
function search(root: XmlElement, hosts = 1, changes: Partial<Parameters> = {}, options: SearchOptions = {}): HostGraphs {
  const parameters = parametersWith(changes);
  const gpus = onlyLocalSystem(root, parameters, 1_000_000).system.gpus.length;
  return searchHost(onlyLocalSystem(root, parameters, hosts * gpus), parameters, options);
}

function catalogue(name: string): XmlElement {
  const machine = findMachine(name);
  if (machine === undefined) throw new Error(`no ${name} in the catalogue`);
  return machine.build();
}

/** The NETs of each channel, as `0>1`. */
function ways(graph: HostGraphs['ring']): string[] {
  const number = (id: bigint | undefined) => netName(id).replace('NET/0-', '');
  return Array.from(
    { length: graph.nChannels },
    (_, channel) => `${number(graph.inter[2 * channel])}>${number(graph.inter[2 * channel + 1])}`,
  );
}

describe('rings and trees', () => {
  it('one host of eight A100: twelve equal rings, as fast as an NVLink', () => {
    const { ring, tree } = search(catalogue('dgx-a100'));
    expect(ring).toMatchObject({
      pattern: Pattern.RING,
      nChannels: 12,
      bwIntra: 20,
      typeIntra: PathType.NVL,
      sameChannels: true,
    });
    expect(tree).toMatchObject({ pattern: Pattern.BALANCED_TREE, nChannels: 12, minChannels: 12, maxChannels: 12 });
    expect(channelRanks(ring, 0)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(channelRanks(ring, 11)).toEqual(channelRanks(ring, 0));
  });

  it('rings between hosts of H100 use NICs in pairs: the second of a pair is the first in reverse', () => {
    const { ring, tree } = search(catalogue('dgx-h100'), 2);
    expect(ring.crossNic).toBe(CrossNic.PAIRED);
    expect(ways(ring)).toEqual(['0>1', '1>0', '2>3', '3>2', '4>5', '5>4', '6>7', '7>6']);
    // A tree comes back to its NIC, at its first GPU.
    expect(tree.pattern).toBe(Pattern.TREE);
    expect(ways(tree)).toEqual(['0>0', '1>1', '2>2', '3>3', '4>4', '5>5', '6>6', '7>7']);
  });

  it('with NCCL_CROSS_NIC=0 every channel leaves by the rail that it arrived by', () => {
    const { ring } = search(catalogue('dgx-h100'), 2, { crossNic: 0 });
    expect(ring.crossNic).toBe(CrossNic.NEVER);
    expect(ways(ring).every((way) => way[0] === way[2])).toBe(true);
  });

  it('a balanced tree leaves by the NIC of its first two GPUs', () => {
    const { tree } = search(catalogue('dgx-a100'), 2);
    expect(tree.pattern).toBe(Pattern.BALANCED_TREE);
    const [first, second] = channelRanks(tree, 0);
    expect([first, second]).toEqual([0, 1]);
  });

  it('a single GPU is a ring of its own', () => {
    const { ring, tree } = search(systemXml(cpu(0, gpu('01', 0))));
    expect(ring).toMatchObject({ nChannels: 32, gpuCount: 1 });
    expect(tree.pattern).toBe(Pattern.TREE);
  });

  it("GPUs and a NIC on one PCI switch make one ring, printed in NCCL's format", () => {
    const root = systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + gpu('03', 1) + nic('04', 0))));
    const parameters = parametersWith({});
    const local = onlyLocalSystem(root, parameters, 4);
    expect(graphLines(searchHost(local, parameters).ring, local)).toEqual([
      'Pattern 4, crossNic 0, nChannels 1, bw 24.000000/24.000000, type PIX/PIX, sameChannels 1',
      ' 0 : NET/0-0 GPU/0-2000 GPU/0-3000 NET/0-0',
    ]);
  });

  it('a rack of 72 GPUs is searched within the recursion limit', () => {
    const { ring } = search(catalogue('gb200-nvl72'));
    expect(ring).toMatchObject({ gpuCount: 72, nChannels: 16 });
    expect(channelRanks(ring, 15).sort((a, b) => a - b)).toEqual(Array.from({ length: 72 }, (_, rank) => rank));
  });
});

describe('NVLS and CollNet', () => {
  it('NVLS on one host: every GPU is a head', () => {
    const { nvls } = search(catalogue('dgx-h100'));
    expect(nvls).toMatchObject({ pattern: Pattern.NVLS, nChannels: 8, minChannels: 8, maxChannels: 8 });
    expect(Array.from({ length: 8 }, (_, channel) => channelRanks(nvls!, channel))).toEqual([
      [0],
      [1],
      [2],
      [3],
      [4],
      [5],
      [6],
      [7],
    ]);
  });

  it('a head carries its share twice, so each of eight heads gets less than a ninth of the NVLinks', () => {
    const { nvls } = search(catalogue('dgx-h100'));
    const totalGBps = 18 * 20.6;
    expect(nvls!.bwIntra).toBe(40);
    expect(nvls!.bwIntra * (7 + 2)).toBeLessThanOrEqual(totalGBps);
    // The next speed would not fit.
    expect(50 * (7 + 2)).toBeGreaterThan(totalGBps);
  });

  it('without NVSwitch, forced NVLS finds no channel', () => {
    const root = systemXml(cpu(0, gpu('01', 0, '', 'sm="90" gdr="1"') + gpu('02', 1, '', 'sm="90" gdr="1"')));
    expect(search(root, 1, { nvlsEnable: 1 }).nvls).toMatchObject({ nChannels: 0, maxChannels: 64 });
    expect(search(root).nvls).toBeUndefined();
  });

  it('CollNet graphs are searched when the network can reduce, and only on NICs that can', () => {
    const withColl = (coll: string) =>
      systemXml(
        cpu(
          0,
          ['01', '02'].map((bus, rank) => gpu(bus, rank, nvSwitchLink(12))).join('') +
            nic('03', 0, 'speed="200000" port="1" gdr="1"') +
            nic('04', 1, `speed="200000" port="1" gdr="1" ${coll}`),
        ),
      );
    expect(search(withColl('coll="1"'), 2).collnetChain).toBeUndefined();
    const { collnetChain, collnetDirect } = search(withColl('coll="1"'), 2, {}, { collnet: true });
    expect(new Set(ways(collnetChain!))).toEqual(new Set(['1>1']));
    expect(collnetDirect).toMatchObject({ pattern: Pattern.COLLNET_DIRECT, maxChannels: 2 });
    expect(search(withColl(''), 2, {}, { collnet: true }).collnetChain).toMatchObject({ nChannels: 0 });
  });
});

describe('machines without a result', () => {
  it('ranks on other hosts, but no NIC', () => {
    const root = systemXml(cpu(0, gpu('01', 0) + gpu('02', 1)));
    const error = inputError(() => search(root, 2));
    expect(error).toMatchObject({ code: 'NO_PATH', ncclResult: 3 });
    expect(error.message).toBe(
      'ranks 0, 1 have to reach ranks on other hosts, or on this one where neither peer-to-peer nor shared memory leads, but there is no network device: NCCL fails with an internal error. Add a <net>, or plan for one host whose GPUs reach each other',
    );
  });

  it('GPUs of one host that may not reach each other, and no NIC', () => {
    const root = systemXml(cpu(0, gpu('01', 0) + gpu('02', 1)));
    const parameters = parametersWith({ p2pDisable: 1, shmDisable: 1 });
    const [first] = localSystems(build(root, parameters), parameters, 2);
    expect(inputError(() => searchHost(first!, parameters)).message).toMatch(
      /^rank 0 has to reach ranks on other hosts, or on this one/,
    );
  });

  // PCI Gen1 x1: slower than the slowest speed that is tried.
  const slow = 'class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1"';

  it('GPUs behind links too slow for any channel, without a NIC', () => {
    const error = inputError(() => search(systemXml(cpu(0, gpu('01', 0) + gpu('02', 1) + pciSwitch('03', gpu('04', 2), slow)))));
    expect(error).toMatchObject({ code: 'NO_PATH', ncclResult: 3 });
    expect(error.message).toBe(
      'no ring of at least 3 GB/s goes through the 3 GPUs, and there is no network device to fall back on: NCCL fails with an internal error. The path from GPU/0-1000 to GPU/0-4000 carries 0.1875 GB/s: correct its links, or leave one of the two out',
    );
  });

  it("the same with a NIC: one slow channel in order of numbers, which is NCCL's fallback", () => {
    const { ring } = search(systemXml(cpu(0, gpu('01', 0) + gpu('02', 1) + pciSwitch('03', gpu('04', 2), slow) + nic('05', 0))));
    expect(ring).toMatchObject({
      nChannels: 1,
      bwIntra: Math.fround(0.1),
      bwInter: Math.fround(0.1),
      typeIntra: PathType.SYS,
      typeInter: PathType.SYS,
    });
    expect(channelRanks(ring, 0)).toEqual([0, 1, 2]);
    expect(ways(ring)).toEqual(['0>0']);
  });
});

describe('the search', () => {
  it('leaves the system unchanged', () => {
    const local = onlyLocalSystem(catalogue('dgx-1v'), parametersWith({}), 16);
    const before = local.system.links.bandwidthGBps.slice();
    searchHost(local, parametersWith({}));
    expect(local.system.links.bandwidthGBps).toEqual(before);
  });

  it('finds the same with a listener and without', () => {
    const local = onlyLocalSystem(catalogue('dgx-1v'), parametersWith({}), 8);
    let events = 0;
    const heard = searchHost(local, parametersWith({}), { trace: () => events++ });
    expect(heard).toEqual(searchHost(local, parametersWith({})));
    expect(events).toBeGreaterThan(100);
  });

  it('computes no names and reasons without a listener', () => {
    const nameOfVertex = vi.spyOn(Routes.prototype, 'nameOfVertex');
    const shortage = vi.spyOn(ResidualBandwidth.prototype, 'shortage');
    const local = onlyLocalSystem(catalogue('dgx-1v'), parametersWith({}), 8);
    searchHost(local, parametersWith({}));
    expect([nameOfVertex.mock.calls.length, shortage.mock.calls.length]).toEqual([0, 0]);
    searchHost(local, parametersWith({}), { trace: () => undefined });
    expect(Math.min(nameOfVertex.mock.calls.length, shortage.mock.calls.length)).toBeGreaterThan(0);
    vi.restoreAllMocks();
  });
});
