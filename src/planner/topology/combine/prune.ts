import { cloneElement, descendants, type XmlElement } from '../xml/tree.js';
import { trimUnused } from './trim-unused.js';

/**
 * A file's `<system>` without the branches that hold neither a GPU of a rank nor a network device in use: drives, empty
 * bridges, NUMA nodes without devices. NCCL takes them out before it builds its graph. The element itself stays as it is.
 */
export function withoutEmptyBranches(system: XmlElement): XmlElement {
  const pruned = cloneElement(system);
  let hasGpu = false;
  for (const element of descendants(pruned)) {
    const isGpu = element.name === 'gpu' && element.attributes.has('rank');
    hasGpu ||= isGpu;
    if (isGpu || (element.name === 'net' && element.attributes.has('dev'))) element.attributes.set('keep', '1');
    else element.attributes.delete('keep');
  }
  // Without a GPU the graph is refused, and the error is about the file as it is.
  if (!hasGpu) return system;
  trimUnused(pruned);
  return pruned;
}
