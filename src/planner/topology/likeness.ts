import type { System } from './system.js';

/**
 * A text that is the same for machines in which NCCL sees no difference: as machines of one model are, each read from a
 * file of its own. GUIDs of network cards count by which are the same, for no two cards in the world have one; hashes of
 * hosts do not count.
 */
export function likeness({ nodes, links, hostHashes, systemId }: System): string {
  const cards = new Map<bigint, number>();
  const numberOf = (guid: bigint) => {
    const number = cards.get(guid) ?? cards.size;
    cards.set(guid, number);
    return number;
  };
  const nodesText = JSON.stringify(nodes, (key, value: unknown) => {
    if (typeof value !== 'bigint') return value;
    return key === 'asic' ? numberOf(value) : value.toString(16);
  });
  return [
    systemId,
    hostHashes.length,
    nodesText,
    links.from.join(),
    links.to.join(),
    links.type.join(),
    links.bandwidthGBps.join(),
  ].join(' ');
}
