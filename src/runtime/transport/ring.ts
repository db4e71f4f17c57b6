import { Buffer } from '#platform/bytes';
import type { Introduction } from '../bootstrap/bootstrap.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { InternalError, InvalidUsageError, TcclError } from '../../errors.js';
import { packReason, unpackReason } from '../failure/transfer.js';
import { connectEnds, describeOffer, isAlike, type Agreement, type Offer, type TransportFor, type WantedEnd } from './peers.js';
import type { ReceiveConnection, SendConnection } from './transport.js';

/** The connections of one rank in a ring. */
interface RingLinks {
  /** To the next rank. */
  readonly send: SendConnection;
  /** From the previous one. */
  readonly receive: ReceiveConnection;
}

/** One rank's view of the ring: each rank sends to its successor and receives from its predecessor. */
export class RingOfRanks {
  /** This rank's position in the order. */
  readonly index: number;

  /**
   * @param order the ranks, each once, in the direction of the data
   * @param links undefined where there is only one rank
   */
  constructor(
    readonly rank: number,
    readonly order: readonly number[],
    readonly links: RingLinks | undefined,
  ) {
    this.index = order.indexOf(rank);
  }

  /** The rank `distance` positions after this one. */
  rankAt(distance: number): number {
    const n = this.order.length;
    return this.order[(((this.index + distance) % n) + n) % n] ?? this.rank;
  }
}

/** Connects all ranks in one ring; see {@link connectRings}. */
export async function connectRing(
  bootstrap: Introduction,
  order: readonly number[],
  transportFor: TransportFor,
  signal: AbortSignal,
): Promise<RingOfRanks> {
  const [ring] = await connectRings(bootstrap, [order], transportFor, signal);
  if (ring === undefined) throw new InternalError('INTERNAL', 'no ring was made');
  return ring;
}

/**
 * Connects all ranks in rings, of which ring c uses the NICs of channel c. Every rank calls it with the same orders.
 *
 * @param signal aborts the attempt with its reason
 * @throws on every rank the error of a rank that failed: InvalidUsageError `UNSUPPORTED` when ranks chose different transports
 *   or sizes, SystemError `OUT_OF_MEMORY`, `NETWORK`.
 */
export async function connectRings(
  bootstrap: Introduction,
  orders: readonly (readonly number[])[],
  transportFor: TransportFor,
  signal: AbortSignal,
): Promise<RingOfRanks[]> {
  const { rank, nRanks } = bootstrap;
  for (const order of orders) {
    if (new Set(order).size !== nRanks || order.length !== nRanks || !order.every((other) => other in bootstrap.peers)) {
      throw new InternalError('INTERNAL', `[${order.join(', ')}] does not name each of ${nRanks} ranks once`);
    }
  }
  const places = orders.map((order) => new RingOfRanks(rank, order, undefined));
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
  const ends = places.map(ringEnds);
  const { sends, receives } = await connectEnds(
    bootstrap,
    ends.map(({ sendTo }) => sendTo),
    ends.map(({ receiveFrom }) => receiveFrom),
    transportFor,
    signal,
    together,
  );
  return orders.map((order, ring) => {
    const [send, receive] = [sends[ring], receives[ring]];
    if (send === undefined || receive === undefined) throw new InternalError('INTERNAL', 'a ring without links');
    return new RingOfRanks(rank, order, { send, receive });
  });
}

/** Ends of a rank's connections in a ring of several ranks, which is number `ring` of several. In a ring of two they are one. */
export function ringEnds(place: RingOfRanks, ring: number): { readonly sendTo: WantedEnd; readonly receiveFrom: WantedEnd } {
  const end = (distance: number): WantedEnd => ({ peer: place.rankAt(distance), name: `ring ${ring}`, channel: ring });
  return { sendTo: end(1), receiveFrom: end(-1) };
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
  const first = offers[from]?.[to]?.size;
  ring.order.forEach((rank, place) => {
    const next = ring.order[(place + 1) % ring.order.length] ?? rank;
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
