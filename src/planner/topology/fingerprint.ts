import type { System } from './system.js';

/**
 * A text that is the same for machines that are equal for NCCL, such as machines of one model from different files. GUIDs of
 * network cards count only by which of them are equal, because they are unique; hashes of hosts are ignored.
 */
export function fingerprint({ nodes, links, hostHashes, systemId }: System): string {
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
