import { SystemError, TcclError } from '../../errors.js';
import { closedThere } from '../failure/reasons.js';
import type { InFlight } from './p2p-in-flight.js';
import { describeElements, typeOfCode, type DataType } from '../device/types.js';
import type { Inbox } from './p2p-mailbox.js';
import type { Links, Peer } from './p2p-links.js';
import type { SocketInlet } from './p2p-socket.js';
import { accepts, ANY_TAG, type AnyReceive, type MessageHead, type Mismatch, type Transfer } from './p2p-transfer.js';

/*
 * Receives with a tag, and from any rank. Messages of two ranks arrive in order. Each goes to the first receive, in the order of
 * calls, that accepts its tag; where there is none, it is kept in memory for a later one:
 *
 *     receives of a peer      tag 5 | any tag | place of an any-source receive …
 *                                       ▲                   ▲
 *     next message            tag 3 ────┘     or, if nothing accepts it ───► kept messages, in order
 *
 * The receive that the next message is for moves to the front, where PointToPoint takes all of it. A receive from any rank has a
 * place in the list of each; the first message for one of them claims it and removes the others.
 */

/** A message that has arrived and is not received yet. */
export interface Found {
  readonly source: number;
  readonly tag: number;
  readonly count: number;
  readonly type: DataType;
}

/** Most bytes of kept messages of a communicator. */
const KEPT_BYTES = 2 ** 30;

interface MatchingParts {
  readonly ownRank: number;
  readonly nRanks: number;
  readonly links: Links;
  readonly inFlight: InFlight;
  /** A transfer for reuse, or a new one. */
  readonly spare: () => Transfer;
  /** Takes a transfer that a queue had for reuse. */
  readonly recycle: (transfer: Transfer) => void;
  readonly finish: (transfer: Transfer) => void;
  readonly mismatch: Mismatch;
}

/** Decides which receive a message is for, at peers that sort. */
export class Matching {
  /** Source of the last message that a receive from any rank took. */
  lastSource = 0;
  readonly #parts: MatchingParts;
  #keptBytes = 0;

  constructor(parts: MatchingParts) {
    this.#parts = parts;
  }

  /**
   * Ends the receives of kept messages, then puts first the receive of the next message. False if there is none yet.
   * @throws SystemError `OUT_OF_MEMORY` for too many kept messages, and the error of a mismatch
   */
  next(peer: Peer, inlet: Inbox | SocketInlet): boolean {
    this.#takeKept(peer);
    if (peer.receives === undefined) {
      peer.sorts = peer.kept.length > 0;
      return false;
    }
    if (peer.receives.met) return true;
    const head = inlet.peek();
    if (head === undefined) return false;
    const receive = acceptingReceive(peer, head.tag);
    if (receive === undefined) this.keepNext(peer, head);
    else {
      this.#claim(receive, head.tag);
      if (receive !== peer.receives) {
        unlink(peer, 'receives', receive);
        addFirst(peer, 'receives', receive);
      }
    }
    return true;
  }

  /** Receives the next message, which no receive accepts, into memory. */
  keepNext(peer: Peer, { type: typeCode, count, tag }: MessageHead): void {
    const { spare } = this.#parts;
    const transfer = spare();
    const type = typeOfCode(typeCode);
    if (type === undefined) throw this.#parts.mismatch(peer.receives ?? transfer, typeCode, count);
    const bytes = count * type.bytes;
    if (this.#keptBytes + bytes > KEPT_BYTES) {
      throw new SystemError(
        'OUT_OF_MEMORY',
        `messages that no receive accepts, such as ${describeElements(count, type)} with tag ${tag} from rank ${peer.rank}, exceed ${KEPT_BYTES / 2 ** 30} GiB; receive them, or send fewer before the awaited one`,
      );
    }
    this.#keptBytes += bytes;
    transfer.set(false, peer.rank, new type.array(new ArrayBuffer(bytes), 0, count), type, undefined, tag);
    transfer.isKept = peer.sorts = true;
    this.#parts.inFlight.add(peer);
    addFirst(peer, 'receives', transfer);
    this.#parts.inFlight.pending++;
  }

  /** Puts first a send of this rank to itself and its receive. False if none fit together. */
  pairOwn(own: Peer): boolean {
    for (let send = own.sends; send !== undefined; send = send.next) {
      const receive = acceptingReceive(own, send.tag);
      if (receive === undefined) continue;
      this.#claim(receive, send.tag);
      for (const [queue, transfer] of [
        ['sends', send],
        ['receives', receive],
      ] as const) {
        unlink(own, queue, transfer);
        addFirst(own, queue, transfer);
      }
      return true;
    }
    return false;
  }

  /**
   * The message for the next receive from a rank with this tag, once it has arrived; others before it are kept. Throws the
   * reason if none can arrive.
   */
  peek(rank: number, tag = ANY_TAG): Found | undefined {
    const { links, ownRank } = this.#parts;
    const peer = links.of(rank);
    if (rank === ownRank) {
      let send = peer.sends;
      while (send !== undefined && !(accepts(tag, send.tag) && acceptingReceive(peer, send.tag) === undefined)) send = send.next;
      return send && { source: rank, tag: send.tag, count: send.count, type: send.type };
    }
    const kept = peer.kept.find((message) => accepts(tag, message.tag));
    if (kept !== undefined) return { source: rank, tag: kept.tag, count: kept.count, type: kept.type };
    if (peer.receives !== undefined) return undefined;
    const inlet = links.inletOf(peer);
    if (inlet === undefined) return undefined;
    const head = inlet.peek();
    if (head === undefined) {
      if (inlet.shared && inlet.hasLeft() && inlet.peek() === undefined) throw closedThere(rank);
      return undefined;
    }
    if (!accepts(tag, head.tag)) {
      this.keepNext(peer, head);
      return undefined;
    }
    const type = typeOfCode(head.type);
    return type === undefined ? undefined : { source: rank, tag: head.tag, count: head.count, type };
  }

  /** {@link peek} at the messages of all ranks. Throws if no other rank is left that could send one. */
  peekAny(tag: number): Found | undefined {
    const { nRanks, ownRank } = this.#parts;
    let closed: Error | undefined;
    let left = 0;
    for (let i = 1; i <= nRanks; i++) {
      const rank = (this.lastSource + i) % nRanks;
      try {
        const found = this.peek(rank, tag);
        if (found !== undefined) return found;
        if (rank !== ownRank) left++;
      } catch (error) {
        if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
        closed = error;
      }
    }
    if (closed !== undefined && left === 0) throw closed;
    return undefined;
  }

  /** Removes the places of a receive from any rank, except the one that its message has. */
  removePlaces(any: AnyReceive, claimed?: Transfer): void {
    for (const place of any.places.values()) if (place !== claimed) this.#removePlace(place);
    any.places.clear();
  }

  /**
   * Removes receives from any rank at a peer that has closed. False if a message of that rank alone is awaited, or no other rank
   * is left that might send.
   */
  spare(peer: Peer): boolean {
    const { ownRank } = this.#parts;
    if (peer.sends !== undefined) return false;
    const awaited = listOf(peer.receives);
    const isElsewhere = ({ any, met }: Transfer): boolean =>
      any !== undefined && !met && [...any.places.keys()].some((rank) => rank !== ownRank && rank !== peer.rank);
    if (!awaited.every(isElsewhere)) return false;
    for (const place of awaited) {
      place.any?.places.delete(peer.rank);
      this.#removePlace(place);
    }
    return true;
  }

  #removePlace(place: Transfer): void {
    const peer = this.#parts.links.peers[place.peer];
    if (peer !== undefined) unlink(peer, 'receives', place);
    this.#parts.inFlight.pending--;
    this.#parts.recycle(place);
  }

  #claim(receive: Transfer, tag: number): void {
    receive.tag = tag;
    const { any } = receive;
    if (any === undefined) return;
    any.claimed = receive;
    receive.ended = any.ended;
    receive.entry = any.entry;
    this.removePlaces(any, receive);
  }

  #takeKept(peer: Peer): void {
    if (peer.kept.length === 0) return;
    for (let receive = peer.receives; receive !== undefined; receive = receive.next) {
      if (receive.met || receive.isKept) continue;
      const wanted = receive;
      const at = peer.kept.findIndex(({ tag }) => accepts(wanted.tag, tag));
      const message = peer.kept[at];
      if (message === undefined) continue;
      const { type, count, tag, bytes } = message;
      if (!wanted.meets(type.code, count)) throw this.#parts.mismatch(wanted, type.code, count);
      peer.kept.splice(at, 1);
      this.#claim(wanted, tag);
      wanted.operand.copyFrom(message.operand, 0, 0, bytes);
      this.#keptBytes -= bytes;
      this.#parts.recycle(message);
      unlink(peer, 'receives', wanted);
      this.#parts.finish(wanted);
      // Its owner may have added another receive in front.
      this.#takeKept(peer);
      return;
    }
  }
}

/** The first receive of a peer that accepts a tag. */
function acceptingReceive({ receives }: Peer, tag: number): Transfer | undefined {
  let receive = receives;
  while (receive !== undefined && !accepts(receive.tag, tag)) receive = receive.next;
  return receive;
}

function listOf(first: Transfer | undefined): Transfer[] {
  const all: Transfer[] = [];
  for (let transfer = first; transfer !== undefined; transfer = transfer.next) all.push(transfer);
  return all;
}

type QueueName = 'sends' | 'receives';
const lastOf = { sends: 'lastSend', receives: 'lastReceive' } as const;

/** Removes a transfer from a queue of a peer. */
export function unlink(peer: Peer, queue: QueueName, transfer: Transfer): void {
  let before: Transfer | undefined;
  for (let at = peer[queue]; at !== undefined && at !== transfer; at = at.next) before = at;
  if (before === undefined) peer[queue] = transfer.next;
  else before.next = transfer.next;
  if (peer[lastOf[queue]] === transfer) peer[lastOf[queue]] = before;
}

/** Adds the receive of the next part of what another one began. */
export function addNextPart(peer: Peer, transfer: Transfer): void {
  const first = peer.receives;
  if (first?.isKept !== true) {
    addFirst(peer, 'receives', transfer);
    return;
  }
  // A message that is being kept comes first: it is that part, or before it.
  transfer.next = first.next;
  first.next = transfer;
  if (peer.lastReceive === first) peer.lastReceive = transfer;
}

/** Adds a transfer before all others of a queue. */
function addFirst(peer: Peer, queue: QueueName, transfer: Transfer): void {
  transfer.next = peer[queue];
  peer[queue] = transfer;
  peer[lastOf[queue]] ??= transfer;
}
