import { describe, expect, it } from 'vitest';
import { InputError } from '../../../../src/errors.js';
import { assignHost, buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { CpuModel, nodeName } from '../../../../src/planner/topology/system.js';
import {
  build,
  cpu,
  gpu,
  linksOf,
  nic,
  nodeNamed,
  notesOf,
  nvLink,
  nvSwitchLink,
  parametersWith,
  pciSwitch,
  systemXml,
} from './machine.js';

const amd = 'arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49"';
const grace = 'arch="arm64"';

/** Text of an error, with its place and NCCL's result. */
function failure(run: () => unknown): { message: string; line: number | undefined; ncclResult: number } {
  try {
    run();
  } catch (error) {
    if (error instanceof InputError) return { message: error.message, line: error.line, ncclResult: error.ncclResult };
    throw error;
  }
  throw new Error('nothing failed');
}

describe('PCI', () => {
  it('gives a link its width times the speed of its generation', () => {
    const system = build(systemXml(cpu(0, gpu('01', 0).replace('16.0 GT/s PCIe', '32.0 GT/s PCIe'))));
    expect(linksOf(system, 'DEV/0-1000')).toEqual(['LOC 5000 GPU/0-1000', 'PCI 48 CPU/0-0']);
  });

  it.each([
    ['2.5 GT/s PCIe', 16, 3],
    ['5 GT/s', 16, 6],
    ['8.0 GT/s PCIe', 8, 6],
    ['16 GT/s', 16, 24],
    ['64.0 GT/s PCIe', 16, 96],
    ['2.5 GT/s PCIe', 1, 0.1875],
    ['32.0 GT/s PCIe', 0, 48],
  ])('reads %s x%i as %f GB/s', (speed, width, gbps) => {
    const xml = gpu('01', 0).replace('16.0 GT/s PCIe', speed).replace('link_width="16"', `link_width="${width}"`);
    expect(linksOf(build(systemXml(cpu(0, xml))), 'DEV/0-1000')[1]).toBe(`PCI ${gbps} CPU/0-0`);
  });

  it.each(['', '16.0 GT/s', '64 GT/s', 'Unknown'])('reads the unknown speed "%s" as Gen3 and notes it', (speed) => {
    const xml = systemXml(cpu(0, gpu('01', 0).replace('16.0 GT/s PCIe', speed)));
    expect(linksOf(build(xml), 'DEV/0-1000')[1]).toBe('PCI 12 CPU/0-0');
    expect(notesOf(xml)[0]).toContain('counts as Gen3: 12 GB/s');
  });

  it('puts the upward link last, and the others by bandwidth', () => {
    const slow = gpu('02', 0).replace('link_width="16"', 'link_width="8"');
    const system = build(systemXml(cpu(0, pciSwitch('01', slow + gpu('03', 1) + nic('04', 0)))));
    expect(linksOf(system, 'PCI/0-1000')).toEqual([
      'PCI 24 DEV/0-3000',
      'PCI 24 NIC/0-4000',
      'PCI 12 DEV/0-2000',
      'PCI 24 CPU/0-0',
    ]);
  });

  it('joins two switches by a pcilink in the direction written only', () => {
    const system = build(
      systemXml(cpu(0, pciSwitch('01', `${gpu('02', 0)}<pcilink target="0000:03:00.0"/>`) + pciSwitch('03', gpu('04', 1)))),
    );
    expect(linksOf(system, 'PCI/0-1000')).toContain('LOC 5000 PCI/0-3000');
    expect(linksOf(system, 'PCI/0-3000')).not.toContain('LOC 5000 PCI/0-1000');
  });

  it('leaves out everything below a switch that also has a NIC, as NCCL does, and notes it', () => {
    const xml = systemXml(cpu(0, gpu('01', 0) + pciSwitch('02', `${gpu('03', 1)}<nic><net dev="0" name="n"/></nic>`)));
    expect(build(xml).gpus).toHaveLength(1);
    expect(notesOf(xml)).toContainEqual(expect.stringContaining('does not see the devices'));
  });

  it('flattens the two levels of a Broadcom Gen4 switch into one', () => {
    const broadcom =
      'class="0x060400" vendor="0x1000" device="0xc010" subsystem_vendor="0x1000" subsystem_device="0xa001" link_speed="16.0 GT/s PCIe" link_width="16"';
    const system = build(
      systemXml(cpu(0, pciSwitch('01', pciSwitch('02', gpu('03', 0) + gpu('04', 1), broadcom) + nic('05', 0), broadcom))),
    );
    expect(system.pcis.map(({ device }) => device)).toEqual([0x1000_c010_1000_ffffn]);
    expect(linksOf(system, 'PCI/0-1000')).toEqual([
      'PCI 24 NIC/0-5000',
      'PCI 24 DEV/0-3000',
      'PCI 24 DEV/0-4000',
      'PCI 24 CPU/0-0',
    ]);
    expect(linksOf(system, 'DEV/0-3000')).toEqual(['LOC 5000 GPU/0-3000', 'PCI 24 PCI/0-1000']);
  });

  it('refuses a Broadcom switch whose two levels have another PCI link, as NCCL fails on it', () => {
    const broadcom =
      'class="0x060400" vendor="0x1000" device="0xc010" subsystem_vendor="0x1000" subsystem_device="0xa001" link_speed="16.0 GT/s PCIe" link_width="16"';
    const root = systemXml(
      cpu(0, pciSwitch('01', `${pciSwitch('02', gpu('03', 0), broadcom)}<pcilink target="0000:02:00.0"/>`, broadcom)),
    );
    expect(() => build(root)).toThrow(/PCI\/0-2000/);
  });

  it('refuses a PCI link between two lower levels of one Broadcom switch: NCCL loses its link to the CPU', () => {
    const broadcom =
      'class="0x060400" vendor="0x1000" device="0xc010" subsystem_vendor="0x1000" subsystem_device="0xa001" link_speed="16.0 GT/s PCIe" link_width="16"';
    const lower = (bus: string, below: string, other: string) =>
      pciSwitch(bus, `${below}<pcilink target="0000:${other}:00.0"/>`, broadcom);
    const root = systemXml(cpu(0, pciSwitch('01', lower('02', gpu('03', 0), '04') + lower('04', gpu('05', 1), '02'), broadcom)));
    expect(() => build(root)).toThrow(/PCI\/0-1000.*loses its link to the CPU/);
  });

  it('uses, as NCCL does, the next switch in place of one behind a removed switch', () => {
    const broadcom = (device: string) =>
      `class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="${device}" link_speed="16.0 GT/s PCIe" link_width="16"`;
    const upsideDown = pciSwitch(
      '01',
      pciSwitch('02', gpu('03', 0), broadcom('0x1001')) + pciSwitch('04', gpu('05', 1), broadcom('0x0001')),
      broadcom('0x1001'),
    );
    const system = build(systemXml(cpu(0, upsideDown + pciSwitch('06', gpu('07', 2)))));
    expect(system.pcis.map((pci) => [nodeName(pci), pci.device])).toEqual([
      ['PCI/0-4000', 0x1000_c030_1000_ffffn],
      ['PCI/0-6000', 0xffffn],
    ]);
    expect(linksOf(system, 'PCI/0-4000')).toEqual(['PCI 24 DEV/0-5000', 'PCI 24 DEV/0-3000', 'PCI 24 CPU/0-0']);
  });
});

describe('CPUs', () => {
  it.each([
    ['an Intel before Skylake', 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79"', 6],
    ['Skylake', 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"', 10],
    ['Sapphire Rapids', 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"', 22],
    ['Emerald Rapids', 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207"', 40],
    ['AMD', amd, 16],
    ['a Zhaoxin', 'arch="x86_64" vendor="  Shanghai  " familyid="7" modelid="59"', 6],
    ['Yongfeng', 'arch="x86_64" vendor="CentaurHauls" familyid="7" modelid="91"', 9],
    ['Power', 'arch="ppc64"', 32],
    ['arm', grace, 6],
    ['an unknown one', 'arch="riscv64"', 5000],
  ])('are joined by the interconnect of %s', (_, attributes, gbps) => {
    const system = build(systemXml(cpu(0, gpu('01', 0), attributes), cpu(1, gpu('02', 1), attributes)));
    expect(linksOf(system, 'CPU/0-0')).toContain(`SYS ${gbps} CPU/0-1`);
  });

  it('of different hosts are not joined', () => {
    const [first, second] = ['1', '2'].map((hash) => cpu(0, gpu('01', Number(hash)), `${grace} host_hash="0x${hash}"`));
    const system = build(systemXml(first!, second!));
    expect(system.hostHashes).toEqual([1n, 2n]);
    expect(linksOf(system, 'CPU/1-0')).toEqual(['PCI 24 DEV/1-1000']);
  });

  it('know their cores and, for Intel, their model', () => {
    const xml = systemXml(cpu(0, gpu('01', 0)).replace('0000ffff', '00000001,f0000000,00000003'));
    const [first] = build(xml).cpus;
    expect(first?.affinity).toEqual([0, 1, 60, 61, 62, 63, 64]);
    expect(first?.model).toBe(CpuModel.INTEL_SKL);
  });

  it('of unknown NUMA node -1 get the id that NCCL gives them', () => {
    expect(nodeNamed(build(systemXml(cpu(-1, gpu('01', 0)))), 'CPU/0-ffffffffffffff').type).toBe(3);
  });
});

describe('NVLink', () => {
  it('adds up links to the same GPU, by compute capability', () => {
    const system = build(
      systemXml(
        cpu(
          0,
          gpu('01', 0, nvLink('02', 2) + nvLink('02', 1), 'sm="70" gdr="1"') + gpu('02', 1, nvLink('01', 3), 'sm="60" gdr="1"'),
        ),
      ),
    );
    expect(linksOf(system, 'DEV/0-1000')[1]).toBe('NVL 60 DEV/0-2000');
    expect(linksOf(system, 'DEV/0-2000')[1]).toBe('NVL 54 DEV/0-1000');
  });

  it('sees all NVSwitches as one', () => {
    const system = build(
      systemXml(
        cpu(
          0,
          [0, 1]
            .map((rank) =>
              gpu(
                `0${rank + 1}`,
                rank,
                '<nvlink target="0000:0a:00.0" count="9" tclass="0x068000"/><nvlink target="0000:0b:00.0" count="9" tclass="0x068000"/>',
                'sm="90" gdr="1"',
              ),
            )
            .join(''),
        ),
      ),
    );
    expect(system.nvSwitches).toHaveLength(1);
    expect(linksOf(system, 'NVS/0-0')).toEqual(['NVL 370.8 DEV/0-1000', 'NVL 370.8 DEV/0-2000']);
  });

  it('leaves out a link to a GPU that is not in use, and notes it', () => {
    const xml = systemXml(cpu(0, gpu('01', 0, nvLink('05', 2))));
    expect(linksOf(build(xml), 'DEV/0-1000')).toHaveLength(2);
    expect(notesOf(xml)).toContainEqual(expect.stringContaining('its target is not among the GPUs in use'));
  });

  it('that is given on one side only is noted with its place', () => {
    const [note] = notesOf(systemXml(cpu(0, `${gpu('01', 0, `\n${nvLink('02', 2)}`)}${gpu('02', 1)}`)));
    expect(note).toBe(
      '<nvlink target="0000:02:00.0"> (line 2): the GPU that it leads to has no NVLink back: NCCL fails when it looks for paths',
    );
  });

  it('leads to the CPU above on Power', () => {
    const link = '<nvlink target="0000:00:00.0" count="3" tclass="0x068001"/>';
    const system = build(systemXml(cpu(0, pciSwitch('01', gpu('02', 0, link, 'sm="70" gdr="1"')), 'arch="ppc64"')));
    expect(linksOf(system, 'CPU/0-0')).toEqual(['NVL 60 DEV/0-2000', 'PCI 24 PCI/0-1000']);
  });
});

describe('GPUs', () => {
  it('of one device share its DEV node', () => {
    const two = '<gpu dev="0" rank="0" sm="80" gdr="1"/><gpu dev="0" rank="1" sm="80" gdr="1"/>';
    const system = build(systemXml(cpu(0, pciSwitch('01', two, 'class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"'))));
    expect(system.hardware.map((node) => ('gpuCount' in node ? node.gpuCount : 0))).toEqual([2]);
    expect(system.gpus.map(({ localId, parent }) => [localId, parent])).toEqual([
      [0x1000n, 0],
      [0x100_0000_1000n, 0],
    ]);
  });

  it('that are parts of one device get a DEV node each and share its C2C', () => {
    const part = (index: number) =>
      `<gpu dev="0" rank="${index}" sm="100" gdr="1" mlopart="${index}"><c2c bw="40000" count="10"/></gpu>`;
    const root = systemXml(
      cpu(0, pciSwitch('01', part(0) + part(1), 'class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"'), grace),
    );
    const system = build(root);
    expect(linksOf(system, 'DEV/0-1001')).toEqual([
      'LOC 5000 GPU/0-1001',
      'LOC 2618 DEV/0-1003',
      'C2C 400 CXB/0-1000',
      'PCI 24 CPU/0-0',
    ]);
    expect(linksOf(system, 'CXB/0-1000')).toEqual(['C2C 400 CPU/0-0', 'C2C 400 DEV/0-1001', 'C2C 400 DEV/0-1003']);
    expect(build(root, parametersWith({ splitMloPart: 0 })).hardware).toHaveLength(1);
  });

  it('without a rank are not in use', () => {
    const system = build(systemXml(cpu(0, gpu('01', 0) + gpu('02', 1).replace('rank="1"', ''))));
    expect(system.gpus.map(({ rank }) => rank)).toEqual([0]);
  });
});

describe('network devices', () => {
  it('have a speed of 10 Gb/s by default', () => {
    const system = build(systemXml(cpu(0, gpu('01', 0) + nic('02', 0, 'speed="-1"') + nic('03', 1, ''))));
    expect(system.nets.map(({ bandwidthGBps }) => bandwidthGBps)).toEqual([1.25, 1.25]);
  });

  it('below a CPU hang on one NIC node', () => {
    const system = build(
      systemXml(
        cpu(
          0,
          `${gpu('01', 0)}<nic><net name="eth0" dev="0" speed="25000"/></nic><nic><net name="eth1" dev="1" speed="25000"/></nic>`,
        ),
      ),
    );
    expect(linksOf(system, 'NIC/0-0')).toEqual(['NET 3.125 NET/0-0', 'NET 3.125 NET/0-1', 'PCI 5000 CPU/0-0']);
  });

  it('become a NET, GIN or RMA node as their flags say', () => {
    const system = build(systemXml(cpu(0, gpu('01', 0) + nic('02', 0, 'net="0" gin="1" rma="1" speed="400000"'))));
    expect([system.nets, system.gins, system.rmas].map((nodes) => nodes.length)).toEqual([0, 1, 1]);
    expect(linksOf(system, 'NIC/0-2000')).toEqual(['NET 50 GIN/0-0', 'NET 50 RMA/0-0', 'PCI 24 CPU/0-0']);
  });
});

describe('buildSystem refuses', () => {
  it.each([
    [
      'an attribute that NCCL needs and the file lacks',
      systemXml(cpu(0, gpu('01', 0).replace('link_width="16"', ''))),
      'attribute link_width is missing',
    ],
    ['a machine without CPU', systemXml(), 'no <cpu>'],
    ['a machine without GPU in use', systemXml(cpu(0, nic('01', 0))), 'no GPU is in use'],
    [
      'NVLinks of a GPU that is not in use',
      systemXml(cpu(0, gpu('01', 0) + gpu('02', 1, nvSwitchLink(4)).replace('rank="1"', ''))),
      'there is no GPU in use at bus',
    ],
    [
      'a pcilink below a device',
      systemXml(cpu(0, gpu('01', 0).replace('</gpu>', '</gpu><pcilink target="0000:02:00.0"/>'))),
      'is no switch',
    ],
    ['a GPU whose function NCCL needs for parts', systemXml(cpu(0, gpu('01', 0).replace('00.0', '00.1'))), 'function 0 or 4'],
    [
      'a GPU below a bridge without attributes of a device',
      systemXml(cpu(0, pciSwitch('01', '<gpu dev="0" rank="0" sm="80" gdr="1"/>'))),
      'attribute class is missing',
    ],
    ['a third part of a GPU', systemXml(cpu(0, gpu('01', 0, '', 'sm="100" gdr="1" mlopart="2"'))), 'parts 0 and 1 only'],
    ['a negative width', systemXml(cpu(0, gpu('01', 0).replace('link_width="16"', 'link_width="-4"'))), 'link_width -4'],
  ])('%s, with what NCCL returns', (_, root, message) => {
    const { message: actual, ncclResult } = failure(() => build(root));
    expect(actual).toContain(message);
    expect(ncclResult).toBe(3);
  });

  it('more nodes of a type than NCCL has room for, naming the line', () => {
    const switches = (count: number) => Array.from({ length: count }, (_, index) => pciSwitch(index.toString(16), '')).join('\n');
    const { message, line } = failure(() =>
      build(systemXml(cpu(0, gpu('01', 0) + pciSwitch('02', switches(500))), cpu(1, switches(141)))),
    );
    expect(message).toContain('room for 640 nodes');
    expect(line).toBe(500 + 140);
  });

  it('a host that is not in the file', () => {
    const root = systemXml(cpu(0, gpu('01', 0)));
    assignHost(root, 0x77n);
    expect(failure(() => buildSystem(root, { parameters: parametersWith({}), hostHash: 5n }))).toMatchObject({ ncclResult: 4 });
    expect(buildSystem(root, { parameters: parametersWith({}), hostHash: 0x77n }).systemId).toBe(0);
  });
});
