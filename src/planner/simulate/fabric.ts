import { InputError } from '../../errors.js';

/**
 * The switches between hosts. Without one, every NIC reaches every other at its full speed.
 *
 *     rails: none                       rails: optimised                        rails: only
 *     host 0   host 1  │ host 2         host 0   host 1                         as optimised, but nothing above
 *     0 1 2 3  0 1 2 3 │ 0 1 2 3        0 1 2 3  0 1 2 3     NICs               connects rails with each other
 *     └──── leaf ────┘ └─ leaf ─…       leaf of rail 0: NIC 0 of all its hosts
 *            └── spine ──┘              leaf of rail 1: NIC 1 …, spine above
 */
export interface Fabric {
  readonly rails: 'none' | 'optimised' | 'only';
  /** From the leaves up. */
  readonly tiers: readonly FabricTier[];
}

/** Switches of one tier. */
export interface FabricTier {
  /** Hosts below each, in the order of their ranks. */
  readonly hosts: number;
  /** Ratio of what these hosts' NICs send to what the links up from the switch carry: 1 for a tier without a bottleneck. */
  readonly oversubscription: number;
}

/** A NIC by node and number within the node. */
export interface FabricEnd {
  readonly node: number;
  readonly nic: number;
}

/** Links up from a switch, or down to it. */
interface FabricUse {
  readonly key: string;
  /** Part of the data that takes them. */
  readonly share: number;
  readonly tier: FabricTier;
  /** All NICs of its hosts, or those of one rail. */
  readonly rail: number | undefined;
}

/**
 * The links between switches on the way from a NIC to another.
 *
 * @throws InputError where a fabric of rails only does not connect them
 */
export function fabricUses({ rails, tiers }: Fabric, from: FabricEnd, to: FabricEnd): FabricUse[] {
  const changesRail = railsChange(rails, from, to);
  return tiers.flatMap((tier, level): FabricUse[] => {
    const groups = [from, to].map(({ node }) => Math.floor(node / tier.hosts));
    if (groups[0] === groups[1] && !(level === 0 && changesRail)) return [];
    const perRail = level === 0 && rails !== 'none';
    const use = (end: FabricEnd, group: number | undefined, way: string): FabricUse => ({
      key: `${way} ${level} ${group ?? 0}${perRail ? ` ${end.nic}` : ''}`,
      share: 1,
      tier,
      rail: perRail ? end.nic : undefined,
    });
    return [use(from, groups[0], 'up'), use(to, groups[1], 'down')];
  });
}

/**
 * The links between switches that hosts which stand for all use: each host has its part of the links up from its switches
 * and down to them. Of hosts so many apart, some are below the same switch and others are not, so a connection uses the
 * links in part.
 *
 *     hosts below a switch: 4, one host apart:      0 ─ 1 ─ 2 ─ 3 ─│─ 4 ─ 5 …      a quarter of the data goes up
 *
 * @param shareBetween part of the pairs of hosts which are that many apart that a tier's switches separate, by tier
 * @throws InputError where a fabric of rails only does not connect them
 */
export function foldedFabricUses(
  { rails, tiers }: Fabric,
  from: FabricEnd,
  to: FabricEnd,
  shareBetween: (level: number) => number,
): FabricUse[] {
  const changesRail = railsChange(rails, from, to);
  return tiers.flatMap((tier, level): FabricUse[] => {
    const share = level === 0 && changesRail ? 1 : shareBetween(level);
    if (share === 0) return [];
    const perRail = level === 0 && rails !== 'none';
    const use = (end: FabricEnd, way: string): FabricUse => ({
      key: `${way} ${level} ${end.node}${perRail ? ` ${end.nic}` : ''}`,
      share,
      tier: { ...tier, hosts: 1 },
      rail: perRail ? end.nic : undefined,
    });
    return [use(from, 'up'), use(to, 'down')];
  });
}

/**
 * Part of the hosts that switches separate from the host which is so many further, by this number. Hosts of a last switch
 * that has fewer do not count: it is as fast as the others, so it bounds nothing.
 *
 * @param below hosts below each switch
 */
export function separatedShares(hosts: number, below: number): Float64Array {
  const groupOf = (host: number) => Math.floor((host % hosts) / below);
  const counted = hosts < below ? hosts : hosts - (hosts % below);
  return Float64Array.from({ length: hosts }, (_, apart) => {
    let separated = 0;
    for (let host = 0; host < counted; host++) if (groupOf(host) !== groupOf(host + apart)) separated++;
    return separated / counted;
  });
}

function railsChange(rails: Fabric['rails'], from: FabricEnd, to: FabricEnd): boolean {
  const changesRail = rails !== 'none' && from.nic !== to.nic;
  if (changesRail && rails === 'only')
    throw new InputError(
      'CONTENT',
      `a fabric of rails only does not connect NIC ${from.nic} of node ${from.node} with NIC ${to.nic} of node ${to.node}, which NCCL's channels need: keep them to their rail (NCCL_CROSS_NIC=0, PXN), or write rails: optimised`,
    );
  return changesRail;
}

/** First contradiction in a fabric for these hosts, if there is one. */
export function fabricFault(
  { rails, tiers }: Fabric,
  hosts: readonly { readonly name: string; readonly count: number; readonly nNics: number }[],
): string | undefined {
  const nHosts = hosts.reduce((sum, { count }) => sum + count, 0);
  const [first] = hosts;
  const other = hosts.find(({ nNics }) => nNics !== first?.nNics);
  if (rails !== 'none' && first !== undefined && other !== undefined)
    return `rails join NICs of the same number, but ${first.name} has ${first.nNics} and ${other.name} ${other.nNics}`;
  if (rails !== 'none' && first?.nNics === 0) return `rails join NICs, but ${first.name} has none`;
  for (const [level, tier] of tiers.entries()) {
    const below = tiers[level - 1];
    if (below !== undefined && (tier.hosts <= below.hosts || tier.hosts % below.hosts !== 0))
      return `a switch of tier ${level + 1} has ${tier.hosts} hosts below it, which are no whole number of switches with ${below.hosts}`;
    if (tier.oversubscription > 1 && tier.hosts >= nHosts && !(level === 0 && rails === 'optimised'))
      return `nothing goes up from a switch above all ${nHosts} hosts, but tier ${level + 1} is oversubscribed ${tier.oversubscription} times`;
  }
  return undefined;
}
