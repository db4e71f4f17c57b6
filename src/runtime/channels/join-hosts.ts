import { type Merged, mergeHosts } from '../../planner/graph/merge/merge.js';
import type { HostContribution } from '../../planner/graph/merge/contribution.js';
import { nvlsHeadRanks } from '../../planner/graph/merge/nvls.js';
import { TREE_ARITY } from '../../planner/graph/merge/trees.js';
import { defaultParameters } from '../../planner/parameters.js';
import type { Channels, ReachedNic, RingChannel, TreeChannel } from '../algorithms/connections/channels.js';
import { defined } from '../../defined.js';

/** A host of a communicator, with its own decisions. */
export interface PlannedHost {
  /** Its ranks in the communicator, ascending. The planner counts them within the host. */
  readonly ranks: readonly number[];
  readonly contribution: HostContribution;
  /** See HostGraphs. */
  readonly ringNics: readonly (readonly ReachedNic[])[];
}

/**
 * Joins the graphs of all hosts to channels through all ranks. The planner numbers ranks host by host, whatever numbers the
 * launcher gave them.
 *
 * @param hosts in the order of their lowest ranks; hosts that are alike share one contribution
 * @throws InputError where hosts do not fit together
 */
export function joinHosts(hosts: readonly PlannedHost[], parameters = defaultParameters): Channels {
  const merged = mergeHosts(
    hosts.map(({ contribution }) => ({ host: contribution, count: 1 })),
    parameters,
  );
  const rankOf = hosts.flatMap(({ ranks }) => ranks);
  const { nRanks } = merged.nodes;
  const rings = Array.from({ length: merged.rings.count }, (_, ring): RingChannel => {
    const order = [...merged.rings.order.subarray(ring * nRanks, (ring + 1) * nRanks)].map((rank) => defined(rankOf[rank]));
    const start = order.indexOf(0);
    const reached: ReachedNic[] = [];
    for (const { ranks, ringNics } of hosts) {
      ranks.forEach((rank, local) => {
        const nic = ringNics[ring % ringNics.length]?.[local];
        if (nic !== undefined) reached[rank] = nic;
      });
    }
    const fromFirst = [...order.slice(start), ...order.slice(0, start)];
    const nics = reached.map(({ dev, name }) => ({ dev, name }));
    return { order: fromFirst, nics, ...relaysOf(fromFirst, reached, hosts) };
  });
  const trees = Array.from({ length: merged.trees.count }, (_, tree): TreeChannel => {
    const up: number[] = [];
    const down: number[][] = [];
    rankOf.forEach((rank, planned) => {
      const at = tree * nRanks + planned;
      up[rank] = rankOf[defined(merged.trees.up[at])] ?? -1;
      const children = merged.trees.down.subarray(at * TREE_ARITY, (at + 1) * TREE_ARITY);
      down[rank] = [...children].flatMap((child) => rankOf[child] ?? []);
    });
    return { up, down };
  });
  return {
    hosts: hosts.map(({ ranks }) => ranks),
    order: rings[0]?.order ?? rankOf,
    rings,
    ringOfChannel: [...merged.ringOfChannel],
    trees,
    ...headsOf(merged, hosts, rankOf),
    ...collnetOf(merged, hosts, rankOf),
    treeOfChannel: [...merged.treeOfChannel],
    unplanned: undefined,
  };
}

/**
 * The relays of a ring, where a rank sends to another host on the NIC of a neighbour. A neighbour that uses another NIC on this
 * ring cannot relay on it.
 */
function relaysOf(
  order: readonly number[],
  nics: readonly ReachedNic[],
  hosts: readonly PlannedHost[],
): Pick<RingChannel, 'relays'> {
  const relays = order.flatMap((rank, place): [number, number][] => {
    const ranks: readonly number[] = defined(hosts.find((host) => host.ranks.includes(rank))).ranks;
    const { dev, relay = -1 } = nics[rank] ?? {};
    const through = ranks[relay];
    const leaves = !ranks.includes(defined(order[(place + 1) % order.length]));
    return leaves && through !== undefined && nics[through]?.dev === dev ? [[rank, through]] : [];
  });
  return relays.length === 0 ? {} : { relays: Object.fromEntries(relays) };
}

/** The heads of NVLink SHARP on each host; none where a host counts as several nodes. */
function headsOf({ nodes, nvls }: Merged, hosts: readonly PlannedHost[], rankOf: readonly number[]): Pick<Channels, 'heads'> {
  if (nvls === undefined || nodes.nNodes !== hosts.length) return {};
  const byShare = Array.from({ length: nvls.nHeads }, (_, head) => nvlsHeadRanks(nodes, nvls, head, nodes.nNodes));
  return { heads: hosts.map((_, host) => byShare.map((ranks) => defined(rankOf[defined(ranks[host])]))) };
}

/** Heads and chains of CollNet on each host; none without a network that reduces, and where a host counts as several nodes. */
function collnetOf(
  { nodes, collnet }: Merged,
  hosts: readonly PlannedHost[],
  rankOf: readonly number[],
): Pick<Channels, 'collnet'> {
  if (collnet === undefined || nodes.nNodes !== hosts.length) return {};
  const { nRanks } = nodes;
  const named = (ranks: readonly number[]): number[] => ranks.map((rank) => defined(rankOf[rank]));
  const chainFrom = (head: number, first: number): number[] => {
    const ranks = [];
    for (let rank = head; rank >= 0; rank = defined(collnet.chainDown[first + rank])) ranks.push(rank);
    return ranks;
  };
  const nChannels = collnet.chainUp.length / nRanks;
  const ranksOfHost = (host: number): number[] => rankOf.flatMap((_, rank) => (nodes.rankToNode[rank] === host ? [rank] : []));
  const chainsOf = (host: number): number[][] => {
    const all = Array.from({ length: nChannels }, (_, channel) => {
      const first = channel * nRanks;
      const head = ranksOfHost(host).find((rank) => collnet.chainUp[first + rank] === nRanks);
      return head === undefined ? [] : named(chainFrom(head, first));
    });
    return all.filter(({ length }) => length === hosts[host]?.ranks.length);
  };
  return {
    collnet: {
      heads: hosts.map((_, host) =>
        named((collnet.heads[defined(nodes.kindOfNode[host])] ?? []).map((head) => defined(nodes.rankBase[host]) + head)),
      ),
      chains: hosts.map((_, host) => chainsOf(host)),
    },
  };
}
