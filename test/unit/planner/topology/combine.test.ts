import { describe, expect, it } from 'vitest';
import { fuseTopologies } from '../../../../src/planner/topology/combine/fuse.js';
import { mergeNics } from '../../../../src/planner/topology/combine/merge-nics.js';
import { trimUnused } from '../../../../src/planner/topology/combine/trim-unused.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { descendants, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { build, cpu, gpu, nic, onlyLocalSystem, parametersWith, pathOf, pciSwitch, systemXml } from './machine.js';

/** `cpu 0 > pci 0000:01:00.0 > …` in one word an element: names and what tells them apart, children in brackets. */
function outline(element: XmlElement): string {
  const label =
    element.attributes.get('busid') ??
    element.attributes.get('name') ??
    element.attributes.get('rank') ??
    element.attributes.get('numaid') ??
    '';
  const short = label.replace('0000:', '').replace(':00.0', '');
  const children = element.children.map(outline).join(' ');
  return `${element.name}${short === '' ? '' : `:${short}`}${children === '' ? '' : `(${children})`}`;
}

const nets = (root: XmlElement) => [...descendants(root)].filter(({ name }) => name === 'net');

describe('trimUnused', () => {
  it('removes elements without kept devices, and the marks', () => {
    const root = systemXml(
      cpu(0, pciSwitch('01', gpu('02', 0, '', 'sm="80" gdr="1" keep="1"') + gpu('03', 1)) + pciSwitch('04', nic('05', 0))),
      cpu(1, gpu('06', 2)),
    );
    expect(trimUnused(root)).toBe(true);
    expect(outline(root)).toBe('system(cpu:0(pci:01(pci:02(gpu:0))))');
    expect([...descendants(root)].some(({ attributes }) => attributes.has('keep'))).toBe(false);
  });
});

describe('fuseTopologies', () => {
  it('joins equal elements and appends the others', () => {
    const first = systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + nic('03', 0))));
    const second = systemXml(cpu(0, pciSwitch('01', gpu('04', 1) + nic('03', 0))), cpu(1, gpu('05', 2)));
    const fused = fuseTopologies([first, second]);
    expect(outline(fused!)).toBe(
      'system(cpu:0(pci:01(pci:02(gpu:0) pci:03(nic(net:mlx5_0)) pci:04(gpu:1))) cpu:1(pci:05(gpu:2)))',
    );
    expect(outline(first)).toBe('system(cpu:0(pci:01(pci:02(gpu:0) pci:03(nic(net:mlx5_0)))))');
  });

  it('keeps the hosts of an NVLink domain apart by their hash', () => {
    const host = (hash: number) => systemXml(cpu(0, gpu('01', hash), `arch="arm64" host_hash="0x${hash}"`));
    const system = build(fuseTopologies([host(1), host(2)])!);
    expect(system.hostHashes).toEqual([1n, 2n]);
    expect(system.gpus.map(({ systemId }) => systemId)).toEqual([0, 1]);
  });

  it('returns nothing for no topologies', () => {
    expect(fuseTopologies([])).toBeUndefined();
  });
});

describe('mergeNics', () => {
  const ports =
    '<nic><net name="mlx5_0" dev="0" speed="100000" port="1" guid="0xa" maxconn="7" gdr="1"/><net name="mlx5_1" dev="1" speed="100000" port="2" guid="0xa" maxconn="7" gdr="1"/></nic>';
  const dualPort = () =>
    systemXml(
      cpu(
        0,
        pciSwitch('01', gpu('02', 0) + pciSwitch('03', ports, 'class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"')),
      ),
    );

  it('makes one device of the ports of a card by default', () => {
    const root = dualPort();
    mergeNics(root, parametersWith({}));
    expect(nets(root).map(({ attributes }) => Object.fromEntries(attributes))).toEqual([
      {
        name: 'mlx5_0+mlx5_1',
        dev: '2',
        latency: '0',
        speed: '200000',
        port: '1',
        plane: String(0x4001),
        guid: '0xa',
        maxconn: '7',
        gdr: '1',
        net: '1',
      },
    ]);
    expect(build(root).nets.map(({ bandwidthGBps }) => bandwidthGBps)).toEqual([25]);
    const apart = dualPort();
    mergeNics(apart, parametersWith({ netMergeLevel: PathType.LOC }));
    expect(nets(apart)).toHaveLength(2);
  });

  it('sees functions of one PCI device as ports', () => {
    const root = systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + nic('03', 0) + nic('03', 1).replace('03:00.0', '03:00.1'))));
    mergeNics(root, parametersWith({}));
    expect(outline(root)).toBe('system(cpu:0(pci:01(pci:02(gpu:0) pci:03:00.2(nic(net:mlx5_0+mlx5_1)))))');
  });

  it('puts a merged device below a new PCI device with the lanes of all, and widens the switch', () => {
    const root = systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + nic('03', 0) + nic('04', 1))));
    mergeNics(root, parametersWith({ netMergeLevel: PathType.PIX }));
    expect(outline(root)).toBe('system(cpu:0(pci:01(pci:02(gpu:0) pci:03:00.1(nic(net:mlx5_0+mlx5_1)))))');
    const local = onlyLocalSystem(root, parametersWith({}), 2);
    expect(pathOf(local, 'GPU/0-2000', 'NET/0-2')).toBe('PIX 24 DEV/0-2000 PCI/0-1000 NIC/0-3001 NET/0-2');
    expect([...descendants(root)].filter(({ attributes }) => attributes.get('link_width') === '32')).toHaveLength(2);
  });

  it('merges devices of two switches from PXB on, of one CPU from PHB on, and never across CPUs', () => {
    const machine = () =>
      systemXml(
        cpu(0, gpu('09', 0) + pciSwitch('01', pciSwitch('02', nic('03', 0)) + pciSwitch('04', nic('05', 1))) + nic('06', 2)),
        cpu(1, nic('07', 3)),
      );
    const names = (netMergeLevel: PathType) => {
      const root = machine();
      mergeNics(root, parametersWith({ netMergeLevel }));
      return nets(root)
        .map(({ attributes }) => attributes.get('name'))
        .sort();
    };
    expect(names(PathType.PIX)).toEqual(['mlx5_0', 'mlx5_1', 'mlx5_2', 'mlx5_3']);
    expect(names(PathType.PXB)).toEqual(['mlx5_0+mlx5_1', 'mlx5_2', 'mlx5_3']);
    expect(names(PathType.PHB)).toEqual(['mlx5_0+mlx5_1+mlx5_2', 'mlx5_3']);
    expect(() => names(PathType.SYS)).toThrow('different NUMA domains');
  });

  it('merges only within a rail with the policy RAIL', () => {
    const onRail = (bus: string, dev: number, rail: number) => nic(bus, dev, `speed="100000" gdr="1" rail="${rail}"`);
    const root = systemXml(cpu(0, gpu('01', 0) + onRail('02', 0, 0) + onRail('03', 1, 1) + onRail('04', 2, 0)));
    mergeNics(root, parametersWith({ netMergeLevel: PathType.PHB, netMergePolicy: 'RAIL' }));
    expect(nets(root).map(({ attributes }) => [attributes.get('name'), attributes.get('rail')])).toEqual([
      ['mlx5_1', '1'],
      ['mlx5_0+mlx5_2', '0'],
    ]);
  });

  it('merges the groups that the user names, and no more than eight of any', () => {
    const root = systemXml(cpu(0, gpu('01', 0) + nic('02', 0) + nic('03', 1) + nic('04', 2)));
    mergeNics(root, parametersWith({ netForceMerge: 'mlx5_0,mlx5_2;mlx5_1' }));
    expect(
      nets(root)
        .map(({ attributes }) => attributes.get('name'))
        .sort(),
    ).toEqual(['mlx5_0+mlx5_2', 'mlx5_1']);
    const many = systemXml(
      cpu(0, gpu('01', 0) + Array.from({ length: 9 }, (_, dev) => nic((dev + 2).toString(16).padStart(2, '0'), dev)).join('')),
    );
    mergeNics(many, parametersWith({ netMergeLevel: PathType.PHB }));
    expect(
      build(many)
        .nets.map(({ bandwidthGBps }) => bandwidthGBps)
        .sort(),
    ).toEqual([200, 25].sort());
  });

  it('refuses a group with an unknown name', () => {
    const root = systemXml(cpu(0, gpu('01', 0) + nic('02', 0)));
    expect(() => {
      mergeNics(root, parametersWith({ netForceMerge: 'mlx5_0,mlx5_9' }));
    }).toThrow('NCCL_NET_FORCE_MERGE: "mlx5_0,mlx5_9" names 2 devices and 1 of them are here; there are mlx5_0');
  });
});
