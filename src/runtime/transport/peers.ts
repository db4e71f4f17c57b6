import { setMaxListeners } from 'node:events';
import type { Introduction } from '../bootstrap/bootstrap.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { InternalError, InvalidUsageError, SystemError } from '../../errors.js';
import type {
  Connection,
  ConnectionSetUp,
  FifoSize,
  ReceiveConnection,
  SendConnection,
  Transport,
  TransportName,
} from './transport.js';
import { unlessAborted } from './unless-aborted.js';

/** Messages of the bootstrap network that carry connect information have this tag. */
const TAG = 0xc0111ec7;

/** One end of a connection that is wanted. */
export interface WantedEnd {
  /** The rank at the other end. */
  readonly peer: number;
  /** Tells it from other connections that go the same way between the two ranks; both ends say the same. */
  readonly name: string;
}

/** Ends in the order in which they were asked for. */
export interface PeerConnections {
  readonly sends: readonly SendConnection[];
  readonly receives: readonly ReceiveConnection[];
}

/** What a rank tells another about the ends of their connections, by name. */
export interface Offer {
  readonly transport: TransportName;
  readonly size: FifoSize;
  /** In base64. */
  readonly sends: Readonly<Record<string, string>>;
  readonly receives: Readonly<Record<string, string>>;
}

/** How ranks that connect with each other keep in step. */
export interface Agreement {
  /**
   * Tells the peers what this rank has opened for them, by rank, and gives what each has for this one. May tell of a
   * failure to open, too; throws where the ranks do not fit together.
   */
  exchange(opening: Promise<ReadonlyMap<number, Offer>>): Promise<ReadonlyMap<number, Offer>>;
  /** Resolves, or throws, once all whose connections matter to each other know what became of theirs. */
  settle(connecting: Promise<unknown>): Promise<unknown>;
}

/**
 * Makes connections with any ranks, and gives up when any rank fails meanwhile. Every rank that is an end of one calls
 * it; two ranks that want connections in several calls make these calls in the same order. A rank that fails must abort
 * the bootstrap network, so that those that wait for it do not wait for ever.
 *
 * @param transportFor what carries data to and from a rank; both ranks of a pair must choose the same
 * @param signal ends the attempt with its reason
 * @throws InvalidUsageError `UNSUPPORTED` when two ranks chose differently; SystemError `OUT_OF_MEMORY`, `NETWORK`;
 *   RemoteError `RANK_DIED`
 */
export function connectPeers(
  bootstrap: Introduction,
  sendTo: readonly WantedEnd[],
  receiveFrom: readonly WantedEnd[],
  transportFor: (peer: number) => Transport,
  signal: AbortSignal,
): Promise<PeerConnections> {
  const inPairs: Agreement = {
    exchange: async (opening) =>
      new Map(
        await Promise.all(
          [...(await opening)].map(async ([peer, mine]): Promise<[number, Offer]> => {
            const [bytes] = await Promise.all([bootstrap.recv(peer, TAG), bootstrap.send(peer, TAG, encodeJson(mine))]);
            const theirs = decodeJson(bytes) as Offer;
            if (isAlike(mine, theirs)) return [peer, theirs];
            throw new InvalidUsageError(
              'UNSUPPORTED',
              `rank ${bootstrap.rank} wants to exchange data with rank ${peer} by ${describeOffer(mine)}, which wants ${describeOffer(theirs)}; give all ranks the same settings`,
              { ranks: [bootstrap.rank, peer] },
            );
          }),
        ),
      ),
    settle: (connecting) => connecting,
  };
  return connectEnds(bootstrap, sendTo, receiveFrom, transportFor, signal, inPairs);
}

/** Makes connections as {@link connectPeers}, by an agreement of the caller's. */
export async function connectEnds(
  bootstrap: Introduction,
  sendTo: readonly WantedEnd[],
  receiveFrom: readonly WantedEnd[],
  transportFor: (peer: number) => Transport,
  signal: AbortSignal,
  agreement: Agreement,
): Promise<PeerConnections> {
  const stop = new AbortController();
  const unwatch = bootstrap.onFailure((error) => stop.abort(error));
  const either = AbortSignal.any([signal, stop.signal]);
  setMaxListeners(0, either); // one for each connection
  /** What to do with what is open if not all comes about. */
  const undo: ((error: Error) => void)[] = [];
  const opening = both(
    open(sendTo, (peer) => transportFor(peer).setUpSend(peer), undo),
    open(receiveFrom, (peer) => transportFor(peer).setUpReceive(peer), undo),
  );
  try {
    const offers = await unlessAborted(
      agreement.exchange(opening.then(([sends, receives]) => offersOf(sends, receives, transportFor))),
      either,
    );
    const [sends, receives] = await opening;
    undo.length = 0; // a set-up that connects looks after itself
    const connect = async <E extends Connection>({ setUp, peer, name }: Ready<E>, info: string | undefined): Promise<E> => {
      if (info === undefined) throw new InternalError('INTERNAL', `rank ${peer} knows of no connection ${name}`);
      try {
        const end = await orWhyNot(bootstrap, peer, setUp.connect(Buffer.from(info, 'base64'), either), either);
        undo.push((error) => end.abort(error));
        return end;
      } catch (error) {
        stop.abort(error);
        throw error;
      }
    };
    const connecting = both(
      allOrNone(sends.map((ready) => connect(ready, offers.get(ready.peer)?.receives[ready.name]))),
      allOrNone(receives.map((ready) => connect(ready, offers.get(ready.peer)?.sends[ready.name]))),
    ).catch((error: unknown) => {
      throw stop.signal.aborted ? stop.signal.reason : error;
    });
    await agreement.settle(connecting);
    const [senders, receivers] = await connecting;
    return { sends: senders, receives: receivers };
  } catch (error) {
    await Promise.allSettled([opening]); // what is about to open is to be closed, too
    for (const step of undo.reverse()) step(error as Error);
    throw error;
  } finally {
    unwatch();
  }
}

/** How long the news of why a connection broke in the making may take. */
const NEWS_MS = 5000;

/**
 * A connection in the making with `peer`. Where it breaks, that may be because the peer died or gave up, and the news of it
 * are still on their way: they tell more. They are waited for no longer than the signal lets.
 */
export async function orWhyNot<C>(
  bootstrap: Pick<Introduction, 'whyGone'>,
  peer: number,
  connecting: Promise<C>,
  signal: AbortSignal,
): Promise<C> {
  try {
    return await connecting;
  } catch (error) {
    if (!(error instanceof SystemError && error.code === 'NETWORK')) throw error;
    throw await new Promise((resolve) => {
      const timer = setTimeout(() => resolve(error), NEWS_MS);
      const tell = (reason: unknown): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
        resolve(reason);
      };
      const stop = (): void => tell(error);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop);
      bootstrap.whyGone(peer).then(tell, () => tell(error));
    });
  }
}

/** Whether two ends can be connected, as far as transports and sizes go. */
export function isAlike(mine: Offer | undefined, theirs: Offer | undefined): boolean {
  return describeOffer(mine) === describeOffer(theirs);
}

/** `shm (8 steps of 4096 bytes)`. */
export function describeOffer(offer: Offer | undefined): string {
  return offer === undefined ? 'nothing' : `${offer.transport} (${offer.size.steps} steps of ${offer.size.slotBytes} bytes)`;
}

/** An end before both have met. */
interface Ready<E> extends WantedEnd {
  readonly setUp: ConnectionSetUp<E>;
}

function open<E>(
  wanted: readonly WantedEnd[],
  setUpWith: (peer: number) => Promise<ConnectionSetUp<E>>,
  undo: ((error: Error) => void)[],
): Promise<Ready<E>[]> {
  return allOrNone(
    wanted.map(async ({ peer, name }) => {
      const setUp = await setUpWith(peer);
      undo.push(() => setUp.cancel());
      return { peer, name, setUp };
    }),
  );
}

/** What each peer is to know. */
function offersOf(
  sends: readonly Ready<SendConnection>[],
  receives: readonly Ready<ReceiveConnection>[],
  transportFor: (peer: number) => Transport,
): Map<number, Offer> {
  const infos = (ends: readonly Ready<unknown>[], peer: number): Record<string, string> =>
    Object.fromEntries(
      ends.filter((end) => end.peer === peer).map((end) => [end.name, Buffer.from(end.setUp.info).toString('base64')]),
    );
  return new Map(
    [...sends, ...receives].map(({ peer }): [number, Offer] => {
      const { name, size } = transportFor(peer);
      return [peer, { transport: name, size, sends: infos(sends, peer), receives: infos(receives, peer) }];
    }),
  );
}

/** All results, or the first error, once all are settled: nothing is left that could still open something. */
async function allOrNone<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

async function both<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([a, b]);
  return Promise.all([a, b]);
}
