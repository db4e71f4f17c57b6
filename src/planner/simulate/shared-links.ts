import type { ConnectionKind, ScheduledConnection } from '../schedule/schedule.js';
import { type CallPlan, wireBytes } from './call-plan.js';
import { type Fabric, type FabricEnd, type FabricTier, fabricUses, foldedFabricUses, separatedShares } from './fabric.js';
import type { Flows } from './fair-share.js';
import { type Fold, FOLDED_HOSTS } from './fold.js';
import type { Physics } from './physics.js';
import type { LinkUse, Route, Routes } from './routes.js';

/** Resources that connections share, and the share of its data that each connection puts on them. */
export interface SharedLinks extends Omit<Flows, 'most'> {
  readonly links: readonly SharedLink[];
}

/** A link of a node, links up from or down to a switch between nodes, or the throughput of a thread block. */
type SharedLink =
  | { readonly kind: 'link'; readonly use: LinkUse; readonly isNet: boolean }
  | { readonly kind: 'fabric'; readonly tier: FabricTier; readonly rail: number | undefined; readonly node: number }
  | { readonly kind: 'block' };

const BLOCK: SharedLink = { kind: 'block' };

/** Connections of which a worker serves one after the other. */
const takesTurns: Readonly<Record<ConnectionKind, boolean>> = {
  direct: false,
  'to-head': true,
  'from-head': true,
  'switch-in': true,
  'switch-out': true,
  'net-in': false,
  'net-out': false,
};

/**
 * Collects the links that connections share.
 *
 * @param isWide true for links without a limit
 * @param fold if hosts stand for all
 * @param ranks that are simulated; rank `ranks + r` stands for rank r of the next host
 */
export function sharedLinks(
  connections: readonly ScheduledConnection[],
  routes: readonly Route[],
  plan: CallPlan,
  isWide: (use: LinkUse) => boolean,
  fabric: Fabric | undefined,
  fold: Fold | undefined,
  ranks: number,
): SharedLinks {
  const table = new LinkTable(connections.length);
  const wire = wireBytes(plan.protocol);
  const usesOf = fabric && switchUses(fabric, fold);
  connections.forEach((connection, index) => {
    const { from, to, phase } = connection;
    const { medium, uses, ends } = routes[index] ?? { medium: 'nvlink', uses: [] };
    const inTurn = takesTurns[connection.via] ? plan.inTurn : 1;
    for (const use of uses) {
      const key = ((phase * 4096 + use.link) * 32_768 + use.node) * 4;
      table.take(key, (use.weight * wire) / inTurn, () =>
        isWide(use) ? undefined : { kind: 'link', use, isNet: medium === 'net' },
      );
    }
    if (usesOf !== undefined && ends !== undefined) {
      for (const { key, share, tier, rail } of usesOf(...ends, index)) {
        const { node } = key.startsWith('up') ? ends[0] : ends[1];
        table.take(`${phase} ${key}`, (share * wire) / inTurn, () => ({ kind: 'fabric', tier, rail, node }));
      }
    }
    if (plan.isPairs) {
      // The warps of a thread block share its throughput, those that send and those that receive each.
      table.take(blockKey(connection, from % ranks) * 4 + 1, 1, () => BLOCK);
      table.take(blockKey(connection, to % ranks) * 4 + 2, 1, () => BLOCK);
    }
    table.endConnection(index);
  });
  return table.links();
}

/** Finds the links between switches of a connection. */
function switchUses(fabric: Fabric, fold: Fold | undefined) {
  if (fold === undefined) return (from: FabricEnd, to: FabricEnd) => fabricUses(fabric, from, to);
  const shares = fabric.tiers.map(({ hosts }) => separatedShares(fold.hosts, hosts));
  const folded = ({ node, nic }: FabricEnd): FabricEnd => ({ node: node % FOLDED_HOSTS, nic });
  return (from: FabricEnd, to: FabricEnd, connection: number) =>
    foldedFabricUses(fabric, folded(from), folded(to), (level) => shares[level]?.[fold.hostsApart[connection] ?? 0] ?? 0);
}

/** Number of the thread block of a rank that serves a connection. */
export function blockKey({ phase, channel }: ScheduledConnection, rank: number): number {
  return (phase * 1024 + channel) * 1_048_576 + rank;
}

/** GB/s of a shared link. @param isSpread true if each rank sends to several others at once */
export function sharedCapacityGBps(
  link: SharedLink,
  routes: Routes,
  blockGBps: number,
  physics: Physics,
  oversubscription: number,
  isSpread: boolean,
): number {
  switch (link.kind) {
    case 'fabric':
      return (link.tier.hosts * routes.nicsGBps(link.node, link.rail, physics)) / link.tier.oversubscription;
    case 'block':
      return blockGBps;
    case 'link':
      return Math.min(
        1e6,
        routes.capacityGBps(link.use, physics, { isSpread, isNet: link.isNet }) / (link.isNet ? oversubscription : 1),
      );
  }
}

/** Number of links without a limit, which are not counted. */
const WIDE = -1;

/** Numbers links, and lays out the uses of one connection after the other. */
class LinkTable {
  readonly #numbers = new Map<number | string, number>();
  readonly #links: SharedLink[] = [];
  readonly #first: Int32Array;
  readonly #link: number[] = [];
  readonly #weight: number[] = [];

  constructor(nConnections: number) {
    this.#first = new Int32Array(nConnections + 1);
  }

  /** @param make the link; undefined if it has no limit */
  take(key: number | string, weight: number, make: () => SharedLink | undefined): void {
    let number = this.#numbers.get(key);
    if (number === undefined) {
      const link = make();
      this.#numbers.set(key, (number = link === undefined ? WIDE : this.#links.push(link) - 1));
    }
    if (number === WIDE) return;
    this.#link.push(number);
    this.#weight.push(weight);
  }

  endConnection(index: number): void {
    this.#first[index + 1] = this.#link.length;
  }

  links(): SharedLinks {
    return { first: this.#first, link: Int32Array.from(this.#link), weight: Float64Array.from(this.#weight), links: this.#links };
  }
}
