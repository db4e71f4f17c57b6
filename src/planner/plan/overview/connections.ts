import type { PlannedConnection, NetConnection, NoP2pReason, ShmConnection } from '../../graph/transports/connection.js';
import { Transports } from '../../graph/transports/transports.js';
import type { Parameters } from '../../parameters.js';
import { GdrMode, type GdrReason } from '../../topology/paths/gdr.js';
import { type PathType, pathTypeNames } from '../../topology/types.js';
import { machinesOf, type PreparedHosts } from '../cluster.js';
import type { Plan } from '../plan.js';

/** Counts of the connections of a plan. */
export interface ConnectionSummary {
  readonly p2p: number;
  /** Of these, those in which the receiver reads. */
  readonly p2pReads: number;
  /** Of these, those through a third GPU. */
  readonly p2pRelayed: number;
  /** Types of the paths of these, nearest first. */
  readonly p2pPaths: readonly string[];
  readonly shm: number;
  /** Reasons why these are not peer-to-peer, most frequent first; of those that are too far, the farthest. */
  readonly noP2p: readonly NoP2pReason[];
  readonly net: number;
  /** Of these, those that another GPU's proxy sends: PXN. */
  readonly pxn: number;
  /** Of these, those with GPU Direct RDMA. */
  readonly gdr: number;
  /** Reasons of the others, most frequent first. */
  readonly noGdr: readonly GdrReason[];
  /** Those without a transport: NCCL fails when it makes them. */
  readonly none: number;
}

/** The transports of a plan. @param prepared hosts from which it was planned */
export function transportsOf(plan: Plan, prepared: readonly PreparedHosts[], parameters: Parameters): Transports {
  return new Transports(plan, machinesOf(prepared), parameters);
}

/**
 * Counts the connections in rings and trees of the first two nodes of each kind: one at an even and one at an odd place, which
 * are connected differently and represent all others.
 */
export function summarizeConnections(plan: Plan, transports: Transports): ConnectionSummary {
  const connections = sampleRanks(plan).flatMap((rank) => rankConnections(plan, transports, rank));
  const p2p = connections.filter((connection) => connection.via === 'P2P');
  const shm = connections.filter((connection): connection is ShmConnection => connection.via === 'SHM');
  const net = connections.filter((connection): connection is NetConnection => connection.via === 'NET');
  const paths = [...new Set(p2p.map(({ distance }) => distance))].sort((a, b) => a - b);
  return {
    p2p: p2p.length,
    p2pReads: p2p.filter(({ read }) => read).length,
    p2pRelayed: p2p.filter(({ relay }) => relay !== undefined).length,
    p2pPaths: paths.map((type: PathType) => pathTypeNames[type]),
    shm: shm.length,
    noP2p: byFrequency(shm, ({ reason }) => reason.why).map((why) =>
      farthest(shm.map(({ reason }) => reason).filter((reason) => reason.why === why)),
    ),
    net: net.length,
    pxn: net.filter(({ relay }) => relay !== undefined).length,
    gdr: net.filter(({ gdr }) => gdr !== GdrMode.DISABLED).length,
    noGdr: byFrequency(
      net.filter(({ gdr }) => gdr === GdrMode.DISABLED),
      ({ gdrReason }) => gdrReason,
    ),
    none: connections.filter(({ via }) => via === 'none').length,
  };
}

function sampleRanks({ nodes }: Plan): number[] {
  const seen = new Map<number, number>();
  const sampled = new Set<number>();
  nodes.kindOfNode.forEach((kind, node) => {
    const before = seen.get(kind) ?? 0;
    seen.set(kind, before + 1);
    if (before < 2) sampled.add(node);
  });
  const ranks: number[] = [];
  nodes.rankToNode.forEach((node, rank) => {
    if (sampled.has(node)) ranks.push(rank);
  });
  return ranks;
}

/** The connections over which a rank sends, on each channel that differs from others. */
function rankConnections(plan: Plan, transports: Transports, rank: number): PlannedConnection[] {
  const searched = plan.graphs.ring.nChannels;
  const found: (PlannedConnection | undefined)[] = [];
  for (let channel = 0; channel < Math.min(plan.nChannels, searched); channel++) found.push(transports.ring(channel, rank).send);
  for (let channel = 0; channel < Math.min(plan.nChannels, 2 * searched); channel++) {
    const { up, down } = transports.tree(channel, rank, 'send');
    found.push(up, ...down);
  }
  return found.filter((connection) => connection !== undefined);
}

function byFrequency<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Key[] {
  const counts = new Map<Key, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([key]) => key);
}

/** Of reasons of one kind. */
function farthest(reasons: readonly NoP2pReason[]): NoP2pReason {
  return reasons.reduce((worst, reason) =>
    reason.why === 'far' && worst.why === 'far' && reason.distance > worst.distance ? reason : worst,
  );
}

/** Text of the reason why two ranks of a host are not connected peer-to-peer. */
export function describeNoP2p(reason: NoP2pReason): string {
  switch (reason.why) {
    case 'far':
      return `GPUs are as far apart as ${pathTypeNames[reason.distance]}, farther than ${pathTypeNames[reason.level]} (NCCL_P2P_LEVEL)`;
    case 'copy-engine':
      return 'NCCL_P2P_USE_CUDA_MEMCPY=1 does not copy by way of a third GPU';
    case 'driver':
      return 'the driver refuses it, as for GeForce cards';
    case 'other-node':
      return 'ranks of one host are on different nodes, between which NCCL knows no path';
  }
}
