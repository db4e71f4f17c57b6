import { cloneElement, type XmlElement } from '../xml/tree.js';

/**
 * Fuses the topologies of several ranks, or of several hosts of an NVLink domain: elements that are equal (name and all
 * attributes) become one, all others are added behind, in the order of the topologies.
 *
 * NCCL adds a whole subtree as soon as an element differs: a PCI switch with two values of `link_width` occurs twice, and
 * `host_hash` separates the CPUs of two hosts.
 */
export function fuseTopologies(systems: readonly XmlElement[]): XmlElement | undefined {
  const [first, ...others] = systems;
  if (first === undefined) return undefined;
  const fused = cloneElement(first);
  for (const other of others) fuseInto(fused, other);
  return fused;
}

function fuseInto(target: XmlElement, source: XmlElement): void {
  for (const child of source.children) {
    const twin = target.children.find((candidate) => isSame(candidate, child));
    if (twin === undefined) cloneElement(child, target);
    else fuseInto(twin, child);
  }
}

function isSame(a: XmlElement, b: XmlElement): boolean {
  if (a.name !== b.name || a.attributes.size !== b.attributes.size) return false;
  for (const [name, value] of b.attributes) {
    if (a.attributes.get(name) !== value) return false;
  }
  return true;
}
