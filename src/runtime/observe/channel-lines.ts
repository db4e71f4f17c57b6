import type { Channels } from '../algorithms/connections/channels.js';
import { defined } from '../../defined.js';

/**
 * Channels in the lines of NCCL's log, without what precedes them. `tccl plan --topology` prints the same lines as a rank with
 * TCCL_DEBUG=INFO.
 */

/** `Channel 00/02 : 0 1 2 3` for each channel; rank 0 writes them. */
export function ringLines({ rings, ringOfChannel }: Channels): string[] {
  const nChannels = twoDigits(ringOfChannel.length);
  return ringOfChannel.map(
    (ring, channel) => `Channel ${twoDigits(channel)}/${nChannels} : ${defined(rings[ring]).order.join(' ')}`,
  );
}

/** `Trees [0] 1/2/-1->0->-1 [1] …`: children, rank and parent on all channels. */
export function treesLine({ trees, treeOfChannel }: Channels, rank: number): string {
  const places = treeOfChannel.map((tree, channel) => {
    const { up, down } = defined(trees[tree]);
    const [first = -1, second = -1, third = -1] = defined(down[rank]);
    return ` [${channel}] ${first}/${second}/${third}->${rank}->${defined(up[rank])}`;
  });
  return `Trees${places.join('')}`;
}

/**
 * `Channel 00/0 : 1[1] -> 2[0] via NET/Socket/0 (eth0)`: the connection of a rank in each ring, with places on the hosts.
 *
 * A relay is the number in brackets behind that of the NIC, as NCCL names a rank whose GPU forwards (PXN).
 *
 * @param transportOf the log's name of the transport to the next rank of a ring
 */
export function connectionLines(
  { rings, hosts }: Channels,
  rank: number,
  transportOf: (ring: number, isFar: boolean) => string,
): string[] {
  const hostOf = (other: number): readonly number[] => defined(hosts.find((ranks) => ranks.includes(other)));
  const own = hostOf(rank);
  return rings.map(({ order, nics, relays = {} }, ring) => {
    const next = defined(order[(order.indexOf(rank) + 1) % order.length]);
    const ofNext = hostOf(next);
    const transport = transportOf(ring, ofNext !== own);
    const nic = ofNext === own ? undefined : nics[rank];
    const relay = relays[rank] === undefined ? '' : `(${relays[rank]})`;
    const via = nic === undefined ? transport : `${transport}/${nic.dev}${relay} (${nic.name})`;
    return `Channel ${twoDigits(ring)}/0 : ${rank}[${own.indexOf(rank)}] -> ${next}[${ofNext.indexOf(next)}] via ${via}`;
  });
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}
