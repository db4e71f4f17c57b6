import { describeElements, objectBytes } from '../device/types.js';
import { ANY_SOURCE, describeActivity } from '../algorithms/activity.js';
import type { Operation } from '../algorithms/operation.js';
import type { WakeSources } from '../progress/parking.js';
import type { Team } from '../device/team.js';
import type { Peer } from './p2p-links.js';
import type { LongWait, Transfer } from './p2p-transfer.js';

/** The transfers in flight, as waits and errors see them. */
export class InFlight {
  /** Number of transfers. */
  pending = 0;
  /** Incremented whenever one of them progresses. */
  steps = 0;
  /** Peers with transfers in flight, and some without since the last poll. */
  readonly peers: Peer[] = [];
  readonly #ownRank: number;

  constructor(ownRank: number) {
    this.#ownRank = ownRank;
  }

  /** Adds a peer whose transfers are to be progressed. */
  add(peer: Peer): void {
    if (peer.isBusy) return;
    peer.isBusy = true;
    this.peers.push(peer);
  }

  /** True if news of the transfers in flight is found only by polling. */
  get polled(): boolean {
    for (const { local } of this.peers) if (local >= 0) return true;
    return this.hasSockets;
  }

  /** True if a transfer in flight uses sockets by system calls. */
  get hasSockets(): boolean {
    for (const { sends, receives, outlet, inlet } of this.peers) {
      if (sends !== undefined && outlet?.shared === false && outlet.polled) return true;
      if (receives !== undefined && inlet?.shared === false && inlet.polled) return true;
    }
    return false;
  }

  /** True if a transfer in flight uses the segment's bytes between these addresses. */
  uses(from: number, to: number): boolean {
    for (const { sends, receives } of this.peers) {
      for (const first of [sends, receives]) {
        for (let transfer = first; transfer !== undefined; transfer = transfer.next) {
          const { operand, bytes } = transfer;
          if (operand.placed && operand.address(0) < to && operand.address(bytes) > from) return true;
        }
      }
    }
    return false;
  }

  /** Adds their wake sources. */
  wakeOn(sources: WakeSources, team: Team): void {
    for (const { local, sends, receives, outlet, inlet } of this.peers) {
      if (local >= 0) sources.addMember(team, local);
      if (sends !== undefined && outlet?.shared === false) outlet.wakeOn(sources);
      if (receives !== undefined && inlet?.shared === false) inlet.wakeOn(sources);
    }
  }

  /** Time since which the transfer that has not moved for longest stands still, as of the last longWait(). */
  oldestMs(nowMs: number): number {
    let oldest = nowMs;
    for (const { sends, receives } of this.peers) {
      if (sends !== undefined && sends.sinceMs > 0) oldest = Math.min(oldest, sends.sinceMs);
      if (receives !== undefined && receives.sinceMs > 0) oldest = Math.min(oldest, receives.sinceMs);
    }
    return oldest;
  }

  /**
   * The messages that have not moved for longer than `limitMs`; call it from time to time.
   * @param unwarned only those without a warning so far; they are then marked as warned
   */
  longWait(nowMs: number, limitMs: number, unwarned = false): LongWait | undefined {
    const late: Transfer[] = [];
    const own = this.#ownRank;
    for (const { sends, receives } of this.peers) {
      for (const transfer of [receives, sends]) {
        if (transfer === undefined || !isLate(transfer, nowMs, limitMs) || (unwarned && transfer.warned)) continue;
        if (unwarned) transfer.warned = true;
        late.push(transfer);
      }
    }
    const [first] = late;
    if (first === undefined) return undefined;
    const { peer, any } = first;
    const { sends, count, type, tag } = first.owner?.shows ?? first;
    const awaited = late.map((transfer) => transfer.peer).filter((rank, i) => late[i]?.any === undefined || rank !== own);
    const activity = {
      kind: sends ? 'send' : 'recv',
      peer: any === undefined || any.claimed !== undefined ? peer : ANY_SOURCE,
      count,
      type,
      ...(tag > 0 ? { tag } : {}),
    } as const;
    const { steps } = this;
    return {
      text: describeActivity(activity),
      activity,
      ranks: [...new Set(awaited)],
      holds: () => this.pending > 0 && this.steps === steps,
    };
  }

  /**
   * Name of the call of a message in flight, with one of these ranks if there is one.
   * @param sends true to prefer sends
   */
  nameInFlight(ranks: readonly number[], sends: boolean): string | undefined {
    const peer = this.peers.find(({ rank }) => ranks.includes(rank)) ?? this.peers[0];
    const transfer = sends ? (peer?.sends ?? peer?.receives) : (peer?.receives ?? peer?.sends);
    if (transfer === undefined) return undefined;
    if (transfer.owner?.call !== undefined) return transfer.owner.call;
    return `${transfer.sends ? 'send' : 'recv'}${transfer.any === undefined ? '' : 'Any'}${transfer.type === objectBytes ? 'Object' : ''}`;
  }
}

/** Description of a transfer for an observer. */
export function operationOf({ sends, peer, count, type, bytes, any }: Transfer): Operation {
  const name = sends ? 'send' : 'recv';
  const whom = any === undefined ? `rank ${peer}` : 'any rank';
  return {
    name,
    text: `${name} of ${describeElements(count, type)} ${sends ? 'to' : 'from'} ${whom}`,
    args: { peer: any === undefined ? peer : ANY_SOURCE, count, type: type.name, bytes },
  };
}

/** True if a transfer has not moved for `limitMs`. */
function isLate(transfer: Transfer, nowMs: number, limitMs: number): boolean {
  if (transfer.moved !== transfer.movedBefore) {
    transfer.movedBefore = transfer.moved;
    transfer.sinceMs = nowMs;
  }
  return nowMs - transfer.sinceMs > limitMs;
}
