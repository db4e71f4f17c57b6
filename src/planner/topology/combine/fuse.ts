import { cloneElement, descendants, type XmlElement } from '../xml/tree.js';
import { trimUnused } from './trim-unused.js';

/**
 * One topology from those that several ranks, or several hosts of an NVLink domain, have of their own: what is equal
 * (name and all attributes) becomes one element, all else is added behind, in the order of the topologies.
 *
 * NCCL adds a whole subtree as soon as an element differs. So the same PCI switch with another `link_width` in two
 * topologies is there twice; and `host_hash` keeps the CPUs of two hosts apart.
 */
export function fuseTopologies(systems: readonly XmlElement[]): XmlElement | undefined {
  const [first, ...others] = systems;
  if (first === undefined) return undefined;
  const fused = cloneElement(first);
  for (const other of others) fuseInto(fused, other);
  return fused;
}

/**
 * The topology of a host that its ranks work out together: each keeps its own GPU and all network devices of the file,
 * and these are fused in the order of ranks. What no rank uses is gone, and a GPU comes after NICs that stood behind it
 * in the file unless it is the first rank's; link orders, and so choices between equals, follow this order.
 *
 * Ranks are those of the `<gpu>` elements.
 */
export function fuseRanks(system: XmlElement): XmlElement {
  const ranks = [...descendants(system)]
    .flatMap((element) =>
      element.name === 'gpu' && element.attributes.has('rank') ? [Number(element.attributes.get('rank'))] : [],
    )
    .sort((a, b) => a - b);
  const views = ranks.map((rank) => {
    const view = cloneElement(system);
    for (const element of descendants(view)) {
      const isOwn = element.name === 'gpu' && Number(element.attributes.get('rank') ?? -1) === rank;
      if (isOwn || (element.name === 'net' && element.attributes.has('dev'))) element.attributes.set('keep', '1');
      else element.attributes.delete('keep');
    }
    trimUnused(view);
    return view;
  });
  return fuseTopologies(views) ?? cloneElement(system);
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
