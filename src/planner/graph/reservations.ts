import { PathType } from '../topology/types.js';
import type { Candidate } from './candidate.js';
import { Pattern } from './graph.js';
import type { SearchHost } from './host.js';
import type { LinkLeft, PathRefusal, SearchListener } from './trace.js';

/**
 * Paths that a walk reserves for its channel: only of an allowed type, and only where all links have enough bandwidth left.
 * Places are those of {@link Routes}.
 */
export class Reservations {
  readonly #host: SearchHost;
  readonly #refusesUnconnected: boolean;
  readonly #attempt: Candidate;
  readonly #trace: SearchListener | undefined;

  constructor(host: SearchHost, attempt: Candidate, trace: SearchListener | undefined) {
    this.#refusesUnconnected = host.rules.refusesUnconnected;
    this.#host = host;
    this.#attempt = attempt;
    this.#trace = trace;
  }

  /** Takes that share of a channel's bandwidth between GPUs, or GPU and NVSwitch. NCCL checks the type of whole shares only. */
  inside(from: number, to: number, share: number): boolean {
    const { bwIntra, typeIntra } = this.#attempt;
    return this.#take(from, to, Math.fround(bwIntra * share), share, share === 1 ? typeIntra : PathType.DIS);
  }

  /** Takes bandwidth between GPU and NIC. */
  outside(from: number, to: number, gbps: number): boolean {
    return this.#take(from, to, gbps, 1, this.#attempt.typeInter);
  }

  release(from: number, to: number, gbps: number, share: number): void {
    const route = this.#host.routes.between(from, to);
    this.#host.residual.release(route, gbps);
    this.#countHops(route, -share);
    if (this.#trace?.wantsPaths === true) this.#report('released', from, to, gbps);
  }

  #take(from: number, to: number, gbps: number, share: number, allowed: PathType): boolean {
    const { routes, residual } = this.#host;
    const route = routes.between(from, to);
    const type = routes.type[route] ?? PathType.DIS;
    if ((type >= PathType.DIS && this.#refusesUnconnected) || type > allowed) return this.#refuse(from, to, gbps, allowed, -1);
    if (this.#attempt.pattern <= Pattern.TREE && (routes.type[routes.between(to, from)] ?? PathType.DIS) > allowed) {
      return this.#refuse(from, to, gbps, allowed, -1);
    }
    const stuckAt = residual.take(route, gbps);
    if (stuckAt >= 0) return this.#refuse(from, to, gbps, allowed, stuckAt);
    this.#countHops(route, share);
    if (this.#trace?.wantsPaths === true) this.#report('taken', from, to, gbps);
    return true;
  }

  /** Reports a path to the listener. */
  #report(kind: 'taken' | 'released', from: number, to: number, gbps: number): void {
    const { routes } = this.#host;
    const left = () => this.#leftOf(routes.between(from, to));
    this.#trace?.({ kind, from: routes.nameOf(from), to: routes.nameOf(to), gbps, left });
  }

  #leftOf(route: number): LinkLeft[] {
    const {
      routes,
      residual,
      local: { system },
    } = this.#host;
    return Array.from(routes.link.subarray(routes.firstHop[route], routes.firstHop[route + 1]), (link) => ({
      from: routes.nameOfVertex(system.links.from[link] ?? 0),
      to: routes.nameOfVertex(system.links.to[link] ?? 0),
      gbps: residual.left[link] ?? 0,
    }));
  }

  /** NCCL adds shares of hops to an integer, which loses fractions. */
  #countHops(route: number, share: number): void {
    const hops = this.#host.routes.hopCount[route] ?? 0;
    if (share === 1) this.#attempt.nHops += hops;
    else if (share === -1) this.#attempt.nHops -= hops;
    else this.#attempt.nHops = Math.trunc(Math.fround(this.#attempt.nHops + Math.fround(share * hops)));
  }

  /** Reports to the listener why a path was not taken. */
  #refuse(from: number, to: number, gbps: number, allowed: PathType, stuckAt: number): false {
    if (this.#trace === undefined) return false;
    const {
      routes,
      residual,
      local: { system },
    } = this.#host;
    // Searches of racks refuse millions of paths: events are literals of one shape each, without copies.
    const fromName = routes.nameOf(from);
    const toName = routes.nameOf(to);
    const type = (routes.type[routes.between(from, to)] ?? PathType.DIS) as PathType;
    let reason: PathRefusal;
    if (stuckAt >= 0) {
      const { link, needed, left } = residual.shortage(stuckAt, gbps);
      const linkFrom = routes.nameOfVertex(system.links.from[link] ?? 0);
      const linkTo = routes.nameOfVertex(system.links.to[link] ?? 0);
      reason = { why: 'bandwidth', linkFrom, linkTo, needed, left };
    } else if (type >= PathType.DIS) {
      reason = { why: 'unconnected' };
    } else {
      const back = type <= allowed;
      const typeBack = (routes.type[routes.between(to, from)] ?? PathType.DIS) as PathType;
      reason = { why: 'type', type: back ? typeBack : type, allowed, back };
    }
    this.#trace({ kind: 'refused-path', from: fromName, to: toName, reason });
    return false;
  }
}
