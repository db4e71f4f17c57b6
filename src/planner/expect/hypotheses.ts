import type { ClusterChange } from '../plan/changed-cluster.js';
import {
  halveNvlinks,
  keepNics,
  laneSpeed,
  limitLanes,
  limitPcie,
  named,
  nicDevices,
  scaleNicSpeed,
  setNicSpeed,
  withoutGdr,
} from '../plan/machine-edits.js';
import { linkSpeeds } from '../topology/catalogue/build.js';
import { createElement, detach, type XmlElement } from '../topology/xml/tree.js';
import type { Environment } from '../simulate/environment.js';

/** A possible fault, as a change of the cluster or of its environment. */
export interface Hypothesis extends ClusterChange {
  readonly code: string;
  /** The hypothesis in words. */
  readonly what: string;
  /** Command or check that confirms it. */
  readonly check: string;
  /** Of hypotheses with the same family only the best is shown. */
  readonly family: string;
  readonly simulated?: Partial<Environment>;
}

/** Hypotheses about a slow cluster: settings first, which are easy to check, then devices. @param machines one of each kind */
export function hypothesesFor(machines: readonly XmlElement[], nHosts: number): Hypothesis[] {
  return [...settingHypotheses(), ...(nHosts > 1 ? networkHypotheses(machines) : []), ...machineHypotheses(machines)];
}

function setting(name: string, value: string, what: string): Hypothesis {
  return {
    code: `${name}=${value}`,
    family: name,
    what,
    check: `look for ${name} in the environment of the ranks and in /etc/nccl.conf; NCCL_DEBUG=INFO prints the variables that are set`,
    variable: { name, value },
  };
}

function settingHypotheses(): Hypothesis[] {
  return [
    setting('NCCL_NVLS_ENABLE', '0', 'NVLink SHARP is off'),
    setting('NCCL_PROTO', '^LL', 'protocol LL is off'),
    setting('NCCL_PROTO', '^LL128', 'protocol LL128 is off'),
    setting('NCCL_PROTO', 'Simple', 'only protocol Simple is used'),
    setting('NCCL_PROTO', 'LL', 'only protocol LL is used'),
    setting('NCCL_ALGO', 'Ring', 'only algorithm Ring is used'),
    setting('NCCL_ALGO', 'Tree', 'only algorithm Tree is used'),
    setting(
      'NCCL_P2P_DISABLE',
      '1',
      'GPUs of a host do not reach each other directly (P2P is off, or ACS or an IOMMU prevents it)',
    ),
    setting('NCCL_PXN_DISABLE', '1', 'no GPU sends through the NIC of another (PXN is off)'),
    setting('NCCL_CROSS_NIC', '0', 'rings keep to one rail (NCCL_CROSS_NIC is 0)'),
    ...['1', '2', '4', '8'].map((count) =>
      setting(
        'NCCL_MAX_NCHANNELS',
        count,
        count === '1' ? 'only one channel is used' : `no more than ${count} channels are used`,
      ),
    ),
  ];
}

/**
 * GB/s that the sockets of a host carry in each direction at most. Each byte sent crosses its memory four times (GPU to buffer,
 * read and written by the kernel's copy, NIC), as does each byte received; the memory of two CPUs with DDR5 carries 500 GB/s.
 */
const SOCKETS_GBPS = 60;

function networkHypotheses(machines: readonly XmlElement[]): Hypothesis[] {
  const fewest = Math.min(...machines.map((machine) => named(machine, 'net').length));
  if (fewest === 0) return [];
  const hostGBps = Math.min(
    ...machines.map((machine) =>
      named(machine, 'net').reduce((sum, { attributes }) => sum + Number(attributes.get('speed')) / 8000, 0),
    ),
  );
  const nics = (count: number): Hypothesis => ({
    code: `nics-${count}`,
    family: 'nics',
    what: count === 1 ? 'one NIC of each host is used' : `${count} of the NICs of each host are used`,
    check: 'NCCL_IB_HCA and NCCL_NETDEVS_POLICY; NCCL_DEBUG=INFO lists the NICs behind NET/IB : Using',
    apply: keepNics(count),
  });
  return [
    {
      code: 'gdr-off',
      family: 'gdr',
      what: 'NICs do not read and write GPU memory (GPUDirect RDMA is off)',
      check:
        'lsmod | grep nvidia_peermem (or dma-buf); with NCCL_DEBUG=INFO, connections of channels say GDRDMA; NCCL_NET_GDR_LEVEL',
      apply: withoutGdr,
    },
    ...(machines.every(hasNicsNearAllGpus)
      ? [
          {
            code: 'nics-across-cpus',
            family: 'nic-place',
            what: 'the NICs are at another CPU than the GPUs: data cross the link between the CPUs, without GPUDirect RDMA',
            check:
              'nvidia-smi topo -m shows SYS between GPUs and NICs; take GPUs near the NIC, or put the card into a slot of the GPUs’ CPU',
            apply: acrossCpus,
          },
        ]
      : []),
    {
      code: 'sockets',
      family: 'gdr',
      what: 'data go through sockets of the kernel instead of the NICs’ own plugin, without GPUDirect RDMA',
      check: 'NCCL_DEBUG=INFO says Using network Socket; NCCL_IB_DISABLE, missing libibverbs or plugin in the container',
      apply: withoutGdr,
      simulated: { network: 'sockets', oversubscription: Math.max(1, hostGBps / SOCKETS_GBPS) },
    },
    ...[10, 25, 100].map((gbit): Hypothesis => ({
      code: `management-${gbit}g`,
      family: 'gdr',
      what: `data go through sockets on one interface of ${gbit} Gb/s, as a management network`,
      check:
        'NCCL_DEBUG=INFO says Using network Socket and the interface behind NET/Socket : Using; NCCL_SOCKET_IFNAME, NCCL_IB_DISABLE, missing libibverbs or plugin in the container',
      apply: (machine) => {
        keepNics(1)(machine);
        setNicSpeed(1000 * gbit)(machine);
        withoutGdr(machine);
      },
      simulated: { network: 'sockets' },
    })),
    ...[1, 2, 4].filter((count) => count < fewest).map(nics),
    ...(fewest > 1
      ? [
          {
            code: 'nic-down',
            family: 'nics',
            what: 'one NIC of one host is down',
            check: 'ibstat or ip link on every host; nccl-tests between pairs of hosts finds it',
            apply: keepNics(fewest - 1),
            isOneHost: true,
          },
        ]
      : []),
    ...[2, 4].map((part): Hypothesis => ({
      code: `nic-speed-1/${part}`,
      family: 'nic-speed',
      what: `NICs run at ${part === 2 ? 'half' : 'a quarter'} of their speed`,
      check: 'ibstat shows the Rate of each port; a cable or switch port may have trained down',
      apply: scaleNicSpeed(1 / part),
    })),
    ...[2, 3, 4].map((ratio): Hypothesis => ({
      code: `oversubscribed-${ratio}`,
      family: 'nic-speed',
      what: `the fabric between the hosts carries a ${['', '', 'half', 'third', 'quarter'][ratio] ?? ''} of what their NICs send: oversubscription, congestion, or flows that share a link`,
      check:
        'measure pairs of hosts below one switch against pairs across switches; counters of pauses and congestion on the switches',
      simulated: { oversubscription: ratio },
    })),
  ];
}

function machineHypotheses(machines: readonly XmlElement[]): Hypothesis[] {
  const fastest = Math.max(...machines.flatMap((machine) => named(machine, 'pci')).map((pci) => laneSpeed(pci) || 0));
  const generations = ([5, 4, 3] as const).filter((generation) => Number.parseFloat(linkSpeeds[generation]) < fastest);
  const hasNvlink = machines.some((machine) => named(machine, 'nvlink').length > 0);
  const hasSwitches = machines.some((machine) =>
    named(machine, 'pci').some((pci) => pci.children.some(({ name }) => name === 'pci')),
  );
  return [
    ...generations.map((generation): Hypothesis => ({
      code: `pcie-gen${generation}`,
      family: 'pcie',
      what: `PCIe runs at Gen${generation}`,
      check: 'lspci -vv shows LnkSta (downgraded) of GPUs, NICs and switches; nvidia-smi -q -d PCIE',
      apply: limitPcie(generation),
    })),
    {
      code: 'pcie-x8',
      family: 'pcie',
      what: 'PCIe links have half of their lanes',
      check: 'lspci -vv shows LnkSta: Width x8 (downgraded)',
      apply: limitLanes(8),
    },
    ...(hasSwitches
      ? [
          {
            code: 'flat-topology',
            family: 'flat-topology',
            what: 'NCCL does not see the PCIe switches: a virtual machine without its topology file',
            check: 'NCCL_TOPO_FILE; NCCL_TOPO_DUMP_FILE writes what NCCL sees, and tccl topo show draws it',
            apply: flatten,
          },
        ]
      : []),
    ...(hasNvlink
      ? [
          {
            code: 'nvlink-half',
            family: 'nvlink',
            what: 'half of the NVLinks are down',
            check: 'nvidia-smi nvlink -s; dmesg | grep -i xid',
            apply: halveNvlinks,
          },
        ]
      : []),
  ];
}

function cpusWithGpus(machine: XmlElement): XmlElement[] {
  return named(machine, 'cpu').filter((cpu) => named(cpu, 'gpu').length > 0);
}

/** True if all GPUs are at one CPU, and NICs, too. */
function hasNicsNearAllGpus(machine: XmlElement): boolean {
  const [near, ...others] = cpusWithGpus(machine);
  return near !== undefined && others.length === 0 && nicDevices(near).length > 0;
}

/** Attaches the network cards to another CPU than the GPUs'. */
function acrossCpus(machine: XmlElement): void {
  const [near] = cpusWithGpus(machine);
  if (near === undefined) return;
  const cpus = named(machine, 'cpu');
  const free = String(Math.max(...cpus.map(({ attributes }) => Number(attributes.get('numaid')))) + 1);
  const far = cpus.find((cpu) => cpu !== near) ?? createElement('cpu', near.parent, new Map(near.attributes).set('numaid', free));
  for (const device of nicDevices(near)) {
    detach(device);
    device.parent = far;
    far.children.push(device);
  }
}

/** Attaches devices directly to their CPU. */
function flatten(machine: XmlElement): void {
  for (const cpu of named(machine, 'cpu')) {
    const devices = named(cpu, 'pci').filter((pci) => pci.children.some(({ name }) => name === 'gpu' || name === 'nic'));
    for (const device of devices) {
      detach(device);
      device.parent = cpu;
      cpu.children.push(device);
    }
    for (const pci of cpu.children.filter(
      ({ name, children }) => name === 'pci' && children.every((child) => child.name === 'pci'),
    ))
      detach(pci);
  }
}
