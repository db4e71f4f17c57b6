import { elementError } from './attributes.js';
import { type Draft, type DraftNode, MAX_LINKS_OF_NODE } from './draft.js';
import { NodeType } from '../types.js';
import type { Rules } from '../../versions/rules.js';
import type { XmlElement } from '../xml/tree.js';

/**
 * Removes the lower level of Broadcom's Gen4 and Gen5 switches, which appear as two levels although all their ports have full
 * bandwidth. Their devices are connected to the upper one:
 *
 *     PCI a ─┬─ PCI a' ─┬─ GPU                 PCI a ─┬─ NIC
 *            │          └─ GPU       becomes          ├─ GPU        new links go to the end, in order of their switches
 *            ├─ PCI a'  ─── NIC                       ├─ GPU
 *            └─ NIC                                   └─ NIC
 */
export function flattenBroadcomSwitches(draft: Draft, system: XmlElement, { flattenFromFirst, broadcomSwitches }: Rules): void {
  const switches = draft.all(NodeType.PCI);
  for (let position = 0; position < switches.length; position++) {
    const upper = switches[position];
    if (upper === undefined) continue;
    const { device } = upper.data;
    const generation = broadcomGeneration(device, 0n);
    const gen4Only = broadcomSwitches === 'gen4';
    if (generation === 0 || (gen4Only && generation !== 4)) continue;

    const isSame = (other: bigint) => (gen4Only ? other === device : broadcomGeneration(other, 1n) === generation);
    const isLower = (node: DraftNode): node is DraftNode<typeof NodeType.PCI> =>
      node.type === NodeType.PCI && isSame((node as DraftNode<typeof NodeType.PCI>).data.device);
    const lower = upper.links.filter((link) => isLower(link.to)).map((link) => link.to);
    upper.links = upper.links.filter((link) => !isLower(link.to));
    // NCCL continues with the switch at the upper one's index: another one after a removal before it, as below a switch that
    // looks like a lower one.
    const inPlace = () => switches[position] ?? upper;
    for (const { systemId, localId } of lower) {
      // By id, as in NCCL: where two switches share a bus id, it removes the first.
      const sub = draft.find(NodeType.PCI, systemId, localId);
      if (sub === undefined) {
        throw elementError(
          system,
          `a <pcilink>, too, joins the two levels of the Broadcom switch with PCI/${systemId.toString(16)}-${localId.toString(16)}: NCCL takes the lower level out for the first link and misses it for the second; remove the <pcilink>`,
        );
      }
      mergeInto(draft, inPlace(), sub, system);
    }
    // Marks it as done.
    inPlace().data.device = gen4Only ? 0x1000_c010_1000_0000n : inPlace().data.device | 0xffffn;
    position = flattenFromFirst ? -1 : 0;
  }
}

function mergeInto(draft: Draft, upper: DraftNode, sub: DraftNode, system: XmlElement): void {
  for (const link of sub.links) {
    const device = link.to;
    if (device === upper) continue;
    if (upper.links.length === MAX_LINKS_OF_NODE) {
      throw elementError(system, `NCCL has room for ${MAX_LINKS_OF_NODE} links of one PCI switch only`, 'TOO_LARGE');
    }
    upper.mostLinks = Math.max(upper.mostLinks, upper.links.push({ ...link }));
    const back = device.links.find((other) => other.to === sub);
    if (back !== undefined) back.to = upper;
  }
  draft.remove(sub);
}

/** 4 or 5 for the PCI device number of such a switch on that level (0 upper, 1 lower), else 0. */
function broadcomGeneration(device: bigint, level: bigint): number {
  const model = device & 0xffff_ffff_ffff_f000n;
  if (model === 0x1000_c010_1000_a000n) return 4;
  if (model === (0x1000_c030_1000_0000n | (level * 0x1000n))) return 5;
  return 0;
}
