import type { InputError } from '../../../errors.js';
import { interCpuGBps, LOCAL_GBPS, nvLinkGBps } from '../bandwidths.js';
import { LinkType, NodeType } from '../types.js';
import type { XmlElement } from '../xml/tree.js';
import { busIdNumber, elementError, integerOr, lookUp, requiredInteger, requiredText } from './attributes.js';
import type { Draft, DraftNode } from './draft.js';
import {
  addNode,
  type Build,
  devLocalId,
  type DraftHardware,
  devsOfGpu,
  join,
  linkTo,
  pciClasses,
  systemIdOf,
} from './read-tree.js';

/** Links that join nodes across the PCI trees: NVLink, C2C, extra links between PCI switches, and CPU to CPU. */

/** Adds the `<nvlink>` elements below a `<system>`. */
export function addNvLinks(build: Build, system: XmlElement): void {
  const peers: { readonly link: XmlElement; readonly from: DraftNode; readonly to: DraftNode }[] = [];
  forEachBelowGpu(build, system, 'nvlink', (link, gpu, busId, systemId) => {
    const dev = devOf(build, link, gpu, busId, systemId);
    const parts = devsOfGpu(build, link, systemId, dev.localId).length;
    const count = requiredInteger(link, 'count');
    const target = lookUp(requiredText(link, 'tclass'), pciClasses, NodeType.PCI);
    const bandwidthGBps = Math.fround(count * nvLinkGBps(dev.data.sm, build.rules));
    if (!(bandwidthGBps >= 0)) throw elementError(link, `count="${count}": a number of NVLinks cannot be negative`);

    if (target === NodeType.GPU) {
      const remotes = devsOfGpu(build, link, systemId, busIdNumber(requiredText(link, 'target')));
      if (remotes.length === 0) build.note(link, 'its target is not among the GPUs in use, so NCCL leaves the link out');
      for (const remote of remotes) {
        linkTo(link, dev, remote, LinkType.NVL, Math.fround(Math.fround(bandwidthGBps / remotes.length) / parts));
        peers.push({ link, from: dev, to: remote });
      }
      return;
    }
    const remote = target === NodeType.CPU ? cpuAbove(build, link, dev) : nvSwitch(build, link);
    if (remote !== undefined) join(link, dev, remote, LinkType.NVL, Math.fround(bandwidthGBps / parts));
  });
  for (const { link, from, to } of peers) {
    const isAnswered = to.links.some((back) => back.to === from && back.type === LinkType.NVL);
    if (!isAnswered) build.note(link, 'the GPU that it leads to has no NVLink back: NCCL fails when it looks for paths');
  }
}

/** Adds the `<c2c>` elements below a `<system>`. */
export function addC2c(build: Build, system: XmlElement): void {
  const { c2cLinks } = build.rules;
  if (c2cLinks === 'none') return;
  const type = c2cLinks === 'own type' ? LinkType.C2C : LinkType.NVL;
  forEachBelowGpu(build, system, 'c2c', (link, gpu, busId, systemId) => {
    const dev = devOf(build, link, gpu, busId, systemId);
    const count = requiredInteger(link, 'count');
    const bandwidthGBps = Math.fround((requiredInteger(link, 'bw') * count) / 1000);
    const cpu = cpuAbove(build, link, dev);
    if (cpu === undefined) return;
    if (devsOfGpu(build, link, systemId, dev.localId).length < 2) {
      join(link, dev, cpu, type, bandwidthGBps);
      return;
    }
    // The parts of a split GPU share one C2C link, whose bandwidth belongs to a node between them and the CPU.
    const bridgeId = dev.localId & ~3n;
    let bridge = build.draft.find(NodeType.CXB, systemId, bridgeId);
    if (bridge === undefined) {
      bridge = addNode(build, link, NodeType.CXB, systemId, bridgeId, {});
      join(link, bridge, cpu, LinkType.C2C, bandwidthGBps);
    }
    join(link, dev, bridge, LinkType.C2C, bandwidthGBps);
  });
}

/** Adds the `<pcilink>` elements below a `<system>`: links from switch to switch, only in the given direction. */
export function addPciLinks(build: Build, system: XmlElement): void {
  forEachBelowPci(build, system, (pci, systemId) => {
    for (const link of pci.children) {
      if (link.name !== 'pcilink') continue;
      const from = build.draft.find(NodeType.PCI, systemId, busIdNumber(requiredText(pci, 'busid')));
      if (from === undefined) throw elementError(link, 'stands below a <pci> that is no switch');
      const to = build.draft.find(NodeType.PCI, systemId, busIdNumber(requiredText(link, 'target')));
      if (to === undefined) build.note(link, 'its target is no PCI switch of this system, so NCCL leaves the link out');
      else linkTo(link, from, to, LinkType.LOC, LOCAL_GBPS);
    }
  });
}

function cpuByFirstLinks(element: XmlElement, start: DraftNode): DraftNode | undefined {
  const seen = new Set<DraftNode>();
  let node: DraftNode | undefined = start;
  while (node !== undefined && node.type !== NodeType.CPU) {
    if (seen.has(node)) {
      throw elementError(
        element,
        'this version of NCCL looks for the CPU of this GPU, goes round in circles because the GPU is behind a PCI bridge, and crashes; take a newer version, or leave the element out',
      );
    }
    seen.add(node);
    node = node.links.find((link) => link.type === LinkType.PCI)?.to;
  }
  return node;
}

/** Links every NUMA domain with every other of its host. */
export function connectCpus({ draft, rules }: Build, system: XmlElement): void {
  const cpus = draft.all(NodeType.CPU);
  for (const from of cpus) {
    for (const to of cpus) {
      if (from !== to && from.systemId === to.systemId) linkTo(system, from, to, LinkType.SYS, interCpuGBps(from.data, rules));
    }
  }
}

/**
 * Moves the link up behind the links down for all nodes in the PCI trees, so that a search finds near nodes first. All other
 * links stay sorted by bandwidth.
 *
 * @throws InputError where NCCL loses the link up behind places of removed links
 */
export function sortPciTrees(draft: Draft, system: XmlElement): void {
  const sort = (node: DraftNode, up: DraftNode | undefined): void => {
    const position = up === undefined ? -1 : node.links.findIndex((link) => link.to === up);
    // The first link to it, of any type: of a GPU with NVLinks to the CPU directly above, the NVLinks are moved.
    if (position >= 0) {
      if (node.mostLinks > node.links.length) throw lostUplink(node, system);
      node.links.push(...node.links.splice(position, 1));
    }
    for (const link of node.links) {
      if (link.type === LinkType.PCI && link.to !== up) sort(link.to, node);
    }
  };
  for (const cpu of draft.all(NodeType.CPU)) sort(cpu, undefined);
}

function lostUplink({ systemId, localId }: DraftNode, system: XmlElement): InputError {
  return elementError(
    system,
    `NCCL flattens the Broadcom switch PCI/${systemId.toString(16)}-${localId.toString(16)} into one level, takes a <pcilink> of it out with the lower one, and then loses its link to the CPU; remove the <pcilink>`,
  );
}

/** Calls `visit` for each child of that name of each `<gpu>`; the first of GPUs that share hardware represents all. */
function forEachBelowGpu(
  build: Build,
  system: XmlElement,
  name: string,
  visit: (element: XmlElement, gpu: XmlElement, busId: string, systemId: number) => void,
): void {
  forEachBelowPci(build, system, (pci, systemId) => {
    const partsSeen = new Set<number>();
    for (const gpu of pci.children) {
      if (gpu.name !== 'gpu') continue;
      const part = build.splitGpus ? integerOr(gpu, 'mlopart', -1) : -1;
      if (partsSeen.has(part)) continue;
      partsSeen.add(part);
      for (const element of gpu.children) {
        if (element.name === name) visit(element, gpu, requiredText(pci, 'busid'), systemId);
      }
    }
  });
}

function forEachBelowPci(build: Build, system: XmlElement, visit: (pci: XmlElement, systemId: number) => void): void {
  const walk = (element: XmlElement, systemId: number): void => {
    for (const child of element.children) {
      if (child.name !== 'pci') continue;
      visit(child, systemId);
      walk(child, systemId);
    }
  };
  for (const cpu of system.children) {
    if (cpu.name === 'cpu') walk(cpu, systemIdOf(build, cpu));
  }
}

/** The hardware of the `<gpu>` that contains a link. */
function devOf(build: Build, link: XmlElement, gpu: XmlElement, busId: string, systemId: number): DraftHardware {
  const localId = devLocalId(build, gpu, busIdNumber(busId));
  const dev = build.rules.hardwareNodes
    ? build.draft.find(NodeType.DEV, systemId, localId)
    : build.draft.find(NodeType.GPU, systemId, localId);
  if (dev === undefined) {
    throw elementError(link, `there is no GPU in use at bus ${busId}: its <gpu> has no rank, or stands where NCCL does not look`);
  }
  return dev;
}

/** The NVS node, which represents all NVSwitches. */
function nvSwitch(build: Build, link: XmlElement): DraftNode {
  return build.draft.all(NodeType.NVS)[0] ?? addNode(build, link, NodeType.NVS, 0, 0n, {});
}

/**
 * The CPU above a node's PCI links.
 *
 * @throws InputError where older versions follow the first PCI link of each node and never get to a CPU
 */
function cpuAbove(build: Build, element: XmlElement, start: DraftNode): DraftNode | undefined {
  if (!build.rules.cpuSearchGoesUp) return cpuByFirstLinks(element, start);
  const search = (node: DraftNode, from: DraftNode | undefined): DraftNode | undefined => {
    if (node.type === NodeType.CPU) return node;
    for (const link of node.links) {
      if (link.type !== LinkType.PCI || link.to === from) continue;
      if (link.to.type !== NodeType.PCI && link.to.type !== NodeType.CPU) continue;
      const found = search(link.to, node);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return search(start, undefined);
}
