import { gpuModels } from '../catalogue/gpus.js';
import { nicModels } from '../catalogue/nics.js';
import { mergeGroups } from '../combine/merge-nics.js';
import { formatGBps } from '../format.js';
import { descendants, type XmlElement } from '../xml/tree.js';
import { upwards } from './check-links.js';
import { integer, type Inventory, type NetDevice, type PciDevice } from './inventory.js';

/** Checks what several ports, cards or ranks share: a slot, a bond, a merged device, the room for elements. */
export function checkCards(inventory: Inventory): void {
  checkSlots(inventory);
  checkBonds(inventory);
  checkMerged(inventory);
  checkHalfPorts(inventory);
  checkHiddenSwitches(inventory);
  checkElements(inventory);
}

/** Network devices by card: functions of one PCI device, which share a slot. */
function byCard(nets: readonly NetDevice[]): NetDevice[][] {
  const cards = new Map<string, NetDevice[]>();
  for (const net of nets) {
    if (net.pci === undefined) continue;
    const key = net.pci.key.replace(/\.[0-9a-f]$/, '');
    cards.set(key, [...(cards.get(key) ?? []), net]);
  }
  return [...cards.values()];
}

function checkSlots({ nets, findings }: Inventory): void {
  for (const ports of byCard(nets)) {
    const slot = Math.max(...ports.map(({ pci }) => pci?.bandwidthGBps ?? 0));
    const sum = ports.reduce((total, { bandwidthGBps }) => total + bandwidthGBps, 0);
    const [first] = ports;
    // A port that alone exceeds the slot has a finding of its own.
    const isOne = ports.some(({ bandwidthGBps }) => slot < bandwidthGBps * 0.9);
    if (first?.pci === undefined || ports.length < 2 || slot === 0 || isOne || sum <= slot * 1.1) continue;
    const functions = new Set(ports.map(({ pci }) => pci)).size;
    findings.add(first.pci.element, {
      code: 'nic-slot-shared',
      severity: 'warning',
      problem: `its ${ports.length} ports of ${formatGBps(first.bandwidthGBps)} GB/s share a slot of ${formatGBps(slot)} GB/s`,
      consequence: `together they move ${formatGBps(slot)} instead of ${formatGBps(sum)} GB/s${
        functions > 1 ? '; NCCL counts a whole slot for each port, and plans rings that the slot does not carry' : ''
      }`,
      gbps: { is: slot, couldBe: sum },
      remedy:
        'a slot with more lanes or of a newer generation, or cards with one port each; NCCL_IB_HCA takes one port of the two',
    });
  }
}

function checkBonds({ nets, findings }: Inventory): void {
  for (const { element, bandwidthGBps, pci } of nets) {
    const carries = integer(element, 'carries', 0) / 8000;
    if (carries === 0 && !/bond/i.test(element.attributes.get('name') ?? '')) continue;
    const slot = pci === undefined || pci.bandwidthGBps === 0 ? Infinity : pci.bandwidthGBps;
    const most = Math.min(carries > 0 ? carries : 2 * bandwidthGBps, slot);
    const isLess = most > bandwidthGBps * 1.1;
    const seen = formatGBps(bandwidthGBps);
    findings.add(element, {
      code: 'nic-bonded',
      severity: carries > 0 && isLess ? 'warning' : 'info',
      problem: `it is a bond, which counts as one port of ${seen} GB/s`,
      consequence: !isLess
        ? 'its card carries no more than that'
        : carries > 0
          ? `it carries ${formatGBps(most)} GB/s, and NCCL plans channels for ${seen}`
          : `if two ports of that speed are in it, it carries up to ${formatGBps(most)} GB/s, and NCCL plans channels for ${seen}; if ${seen} is the sum of both, nothing is lost`,
      ...(isLess ? { gbps: { is: bandwidthGBps, couldBe: most } } : {}),
      remedy: isLess
        ? 'compare it with cat /proc/net/bonding/NAME, and plan it with nic-carries in a cluster file; a file for NCCL_TOPO_FILE with the sum as speed, or NCCL_NCHANNELS_PER_NET_PEER=4 for all-to-all'
        : 'nothing',
    });
  }
}

function checkMerged({ root, nets, parameters, findings }: Inventory): void {
  const speedOf = new Map(nets.map(({ element, bandwidthGBps }) => [element, bandwidthGBps]));
  for (const parts of mergeGroups(root, parameters)) {
    const speeds = parts.map((part) => speedOf.get(part) ?? 0);
    const [least, sum] = [Math.min(...speeds), speeds.reduce((total, speed) => total + speed, 0)];
    const [first] = parts;
    if (first === undefined || least * parts.length >= sum * 0.95) continue;
    findings.add(first, {
      code: 'nics-merged-unequal',
      severity: 'warning',
      problem: `NCCL merges ${parts.map((part) => part.attributes.get('name') ?? '?').join(' and ')} into one device, and their speeds differ: ${speeds.map(formatGBps).join(' and ')} GB/s`,
      consequence: `each gets an equal part of the data, so they move ${formatGBps(least * parts.length)} where NCCL counts on ${formatGBps(sum)} GB/s`,
      gbps: { is: least * parts.length, couldBe: sum },
      remedy: 'bring the slow port to the speed of the other; or NCCL_NET_MERGE_LEVEL=LOC, or NCCL_IB_HCA without it',
    });
  }
}

/** Compute capability of the GB10, × 10. */
const GB10 = 121;

function checkHalfPorts({ gpus, nets, findings }: Inventory): void {
  if (gpus.length !== 1 || !gpus.some(({ element }) => integer(element, 'sm', 0) === GB10)) return;
  const halves = nets.filter(({ pci }) => pci !== undefined && integer(pci.element, 'link_width', 0) === 4);
  const cards = byCard(halves);
  const [only] = cards.flat();
  if (cards.length !== 1 || only?.pci === undefined) return;
  const half = Math.min(only.bandwidthGBps, only.pci.bandwidthGBps);
  findings.add(only.element, {
    code: 'nic-half-port',
    severity: 'warning',
    problem: 'it is one half of a port of a DGX Spark, whose other half is missing',
    consequence: `a half has four lanes: it moves ${formatGBps(half)} instead of ${formatGBps(2 * half)} GB/s`,
    gbps: { is: half, couldBe: 2 * half },
    remedy:
      'use both halves: bring up both interfaces of the port (enp1s0f0np0 and enP2p1s0f0np0) with an address each, and name both devices in NCCL_IB_HCA (rocep1s0f0,roceP2p1s0f0)',
  });
}

/** Machines with fewer GPUs for boards may have no PCI switches. */
const FEWEST_BEHIND_SWITCHES = 8;

function checkHiddenSwitches({ gpus, nets, root, findings }: Inventory): void {
  const isBoard = gpus.every(({ pci }) => {
    const device = integer(pci.element, 'device', 0);
    return gpuModels.some((model) => model.device === device && model.nvlink === 'switch' && model.c2c === undefined);
  });
  const isFlat = (pci: PciDevice | undefined) => pci !== undefined && upwards(pci).length === 1;
  if (gpus.length < FEWEST_BEHIND_SWITCHES || nets.length === 0 || !isBoard) return;
  if (!gpus.every(({ pci }) => isFlat(pci)) || !nets.every(({ pci }) => pci === undefined || isFlat(pci))) return;
  const nic = nets.reduce((total, { bandwidthGBps }) => total + bandwidthGBps, 0);
  findings.add(root, {
    code: 'pci-hidden',
    severity: 'warning',
    problem: `its ${gpus.length} GPUs and ${nets.length} network devices all hang at CPUs: a virtual machine hides the PCI switches that such a board has`,
    consequence: `NCCL finds every NIC equally far (PHB), pairs GPUs with any of them and does without GPU Direct RDMA: at best about ${formatGBps(nic / 2)} of ${formatGBps(nic)} GB/s where PCI is the limit`,
    gbps: { is: nic / 2, couldBe: nic },
    remedy:
      "use the provider's topology file (NCCL_TOPO_FILE, or /var/run/nvidia-topologyd/virtualTopology.xml); tccl topo list names machines of clouds",
  });
}

/** Elements for which NCCL has room when it joins what the ranks of a host found. */
const MOST_ELEMENTS = 256;
/** First ranks with other data about NICs, after which little room counts as a risk. */
const FEW_RANKS = 2;

/** Elements of the PCI device of a card, its `<nic>` and its `<net>`. */
const ELEMENTS_OF_CARD = 3;

/**
 * NCCL joins the trees of a host's ranks in a buffer for one; elements that differ in an attribute are kept for each rank
 * (src/graph/topo.cc, ncclTopoGetSystem; src/graph/xml.h). Racks get a larger buffer.
 */
function checkElements({ root, gpus, nets, findings }: Inventory): void {
  const ranks = gpus.filter(({ element }) => element.attributes.has('rank'));
  if (ranks.length < 2 || new Set(ranks.map(({ host }) => host)).size > 1) return;
  const grouped = nets.reduce((sum, net) => sum + cardsOf(net) - 1, 0);
  const elements = 1 + [...descendants(root)].length + ELEMENTS_OF_CARD * grouped;
  const ofNics = [...descendants(root)].filter(({ name }) => name === 'nic' || name === 'net').length + 2 * grouped;
  const couldBe = nets.reduce((sum, { bandwidthGBps }) => sum + bandwidthGBps, 0);
  const isOver = elements > MOST_ELEMENTS;
  if (!isOver && elements + FEW_RANKS * ofNics <= MOST_ELEMENTS) return;
  findings.add(root, {
    code: 'xml-nodes',
    // Below the limit it is only possible: most hosts with as many NICs start.
    severity: isOver ? 'error' : 'info',
    problem: `NCCL has room for ${MOST_ELEMENTS} XML elements of a host, and this one has ${elements}, ${ofNics} of them about ${nets.length + grouped} NICs`,
    consequence: `${isOver ? 'every' : 'where ranks describe their NICs differently, as plugins make them, elements count for each rank, and a'} communicator of ${ranks.length} ranks fails at its start with «too many XML nodes (max ${MOST_ELEMENTS})»: 0 of ${formatGBps(couldBe)} GB/s`,
    gbps: { is: 0, couldBe },
    remedy:
      'an NCCL after 2.30 in which the buffer has room for all ranks of a host, or one built with a larger NCCL_TOPO_XML_MAX_NODES; hiding NICs from the plugin does not help, because NCCL reads the PCI tree itself',
  });
}

/** Cards that a network plugin shows as one: by the speed of a port of the card's model. */
function cardsOf({ pci, bandwidthGBps }: NetDevice): number {
  const model = pci === undefined ? undefined : modelOf(pci.element);
  return model?.prefix === 'rdmap' ? Math.max(1, Math.round((8000 * bandwidthGBps) / model.speedMbps)) : 1;
}

function modelOf(pci: XmlElement) {
  return nicModels.find(({ vendor, device }) => integer(pci, 'vendor', 0) === vendor && integer(pci, 'device', 0) === device);
}
