import type { Schedule, ScheduledConnection } from '../schedule/schedule.js';
import type { CallPlan } from './call-plan.js';
import { fairRates } from './fair-share.js';
import { channelsThatDiffer, type FoldedSchedule } from './fold.js';
import { measuredPhysics } from './physics.js';
import { blockGBps, type Conditions, connectionRates } from './rates.js';
import { media, type Route } from './routes.js';
import { type SharedLinks, sharedCapacityGBps, sharedLinks } from './shared-links.js';
import { aloneOnLinks, type ConnectionTiming, timingOf } from './timing.js';

/** Connections of all calls that are done in the same way, whatever their size, with the links of each. */
export class CallConnections {
  readonly connections: readonly ScheduledConnection[];
  readonly routes: readonly Route[];
  /** Number of ranks that are simulated: of folded hosts, rank `ranks + r` stands for rank r. */
  readonly ranks: number;
  /** Channels that represent all equal ones. */
  readonly representatives: ReadonlySet<number>;
  readonly #plan: CallPlan;
  readonly #shared: SharedLinks;
  #costs: ConnectionCosts | undefined;

  constructor({ connections, fold }: Schedule & Partial<FoldedSchedule>, plan: CallPlan, ranks: number, conditions: Conditions) {
    const { routes, environment } = conditions;
    this.connections = connections;
    this.routes = connections.map((connection) => routes.of(connection, plan.kind));
    this.ranks = ranks;
    this.#plan = plan;
    const isWide = (use: Route['uses'][number]) => routes.capacityGBps(use, measuredPhysics) === Infinity;
    this.#shared = sharedLinks(connections, this.routes, plan, isWide, environment.fabric, fold, ranks);
    this.representatives = this.#representatives(conditions);
  }

  /** Costs of the connections; kept for the last conditions, because a call is simulated several times under each. */
  costs(conditions: Conditions): ConnectionCosts {
    const { physics, environment } = conditions;
    const kept = this.#costs;
    if (kept?.physics === physics && kept.environment === environment) return kept;
    const plan = this.#plan;
    const timing = timingOf(this, connectionRates(this.#shared, this.routes, plan, conditions), plan, conditions);
    const alone = plan.kind === 'ring' ? aloneOnLinks(timing) : undefined;
    return (this.#costs = { physics, environment, blockRate: 1000 * blockGBps(plan, conditions), timing, alone });
  }

  /** Channels that differ in their rates or media, by fixed rates, so that they are the same in all conditions. */
  #representatives({ routes }: Conditions): ReadonlySet<number> {
    const rates = fairRates(
      { ...this.#shared, most: new Float64Array(this.connections.length).fill(1000) },
      Float64Array.from(this.#shared.links, (link) => sharedCapacityGBps(link, routes, 10, measuredPhysics, 1, false)),
    );
    return channelsThatDiffer(this.connections, rates, (number) => media.indexOf(this.routes[number]?.medium ?? 'net'));
  }
}

/** Costs under given conditions. */
interface ConnectionCosts extends Pick<Conditions, 'physics' | 'environment'> {
  /** Throughput of a thread block, bytes a µs. */
  readonly blockRate: number;
  readonly timing: ConnectionTiming;
  /** The same with NICs and PCI links for each connection; only for rings whose channels share them. */
  readonly alone: ReturnType<typeof aloneOnLinks>;
}
