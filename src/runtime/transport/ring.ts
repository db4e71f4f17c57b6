import { Buffer } from '#platform/bytes';
import type { Introduction } from '../bootstrap/bootstrap.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { InternalError, InvalidUsageError, TcclError } from '../../errors.js';
import { packReason, unpackReason } from '../failure/transfer.js';
import {
  connectEnds,
  describeOffer,
  isAlike,
  type Agreement,
  type Offer,
  type PeerConnections,
  type TransportFor,
  type WantedEnd,
} from './peers.js';
import type { ReceiveConnection, SendConnection } from './transport.js';
import { defined } from '../../defined.js';

/** The two connections by which data go through a rank. */
interface RingHop {
  readonly send: SendConnection;
  readonly receive: ReceiveConnection;
}

/** The connections of one rank in a ring: `send` to the next rank, `receive` from the previous one. */
interface RingLinks extends RingHop {
  /** The same for the rank that it relays for; left out where there is none. */
  readonly relayed?: RingHop;
}

/** The other end of a connection of a ring, and whether it is on the way through a relay. */
interface Neighbour {
  readonly peer: number;
  readonly isRelayed: boolean;
}

/** By rank that sends to another host: the rank of its own host that passes its messages on. */
export type Relays = Readonly<Record<number, number>>;

/** A ring through all ranks. */
interface RingPath {
  /** The ranks, each once, in the direction of the data. */
  readonly order: readonly number[];
  readonly relays?: Relays;
}

/**
 * One rank's view of the ring: each rank sends to its successor and receives from its predecessor. Between hosts, the messages
 * may go through a relay, which shares memory with the sender and has the NIC:
 *
 *     host 0:  0 ──► 1 ──► 2 ─ ─► 0 ──NIC──►  host 1:  3 ──► …        relays: { 2: 0 }
 */
export class RingOfRanks {
  /** This rank's position in the order. */
  readonly index: number;
  /** Position of the rank that this one relays for; -1 for none. */
  readonly relayedPlace: number;

  /**
   * @param order the ranks, each once, in the direction of the data
   * @param links undefined where there is only one rank
   */
  constructor(
    readonly rank: number,
    readonly order: readonly number[],
    readonly links: RingLinks | undefined,
    readonly relays: Relays = {},
  ) {
    this.index = order.indexOf(rank);
    this.relayedPlace = order.findIndex((from) => relays[from] === rank);
  }

  /** The rank `distance` positions after this one. */
  rankAt(distance: number): number {
    const n = this.order.length;
    return this.order[(((this.index + distance) % n) + n) % n] ?? this.rank;
  }

  /** The ranks that this one sends to: for itself, and for the rank that it relays for. */
  receivers(): Neighbour[] {
    const relay = this.relays[this.rank];
    const own = { peer: relay ?? this.rankAt(1), isRelayed: relay !== undefined };
    return [own, ...this.#relayed(1)];
  }

  /** The ranks that this one receives from, in the same order. */
  senders(): Neighbour[] {
    const previous = this.rankAt(-1);
    const relay = this.relays[previous];
    return [{ peer: relay ?? previous, isRelayed: relay !== undefined }, ...this.#relayed(0)];
  }

  /** The rank `distance` positions after the one that this one relays for; none without. */
  #relayed(distance: number): Neighbour[] {
    const { relayedPlace, order } = this;
    if (relayedPlace < 0) return [];
    return [{ peer: order[(relayedPlace + distance) % order.length] ?? this.rank, isRelayed: true }];
  }
}

/** Connects all ranks in one ring; see {@link connectRings}. */
export async function connectRing(
  bootstrap: Introduction,
  order: readonly number[],
  transportFor: TransportFor,
  signal: AbortSignal,
): Promise<RingOfRanks> {
  const [ring] = await connectRings(bootstrap, [{ order }], transportFor, signal);
  if (ring === undefined) throw new InternalError('INTERNAL', 'no ring was made');
  return ring;
}

/**
 * Connects all ranks in rings, of which ring c uses the NICs of channel c. Every rank calls it with the same rings.
 *
 * @param signal aborts the attempt with its reason
 * @throws on every rank the error of a rank that failed: InvalidUsageError `UNSUPPORTED` when ranks chose different transports
 *   or sizes, SystemError `OUT_OF_MEMORY`, `NETWORK`.
 */
export async function connectRings(
  bootstrap: Introduction,
  rings: readonly RingPath[],
  transportFor: TransportFor,
  signal: AbortSignal,
): Promise<RingOfRanks[]> {
  const { rank, nRanks } = bootstrap;
  for (const { order } of rings) {
    if (new Set(order).size !== nRanks || order.length !== nRanks || !order.every((other) => other in bootstrap.peers)) {
      throw new InternalError('INTERNAL', `[${order.join(', ')}] does not name each of ${nRanks} ranks once`);
    }
  }
  const places = placesIn(rings, rank);
  if (nRanks === 1) return places;

  let needsAll = false;
  const together: Agreement = {
    exchange: async (opening) => {
      const offers = await inStep(bootstrap, async (): Promise<Offers> => Object.fromEntries(await opening));
      for (const place of places) checkTransports(place, offers);
      // Shared memory is connected as soon as it is set up. With other transports, all ranks wait until every rank has
      // connected or failed.
      needsAll = offers.some((offer) => Object.values(offer).some(({ transport }) => transport !== 'shm'));
      return new Map(offers.flatMap((offer, peer) => (offer[rank] === undefined ? [] : [[peer, offer[rank]]])));
    },
    settle: (connecting) => (needsAll ? inStep(bootstrap, () => connecting.then(() => null)) : connecting),
  };
  const { sendTo, receiveFrom } = ringEnds(places);
  return linkRings(places, await connectEnds(bootstrap, sendTo, receiveFrom, transportFor, signal, together));
}

/** A rank's places in rings. */
export function placesIn(rings: readonly RingPath[], rank: number): RingOfRanks[] {
  return rings.map(({ order, relays }) => new RingOfRanks(rank, order, undefined, relays));
}

/**
 * Ends of a rank's connections in rings of several ranks: for each ring those to the next and from the previous rank, then those
 * of the rank that it relays for. In a ring of two, both ends are one connection.
 */
export function ringEnds(places: readonly RingOfRanks[]): {
  readonly sendTo: readonly WantedEnd[];
  readonly receiveFrom: readonly WantedEnd[];
} {
  const endsOf = (peers: (place: RingOfRanks) => readonly Neighbour[]): WantedEnd[] =>
    places.flatMap((place, ring) =>
      peers(place).map(({ peer, isRelayed }) => ({ peer, name: `ring ${ring}${isRelayed ? ' relay' : ''}`, channel: ring })),
    );
  return { sendTo: endsOf((place) => place.receivers()), receiveFrom: endsOf((place) => place.senders()) };
}

/** The rings with the connections that {@link ringEnds} requested, in that order. */
export function linkRings(places: readonly RingOfRanks[], { sends, receives }: PeerConnections): RingOfRanks[] {
  let used = 0;
  const take = (): RingHop | undefined => {
    const [send, receive] = [sends[used], receives[used]];
    used++;
    return send === undefined || receive === undefined ? undefined : { send, receive };
  };
  return places.map((place) => {
    const { rank, order, relays, relayedPlace } = place;
    const own = take();
    const relayed = relayedPlace < 0 ? undefined : take();
    if (own === undefined) return place;
    return new RingOfRanks(rank, order, { ...own, ...(relayed === undefined ? {} : { relayed }) }, relays);
  });
}

/** The offers of one rank to its neighbours, by rank. */
type Offers = Readonly<Record<number, Offer>>;

/**
 * Runs `work` on every rank and returns the results of all. If any rank failed, all throw the same error: the first one that
 * is not merely a timeout.
 */
async function inStep<T>(bootstrap: Introduction, work: () => Promise<T>): Promise<T[]> {
  const mine = await work().then(
    (value) => ({ bytes: encodeJson(value), error: undefined }),
    (error: unknown) => ({ bytes: packReason(error as Error), error: error as Error }),
  );
  const all = await bootstrap.allGather(Buffer.concat([Buffer.of(mine.error === undefined ? 0 : 1), mine.bytes]));
  const failures = all.flatMap((bytes, rank) => {
    if (bytes[0] === 0) return [];
    return [rank === bootstrap.rank && mine.error !== undefined ? mine.error : unpackReason(bytes.subarray(1), rank)];
  });
  const failure = failures.find((error) => error instanceof TcclError && error.code !== 'ABORTED') ?? failures[0];
  if (failure !== undefined) throw failure;
  return all.map((bytes) => decodeJson(bytes.subarray(1)) as T);
}

/** Both ends of a connection need the same transport, and all connections the same size, because data are divided by it. */
function checkTransports(ring: RingOfRanks, offers: readonly Offers[]): void {
  const [from = 0, to = 0] = ring.order;
  const first = offers[from]?.[ring.relays[from] ?? to]?.size;
  const hops = ring.order.flatMap((rank, place) => {
    const way = [rank, ring.relays[rank] ?? [], defined(ring.order[(place + 1) % ring.order.length])].flat();
    return way.slice(1).map((next, hop) => ({ rank: defined(way[hop]), next }));
  });
  hops.forEach(({ rank, next }) => {
    const mine = offers[rank]?.[next];
    const theirs = offers[next]?.[rank];
    if (isAlike(mine, theirs) && mine?.size.steps === first?.steps && mine?.size.slotBytes === first?.slotBytes) return;
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `rank ${rank} wants to send to rank ${next} by ${describeOffer(mine)}, which wants to receive by ${describeOffer(theirs)}, ` +
        'and all must be of one size; give all ranks the same settings',
      { ranks: [rank, next] },
    );
  });
}
