import { Buffer } from '#platform/bytes';
import { setMaxListeners } from '#platform/events';
import type { Introduction } from '../bootstrap/bootstrap.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { Unanswered } from '#seam/bootstrap/liveness';
import { InternalError, InvalidUsageError, SystemError, TcclError } from '../../errors.js';
import type {
  Connection,
  ConnectionSetUp,
  FifoSize,
  ReceiveConnection,
  SendConnection,
  Transport,
  TransportName,
  TwoWayConnection,
} from './transport.js';
import { unlessAborted, withAnySignal } from '../abort-signals.js';
import { clearTimeout, setTimeout } from '../platform/platform.js';
import { endReason } from '../failure/end-reason.js';
import { graceMs } from '../failure/grace.js';
import { defined } from '../../defined.js';

/** Tag of the bootstrap messages that carry connect information. */
const TAG = 0xc0111ec7;

/** One end of a requested connection. */
export interface WantedEnd {
  /** The rank at the other end. */
  readonly peer: number;
  /** Distinguishes connections in the same direction between the same two ranks; both ends use the same name. */
  readonly name: string;
  /**
   * Number of the ring whose NICs it uses between hosts, or `'all'` for those of all rings; left out, it uses the address that
   * the rank listens on.
   */
  readonly channel?: number | 'all';
}

/** The transport for data to and from a rank, over the NICs of a channel; both ranks of a pair must choose the same. */
export type TransportFor = (peer: number, channel?: WantedEnd['channel']) => Transport;

/** Connected ends in the order in which they were requested. A connection that goes both ways is in both lists. */
export interface PeerConnections {
  readonly sends: readonly SendConnection[];
  readonly receives: readonly ReceiveConnection[];
}

/** One rank's information for another about the ends of their connections, by name. */
export interface Offer {
  readonly transport: TransportName;
  readonly size: FifoSize;
  /** Base64. */
  readonly sends: Readonly<Record<string, string>>;
  readonly receives: Readonly<Record<string, string>>;
  readonly both: Readonly<Record<string, string>>;
}

/** Ends whose connections are being made. */
export type PendingEnds = Set<Pick<WantedEnd, 'peer'>>;

/** Synchronises the ranks that connect with each other. */
export interface Agreement {
  /**
   * Sends each peer this rank's connect information for it (or the failure to open), and returns each peer's for this rank.
   * Throws if the offers of two ranks do not match.
   */
  exchange(opening: Promise<ReadonlyMap<number, Offer>>): Promise<ReadonlyMap<number, Offer>>;
  /** Resolves once all ranks that depend on each other have connected; throws if one of them failed. */
  settle(connecting: Promise<unknown>): Promise<unknown>;
  /** Has the ends whose connections have not been made yet, for reports of the ranks that hold this one up. */
  readonly pending?: PendingEnds | undefined;
}

/**
 * Connects any ranks with each other, and gives up when any of them fails. Every rank that is an end of a connection calls it, in
 * the same order as its peers. A rank that cannot connect fails the bootstrap network, so that ranks that wait for it end with
 * the same error; after any other failure the caller aborts that network.
 *
 * @param signal aborts the attempt with its reason
 * @param details tag: of messages on the bootstrap network; other calls that may be under way have another
 * @throws InvalidUsageError `UNSUPPORTED` when two ranks chose differently; SystemError `OUT_OF_MEMORY`, `NETWORK`;
 *   RemoteError `RANK_DIED`
 */
export function connectPeers(
  bootstrap: Introduction,
  sendTo: readonly WantedEnd[],
  receiveFrom: readonly WantedEnd[],
  transportFor: TransportFor,
  signal: AbortSignal,
  { tag = TAG, pending }: { readonly tag?: number } & Pick<Agreement, 'pending'> = {},
): Promise<PeerConnections> {
  const inPairs: Agreement = {
    pending,
    exchange: async (opening) =>
      new Map(
        await Promise.all(
          [...(await opening)].map(async ([peer, mine]): Promise<[number, Offer]> => {
            const [bytes] = await Promise.all([bootstrap.recv(peer, tag), bootstrap.send(peer, tag, encodeJson(mine))]);
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

/** Like {@link connectPeers}, with the synchronisation given by the caller. */
export async function connectEnds(
  bootstrap: Introduction,
  sendTo: readonly WantedEnd[],
  receiveFrom: readonly WantedEnd[],
  transportFor: TransportFor,
  signal: AbortSignal,
  agreement: Agreement,
): Promise<PeerConnections> {
  const stop = new AbortController();
  const unwatch = bootstrap.onFailure((error) => stop.abort(error));
  const wanted = byDirection(sendTo, receiveFrom, transportFor);
  try {
    const made = await withAnySignal([signal, stop.signal], (either) =>
      connectUnless(either, stop, bootstrap, wanted, transportFor, agreement),
    );
    return {
      sends: sendTo.map((end) => defined(made.sending.get(keyOf(end)))),
      receives: receiveFrom.map((end) => defined(made.receiving.get(keyOf(end)))),
    };
  } finally {
    unwatch();
  }
}

/** Connections that were made, by keyOf(). */
interface Made {
  readonly sending: ReadonlyMap<string, SendConnection>;
  readonly receiving: ReadonlyMap<string, ReceiveConnection>;
}

/** @param either aborts the making of connections; `stop` is the part of it that a failure here aborts */
async function connectUnless(
  either: AbortSignal,
  stop: AbortController,
  bootstrap: Introduction,
  wanted: ReturnType<typeof byDirection>,
  transportFor: TransportFor,
  agreement: Agreement,
): Promise<Made> {
  const { pending } = agreement;
  for (const end of [...wanted.sends, ...wanted.receives, ...wanted.both]) pending?.add(end);
  setMaxListeners(0, either); // one listener for each connection
  /** Clean-up of everything opened so far, for the case that a later step fails. */
  const undo: ((error: Error) => void)[] = [];
  const opening = all(
    open(wanted.sends, ({ peer, channel }) => transportFor(peer, channel).setUpSend(peer), undo),
    open(wanted.receives, ({ peer, channel }) => transportFor(peer, channel).setUpReceive(peer), undo),
    open(wanted.both, ({ peer, setUp }) => setUp(peer), undo),
  );
  try {
    const offers = await unlessAborted(agreement.exchange(opening.then((ready) => offersOf(ready, transportFor))), either);
    const [sends, receives, both] = await opening;
    pending?.clear();
    for (const end of [...sends, ...receives, ...both]) pending?.add(end);
    undo.length = 0; // from here on, each set-up cleans up after itself
    const connect = async <E extends Connection>(end: Ready<E>, info: string | undefined): Promise<readonly [string, E]> => {
      const { peer, name, setUp } = end;
      if (info === undefined) throw new InternalError('INTERNAL', `rank ${peer} knows of no connection ${name}`);
      // A rank that listens does not notice that the one that would dial has gone.
      const late = setTimeout(() => {
        void bootstrap.whyGone(peer).then((reason) => setTimeout(() => stop.abort(reason), graceMs.lastDial));
      }, graceMs.lateDial);
      try {
        const connection = await orWhyNot(bootstrap, peer, setUp.connect(Buffer.from(info, 'base64'), either), either);
        undo.push((error) => connection.abort(error));
        pending?.delete(end);
        return [keyOf(end), connection];
      } catch (error) {
        // The rank that listens learns of the failure only this way.
        if (!either.aborted && error instanceof TcclError) bootstrap.fail(error);
        stop.abort(error);
        throw error;
      } finally {
        clearTimeout(late);
      }
    };
    const connecting = all(
      allOrNone(sends.map((ready) => connect(ready, offers.get(ready.peer)?.receives[ready.name]))),
      allOrNone(receives.map((ready) => connect(ready, offers.get(ready.peer)?.sends[ready.name]))),
      allOrNone(both.map((ready) => connect(ready, offers.get(ready.peer)?.both[ready.name]))),
    ).catch((error: unknown) => {
      throw stop.signal.aborted ? stop.signal.reason : error;
    });
    await agreement.settle(connecting);
    const [senders, receivers, twoWay] = await connecting;
    return { sending: new Map([...senders, ...twoWay]), receiving: new Map([...receivers, ...twoWay]) };
  } catch (error) {
    await Promise.allSettled([opening]); // ends that are still opening must be closed, too
    for (const step of undo.reverse()) step(error as Error);
    throw error;
  }
}

/** Errors of the operating system that a dial gets also because the peer has ended. */
const endsOfPeers = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EHOSTUNREACH'];

/**
 * Waits for a connection that is being made with `peer`. If it fails because the peer died or gave up, the bootstrap network
 * brings the better reason, perhaps a little later; this function waits for that reason, but not beyond the signal.
 */
export async function orWhyNot<C>(
  bootstrap: Pick<Introduction, 'waitFor' | 'whyGone'>,
  peer: number,
  connecting: Promise<C>,
  signal: AbortSignal,
): Promise<C> {
  const met = bootstrap.waitFor(peer);
  try {
    return await connecting;
  } catch (error) {
    if (!(error instanceof SystemError && error.code === 'NETWORK' && mayBeEnd(error.cause))) throw error;
    throw (await endReason(bootstrap.whyGone(peer), graceMs.failedDial, signal)) ?? error;
  } finally {
    met();
  }
}

function mayBeEnd(cause: unknown): boolean {
  const { code = '', syscall }: NodeJS.ErrnoException = cause instanceof Error ? cause : new Error();
  return !(cause instanceof Unanswered) && (syscall === undefined || endsOfPeers.includes(code));
}

/** True if two ends match in transport and sizes. */
export function isAlike(mine: Offer | undefined, theirs: Offer | undefined): boolean {
  return describeOffer(mine) === describeOffer(theirs);
}

/** Text for errors, such as `shm (8 steps of 4096 bytes)`. */
export function describeOffer(offer: Offer | undefined): string {
  return offer === undefined ? 'nothing' : `${offer.transport} (${offer.size.steps} steps of ${offer.size.slotBytes} bytes)`;
}

/** One end that is open but not yet connected. */
interface Ready<E> extends WantedEnd {
  readonly setUp: ConnectionSetUp<E>;
}

/** Ends of connections that go both ways. */
interface WantedBoth extends WantedEnd {
  readonly setUp: (peer: number) => Promise<ConnectionSetUp<TwoWayConnection>>;
}

/**
 * Divides the ends of a rank. Two ends of the same name with the same rank become one where the transport can do that: the
 * other rank has the same two ends.
 */
function byDirection(
  sendTo: readonly WantedEnd[],
  receiveFrom: readonly WantedEnd[],
  transportFor: TransportFor,
): { readonly sends: WantedEnd[]; readonly receives: WantedEnd[]; readonly both: WantedBoth[] } {
  const received = new Set(receiveFrom.map(keyOf));
  const both = sendTo.flatMap((end): WantedBoth[] => {
    if (!received.has(keyOf(end))) return [];
    const transport = transportFor(end.peer, end.channel);
    return transport.setUpBoth === undefined ? [] : [{ ...end, setUp: transport.setUpBoth.bind(transport) }];
  });
  const joined = new Set(both.map(keyOf));
  const oneWay = (ends: readonly WantedEnd[]): WantedEnd[] => ends.filter((end) => !joined.has(keyOf(end)));
  return { sends: oneWay(sendTo), receives: oneWay(receiveFrom), both };
}

/** The rank at the other end and the name: no two ends of one direction have the same. */
export function keyOf({ peer, name }: WantedEnd): string {
  return `${peer} ${name}`;
}

function open<W extends WantedEnd, E>(
  wanted: readonly W[],
  setUpOf: (end: W) => Promise<ConnectionSetUp<E>>,
  undo: ((error: Error) => void)[],
): Promise<Ready<E>[]> {
  return allOrNone(
    wanted.map(async (end) => {
      const setUp = await setUpOf(end);
      undo.push(() => setUp.cancel());
      return { peer: end.peer, name: end.name, setUp };
    }),
  );
}

/** The offer of this rank to each peer. */
function offersOf(
  [sends, receives, both]: readonly [readonly Ready<unknown>[], readonly Ready<unknown>[], readonly Ready<unknown>[]],
  transportFor: TransportFor,
): Map<number, Offer> {
  const infos = (ends: readonly Ready<unknown>[], peer: number): Record<string, string> =>
    Object.fromEntries(
      ends.filter((end) => end.peer === peer).map((end) => [end.name, Buffer.from(end.setUp.info).toString('base64')]),
    );
  return new Map(
    [...sends, ...receives, ...both].map(({ peer }): [number, Offer] => {
      const { name, size } = transportFor(peer);
      return [
        peer,
        { transport: name, size, sends: infos(sends, peer), receives: infos(receives, peer), both: infos(both, peer) },
      ];
    }),
  );
}

/** Returns all results, or throws the first error after all promises are settled, so that nothing opens afterwards. */
async function allOrNone<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

/** The same for promises of different types. */
async function all<T extends readonly unknown[]>(...promises: { readonly [I in keyof T]: Promise<T[I]> }): Promise<T> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}
