import { linkSpeeds } from '../catalogue/build.js';
import { childrenNamed, childWith, createElement, type XmlElement } from '../xml/tree.js';

/**
 * Adds a device for each CPU rank: a GPU node below its NUMA node, at a bus id that no machine has, with a link that represents
 * the node's memory. The default node of rank r of n is r·nodes/n, so that neighbours in rank are neighbours in memory.
 *
 * @param ranks their number, or the NUMA node of each
 */
export function addCpuDevices(root: XmlElement, ranks: number | readonly (number | undefined)[]): void {
  const homes = typeof ranks === 'number' ? new Array<undefined>(ranks).fill(undefined) : ranks;
  const cpus = childrenNamed(root, 'cpu');
  const nodes = cpus.filter((cpu) => /[1-9a-fA-F]/.test(cpu.attributes.get('affinity') ?? ''));
  const places = nodes.length > 0 ? nodes : cpus;
  for (const [rank, home] of homes.entries()) {
    const own = home === undefined ? undefined : childWith(root, 'cpu', 'numaid', String(home));
    const cpu = own ?? places[Math.floor((rank * places.length) / homes.length)];
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
    // No compute capability: only its place is that of a GPU.
    createElement('gpu', pci, [
      ['dev', String(rank)],
      ['sm', '0'],
      ['rank', String(rank)],
      ['gdr', '0'],
    ]);
  }
}
