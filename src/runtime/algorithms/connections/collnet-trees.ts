import type { HeadOf } from '../../aggregator/aggregators.js';
import { defined } from '../../../defined.js';
import type { Algorithm } from '../call.js';
import { groupsOf, type Channels, type TreeChannel } from './channels.js';

/** Ways from a head to the ranks of its host: to each of them directly, or through one another. */
type Form = 'direct' | 'chain';

/** The tree of each share. */
export function collnetTrees(channels: Channels, form: Form): TreeChannel[] {
  const groups = groupsOf(channels);
  const { aggregators = [], order } = channels;
  const nAggregators = Math.max(1, aggregators.length);
  const lines = groups.map((ranks, group) =>
    linesOf(ranks, form, groups.length === channels.hosts.length ? channels.collnet : undefined, group),
  );
  const nShares = Math.min(...lines.map(({ length }) => length));
  return Array.from({ length: nShares }, (_, share): TreeChannel => {
    const up: number[] = [];
    const down: number[][] = [];
    for (const ofGroup of lines) {
      const line = defined(ofGroup[share]);
      line.forEach((rank, place) => {
        const above = form === 'chain' ? line[place - 1] : line[0];
        const below = form === 'chain' ? line.slice(place + 1, place + 2) : place === 0 ? line.slice(1) : [];
        up[rank] = place === 0 ? order.length + (share % nAggregators) : (above ?? -1);
        down[rank] = [...below];
      });
    }
    return { up, down };
  });
}

/** The heads of each share, one on each host. */
export function collnetHeads(channels: Channels, algorithm: Algorithm): number[][] {
  const isHead = (above: number | undefined): boolean => (above ?? 0) >= channels.order.length;
  return collnetTrees(channels, algorithm === 'collnetchain' ? 'chain' : 'direct').map(({ up }) =>
    channels.order.filter((rank) => isHead(up[rank])).sort((a, b) => a - b),
  );
}

/** Number of a rank's group among those whose sums an aggregator adds. */
export function headOf(channels: Channels, rank: number, peer: number, name: string, algorithm: string): HeadOf {
  const groups = groupsOf(channels);
  return {
    aggregator: peer - channels.order.length,
    share: `${algorithm} ${name}`,
    member: groups.findIndex((ranks) => ranks.includes(rank)),
    members: groups.length,
  };
}

/** The ranks of a host by share, the head first; without a plan, each rank is the head of one. */
function linesOf(
  ranks: readonly number[],
  form: Form,
  planned: Channels['collnet'],
  group: number,
): readonly (readonly number[])[] {
  if (planned === undefined) return ranks.map((_, turn) => [...ranks.slice(turn), ...ranks.slice(0, turn)]);
  if (form === 'chain') return defined(planned.chains[group]);
  return defined(planned.heads[group]).map((head) => [head, ...ranks.filter((rank) => rank !== head)]);
}
