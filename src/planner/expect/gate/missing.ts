import { counted } from '../../../counted.js';
import type { LogPlace } from '../../log/lines/line.js';
import type { LogModel } from '../../log/job/model.js';
import { type CopyTest, pairsOf } from '../../readers/copy-test.js';
import type { AnyToolOutput } from '../../readers/formats.js';
import type { DeviceMatrix } from '../../readers/matrix.js';
import { devicesOf } from '../../topology/doctor/inventory.js';
import { type HostNeeds, type LinkNeed, linkOf, needsOf, nvlinksOf } from './needs.js';

/** Parts of hosts, in the order in which a gate reports them: later ones depend on earlier ones. */
export const gateParts = ['hosts', 'gpus', 'nics', 'nic-rate', 'pcie', 'nvlinks', 'data', 'bandwidth'] as const;
export type GatePart = (typeof gateParts)[number];

/** A part that the results show to be missing or slow. */
export interface Missing {
  readonly part: GatePart;
  /** Name of the host, or undefined if the results do not name it. */
  readonly host: string | undefined;
  readonly problem: string;
  /** A command that shows it, or the remedy. */
  readonly check: string;
  readonly place: LogPlace | undefined;
}

/** Parts that the results show, and what is missing, the most basic first. */
export interface Shown {
  readonly missing: readonly Missing[];
  /** Parts about which the results say something. */
  readonly shown: ReadonlySet<GatePart>;
}

/** Compares outputs and logs with the parts of a cluster. */
export function missingParts(model: LogModel, needs: HostNeeds, nHosts: number): Shown {
  const found = new PartsFound(needs);
  for (const table of model.tables) {
    const place = table.rows[0]?.place;
    if (table.nRanks !== undefined) {
      found.shown.add('hosts');
      const names = table.hosts.join(', ');
      if (table.hosts.length < nHosts && table.hosts.length < MOST_NAMED)
        found.add(
          'hosts',
          undefined,
          place,
          `${counted(table.hosts.length, 'host')} of ${nHosts} (${names})`,
          'sinfo or kubectl get nodes',
        );
      for (const [host, nRanks] of table.ranksOfHosts) found.gpus(host, nRanks, place, 'ranks');
    }
    if (table.wrong > 0)
      found.add(
        'data',
        undefined,
        table.firstWrong?.place ?? place,
        `${counted(table.wrong, 'wrong element')} in results of ${table.collective ?? 'a table'}`,
        'a GPU, link or NIC that corrupts data: nvidia-smi -q -d ECC, dcgmi diag -r 3',
      );
    else if (!Number.isNaN(table.wrong)) found.shown.add('data');
  }
  if (nHosts > 1) checkNetwork(model, found);
  const devices = new Set(
    model.tools.flatMap((output) => (output.tool === 'ports' ? output.facts.ports.map(({ device }) => device) : [])),
  );
  for (const output of model.tools) checkTool(output, found, nHosts, devices);
  for (const { root, place } of model.topologies) {
    const is = needsOf(root);
    found.gpus(undefined, is.gpus, place, 'GPUs');
    found.nics(undefined, is.nets, place);
    if (is.nets > 0 && is.netGbps > 0) found.rate(undefined, `a NIC`, is.netGbps, place);
    const { gpus, nets } = devicesOf(root);
    for (const { pci } of gpus)
      found.link(undefined, 'GPU', pci.element.attributes.get('busid') ?? '', linkOf(pci.element), place);
    for (const { pci } of nets)
      if (pci !== undefined) found.link(undefined, 'NIC', pci.element.attributes.get('busid') ?? '', linkOf(pci.element), place);
    for (const { element, pci } of gpus)
      found.nvlinks(undefined, `GPU ${pci.element.attributes.get('busid') ?? ''}`, nvlinksOf(element), place);
  }
  const rank = ({ part }: Missing) => gateParts.indexOf(part);
  return { missing: [...found.missing].sort((a, b) => rank(a) - rank(b)), shown: found.shown };
}

/** Names of hosts that a head of a table lists at most. */
const MOST_NAMED = 64;

/** NICs that processes of NCCL use. */
function checkNetwork(model: LogModel, found: PartsFound): void {
  const seen = new Set<string>();
  for (const { host, devices, network } of model.processes) {
    if (network === undefined || seen.has(host)) continue;
    seen.add(host);
    const used = devices.get(network.name) ?? [...devices].find(([name]) => name.includes(network.name))?.[1];
    if (network.name === 'Socket' && found.needs.netGbps >= FAST_GBPS)
      found.add(
        'nics',
        host,
        network.place,
        'NCCL uses sockets in place of the NICs’ own plugin',
        'ibv_devinfo; NCCL_IB_DISABLE, NCCL_NET, libraries in the container',
      );
    else if (used !== undefined) found.nics(host, used.devices.length, used.place);
  }
}

/** Sockets carry less than NICs of this rate, Gb/s. */
const FAST_GBPS = 100;

/** @param devices names of network devices of all hosts */
function checkTool(
  { tool, facts, host: named, place }: AnyToolOutput,
  found: PartsFound,
  nHosts: number,
  devices: ReadonlySet<string>,
): void {
  const host = named === '' ? undefined : named;
  switch (tool) {
    case 'nvidia-smi':
      found.gpus(host, facts.gpus.length, place, 'GPUs');
      return;
    case 'nvidia-smi -q':
      found.gpus(host, facts.gpus.length, place, 'GPUs');
      for (const { busId, values } of facts.gpus) {
        const generation = Number(values.get('PCI/GPU Link Info/PCIe Generation/Current')?.value);
        const lanes = Number.parseInt(values.get('PCI/GPU Link Info/Link Width/Current')?.value ?? '', 10);
        const gtps = gtpsOfGenerations[generation];
        if (gtps !== undefined && lanes > 0) found.link(host, 'GPU', busId, { gtps, lanes }, place);
      }
      return;
    case 'nvlink':
      found.gpus(host, facts.gpus.length, place, 'GPUs');
      // The heads alone are also what nvidia-smi -L prints, which has no links.
      if (facts.gpus.every(({ active, inactive }) => active + inactive === 0)) return;
      for (const { name, active, place: at } of facts.gpus) found.nvlinks(host, name, active, at);
      return;
    case 'nvbandwidth':
      checkCopies(facts, found, host, place);
      return;
    case 'topo':
      checkMatrix(facts, found, host, place);
      return;
    case 'lspci':
      for (const { busId, description, actual, isBridge, place: at } of facts.devices) {
        if (isBridge || actual === undefined) continue;
        const is = { gtps: actual.gtps, lanes: actual.width };
        if (/NVIDIA.*(?:3D|VGA)|(?:3D|VGA).*NVIDIA/i.test(description)) found.link(host, 'GPU', busId, is, at);
        else if (/Mellanox|ConnectX|Infiniband/i.test(description) && nHosts > 1) found.link(host, 'NIC', busId, is, at);
      }
      return;
    case 'ports': {
      const fast = facts.ports.filter(({ rate }) => rate === undefined || rate >= found.needs.netGbps / 4);
      const active = fast.filter(({ isActive }) => isActive !== false);
      const down = fast.find(({ isActive }) => isActive === false);
      const [absent] = [...devices].filter((name) => facts.ports.every(({ device }) => device !== name));
      const detail = down !== undefined ? ` (${down.device} is down)` : absent === undefined ? '' : ` (${absent} is not there)`;
      found.nics(host, active.length, down?.place ?? place, detail);
      for (const { device, rate, place: at } of active) if (rate !== undefined) found.rate(host, device, rate, at);
      return;
    }
    default:
  }
}

/** Links that copies of nvbandwidth show to be slow. */
function checkCopies({ products, cases }: CopyTest, found: PartsFound, host: string | undefined, place: LogPlace): void {
  if (products.size > 0) found.gpus(host, products.size, place, 'GPUs');
  for (const test of cases) {
    const { name, kind, gbps, isWaived, isWrong, place: at } = test;
    if (isWrong) found.add('data', host, at, `nvbandwidth read back other data than it had written (${name})`, 'dcgmi diag -r 3');
    // Kernels copy from the memory of the host with less than the link carries.
    if (kind === 'host' && name.endsWith('_ce')) found.copiesToHost(host, gbps, at);
    if (kind !== 'pair' || !found.needs.hasNvSwitch || found.needs.nvlinks === 0) continue;
    if (isWaived)
      found.add('nvlinks', host, at, `no pair of GPUs has P2P (nvbandwidth left out ${name})`, 'nvidia-smi topo -p2p r');
    else found.copiesBetween(host, pairsOf(test), at);
  }
}

/** GPUs, network devices and NVLinks of a matrix of `nvidia-smi topo -m`. */
function checkMatrix(matrix: DeviceMatrix, found: PartsFound, host: string | undefined, place: LogPlace): void {
  const isGpu = (device: string) => /^GPU\d/.test(device);
  const gpus = matrix.rows.filter(({ device }) => isGpu(device));
  const nics = matrix.columns.filter((device) => !isGpu(device)).length;
  found.gpus(host, gpus.length, place, 'GPUs');
  if (matrix.kind !== 'paths') return;
  if (nics > 0) found.nics(host, nics, place);
  for (const { device, cells, place: at } of gpus) {
    const counts = cells.flatMap((cell, column) => {
      const other = matrix.columns[column] ?? '';
      return isGpu(other) && other !== device ? [Number(/^NV(\d+)$/.exec(cell)?.[1] ?? 0)] : [];
    });
    if (counts.length > 0)
      found.nvlinks(host, device, found.needs.hasNvSwitch ? Math.min(...counts) : counts.reduce((a, b) => a + b, 0), at);
  }
}

/** GT/s of a lane by PCIe generation. */
const gtpsOfGenerations: Readonly<Record<number, number>> = { 1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64 };
/** A GPU without work lowers its link to this. */
const IDLE_GTPS = 2.5;
/** Copies reach four fifths of what links carry; half of the lanes is below. */
const COPY_SHARE = 0.55;

/** Collects what is missing. */
class PartsFound {
  readonly missing: Missing[] = [];
  readonly shown = new Set<GatePart>();

  constructor(readonly needs: HostNeeds) {}

  add(part: GatePart, host: string | undefined, place: LogPlace | undefined, problem: string, check: string): void {
    this.shown.add(part);
    if (!this.missing.some((each) => each.part === part && each.host === host && each.problem === problem))
      this.missing.push({ part, host, problem, check, place });
  }

  gpus(host: string | undefined, count: number, place: LogPlace | undefined, what: string): void {
    this.shown.add('gpus');
    if (count < this.needs.gpus)
      this.add('gpus', host, place, `${count} of ${this.needs.gpus} ${what}`, 'nvidia-smi -L; dmesg | grep -i xid');
  }

  nics(host: string | undefined, count: number, place: LogPlace | undefined, detail = ''): void {
    if (this.needs.nets === 0) return;
    this.shown.add('nics');
    if (count < this.needs.nets)
      this.add('nics', host, place, `${count} of ${this.needs.nets} NICs${detail}`, 'ibstat, ip link; NCCL_IB_HCA');
  }

  rate(host: string | undefined, name: string, gbps: number, place: LogPlace | undefined): void {
    if (this.needs.netGbps === 0) return;
    this.shown.add('nic-rate');
    if (gbps < this.needs.netGbps)
      this.add(
        'nic-rate',
        host,
        place,
        `${name} runs at ${gbps} of ${this.needs.netGbps} Gb/s`,
        'ibstat (Rate); a cable or switch port that trained down',
      );
  }

  link(host: string | undefined, kind: 'GPU' | 'NIC', name: string, is: LinkNeed | undefined, place: LogPlace | undefined): void {
    const need = kind === 'GPU' ? this.needs.gpuLink : this.needs.nicLink;
    if (need === undefined || is === undefined) return;
    this.shown.add('pcie');
    const isIdle = kind === 'GPU' && is.gtps === IDLE_GTPS;
    if (is.lanes < need.lanes || (is.gtps < need.gtps && !isIdle))
      this.add(
        'pcie',
        host,
        place,
        `the PCIe link of ${kind} ${name} has ${is.lanes} lanes of ${is.gtps} GT/s, not ${need.lanes} of ${need.gtps}`,
        'lspci -vv (LnkSta, downgraded) under load; reseat the card or riser',
      );
  }

  nvlinks(host: string | undefined, name: string, count: number, place: LogPlace | undefined): void {
    if (this.needs.nvlinks === 0) return;
    this.shown.add('nvlinks');
    if (count < this.needs.nvlinks)
      this.add(
        'nvlinks',
        host,
        place,
        `${name} has ${count} of ${this.needs.nvlinks} NVLinks`,
        'nvidia-smi nvlink -s; nvidia-smi -q (Fabric)',
      );
  }

  copiesToHost(host: string | undefined, gbps: ReadonlyMap<string, number>, place: LogPlace): void {
    const need = this.needs.gpuLink;
    if (need === undefined || gbps.size === 0) return;
    this.shown.add('pcie');
    const linkGBps = (need.gtps * need.lanes) / 8;
    const [worst] = slowest(gbps, COPY_SHARE * linkGBps);
    if (worst !== undefined)
      this.add(
        'pcie',
        host,
        place,
        `copies between GPU ${worst[0].split(' ')[1] ?? ''} and its host reach ${worst[1].toFixed(1)} GB/s, ${need.lanes} lanes of ${need.gtps} GT/s carry ${linkGBps.toFixed(0)}`,
        'lspci -vv (LnkSta, downgraded) under load; reseat the card or riser',
      );
  }

  copiesBetween(host: string | undefined, gbps: ReadonlyMap<string, number>, place: LogPlace): void {
    if (gbps.size === 0) return;
    this.shown.add('nvlinks');
    const slow = slowest(gbps, COPY_SHARE * this.needs.nvlinkGBps);
    const [worst] = slow;
    if (worst !== undefined)
      this.add(
        'nvlinks',
        host,
        place,
        `copies between GPUs ${worst[0].replace(' ', ' and ')} reach ${worst[1].toFixed(1)} GB/s, ${this.needs.nvlinks} NVLinks carry ${this.needs.nvlinkGBps.toFixed(0)}; ${slow.length} of ${gbps.size} are this slow`,
        'nvidia-smi nvlink -s; nvidia-smi -q (Fabric)',
      );
  }
}

/** Those below a bound, the slowest first. */
function slowest(gbps: ReadonlyMap<string, number>, leastGBps: number): (readonly [pair: string, gbps: number])[] {
  return [...gbps].filter(([, rate]) => rate < leastGBps).sort(([, a], [, b]) => a - b);
}
