import { describeValue } from '../../describe-value.js';
import {
  describeError,
  InvalidArgumentError,
  RemoteError,
  SystemError,
  TcclError,
  TimeoutError,
  type ErrorDetails,
} from '../../errors.js';
import { BUILD, version as released } from '../../version.js';
import { clearTimeout, hostname, randomBytes, setTimeout, sleep, type Timer } from '../platform/platform.js';
import { afterWatching, WatchClock } from '../progress/watch-clock.js';
import { formatAddress, inZone, isLoopback, parseAddress } from './address.js';
import type { Address } from './address.js';
import type { Bootstrap } from './bootstrap.js';
import type { BootstrapConnection } from './connection.js';
import { dial, endedHere, OtherJob } from './dial.js';
import { packError, unpackError } from '../failure/transfer.js';
import { RankGroup } from './group.js';
import { purposes, ROOT_RANK, sessionSecret } from './handshake.js';
import { identify } from './identity.js';
import { checkReaches, chooseInterface, systemInterfaces } from './interfaces.js';
import { decodeJson, encodeJson } from './json.js';
import { Listener } from './listener.js';
import type { ListenerOptions } from './listener.js';
import type { HandshakeLimits } from './handshake-limits.js';
import { Mesh, type DialPeer } from './mesh.js';
import { Network, spaces } from './network.js';
import { untilWhen, type Notices } from './notices.js';
import { peersOf, processOf } from './peer-info.js';
import type { Introduction } from './peer-info.js';
import type { CheckIn } from './roll-call.js';
import { setUpHeader } from './set-up-message.js';
import type { Answer, Confirmation } from './set-up-message.js';
import { secretOf, type UniqueId } from './unique-id.js';
import { WaitQueries } from './wait-queries.js';
import { graceMs } from '../failure/grace.js';
import { onAbort } from '../abort-signals.js';

/** Version and build of tccl, which all ranks have in common. */
const OWN_VERSION = BUILD === '' ? released : `${released} (build ${BUILD})`;

export interface ConnectOptions {
  readonly id: UniqueId;
  readonly rank: number;
  readonly nRanks: number;
  /** Device of the rank, unique on its host. Default: `cpu:N` with a number of its own. */
  readonly device?: string | undefined;
  /** Identity of the host (`TCCL_HOSTID`). */
  readonly hostId?: string | undefined;
  /** Version to compare among the ranks; default: tccl's. */
  readonly version?: string | undefined;
  /** Time to wait for the other ranks, milliseconds; time while this process is stopped does not count. */
  readonly timeoutMs: number;
  /** See InterfacePreference. */
  readonly interfaceName?: string | undefined;
  readonly family?: 4 | 6 | undefined;
  /** Aborts the set-up, which rejects with the signal's reason. Without effect later: use `abort`. */
  readonly signal?: AbortSignal | undefined;
  readonly limits?: HandshakeLimits | undefined;
  /** The rank whose process has the root, if known, for errors about the root. */
  readonly rankOfRoot?: number | undefined;
  /** Notices of a set-up that takes long. */
  readonly notices?: Notices | undefined;
  /** False: another rank of this host gives the notice that the root cannot be reached. Default true. */
  readonly speaksForHost?: boolean | undefined;
  /** Called with the reason of the first attempt that does not reach the root; further attempts follow. */
  readonly onRootMissed?: ((reason: string) => void) | undefined;
  /**
   * Called when all ranks have checked in, with queries for ranks that wait for each other. The caller then ends the set-up by
   * `signal` when the time is over.
   */
  readonly onRing?: ((queries: WaitQueries) => void) | undefined;
  /** Returns the end of the error if no attempt reaches the root, given the reason of the last one. */
  readonly explainMiss?: ((reason: string) => string) | undefined;
}

/**
 * Times before the end of the limit at which a step ends that holds the ranks up, at most and as a share of the limit. The step
 * that knows the cause ends first, so that its error arrives everywhere in time; the root gives up before all of them.
 */
const endsBefore = {
  /** A rank dials its next one. */
  dial: { mostMs: 250, part: 1 / 10 },
  /** A rank waits for the previous one to connect. */
  accept: { mostMs: 100, part: 1 / 20 },
} as const;

/**
 * With more ranks than this, ranks check in one after the other, a pause apart, to spare the root. The values of NCCL up to 2.22;
 * newer ones let 7,000 ranks a second check in, above 256 (bootstrap.cc:669).
 */
const STAGGER_ABOVE_RANKS = 128;
const STAGGER_PAUSE_MS = 1;

/**
 * Joins the communicator of an id; resolves when all its ranks have joined.
 *
 *     rank r                              root                       rank r + 1
 *       │ listens for other ranks, and for the root
 *       │ "rank r of n, my addresses" ────►│◄──────────────────────────── │
 *       │                                  │ when all n have checked in:
 *       │◄─────────────── "r + 1 is at …"  │ on the same connection, while there are not too many
 *       │ connects to r + 1 ──────────────────────────────────────────────►│
 *       │ all-gather around the ring: information and addresses of all ranks
 *
 * @throws InvalidArgumentError `ARGUMENT_RANGE`, `ENVIRONMENT`: a value is wrong; nothing was sent.
 * @throws SystemError `NETWORK`: only loopback is up, and the root is on another host; nothing was sent.
 * @throws InvalidUsageError `RANK_COUNT_MISMATCH`, `RANK_DUPLICATE`, `VERSION_MISMATCH`, `DEVICE_DUPLICATE`: on every rank.
 * @throws TimeoutError `RANK_MISSING` on every rank that arrived: `ranks` did not. `TIMEOUT`: the root was not found.
 * @throws RemoteError `RANK_DIED`: a rank was lost meanwhile.
 */
export async function connect(options: ConnectOptions): Promise<Bootstrap> {
  checkOptions(options);
  options.signal?.throwIfAborted();
  return new SetUp(options).run();
}

/** @throws InvalidArgumentError `ARGUMENT_RANGE`: no communicator has such a rank. */
export function checkRank(rank: number, nRanks: number): void {
  if (!Number.isInteger(nRanks) || nRanks < 1) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `the rank count ${describeValue(nRanks)} is not a whole number of at least 1`,
    );
  }
  if (!Number.isInteger(rank) || rank < 0 || rank >= nRanks) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `the rank ${describeValue(rank)} is not a whole number from 0 to ${nRanks - 1}, as it must be among ${nRanks} ranks`,
    );
  }
}

function checkOptions({ rank, nRanks, timeoutMs }: ConnectOptions): void {
  checkRank(rank, nRanks);
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `the time-out of ${timeoutMs} ms is not between 0 and 24 days`);
  }
}

/** The root's answer to a rank of a communicator that is complete. */
type Accepted = Extract<Answer, { next: string }>;

/** The set-up of one rank. */
class SetUp {
  readonly #options: ConnectOptions;
  readonly #mesh: Mesh;
  /** All ranks. The group exists from the start, so that another rank's failure ends this set-up too. */
  readonly #all: RankGroup;
  /** Ranks that were stopped together are not late for each other. */
  readonly #clock: WatchClock;
  /** End of the time limit: this rank's own, or of the rank whose limit ends first. */
  #endMs: number;
  /** Aborted with the error when the set-up has failed. */
  readonly #ended = new AbortController();
  readonly #listeners: Listener[] = [];
  #liftLimit: () => void = () => undefined;
  /** This process for notices: `rank 1 on host7 (10.0.0.7)`. */
  #self: string;
  /** True if the root has answered or this rank has given up: from then on the root need not be alive. */
  #isAnswered = false;
  /** Runs from the end of the root's connection until this rank gives up. */
  #rootMissed: Timer | undefined;

  constructor(options: ConnectOptions) {
    const { rank, nRanks, timeoutMs } = options;
    this.#options = options;
    this.#clock = new WatchClock(timeoutMs);
    this.#endMs = this.#clock.look() + timeoutMs;
    this.#self = `rank ${rank}`;
    this.#mesh = new Mesh(rank, nRanks, dialPeer);
    this.#all = new RankGroup(
      this.#mesh,
      Array.from({ length: nRanks }, (_, other) => other),
      spaces.all,
      'all',
    );
    this.#mesh.onLost((_, error) => this.#ended.abort(error));
    this.#mesh.onFailure('all', ({ error }) => this.#ended.abort(unpackError(error)));
  }

  async run(): Promise<Bootstrap> {
    const { signal } = this.#options;
    const stopListening = onAbort(signal, () => this.#ended.abort(signal?.reason));
    const ended = new Promise<never>((_, reject) => {
      onAbort(this.#ended.signal, () => reject(this.#ended.signal.reason as Error));
    });
    try {
      return await Promise.race([this.#join(), ended]);
    } catch (error) {
      this.#fail(error as Error);
      throw error;
    } finally {
      this.#liftLimit();
      stopListening();
    }
  }

  async #join(): Promise<Bootstrap> {
    const { id, rank, nRanks, device, version = OWN_VERSION, hostId, interfaceName, family, onRing } = this.#options;
    const { hostname, pid, hostHash, processHash } = identify(hostId);
    const chosen = chooseInterface(systemInterfaces(), {
      interfaceName,
      family,
      root: { host: id.root.host, origin: id.origin },
    });
    const { host, name: zone } = chosen;
    this.#self = `rank ${rank} on ${hostname} (${host})`;
    await checkReaches(chosen, id.root.host);
    const root = inZone(id.root, zone);

    const answer = withResolvers<Answer>();
    const answerListener = await this.#listen({
      host,
      secret: secretOf(id),
      expects: ({ purpose, to }) => purpose === purposes.answer && to === rank,
      admit: (_, open) => open({ message: ({ data }) => answer.resolve(decodeJson(data) as Answer), end: () => undefined }),
    });
    const ringSecret = withResolvers<Uint8Array>();
    const peerListener = await this.#listen({
      host,
      secret: ringSecret.promise,
      expects: ({ purpose, from, to }) => purpose === purposes.peer && to === rank && from < nRanks && from !== rank,
      admit: ({ from }, open) => this.#mesh.accept(from, open),
    });
    const answerAddress = formatAddress(answerListener.address);
    const peerAddress = formatAddress(peerListener.address);

    const checkIn = { rank, nRanks, version, instance: randomBytes(8).toString('hex'), answerAddress, peerAddress };
    const checkedIn = await this.#checkIn(root, { ...checkIn, hostname, pid, processHash }, answer.resolve);
    const next = await this.#awaitAnswer(answer.promise, root, answerAddress).finally(() => {
      this.#isAnswered = true;
      // It would keep the communicator, whose memory takes 10 GB of addresses, beyond its close().
      clearTimeout(this.#rootMissed);
      void checkedIn.leave();
    });
    answerListener.close();

    const secret = sessionSecret(secretOf(id), Buffer.from(next.sessionNonce, 'hex'));
    ringSecret.resolve(secret);
    this.#endMs = Math.min(this.#endMs, this.#clock.look() + next.leftMs);
    onRing?.(new WaitQueries(this.#mesh, this.#all.ranks, spaces.tags));
    await this.#joinRing(secret, zone, next, peerAddress);

    if (onRing === undefined) {
      this.#limit(this.#endMs, () => {
        const { previousRank } = this.#mesh;
        const message = `rank ${previousRank} has not passed on the introductions of the other ranks in time; can all hosts reach each other?`;
        return new TimeoutError('RANK_MISSING', message, { ranks: [previousRank] });
      });
    } else {
      this.#liftLimit();
    }
    const introduction: Introduction = { rank, hostHash, processHash, hostname, pid, device, version, address: peerAddress };
    const introductions = (await this.#all.allGather(encodeJson(introduction))).map((data) => decodeJson(data) as Introduction);
    const peers = peersOf(introductions);
    this.#mesh.introduce({ addresses: introductions.map(({ address }) => parseAddress(address)), names: peers.map(processOf) });
    onAbort(this.#mesh.signal, () => peerListener.close());
    return new Network(
      this.#mesh,
      0,
      peers.map((peer) => peer.rank),
      peers,
      this.#all,
    );
  }

  /** The root in words, and the rank that an error about it names; never this rank, which only waits. */
  #rootAt(address: Address): { readonly text: string; readonly details: ErrorDetails } {
    const { rankOfRoot } = this.#options;
    if (rankOfRoot === undefined) return { text: formatAddress(address), details: {} };
    return { text: `${formatAddress(address)}, in the process of rank ${rankOfRoot},`, details: { ranks: [rankOfRoot] } };
  }

  /**
   * Registers this rank with the root, repeatedly until the root has confirmed. Returns the connection.
   *
   * @param answered called with the root's answer, if it comes on that connection
   */
  async #checkIn(
    root: Address,
    checkIn: Omit<CheckIn, 'remainingMs'>,
    answered: (answer: Answer) => void,
  ): Promise<BootstrapConnection> {
    const { id, rank, nRanks, timeoutMs, rankOfRoot, onRootMissed, explainMiss, speaksForHost = true } = this.#options;
    const { signal } = this.#ended;
    const { text, details } = this.#rootAt(root);
    let failure: string | undefined;
    /** Refusal by a root of another job, which may have closed since. */
    let refusal: string | undefined;
    const why = (): string =>
      `${failure ?? 'no answer'}${refusal === undefined || refusal === failure ? '' : `; before: ${refusal}`}`;
    /** The last attempt ended on this host. */
    let isHere = false;
    const advice = (): string =>
      isHere
        ? `no interface of ${hostname()} leads there: name a network of all hosts with TCCL_SOCKET_IFNAME`
        : adviceAbout(root, id, rankOfRoot);
    this.#limit(
      this.#endMs,
      () => {
        const message =
          explainMiss !== undefined && failure !== undefined
            ? `rank ${rank} found no root at ${formatAddress(root)} within ${timeoutMs} ms: ${explainMiss(failure)}`
            : `rank ${rank} found no root at ${text} within ${timeoutMs} ms (${why()}); ${advice()}`;
        return new TimeoutError('TIMEOUT', message, details);
      },
      speaksForHost ? () => [`for the root at ${text.replace(/,$/, '')} (${why()})`, advice()] : undefined,
    );
    if (nRanks > STAGGER_ABOVE_RANKS) await sleep(rank * STAGGER_PAUSE_MS, { signal });
    while (true) {
      const confirmation = withResolvers<Confirmation | undefined>();
      let stays = false;
      const connection = await dial({
        address: root,
        secret: secretOf(id),
        greeting: { purpose: purposes.checkIn, from: rank, to: ROOT_RANK, job: id.job },
        events: {
          message: ({ data }) => {
            const message = decodeJson(data) as Confirmation | Answer;
            if ('stays' in message) confirmation.resolve(message);
            else answered(message);
          },
          end: () => {
            confirmation.resolve(undefined);
            if (stays) this.#missRoot(root);
          },
        },
        signal,
        onFailure: (error) => {
          const isFirst = failure === undefined;
          failure = describeError(error);
          isHere = endedHere(error);
          if (error instanceof OtherJob) refusal = failure;
          if (isFirst) onRootMissed?.(failure);
        },
      });
      const remainingMs = Math.max(1, this.#endMs - this.#clock.look());
      // The end of the connection shows whether it arrived.
      connection.send(setUpHeader, encodeJson({ ...checkIn, remainingMs } satisfies CheckIn)).catch(() => undefined);
      const confirmed = await confirmation.promise;
      if (confirmed !== undefined) {
        stays = confirmed.stays;
        return connection;
      }
      failure = 'the root closed the connection';
      void connection.leave();
    }
  }

  /** The root's process has ended, or the root was closed: no answer can come, except one that has already been sent. */
  #missRoot(root: Address): void {
    const { text, details } = this.#rootAt(root);
    const message = `the root at ${text} ended before all ranks had checked in`;
    const [rank] = details.ranks ?? [];
    const error = rank === undefined ? new SystemError('NETWORK', message) : new RemoteError('RANK_DIED', message, { rank });
    if (!this.#isAnswered) this.#rootMissed = setTimeout(() => this.#ended.abort(error), graceMs.rootAnswer).unref();
  }

  async #awaitAnswer(answer: Promise<Answer>, root: Address, answerAddress: string): Promise<Accepted> {
    const { rank, timeoutMs } = this.#options;
    const { text, details } = this.#rootAt(root);
    this.#limit(
      this.#endMs + graceMs.rootVerdict,
      () =>
        new TimeoutError(
          'TIMEOUT',
          `rank ${rank} checked in with the root at ${text.replace(/,$/, '')}, but got no answer at ${answerAddress} within ${timeoutMs} ms; did the root's process end, or does a firewall keep it from connecting to this host?`,
          details,
        ),
    );
    const given = await answer;
    if ('error' in given) throw unpackError(given.error);
    return given;
  }

  async #joinRing(secret: Uint8Array, zone: string, { next, hint }: Accepted, own: string): Promise<void> {
    const { rank } = this.#options;
    const mesh = this.#mesh;
    const apart = 'does a firewall keep their hosts apart?';
    const unreached = (): string => `at ${next} (${mesh.whyUnreached(mesh.nextRank) ?? 'no answer'})`;
    const missing = (late: number, action: string, advice: string): TimeoutError =>
      new TimeoutError('RANK_MISSING', `rank ${late} checked in, but ${action}; ${advice}`, { ranks: [late] });
    // The rank that connects knows the reason.
    this.#limit(
      this.#endMs - this.#reserveMs('accept'),
      () => missing(mesh.previousRank, `did not connect to rank ${rank} at ${own} in time`, `did it end, or ${apart}`),
      () =>
        mesh.hasNext
          ? [`for rank ${mesh.previousRank}, which has checked in, to connect at ${own}`, apart]
          : [`to reach rank ${mesh.nextRank}, which has checked in, ${unreached()}`, hint ?? apart],
    );
    const stopDialling = this.#at(this.#endMs - this.#reserveMs('dial'), () => {
      const action = `could not be reached ${unreached()} by rank ${rank} in time`;
      if (!mesh.hasNext) this.#ended.abort(missing(mesh.nextRank, action, hint ?? `did it end, or ${apart}`));
    });
    try {
      await mesh.joinRing(secret, zone, parseAddress(next), hint);
    } finally {
      stopDialling();
    }
  }

  /** Time before the end of the limit at which a step ends. */
  #reserveMs(step: keyof typeof endsBefore): number {
    const { mostMs, part } = endsBefore[step];
    return Math.min(mostMs, this.#options.timeoutMs * part);
  }

  /** Calls `action` at a time of the clock, unless the returned function is called before. */
  #at(timeMs: number, action: () => void): () => void {
    const clock = this.#clock;
    return afterWatching(Math.max(0, timeMs - clock.look()), action, { clock });
  }

  /**
   * Makes the set-up fail with this error at a time of the clock. Keeps the process alive.
   *
   * @param waiting what this step waits for, and what to check, for a notice if that takes long
   */
  #limit(timeMs: number, error: () => Error, waiting?: () => readonly [what: string, advice: string]): void {
    const { notices, timeoutMs } = this.#options;
    const clock = this.#clock;
    this.#liftLimit();
    const liftEnd = this.#at(timeMs, () => this.#ended.abort(error()));
    const notice = (): void => {
      if (waiting === undefined || notices === undefined) return;
      const [what, advice] = waiting();
      notices.report(`${this.#self} has waited ${notices.afterMs / 1000} s in init ${what}${untilWhen(timeoutMs)}: ${advice}`);
    };
    const noticeMs = waiting === undefined ? 0 : (notices?.afterMs ?? 0);
    const liftNotice =
      noticeMs === 0 || noticeMs >= timeoutMs ? undefined : afterWatching(noticeMs, notice, { clock, ref: false });
    this.#liftLimit = () => {
      liftEnd();
      liftNotice?.();
    };
  }

  async #listen(options: ListenerOptions): Promise<Listener> {
    const listener = await Listener.open({ ...options, limits: this.#options.limits });
    if (this.#ended.signal.aborted) listener.close();
    this.#ended.signal.throwIfAborted();
    this.#listeners.push(listener);
    return listener;
  }

  /** Reports the error to the ranks that can be reached already, and closes everything. */
  #fail(error: Error): void {
    this.#ended.abort(error);
    for (const listener of this.#listeners) listener.close();
    const { rank } = this.#options;
    const reason =
      error instanceof TcclError ? error : new RemoteError('ABORTED', `rank ${rank} aborted: ${describeError(error)}`, { rank });
    this.#mesh.abort(error, { kind: 'failed', group: 'all', sequence: 0, error: packError(reason), own: true });
  }
}

/** Advice to a rank that does not reach the root. */
function adviceAbout({ host }: Address, { origin }: UniqueId, rankOfRoot: number | undefined): string {
  const isOwn = !isLoopback(host) && systemInterfaces().some(({ address }) => address === host);
  const holder =
    rankOfRoot === undefined
      ? 'is the process that opened it alive'
      : isOwn
        ? `that is an address of this host, ${hostname()}: was rank ${rankOfRoot} started here (node rank 0)`
        : `does rank ${rankOfRoot} run on that host`;
  // Of the user's own choice it may be a tunnel's end.
  const loopback =
    isLoopback(host) && (origin === 'root' || origin === 'launcher')
      ? ' Ranks of other hosts cannot reach a loopback address: for them, TCCL_SOCKET_IFNAME must name a network of all hosts'
      : '';
  return `${holder}, does the id belong to this run, and is the port open?${loopback}`;
}

/** Dials over sockets. */
const dialPeer: DialPeer = ({ from, to, ...options }) => dial({ ...options, greeting: { purpose: purposes.peer, from, to } });

interface Resolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

function withResolvers<T>(): Resolvers<T> {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolvePromise) => (resolve = resolvePromise));
  return { promise, resolve };
}
