import { detach, type XmlElement } from '../xml/tree.js';

/** Elements that NCCL removes when nothing below them is kept. */
const trimmed = new Set(['cpu', 'pci', 'nic', 'net']);

/**
 * Removes from a `<system>` every CPU, PCI device, NIC and network device below which nothing is marked with `keep="1"`, and the
 * marks. Other elements without a mark stay, such as further GPUs of a PCI device with a kept one.
 *
 * @returns true if anything was kept
 */
export function trimUnused(element: XmlElement): boolean {
  if (element.attributes.get('keep') === '1') {
    element.attributes.delete('keep');
    return true;
  }
  let kept = false;
  for (const child of [...element.children]) {
    if (trimUnused(child)) kept = true;
  }
  if (!kept && trimmed.has(element.name)) detach(element);
  return kept;
}
