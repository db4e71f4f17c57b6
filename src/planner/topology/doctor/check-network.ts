import { nicModels } from '../catalogue/nics.js';
import { GdrMode, GpuDirect } from '../paths/gdr.js';
import { computePaths } from '../paths/compute-paths.js';
import { findPaths } from '../paths/find-paths.js';
import { Locality } from '../paths/locality.js';
import { NodeType, PathType } from '../types.js';
import { formatGBps } from '../format.js';
import { describeGain, upwards } from './check-links.js';
import { type GpuDevice, gpuName, integer, isInUse, type NetDevice, type Inventory, type PciDevice } from './inventory.js';

/** Checks network devices: speed, GPU Direct RDMA, and their distances to GPUs. */
export function checkNetwork(inventory: Inventory): void {
  const { nets, findings, root, graph } = inventory;
  if (nets.length === 0) {
    findings.add(root, {
      code: 'no-nic',
      severity: 'info',
      problem: 'the file has no network device',
      consequence: 'several hosts need one each; NCCL adds those that it finds',
      remedy: 'tccl topo complete FILE --hardware "8 x 400G NIC" adds them',
    });
    return;
  }
  for (const net of nets) checkSpeed(inventory, net);
  checkGdrAttributes(inventory);
  checkSharedUplinks(inventory);
  if (graph === undefined) return;
  checkGdrDistance(inventory, checkDistance(inventory));
  checkEvenness(inventory);
}

function checkSpeed({ nets, findings }: Inventory, { element, pci, bandwidthGBps }: NetDevice): void {
  const speed = integer(element, 'speed', 0);
  const model =
    pci === undefined
      ? undefined
      : nicModels.find(
          ({ vendor, device }) => integer(pci.element, 'vendor', 0) === vendor && integer(pci.element, 'device', 0) === device,
        );
  const fastest = Math.max(...nets.map((net) => net.bandwidthGBps));
  const isFast = model !== undefined && model.speedMbps > 10_000;
  // A real 10 Gb/s port is not a fault.
  if (speed > 0 && !(speed === 10_000 && isFast)) return;
  const couldBe = isFast ? model.speedMbps / 8000 : fastest;
  findings.add(element, {
    code: 'nic-default-speed',
    severity: couldBe > bandwidthGBps ? 'warning' : 'info',
    problem:
      speed === 10_000
        ? 'speed="10000" is what NCCL puts where it knows nothing, and this card is faster'
        : `${element.attributes.has('speed') ? `speed="${element.attributes.get('speed') ?? ''}"` : 'speed missing'}: NCCL takes 10 Gb/s`,
    consequence:
      couldBe > bandwidthGBps
        ? `the search counts on ${formatGBps(bandwidthGBps)} instead of ${formatGBps(couldBe)} GB/s, and makes fewer channels`
        : `the search counts on ${formatGBps(bandwidthGBps)} GB/s`,
    ...(couldBe > bandwidthGBps ? { gbps: { is: bandwidthGBps, couldBe } } : {}),
    remedy: 'write the speed of the port in Mb/s (cat /sys/class/net/NAME/speed, ibstat); check that the link is up',
  });
}

function checkGdrAttributes({ gpus, nets, findings }: Inventory): void {
  const fastest = Math.max(...nets.map((net) => net.bandwidthGBps));
  const hasRdma = nets.some((net) => (net.element.attributes.get('gdr') ?? '0') !== '0');
  for (const { element } of gpus) {
    if (element.attributes.get('gdr') !== '0') continue;
    findings.add(
      element,
      gdrOff('the GPU', fastest, hasRdma, 'load nvidia-peermem, or a driver and kernel with DMA-BUF; GeForce cards cannot'),
    );
  }
  for (const { element, pci, bandwidthGBps } of nets) {
    if ((element.attributes.get('gdr') ?? '0') !== '0' || pci === undefined) continue;
    findings.add(
      element,
      gdrOff(
        'the network card',
        bandwidthGBps,
        bandwidthGBps >= RDMA_GBPS,
        'load nvidia-peermem, or a kernel and rdma-core with DMA-BUF; sockets cannot',
      ),
    );
  }
}

/** Cards of 100 Gb/s and more are meant for RDMA. */
const RDMA_GBPS = 12.5;

function gdrOff(what: string, netGBps: number, isLoss: boolean, remedy: string) {
  return {
    code: 'gdr-off' as const,
    severity: isLoss ? ('warning' as const) : ('info' as const),
    problem: `${what} has no GPU Direct RDMA (gdr="0" or none)`,
    consequence: `its data goes through the memory of the host, twice over PCI and memory: at best about ${formatGBps(
      netGBps / 2,
    )} of ${formatGBps(netGBps)} GB/s where PCI is the limit`,
    gbps: { is: netGBps / 2, couldBe: netGBps },
    remedy,
  };
}

/** Checks for cards at one switch without a GPU whose ports together exceed the switch's link up. */
function checkSharedUplinks({ pcis, nets, findings }: Inventory): void {
  for (const pci of pcis) {
    if (isInUse(pci) || pci.bandwidthGBps === 0) continue;
    const below = nets.filter((net) => net.pci !== undefined && net.pci !== pci && upwards(net.pci).includes(pci));
    const cards = new Set(below.map((net) => net.pci));
    const sum = below.reduce((total, net) => total + Math.min(net.bandwidthGBps, net.pci?.bandwidthGBps ?? 0), 0);
    if (cards.size < 2 || sum <= pci.bandwidthGBps * 1.1) continue;
    findings.add(pci.element, {
      code: 'nic-shared-uplink',
      severity: 'warning',
      problem: `${cards.size} network cards share its link of ${formatGBps(pci.bandwidthGBps)} GB/s, and no GPU is at this switch`,
      consequence: `together they move ${formatGBps(pci.bandwidthGBps)} instead of ${formatGBps(sum)} GB/s`,
      gbps: { is: pci.bandwidthGBps, couldBe: sum },
      remedy: 'put one of them at another switch, beside GPUs where there is room',
    });
  }
}

/** Checks for GPUs whose nearest network device is across sockets. Returns these GPUs. */
function checkDistance({ gpus, nets, graph, findings, parameters }: Inventory): Set<GpuDevice> {
  const far = new Set<GpuDevice>();
  if (graph === undefined || graph.system.nets.length === 0) return far;
  const { system } = graph;
  const paths = findPaths(system, parameters);
  const fastest = Math.max(...nets.map((net) => net.bandwidthGBps));
  for (const node of system.gpus) {
    const own = system.nets
      .filter((net) => net.systemId === node.systemId)
      .map((net) => paths.between(NodeType.GPU, node.index, NodeType.NET, net.index));
    const best = Math.min(...own.map((path) => paths.type[path] ?? PathType.DIS));
    const device = gpus.find(({ element }) => integer(element, 'rank', -1) === node.rank);
    if (best !== PathType.SYS || device === undefined) continue;
    far.add(device);
    const is = Math.max(...own.map((path) => paths.bandwidthGBps[path] ?? 0));
    const couldBe = Math.min(fastest, device.pci.bandwidthGBps);
    const isLoss = couldBe > is * 1.05 || (node.gdr && system.nets.some((net) => net.gdr));
    findings.add(device.element, {
      code: 'nic-across-sockets',
      severity: isLoss ? 'warning' : 'info',
      problem: 'its nearest network device is at another CPU',
      consequence: `it reaches the network with ${formatGBps(is)}${couldBe > is ? ` instead of ${formatGBps(couldBe)}` : ''} GB/s, and without GPU Direct RDMA`,
      gbps: { is, couldBe: Math.max(is, couldBe) },
      remedy:
        'put a network card below the same CPU, best at the same switch; with NVLink, NCCL may go by way of a GPU that is nearer (PXN)',
    });
  }
  return far;
}

/** Checks for GPUs without GPU Direct RDMA although both ends support it, because NCCL considers every device too far. */
function checkGdrDistance({ gpus, graph, parameters, findings }: Inventory, knownFar: ReadonlySet<GpuDevice>): void {
  if (graph === undefined) return;
  const { system } = graph;
  const paths = computePaths(system, parameters);
  const direct = new GpuDirect(system, paths, new Locality(system, paths, parameters), parameters);
  const tooFar: GpuDevice[] = [];
  for (const node of system.gpus) {
    const able = system.nets.filter((net) => net.gdr && net.systemId === node.systemId);
    if (!node.gdr || able.length === 0) continue;
    if (able.some((net) => direct.mode(node.index, net.index, 'write') !== GdrMode.DISABLED)) continue;
    const device = gpus.find(({ element }) => integer(element, 'rank', -1) === node.rank);
    if (device !== undefined && !knownFar.has(device)) tooFar.push(device);
  }
  for (const gpu of tooFar) {
    const isFlat = upwards(gpu.pci).length === 1;
    findings.add(gpu.element, {
      code: 'gdr-too-far',
      severity: 'warning',
      problem: isFlat
        ? 'it hangs at the CPU without a PCI switch, so every network device is at host-bridge distance (PHB)'
        : 'no network device is at its PCI switches (PIX or PXB)',
      consequence: `NCCL does not use GPU Direct RDMA there: data goes through the memory of the host, at about ${formatGBps(
        gpu.pci.bandwidthGBps / 2,
      )} of ${formatGBps(gpu.pci.bandwidthGBps)} GB/s where PCI is the limit`,
      gbps: { is: gpu.pci.bandwidthGBps / 2, couldBe: gpu.pci.bandwidthGBps },
      remedy: isFlat
        ? 'in a virtual machine, write a file in which GPUs and cards that share a physical switch share a <pci> (its bus id may be invented); or NCCL_NET_GDR_LEVEL=PHB where the platform allows it'
        : 'move a card to the switch of the GPU, or set NCCL_NET_GDR_LEVEL=PHB where the platform allows it',
    });
  }
}

/** Checks for a GPU without a device at its switch, where another GPU has two of its own. */
function checkEvenness({ gpus, nets, findings, graph }: Inventory): void {
  const shares = gpus.map((gpu) => ({
    gpu,
    cards: cardsAtSwitchOf(gpu, nets),
    rivals: gpus.filter((other) => top(other.pci) === top(gpu.pci)).length,
  }));
  const rich = shares.find(({ cards, rivals }) => cards.length >= 2 * rivals);
  if (rich === undefined) return;
  for (const { gpu, cards } of shares) {
    if (cards.length > 0) continue;
    const gain = graph?.measure.gain((copyOf) => {
      // Gain if one of the two cards moves to its switch, or beside it.
      const card = rich.cards.at(-1)?.element;
      const target = gpu.pci.element.parent;
      if (card === undefined || target === undefined) return;
      const moved = copyOf(card);
      const siblings = moved.parent?.children;
      siblings?.splice(siblings.indexOf(moved), 1);
      moved.parent = copyOf(target);
      copyOf(target).children.push(moved);
    });
    findings.add(gpu.element, {
      code: 'nic-uneven',
      severity: 'warning',
      problem: `no network card is at its switch, while ${gpuName(rich.gpu)} has ${rich.cards.length}`,
      consequence: gain === undefined ? 'it shares the cards of others, by way of the CPU or NVLink' : describeGain(gain),
      ...(gain === undefined ? {} : { gbps: { is: gain.is, couldBe: gain.couldBe } }),
      remedy: `move one of the cards of ${gpuName(rich.gpu)} to the switch of this GPU`,
    });
  }
}

/** The switch directly below the CPU; undefined for a GPU without one. */
function top(pci: PciDevice): PciDevice | undefined {
  const way = upwards(pci);
  return way.length < 2 ? undefined : way.at(-1);
}

function cardsAtSwitchOf(gpu: GpuDevice, nets: readonly NetDevice[]): PciDevice[] {
  const own = top(gpu.pci);
  if (own === undefined) return [];
  const cards = nets.filter((net) => net.pci !== undefined && upwards(net.pci).at(-1) === own).map((net) => net.pci);
  return [...new Set(cards)].filter((card) => card !== undefined);
}
