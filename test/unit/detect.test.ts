import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SystemError } from '../../src/errors.js';
import { defaultParameters } from '../../src/planner/parameters.js';
import { detect } from '../../src/runtime/detect/detect.js';
import { filesOfMachine } from '../../src/runtime/detect/node-files.js';
import { askNvml } from '../../src/runtime/detect/nvml.js';
import { buildSystem } from '../../src/planner/topology/build/build-system.js';
import { detectMachine } from '../../src/planner/topology/detect/detect-machine.js';
import type { MachineFiles } from '../../src/planner/topology/detect/machine-files.js';
import { parseXml } from '../../src/planner/topology/xml/parse.js';
import { descendants, type XmlElement } from '../../src/planner/topology/xml/tree.js';
import { validateTopology } from '../../src/planner/topology/xml/validate.js';
import { writeXml } from '../../src/planner/topology/xml/write.js';

/** Captured machines of hwloc's corpus; they lie beside the repository and are no part of it. */
const captures = fileURLToPath(new URL('../../../shared/sysfs', import.meta.url));
const missing = !existsSync(captures)
  ? `no captured machines at ${captures}`
  : spawnSync('bzip2', ['--version'], { stdio: 'ignore', input: '' }).error !== undefined
    ? 'bzip2 is not installed'
    : undefined;

const folder = mkdtempSync(join(tmpdir(), 'tccl-detect-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const named = (root: XmlElement, name: string) => [...descendants(root)].filter((element) => element.name === name);
const attributes = (element: XmlElement | undefined) => Object.fromEntries(element?.attributes ?? []);
/** Bus ids from an element up to its CPU, and the CPU's number. */
function way(element: XmlElement | undefined): string[] {
  if (element === undefined || element.name === 'system') return [];
  const name = element.name === 'net' ? 'name' : 'busid';
  return [element.attributes.get(name) ?? element.attributes.get('numaid') ?? element.name, ...way(element.parent)];
}

describe.skipIf(missing !== undefined)(`captured machines${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  const roots = new Map<string, string>();
  beforeAll(() => {
    for (const archive of readdirSync(captures).filter((name) => name.endsWith('.tar.bz2'))) {
      const target = join(folder, archive.replace('.tar.bz2', ''));
      mkdirSync(target);
      // Only the files that detection reads, of thousands; tar warns of files that a machine lacks.
      const files = [
        'class',
        'vendor',
        'device',
        'subsystem_vendor',
        'subsystem_device',
        'max_link_speed',
        'max_link_width',
        'numa_node',
        'cpumap',
        'operstate',
        'speed',
        'flags',
        'sys_image_guid',
        'state',
        'rate',
      ].map((name) => `*/sys/devices/*/${name}`);
      spawnSync('tar', [
        'xjf',
        join(captures, archive),
        '-C',
        target,
        '--wildcards',
        ...files,
        '*/proc/cpuinfo',
        '*/sys/bus/pci/devices/*',
        '*/sys/class/net/*',
        '*/sys/class/infiniband/*',
      ]);
      const [inner = ''] = readdirSync(target);
      roots.set(archive.slice(0, 6), join(target, inner));
    }
  });
  const detected = (prefix: string, options: Parameters<typeof detect>[0] = {}) =>
    detect({ root: roots.get(prefix) ?? '', ...options });

  it('two sockets of Sandy Bridge with an InfiniBand card at the second', () => {
    const { root, notes } = detected('32em64');
    expect(root.children.map(attributes)).toEqual(
      [0, 1].map((node) => ({
        numaid: String(node),
        affinity: `00000000,00000000,00000000,0000${node === 0 ? '00ff' : 'ff00'}`,
        arch: 'x86_64',
        vendor: 'GenuineIntel',
        familyid: '6',
        modelid: '45',
      })),
    );
    const [net] = named(root, 'net');
    expect(attributes(net)).toEqual({
      name: 'mlx4_0',
      dev: '0',
      latency: '0',
      speed: '56000',
      port: '1',
      guid: '0xa3bff90003c90200',
      maxconn: '131072',
      gdr: '0',
      net: '1',
    });
    expect(way(net)).toEqual(['mlx4_0', 'nic', '0000:82:00.0', '1']);
    expect(attributes(net?.parent?.parent)).toMatchObject({ class: '0x028000', vendor: '0x15b3', device: '0x1003' });
    expect(notes).toEqual(['InfiniBand device scif0 is no PCI device: left out']);
  });

  it('the same by sockets: those of InfiniBand before all others', () => {
    const nets = named(detected('32em64', { network: 'socket' }).root, 'net');
    expect(nets.map((net) => [net.attributes.get('name'), net.attributes.get('speed'), way(net).slice(2)])).toEqual([
      ['ib0', '10000', ['0000:82:00.0', '1']],
    ]);
  });

  it('Skylake with PCI switches: ports between device and switch are passed over, the slower end of a link counts', () => {
    const { root } = detected('32inte');
    const [net] = named(root, 'net');
    expect(way(net)).toEqual(['enp96s0f0', 'nic', '0000:60:00.0', '0000:5e:00.0', '0']);
    const [bridge, card] = named(root, 'pci');
    expect(attributes(bridge)).toMatchObject({ class: '0x060400', link_speed: '8 GT/s', link_width: '8' });
    expect(attributes(card)).toMatchObject({ link_speed: '2.5 GT/s', link_width: '1' });
    expect(root.children.map((cpu) => cpu.attributes.get('modelid'))).toEqual(['85', '85']);
  });

  it('four NUMA nodes, and cards with and without a known node', () => {
    const { root } = detected('40inte');
    expect(root.children.map((cpu) => cpu.attributes.get('numaid'))).toEqual(['0', '1', '2', '3']);
    expect(way(named(root, 'net')[0])).toEqual(['qib0', 'nic', '0000:43:00.0', '2']);
    expect(attributes(named(root, 'net')[0])).toMatchObject({ speed: '40000', port: '1' });
    expect(named(detected('40inte', { network: 'socket' }).root, 'net').map(way)).toEqual([['ib0', 'nic', '0000:43:00.0', '2']]);
  });

  it('an ARM machine without PCI', () => {
    const { root } = detected('nvidia');
    expect(root.children.map(attributes)).toEqual([{ numaid: '0', affinity: 'fffff', arch: 'arm64' }]);
  });

  it.each(['32em64', '32inte', '40inte', 'nvidia'])('%s with CPU ranks is a topology', (prefix) => {
    const { root } = detected(prefix, { cpuRanks: 8 });
    validateTopology(root);
    expect(parseXml(writeXml(root)).notes).toEqual([]);
    const system = buildSystem(root, { parameters: defaultParameters });
    expect(system.gpus.map(({ rank }) => rank)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    const perNode = root.children.map((cpu) => named(cpu, 'gpu').length);
    expect(perNode).toEqual(root.children.map(() => 8 / root.children.length));
  });
});

describe('this machine', () => {
  it('has cores, and with ranks a topology', () => {
    const { root } = detect({ cpuRanks: 2 });
    validateTopology(root);
    expect(root.children.length).toBeGreaterThan(0);
    expect(root.children[0]?.attributes.get('affinity')).toMatch(/[1-9a-f]/);
    expect(buildSystem(root, { parameters: defaultParameters }).gpus.length).toBeGreaterThanOrEqual(2);
  });

  it('is no machine where the folder does not exist', () => {
    expect(() => detect({ root: '/no such folder' })).toThrow(SystemError);
  });
});

/** Files of a machine that exists in the test only; `link:` makes a symbolic link. */
function madeMachine(files: Readonly<Record<string, string>>): MachineFiles {
  const root = mkdtempSync(join(folder, 'made-'));
  for (const [path, content] of Object.entries(files)) {
    const full = join(root, path);
    mkdirSync(dirname(full), { recursive: true });
    if (content.startsWith('link:')) symlinkSync(content.slice(5), full);
    else writeFileSync(full, `${content}\n`);
  }
  return filesOfMachine(root);
}

/** A PCI device in /sys, with its link from /sys/bus. */
function pciDevice(path: string, properties: Readonly<Record<string, string>>): Record<string, string> {
  const busId = path.split('/').at(-1) ?? '';
  return {
    [`sys/bus/pci/devices/${busId}`]: `link:../../../devices/${path}`,
    ...Object.fromEntries(
      Object.entries({ numa_node: '1', ...properties }).map(([name, value]) => [`sys/devices/${path}/${name}`, value]),
    ),
  };
}

const gen5 = { max_link_speed: '32.0 GT/s PCIe', max_link_width: '16' };

/** GPU 0 at node 1, GPU 1 and the NIC at node 0. */
const twoGpus = {
  'proc/cpuinfo': 'vendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n',
  ...Object.fromEntries([0, 1, 2].map((node) => [`sys/devices/system/node/node${node}/cpumap`, `0000000${2 ** node}`])),
  ...pciDevice('pci0000:80/0000:81:00.0', { class: '0x030200', vendor: '0x10de', device: '0x20b5', ...gen5 }),
  ...pciDevice('pci0000:84/0000:85:00.0', { class: '0x030200', vendor: '0x10de', device: '0x20b5', ...gen5, numa_node: '0' }),
  ...pciDevice('pci0000:00/0000:03:00.0', { class: '0x020700', vendor: '0x15b3', device: '0x1021', ...gen5, numa_node: '0' }),
  'sys/class/infiniband/mlx5_0/device': 'link:../../../bus/pci/devices/0000:03:00.0',
  'sys/class/infiniband/mlx5_0/ports/1/state': '4: ACTIVE',
  'sys/class/infiniband/mlx5_0/ports/1/rate': '400 Gb/sec (4X NDR)',
};

describe('made machines', () => {
  const cpuinfo = 'processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n';
  const gpuServer = madeMachine({
    'proc/cpuinfo': cpuinfo,
    'sys/devices/system/node/node0/cpumap': '00000000,0000ffff',
    'sys/devices/system/node/node1/cpumap': '00000000,ffff0000',
    'sys/devices/system/node/node2/cpumap': '00000000,00000000',
    'sys/module/nvidia_peermem/version': '1',
    ...pciDevice('pci0000:40/0000:40:01.0', { class: '0x060400', vendor: '0x1022', ...gen5 }),
    ...pciDevice('pci0000:40/0000:40:01.0/0000:41:00.0', {
      class: '0x060400',
      vendor: '0x1000',
      device: '0xc030',
      subsystem_vendor: '0x1000',
      subsystem_device: '0x0004',
      ...gen5,
    }),
    ...pciDevice('pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0', { class: '0x060400', vendor: '0x1000', ...gen5 }),
    ...pciDevice('pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0/0000:43:00.0', {
      class: '0x030200',
      vendor: '0x10de',
      device: '0x2330',
      ...gen5,
    }),
    ...pciDevice('pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:01.0', { class: '0x060400', vendor: '0x1000', ...gen5 }),
    ...pciDevice('pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:01.0/0000:44:00.0', {
      class: '0x020700',
      vendor: '0x15b3',
      device: '0x1021',
      ...gen5,
    }),
    ...pciDevice('pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:01.0/0000:44:00.1', {
      class: '0x020700',
      vendor: '0x15b3',
      device: '0x1021',
      ...gen5,
    }),
    'sys/kernel/pci_switch_link/virtual_switch_links/0000:41:00.0/0000:42:00.0': '',
    'sys/kernel/pci_switch_link/virtual_switch_links/0000:41:00.0/not-a-device': '',
    ...Object.fromEntries(
      [
        ['mlx5_10', '0000:44:00.1'],
        ['mlx5_9', '0000:44:00.0'],
      ].flatMap(([name, busId]) =>
        Object.entries({
          [`sys/class/infiniband/${name ?? ''}/device`]: `link:../../../bus/pci/devices/${busId ?? ''}`,
          [`sys/class/infiniband/${name ?? ''}/sys_image_guid`]: '0c42:a103:0055:62a2',
          [`sys/class/infiniband/${name ?? ''}/ports/1/state`]: '4: ACTIVE',
          [`sys/class/infiniband/${name ?? ''}/ports/1/rate`]: '400 Gb/sec (4X NDR)',
          [`sys/class/infiniband/${name ?? ''}/ports/2/state`]: '1: DOWN',
        }),
      ),
    ),
  });

  it('the ports of one card are one device, in the order of their names', () => {
    const { root, notes } = detectMachine(gpuServer);
    const nets = named(root, 'net');
    expect(nets.map((net) => ['name', 'dev', 'speed', 'port', 'guid', 'gdr'].map((key) => net.attributes.get(key)))).toEqual([
      ['mlx5_9', '0', '400000', '1', '0xa262550003a1420c', '1'],
      ['mlx5_10', '1', '400000', '2', '0xa262550003a1420c', '1'],
    ]);
    expect(new Set(nets.map((net) => way(net).slice(1).join(' ')))).toEqual(new Set(['nic 0000:44:00.0 0000:41:00.0 1']));
    expect(notes).toContain('port 2 of mlx5_9 is down: left out, as NCCL does');
  });

  it('GPUs are identified by their PCI ids without the driver', () => {
    const { root, notes } = detectMachine(gpuServer);
    expect(named(root, 'gpu').map((gpu) => [attributes(gpu), way(gpu).slice(1)])).toEqual([
      [{ dev: '0', sm: '90', rank: '0', gdr: '1', mlopart: '-1' }, ['0000:43:00.0', '0000:41:00.0', '1']],
    ]);
    expect(notes).toContain('NVML was not asked: NVLinks are not in it, and compute capabilities are those of the catalogue');
  });

  it('links come from the driver, and the devices at their other ends from /sys', () => {
    const { root } = detectMachine(gpuServer, {
      gpus: [
        {
          busId: '0000:43:00.0',
          dev: 3,
          sm: 90,
          pciGeneration: 1,
          pciLanes: 8,
          c2c: { bandwidthMBps: 44_712, count: 5 },
          nvlinks: [
            { target: 'fffffff:ffff:ff', count: 17 },
            { target: '0000:43:00.0', count: 1 },
          ],
        },
      ],
    });
    const [gpu] = named(root, 'gpu');
    expect(attributes(gpu)).toEqual({ dev: '3', sm: '90', rank: '0', gdr: '1', mlopart: '-1' });
    expect(attributes(gpu?.parent)).toMatchObject({ link_speed: '2.5 GT/s PCIe', link_width: '8' });
    expect(gpu?.children.map(attributes)).toEqual([
      { target: 'fffffff:ffff:ff', count: '17', tclass: '0x068000' },
      { target: '0000:43:00.0', count: '1', tclass: '0x030200' },
      { bw: '44712', count: '5' },
    ]);
  });

  it("links between switches come from Broadcom's driver, and AMD families are counted as by NCCL", () => {
    const { root } = detectMachine(gpuServer);
    expect(named(root, 'pcilink').map(attributes)).toEqual([{ target: '0000:42:00.0' }]);
    expect(
      root.children.map((cpu) => [cpu.attributes.get('numaid'), cpu.attributes.get('familyid'), cpu.attributes.get('modelid')]),
    ).toEqual([['1', '175', '17']]);
  });

  it('has the CPUs with devices, in the order in which ranks meet them, and all with CPU ranks', () => {
    const files = madeMachine(twoGpus);
    const numbers = (root: XmlElement) => root.children.map((cpu) => cpu.attributes.get('numaid'));
    const { root } = detectMachine(files);
    // Rank 0 is at node 1, and finds the NIC of node 0 too; rank 1's devices follow both.
    expect(numbers(root)).toEqual(['1', '0']);
    expect(named(root, 'pci').map((pci) => pci.attributes.get('busid'))).toEqual([
      '0000:81:00.0',
      '0000:03:00.0',
      '0000:85:00.0',
    ]);
    expect(named(root, 'gpu').map((gpu) => [gpu.attributes.get('rank'), way(gpu).at(-1)])).toEqual([
      ['0', '1'],
      ['1', '0'],
    ]);

    const cpuRanks = detectMachine(files, { cpuRanks: 2 });
    expect(numbers(cpuRanks.root)).toEqual(['0', '1', '2']);
    expect(named(cpuRanks.root, 'gpu').map((gpu) => gpu.attributes.get('sm'))).toEqual(['0', '0']);
    validateTopology(cpuRanks.root);
  });

  it("data of the driver about a GPU override /sys, in NCCL's format", () => {
    const pciIds = { vendor: 0x10de, device: 0xfbc, subsystemVendor: 0x1462, subsystemDevice: 0 };
    const gpu = { dev: 0, sm: 90, pciIds, pciGeneration: undefined, pciLanes: undefined, c2c: undefined, nvlinks: [] };
    const [pci] = named(detectMachine(gpuServer, { gpus: [{ ...gpu, busId: '0000:43:00.0' }] }).root, 'gpu').map(
      ({ parent }) => parent,
    );
    expect([...(pci?.attributes ?? [])]).toEqual([
      ['busid', '0000:43:00.0'],
      ['class', '0x030200'],
      ['vendor', '0x10de'],
      ['device', '0xfbc'],
      ['subsystem_vendor', '0x1462'],
      ['subsystem_device', '0x0'],
      ['link_speed', '16.0 GT/s'],
      ['link_width', '16'],
    ]);
    // The model decides whether NICs can reach its memory: those of a GeForce cannot, even with the module loaded.
    const gdrOf = (device: number) =>
      named(
        detectMachine(gpuServer, { gpus: [{ ...gpu, pciIds: { ...pciIds, device }, busId: '0000:99:00.0' }] }).root,
        'gpu',
      )[0]?.attributes.get('gdr');
    expect([gdrOf(0x2684), gdrOf(0x2330)]).toEqual(['0', '1']);
    const hidden = detectMachine(gpuServer, {
      gpus: [{ ...gpu, busId: '0000:99:00.0', pciGeneration: 5, pciLanes: 8 }],
      network: 'socket',
    }).root;
    expect(named(hidden, 'gpu').map(way)).toEqual([['gpu', '0000:99:00.0', '-1']]);
    expect(attributes(named(hidden, 'pci')[0])).toMatchObject({ class: '0x03', link_speed: '32.0 GT/s PCIe', link_width: '8' });
  });

  it('hosts are distinguished as by NCCL, by a hash of name and boot id', () => {
    const files = madeMachine({
      'proc/sys/kernel/hostname': 'gpu-node-7',
      'proc/sys/kernel/random/boot_id': 'd3f1b0e2-8a55-4f0e-9a55-6a0c1f0e7b11',
    });
    expect(detectMachine(files).root.children.map((cpu) => [...cpu.attributes][0])).toEqual([['host_hash', '0x3bd85a05a0bc7d4']]);
  });

  it('virtual functions of a card are one device with it', () => {
    const nic = { class: '0x020000', vendor: '0x15b3', ...gen5 };
    const files = madeMachine({
      ...pciDevice('pci0000:00/0000:05:00.0', nic),
      ...pciDevice('pci0000:00/0000:05:02.3', nic),
      ...Object.fromEntries(
        [
          ['mlx5_0', '0000:05:00.0'],
          ['mlx5_1', '0000:05:02.3'],
        ].flatMap(([name, busId]) => [
          [`sys/class/infiniband/${name ?? ''}/device`, `link:../../../bus/pci/devices/${busId ?? ''}`],
          [`sys/class/infiniband/${name ?? ''}/ports/1/state`, '4: ACTIVE'],
          [`sys/class/infiniband/${name ?? ''}/ports/1/rate`, '200 Gb/sec (4X HDR)'],
        ]),
      ),
    });
    expect(named(detectMachine(files).root, 'net').map((net) => [net.attributes.get('port'), ...way(net)])).toEqual([
      ['1', 'mlx5_0', 'nic', '0000:05:00.0', '1'],
      ['2', 'mlx5_1', 'nic', '0000:05:00.0', '1'],
    ]);
  });

  it('interfaces for sockets: in the order of the system, no part of a bond, docker and loopback only without others', () => {
    const isUp = { flags: '0x1003', operstate: 'up' };
    const interfaces = (all: Readonly<Record<string, Readonly<Record<string, string>>>>) =>
      madeMachine(
        Object.fromEntries(
          Object.entries(all).flatMap(([name, entries]) =>
            Object.entries({ ...isUp, ...entries }).map(([file, text]) => [`sys/class/net/${name}/${file}`, text]),
          ),
        ),
      );
    const namesOf = (files: MachineFiles, addressed?: readonly string[]) =>
      named(detectMachine(files, addressed === undefined ? {} : { interfaces: addressed }).root, 'net').map((net) =>
        net.attributes.get('name'),
      );
    const bonded = interfaces({
      lo: { ifindex: '1', operstate: 'unknown' },
      bond0: { ifindex: '9', speed: '25000' },
      eth1: { ifindex: '3', master: 'link:../bond0' },
      docker0: { ifindex: '4' },
      eth0: { ifindex: '2', operstate: 'down' },
      eth2: { ifindex: '5' },
    });
    expect(namesOf(bonded)).toEqual(['eth2', 'bond0']);
    expect(namesOf(bonded, ['lo', 'docker0', 'bond0'])).toEqual(['bond0']);
    expect(namesOf(bonded, ['lo', 'docker0'])).toEqual(['docker0']);
    expect(namesOf(bonded, ['lo'])).toEqual(['lo']);
    expect(
      namesOf(
        bonded,
        Array.from({ length: 20 }, (_, index) => `eth${index}`),
      ),
    ).toHaveLength(16);
  });

  describe('with a topology file', () => {
    const file = parseXml(`<system version="1">
  <cpu numaid="0" affinity="ffff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:81:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8"/>
      <pci busid="0000:03:00.0" class="0x020700"/>
    </pci>
    <pci busid="ffff:ff:02.0" class="0x060400"><pci busid="0000:99:00.0" class="0x030200"/></pci>
  </cpu>
</system>`).root;

    it('values of the file stay, missing ones are set, missing devices are removed', () => {
      const { root, notes } = detectMachine(madeMachine(twoGpus), { file });
      expect(named(root, 'gpu').map((gpu) => [gpu.attributes.get('rank'), ...way(gpu).slice(1)])).toEqual([
        ['0', '0000:81:00.0', 'ffff:ff:01.0', '0'],
        ['1', '0000:85:00.0', '0'],
      ]);
      expect(named(root, 'net').map(way)).toEqual([['mlx5_0', 'nic', '0000:03:00.0', 'ffff:ff:01.0', '0']]);
      expect(named(root, 'pci').map((pci) => [...pci.attributes.values()])).toEqual([
        ['ffff:ff:01.0', '0x060400', '16.0 GT/s PCIe', '16'],
        ['0000:81:00.0', '0x030200', '16.0 GT/s PCIe', '8', '0x10de', '0x20b5'],
        ['0000:03:00.0', '0x020700', '0x15b3', '0x1021', '32.0 GT/s PCIe', '0'],
        ['0000:85:00.0', '0x030200', '0x10de', '0x20b5', '32.0 GT/s PCIe', '0'],
      ]);
      expect(notes).toContain('left out, because no GPU or network device of the machine is there: 0000:99:00.0');
      expect(buildSystem(root, { parameters: defaultParameters }).gpus.length).toBe(2);
      expect(named(file, 'gpu')).toEqual([]);
    });

    it('the file of a virtual machine', () => {
      const { root, notes } = detectMachine(
        madeMachine({ ...twoGpus, 'var/run/nvidia-topologyd/virtualTopology.xml': writeXml(file) }),
      );
      expect(notes[1]).toBe(
        'it begins with /var/run/nvidia-topologyd/virtualTopology.xml, as NCCL does where NCCL_TOPO_FILE is not set',
      );
      expect(named(root, 'gpu')[0]?.parent?.parent?.attributes.get('busid')).toBe('ffff:ff:01.0');
    });
  });

  it('a GPU that the catalogue does not know', () => {
    const files = madeMachine({
      ...pciDevice('pci0000:00/0000:00:05.0', { class: '0x030000', vendor: '0x10de', device: '0xffff', numa_node: '-1' }),
      'proc/cpuinfo': 'cpu\t\t: POWER9, altivec supported\n',
      'sys/devices/system/cpu/online': '0-3,40',
    });
    const { root, notes } = detectMachine(files);
    expect(notes).toEqual([
      'GPUs that the catalogue does not know have no <gpu>: 0000:00:05.0 (device 0xffff); tccl topo complete --hardware adds them',
    ]);
    expect(root.children.map(attributes)).toEqual([
      { numaid: '0', affinity: '00000100,0000000f', arch: 'ppc64' },
      { numaid: '-1', affinity: '', arch: 'ppc64' },
    ]);
    expect(attributes(named(root, 'pci')[0])).toMatchObject({ link_speed: '', link_width: '0' });
  });

  it('an empty folder is a machine without known properties', () => {
    const { root } = detectMachine(madeMachine({ 'etc/hostname': 'x' }));
    expect(root.children.map(attributes)).toEqual([{ numaid: '0', affinity: '00000000' }]);
  });

  it('symbolic links do not lead out of the folder', () => {
    const files = madeMachine({ 'sys/out': 'link:../../../../../../../../etc', 'sys/in/file': 'text' });
    expect(files.resolve('/sys/out')).toBeUndefined();
    expect(files.resolve('/sys/in')).toBe('/sys/in');
    expect(files.readText('/sys/in/file')).toBe('text');
    expect(files.list('/sys/none')).toEqual([]);
  });
});

const compiler = spawnSync('cc', ['--version'], { stdio: 'ignore' }).status === 0;

describe('NVML', () => {
  it('gives the reason when it is unavailable', () => {
    expect(askNvml('libno-such-library.so')).toEqual({ reason: expect.stringMatching(/^NVML cannot be loaded \(/) as unknown });
  });

  it.skipIf(!compiler)('reports the values of a library with its interface', () => {
    const library = join(folder, 'libfake-nvml.so');
    const source = fileURLToPath(new URL('fixtures/fake-nvml.c', import.meta.url));
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, source]);
    expect(askNvml(library)).toEqual({
      gpus: [
        {
          busId: '0008:01:00.0',
          dev: 0,
          sm: 100,
          pciIds: { vendor: 0x10de, device: 0x2941, subsystemVendor: 0x10de, subsystemDevice: 0x2046 },
          pciGeneration: 5,
          pciLanes: 16,
          c2c: { bandwidthMBps: 44_712, count: 5 },
          nvlinks: [{ target: 'fffffff:ffff:ff', count: 17 }],
        },
        {
          busId: '0000:1b:00.0',
          dev: 1,
          sm: 80,
          pciIds: { vendor: 0x10de, device: 0x20b0, subsystemVendor: 0x10de, subsystemDevice: 0x144f },
          pciGeneration: undefined,
          pciLanes: 8,
          c2c: undefined,
          nvlinks: [
            { target: '0000:c4:00.0', count: 6 },
            { target: '0000:c5:00.0', count: 6 },
          ],
        },
      ],
    });
  });
});
