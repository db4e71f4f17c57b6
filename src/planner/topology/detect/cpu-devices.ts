import { linkSpeeds } from '../catalogue/build.js';
import { createElement, type XmlElement } from '../xml/tree.js';

/**
 * A device for each CPU rank: a GPU node below its NUMA node, at a bus id that no machine has. Rank r of n is put on
 * node r·nodes/n, so that neighbours in rank are neighbours in memory. Its link stands for the node's memory.
 */
export function addCpuDevices(root: XmlElement, ranks: number): void {
  const nodes = root.children.filter((cpu) => /[1-9a-fA-F]/.test(cpu.attributes.get('affinity') ?? ''));
  const places = nodes.length > 0 ? nodes : root.children;
  for (let rank = 0; rank < ranks; rank++) {
    const cpu = places[Math.floor((rank * places.length) / ranks)];
    if (cpu === undefined) return;
    const busId = `fffe:${(rank >> 5).toString(16).padStart(2, '0')}:${(rank & 31).toString(16).padStart(2, '0')}.0`;
    const pci = createElement('pci', cpu, [
      ['busid', busId],
      ['class', '0x030200'],
      ['vendor', '0x0000'],
      ['device', '0x0000'],
      ['subsystem_vendor', '0x0000'],
      ['subsystem_device', '0x0000'],
      ['link_speed', linkSpeeds[6]],
      ['link_width', '16'],
    ]);
    // No compute capability: nothing of a GPU but its place.
    createElement('gpu', pci, [
      ['dev', String(rank)],
      ['sm', '0'],
      ['rank', String(rank)],
      ['gdr', '0'],
    ]);
  }
}
