import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { InternalError, InvalidUsageError, TcclError } from '../errors.js';
import { died, packReason, unpackReason } from './ending.js';
import type { Connection, ConnectionSetUp, FifoSize, ReceiveConnection, SendConnection, Transport, TransportName } from './transport.js';

/** The connections of one rank in a ring. */
export interface RingLinks {
  /** To the next rank. */
  readonly send: SendConnection;
  /** From the previous one. */
  readonly receive: ReceiveConnection;
}

/** All ranks in a circle, as one of them sees it: each sends to the next and receives from the previous. */
export class Ring {
  /** This rank's place in the order. */
  readonly index: number;
  /** Whether only asking again tells all that is new; see Connection. */
  readonly polled: boolean;
  /** Whether a rank may wait without returning to its event loop. */
  readonly blocking: boolean;

  /**
   * @param order the ranks, each once, in the direction of the data
   * @param links undefined where there is only one rank
   */
  constructor(readonly rank: number, readonly order: readonly number[], readonly links: RingLinks | undefined) {
    this.index = order.indexOf(rank);
    this.polled = links !== undefined && (links.send.polled || links.receive.polled);
    this.blocking = links === undefined || (links.send.polled && links.receive.polled);
  }

  /** The rank `distance` places further. */
  rankAt(distance: number): number {
    const n = this.order.length;
    return this.order[(((this.index + distance) % n) + n) % n] ?? this.rank;
  }

  /** See Connection: any news of either. */
  onNews(listener: (() => void) | undefined): void {
    this.links?.send.onNews(listener);
    this.links?.receive.onNews(listener);
  }

  async close(): Promise<void> {
    await Promise.all([this.links?.send.close(), this.links?.receive.close()]);
  }

  abort(reason: Error): void {
    this.links?.send.abort(reason);
    this.links?.receive.abort(reason);
  }
}

/** What a rank tells all others about its two ends. */
interface Offer {
  readonly send: Info;
  readonly receive: Info;
}

interface Info {
  readonly transport: TransportName;
  readonly size: FifoSize;
  /** In base64. */
  readonly info: string;
}

/**
 * Connects all ranks in a ring. Every rank calls it, with the same order.
 *
 * @param transportFor what carries data to and from a rank; both ranks of a pair must choose the same
 * @param signal ends the attempt with its reason
 * @throws the same error at every rank, of the first rank that could not: InvalidUsageError `UNSUPPORTED` when
 *   ranks chose different transports or sizes, SystemError `OUT_OF_MEMORY`, `NETWORK`.
 */
export async function connectRing(
  bootstrap: Bootstrap,
  order: readonly number[],
  transportFor: (peer: number) => Transport,
  signal: AbortSignal,
): Promise<Ring> {
  const { rank, nRanks } = bootstrap;
  if (new Set(order).size !== nRanks || order.length !== nRanks || !order.every((other) => other in bootstrap.peers)) {
    throw new InternalError('INTERNAL', `[${order.join(', ')}] does not name each of ${nRanks} ranks once`);
  }
  if (nRanks === 1) return new Ring(rank, order, undefined);

  const place = new Ring(rank, order, undefined);
  const next = place.rankAt(1);
  const previous = place.rankAt(-1);
  const sending = transportFor(next);
  const receiving = transportFor(previous);
  /** What to do with what is open if not all comes about. */
  const undo: ((error: Error) => void)[] = [];
  let unwatch = (): void => undefined;
  const keep = async <E>(end: Promise<E>, give: (end: E, error: Error) => void): Promise<E> => {
    const kept = await end;
    undo.push((error) => give(kept, error));
    return kept;
  };
  try {
    const setUps = { send: keep(sending.setUpSend(next), cancel), receive: keep(receiving.setUpReceive(previous), cancel) };
    const offers = await together(bootstrap, async (): Promise<Offer> => {
      const [send, receive] = await both(setUps.send, setUps.receive);
      return { send: pack(sending, send.info), receive: pack(receiving, receive.info) };
    });
    checkTransports(place, offers);

    const [send, receive] = [await setUps.send, await setUps.receive];
    undo.length = 0; // a set-up that connects looks after itself
    const stop = new AbortController();
    unwatch = bootstrap.onPeerLost((lost) => stop.abort(died(lost)));
    const either = AbortSignal.any([signal, stop.signal]);
    const connecting = both(
      keep(send.connect(unpack(offers[next]?.receive), either), abort),
      keep(receive.connect(unpack(offers[previous]?.send), either), abort),
      stop,
    );
    // Shared memory is connected once it is set up; elsewhere all wait until the last is, or hear why it is not.
    if (offers.some((offer) => offer.send.transport !== 'shm')) await together(bootstrap, () => connecting.then(() => null));
    const [sender, receiver] = await connecting;
    return new Ring(rank, order, { send: sender, receive: receiver });
  } catch (error) {
    for (const step of undo.reverse()) step(error as Error);
    throw error;
  } finally {
    unwatch();
  }
}

const cancel = (setUp: ConnectionSetUp<unknown>): void => setUp.cancel();
const abort = (connection: Connection, error: Error): void => connection.abort(error);

const pack = ({ name, size }: Transport, info: Uint8Array): Info => ({ transport: name, size, info: Buffer.from(info).toString('base64') });
const unpack = (info: Info | undefined): Uint8Array => Buffer.from(info?.info ?? '', 'base64');

/** Both results once both are settled, or the first error. A failure of either stops the other. */
async function both<A, B>(a: Promise<A>, b: Promise<B>, stop?: AbortController): Promise<[A, B]> {
  let failure: { readonly error: unknown } | undefined;
  const fail = (error: unknown): never => {
    failure ??= { error };
    stop?.abort(error);
    throw error;
  };
  const [first, second] = await Promise.allSettled([a.catch(fail), b.catch(fail)]);
  if (first.status === 'fulfilled' && second.status === 'fulfilled') return [first.value, second.value];
  throw failure?.error;
}

/**
 * Does the same at every rank and gives what it came to at each. If any failed, all throw the same error: the first that
 * is not only a rank's loss of patience.
 */
async function together<T>(bootstrap: Bootstrap, work: () => Promise<T>): Promise<T[]> {
  const mine = await work().then(
    (value) => ({ bytes: Buffer.from(JSON.stringify(value)), error: undefined }),
    (error: unknown) => ({ bytes: packReason(error as Error), error: error as Error }),
  );
  const all = await bootstrap.allGather(Buffer.concat([Buffer.of(mine.error === undefined ? 0 : 1), mine.bytes]));
  const failures = all.flatMap((bytes, rank) => {
    if (bytes[0] === 0) return [];
    return [rank === bootstrap.rank && mine.error !== undefined ? mine.error : unpackReason(bytes.subarray(1), rank)];
  });
  const failure = failures.find((error) => error instanceof TcclError && error.code !== 'ABORTED') ?? failures[0];
  if (failure !== undefined) throw failure;
  return all.map((bytes) => JSON.parse(Buffer.from(bytes).toString('utf8', 1)) as T);
}

/** Both ends of a connection must be of one kind, and all connections of one size, since data are cut to it. */
function checkTransports(ring: Ring, offers: readonly Offer[]): void {
  const first = offers[ring.order[0] ?? 0]?.send;
  ring.order.forEach((rank, place) => {
    const next = ring.order[(place + 1) % ring.order.length] ?? rank;
    const mine = offers[rank]?.send;
    const theirs = offers[next]?.receive;
    if (mine?.transport === theirs?.transport && describe(mine?.size) === describe(theirs?.size) && describe(mine?.size) === describe(first?.size)) return;
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `rank ${rank} wants to send to rank ${next} by ${mine?.transport ?? ''} (${describe(mine?.size)}), ` +
        `which wants to receive by ${theirs?.transport ?? ''} (${describe(theirs?.size)}), and all must be of one size; give all ranks the same settings`,
      { ranks: [rank, next] },
    );
  });
}

function describe(size: FifoSize | undefined): string {
  return `${size?.steps ?? 0} steps of ${size?.slotBytes ?? 0} bytes`;
}
