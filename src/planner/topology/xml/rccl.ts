import { descendants, type XmlElement } from './tree.js';

/** True for a file of RCCL: its GPUs name their architecture (`gcn="gfx942"`) and are joined by `<xgmi>`. */
export function isOfRccl(root: XmlElement): boolean {
  for (const { name, attributes } of descendants(root)) {
    if (name === 'xgmi' || (name === 'gpu' && attributes.has('gcn'))) return true;
  }
  return false;
}
