import type { Merged } from '../../src/planner/graph/merge/merge.js';
import type { PlannedConnection } from '../../src/planner/graph/transports/connection.js';
import { Transports, type TreeConnections } from '../../src/planner/graph/transports/transports.js';
import { type Difference, firstDifference } from './difference.js';
import { isRecord, type OracleCase } from './oracle-case.js';

/**
 * Transports of sampled ranks: in rings on the channels of the search, in trees on these and their doubles, where a rank has a
 * neighbour on another node. Trees are compared as senders see them. Channels of the search that the communicator leaves unused
 * (`NCCL_MAX_NCHANNELS`) are never connected: nothing is compared of them.
 */
export function transportsDifference({ expected, merged, machines, parameters }: OracleCase): Difference | undefined {
  const entries = expected['transports'];
  if (!Array.isArray(entries)) return { path: 'transports', expected: entries, actual: [] };
  const transports = new Transports(merged, machines, parameters);
  const ranks = entries.map((entry: unknown) => (isRecord(entry) ? Number(entry['rank']) : -1));
  const actual = ranks.map((rank) => describeRank(merged, transports, rank));
  return firstDifference(
    entries.map((entry: unknown) => usedChannels(entry, merged.nChannels)),
    actual,
    'transports',
  );
}

function usedChannels(entry: unknown, nChannels: number): unknown {
  if (!isRecord(entry)) return entry;
  const used = (channels: unknown) =>
    Array.isArray(channels)
      ? channels.filter((channel: unknown) => isRecord(channel) && Number(channel['c']) < nChannels)
      : channels;
  return { ...entry, ring: used(entry['ring']), tree: used(entry['tree']) };
}

function describeRank(merged: Merged, transports: Transports, rank: number): object {
  const searched = merged.graphs.ring.nChannels;
  const ring = Array.from({ length: Math.min(searched, merged.nChannels) }, (_, c) => {
    const { send, receive } = transports.ring(c, rank);
    return { c, send: describe(rank, send), recv: describe(rank, receive) };
  });
  const tree = Array.from({ length: Math.min(2 * searched, merged.nChannels) }, (_, c) => ({
    c,
    links: transports.tree(c, rank, 'send'),
  }))
    .filter(({ links }) => leavesNode(merged, rank, links))
    .map(({ c, links: { up, down } }) => ({ c, up: describe(rank, up), down: down.map((child) => describe(rank, child)) }));
  return { rank, ring, tree };
}

function leavesNode({ nodes }: Merged, rank: number, { up, down }: TreeConnections): boolean {
  const isElsewhere = (connection: PlannedConnection | undefined) =>
    connection !== undefined && nodes.rankToNode[connection.peer] !== nodes.rankToNode[rank];
  return isElsewhere(up) || down.some(isElsewhere);
}

function describe(rank: number, connection: PlannedConnection | undefined): object | null {
  if (connection === undefined) return null;
  const { via, peer } = connection;
  switch (via) {
    case 'P2P':
      return { peer, via, read: connection.read ? 1 : 0, intermediate: connection.relay ?? -1 };
    case 'SHM':
      return { peer, via };
    case 'none':
      return { peer, via: null };
    case 'NET':
      return { peer, via, dev: connection.dev, proxyRank: connection.relay ?? rank, gdr: connection.gdr };
  }
}
