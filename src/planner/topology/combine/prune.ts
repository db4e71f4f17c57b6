import { cloneElement, descendants, type XmlElement } from '../xml/tree.js';
import { trimUnused } from './trim-unused.js';

/**
 * A copy of a file's `<system>` without branches that NCCL removes before it builds its graph: those with neither a GPU of a rank
 * nor a network device in use, such as drives, empty bridges, NUMA nodes without devices.
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
  // Without a GPU the graph is refused, with an error about the original file.
  if (!hasGpu) return system;
  trimUnused(pruned);
  return pruned;
}
