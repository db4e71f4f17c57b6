import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { InternalError, InvalidUsageError } from '../errors.js';
import { died } from './ending.js';
import type { Connection, ConnectionSetUp, ReceiveConnection, SendConnection, Transport, TransportName } from './transport.js';

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
interface Offer {
  readonly transport: TransportName;
  readonly slotBytes: number;
  /** In base64. */
  readonly sends: Readonly<Record<string, string>>;
  readonly receives: Readonly<Record<string, string>>;
}

/**
 * Makes connections with any ranks. Every rank that is an end of one calls it; two ranks that want connections in
 * several calls make these calls in the same order. A rank that fails must abort the bootstrap network, so that those
 * that wait for it do not wait for ever.
 *
 * @param transportFor what carries data to and from a rank; both ranks of a pair must choose the same
 * @param signal ends the attempt with its reason
 * @throws InvalidUsageError `UNSUPPORTED` when two ranks chose differently; SystemError `OUT_OF_MEMORY`, `NETWORK`;
 *   RemoteError `RANK_DIED`
 */
export async function connectPeers(
  bootstrap: Bootstrap,
  sendTo: readonly WantedEnd[],
  receiveFrom: readonly WantedEnd[],
  transportFor: (peer: number) => Transport,
  signal: AbortSignal,
): Promise<PeerConnections> {
  const stop = new AbortController();
  const unwatch = bootstrap.onPeerLost((lost) => stop.abort(died(lost)));
  const either = AbortSignal.any([signal, stop.signal]);
  const undo: ((error: Error) => void)[] = [];
  try {
    const sends = await setUp(sendTo, (peer) => transportFor(peer).setUpSend(peer), undo);
    const receives = await setUp(receiveFrom, (peer) => transportFor(peer).setUpReceive(peer), undo);
    const offers = await exchange(bootstrap, sends, receives, transportFor);
    undo.length = 0; // a set-up that connects looks after itself
    const connect = async <E extends Connection>({ setUp, peer, name }: Ready<E>, info: string | undefined): Promise<E> => {
      if (info === undefined) throw new InternalError('INTERNAL', `rank ${peer} knows of no connection ${name}`);
      try {
        const end = await setUp.connect(Buffer.from(info, 'base64'), either);
        undo.push((error) => end.abort(error));
        return end;
      } catch (error) {
        stop.abort(error);
        throw error;
      }
    };
    const connecting = [
      ...sends.map((ready) => connect(ready, offers.get(ready.peer)?.receives[ready.name])),
      ...receives.map((ready) => connect(ready, offers.get(ready.peer)?.sends[ready.name])),
    ];
    await Promise.allSettled(connecting);
    const ends = await Promise.all(connecting);
    return { sends: ends.slice(0, sends.length) as SendConnection[], receives: ends.slice(sends.length) as ReceiveConnection[] };
  } catch (error) {
    for (const step of undo.reverse()) step(error as Error);
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    unwatch();
  }
}

/** An end before both have met. */
interface Ready<E> extends WantedEnd {
  readonly setUp: ConnectionSetUp<E>;
}

async function setUp<E>(wanted: readonly WantedEnd[], open: (peer: number) => Promise<ConnectionSetUp<E>>, undo: ((error: Error) => void)[]): Promise<Ready<E>[]> {
  const opened = wanted.map(async ({ peer, name }) => {
    const setUp = await open(peer);
    undo.push(() => setUp.cancel());
    return { peer, name, setUp };
  });
  await Promise.allSettled(opened);
  return Promise.all(opened);
}

/** Tells each rank what concerns it, and hears the same from it. */
async function exchange(
  bootstrap: Bootstrap,
  sends: readonly Ready<SendConnection>[],
  receives: readonly Ready<ReceiveConnection>[],
  transportFor: (peer: number) => Transport,
): Promise<ReadonlyMap<number, Offer>> {
  const peers = [...new Set([...sends, ...receives].map(({ peer }) => peer))];
  const infos = (ends: readonly Ready<unknown>[], peer: number): Record<string, string> =>
    Object.fromEntries(ends.filter((end) => end.peer === peer).map((end) => [end.name, Buffer.from(end.setUp.info).toString('base64')]));
  const offers = await Promise.all(
    peers.map(async (peer): Promise<[number, Offer]> => {
      const { name, size } = transportFor(peer);
      const mine: Offer = { transport: name, slotBytes: size.slotBytes, sends: infos(sends, peer), receives: infos(receives, peer) };
      const [bytes] = await Promise.all([bootstrap.recv(peer, TAG), bootstrap.send(peer, TAG, Buffer.from(JSON.stringify(mine)))]);
      const theirs = JSON.parse(Buffer.from(bytes).toString()) as Offer;
      if (theirs.transport === name && theirs.slotBytes === size.slotBytes) return [peer, theirs];
      throw new InvalidUsageError(
        'UNSUPPORTED',
        `rank ${bootstrap.rank} wants to exchange data with rank ${peer} by ${name} (messages of ${size.slotBytes} bytes), ` +
          `which wants ${theirs.transport} (${theirs.slotBytes}); give all ranks the same settings`,
        { ranks: [bootstrap.rank, peer] },
      );
    }),
  );
  return new Map(offers);
}
