import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { SystemError, type TcclError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import { addCallerFrames, withCallerFrames } from '../caller-stack.js';
import { afterWatching, WatchClock } from '../progress/watch-clock.js';
import { formatAddress, inZone, parseAddress, zoneOf } from './address.js';
import type { Address } from './address.js';
import type { BootstrapConnection } from './connection.js';
import { dial } from './dial.js';
import { packError } from './error-transfer.js';
import { purposes, ROOT_RANK } from './handshake.js';
import { identify } from './identity.js';
import { chooseInterface, systemInterfaces } from './interfaces.js';
import { encodeJson } from './json.js';
import { Listener } from './listener.js';
import { RollCall } from './roll-call.js';
import type { CheckIn } from './roll-call.js';
import { decodeCheckIn, setUpHeader } from './set-up-message.js';
import type { Answer, Confirmation } from './set-up-message.js';
import type { HandshakeLimits } from './handshake-limits.js';
import { SECRET_BYTES, secretOf, UniqueId } from './unique-id.js';

/** Address and time limits of a communicator's root. */
export interface RootOptions {
  /** Address to listen on; default: that of an interface chosen by the next two. */
  readonly host?: string | undefined;
  /** The network interface, in the syntax of `TCCL_SOCKET_IFNAME`. */
  readonly interfaceName?: string | undefined;
  /** IPv4 or IPv6 only. */
  readonly family?: 4 | 6 | undefined;
  /** Limits for connections before their proof. */
  readonly limits?: HandshakeLimits | undefined;
  /** After a conflict between ranks, time to wait for one more rank before the ranks get the error. */
  readonly settleMs?: number | undefined;
}

const rootOptionNames = Object.keys({
  host: true,
  interfaceName: true,
  family: true,
  limits: true,
  settleMs: true,
} satisfies Record<keyof RootOptions, true>);

/** The meeting point of one communicator's ranks. It never keeps the process alive. */
export interface Root {
  readonly id: UniqueId;
  /** Resolves when every rank has its answer, or the root was closed. */
  readonly done: Promise<void>;
  /** Gives up: ranks without an answer time out. */
  close(): void;
}

/** Time that a rank waits for the root's verdict after its time limit for other ranks. */
export const VERDICT_GRACE_MS = 2000;

const DEFAULT_SETTLE_MS = 2000;
/** Longest head start with which other processes' ranks get bad news before this process's. */
const HEAD_START_MS = 500;
/** Number of ranks that the root answers at the same time. */
const ANSWERS_AT_ONCE = 256;

/**
 * Opens a root in this process and returns the id for its ranks.
 * @throws InvalidArgumentError `ENVIRONMENT`, SystemError `NETWORK`: no interface fits, or none can be listened on;
 *   InvalidArgumentError `ARGUMENT_TYPE`, `UNKNOWN_NAME`: there is no such option.
 */
export async function getUniqueId(options: RootOptions = {}): Promise<UniqueId> {
  try {
    checkOptionNames('getUniqueId', options, rootOptionNames, "{ interfaceName: 'eth0' }");
  } catch (error) {
    throw addCallerFrames(error);
  }
  return (await withCallerFrames(startRoot(options))).id;
}

/** Like {@link getUniqueId}, but returns the root. */
export async function startRoot(options: RootOptions = {}): Promise<Root> {
  const host = options.host ?? chooseInterface(systemInterfaces(), options).host;
  const secret = Uint8Array.from(randomBytes(SECRET_BYTES));
  return open({ host, port: 0 }, secret, options, (address) => new UniqueId(address, secret));
}

/**
 * Opens the root at an address that the ranks know already (`TCCL_COMM_ID`). Rank 0 calls it before it connects; others may
 * have begun to look for it. For a host name, it listens on all interfaces: other hosts may know this one by another address
 * than the host itself.
 * @throws SystemError `NETWORK`.
 */
export async function listenAt(id: UniqueId, options: Omit<RootOptions, 'host'> = {}): Promise<Root> {
  const openOn = (host: string) => open({ host, port: id.root.port }, secretOf(id), options, () => id);
  if (id.origin !== 'name') {
    try {
      return await openOn(id.root.host);
    } catch (error) {
      throw advised(error);
    }
  }
  try {
    return await openOn('::');
  } catch (error) {
    const { cause } = error as { cause?: NodeJS.ErrnoException };
    if (cause?.code !== 'EAFNOSUPPORT' && cause?.code !== 'EADDRNOTAVAIL') throw advised(error);
    return openOn('0.0.0.0'); // a kernel without IPv6
  }
}

/** The error of a root's listener with the name of the setting that it comes from. */
function advised(error: unknown): unknown {
  if (!(error instanceof SystemError)) return error;
  const isElsewhere = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRNOTAVAIL';
  const move = isElsewhere ? 'start rank 0 on the host that has it (with --nnodes: --node-rank 0 there), or ' : '';
  const text = `${error.message}; rank 0 listens on ${hostname()}: ${move}set TCCL_COMM_ID, commId or --rendezvous to an address of this host and a free port, the same on all ranks`;
  return new SystemError('NETWORK', text, { cause: error.cause });
}

async function open(at: Address, secret: Uint8Array, options: RootOptions, idOf: (bound: Address) => UniqueId): Promise<Root> {
  const desk = new Desk(
    secret,
    zoneOf(at.host),
    options.settleMs ?? DEFAULT_SETTLE_MS,
    () => listener.close(),
    () => formatAddress(idOf(listener.address).root),
  );
  const listener = await Listener.open({
    ...at,
    secret,
    limits: options.limits,
    expects: ({ purpose, to }) => purpose === purposes.checkIn && to === ROOT_RANK,
    admit: (_, openConnection) => {
      const connection = openConnection({
        message: ({ data }) => {
          desk.checkIn(decodeCheckIn(data));
          const confirmation: Confirmation = { stays: desk.keep(connection) };
          connection.send(setUpHeader, encodeJson(confirmation)).catch(() => undefined); // a lost rank will be missing
        },
        end: () => desk.forget(connection),
      });
    },
  });
  return { id: idOf(listener.address), done: desk.done, close: () => desk.close() };
}

/**
 * Most ranks whose connections stay open until their answer, so that they notice the end of the root's process immediately.
 */
const MOST_KEPT = 512;

/** The part of the root where ranks check in and get their answers. */
class Desk {
  readonly done: Promise<void>;
  readonly #secret: Uint8Array;
  readonly #zone: string | undefined;
  readonly #settleMs: number;
  readonly #stopListening: () => void;
  /** The address that ranks look for. */
  readonly #addressOf: () => string;
  readonly #rollCall = new RollCall();
  readonly #processHash = identify().processHash;
  /** Answers being sent. */
  readonly #answering = new Set<AbortController>();
  readonly #kept = new Set<BootstrapConnection>();
  #resolveDone: () => void = () => undefined;
  #verdict: TcclError | undefined;
  #settled: NodeJS.Timeout | undefined;
  /** Ranks that were stopped together with this process are not late. */
  readonly #clock = new WatchClock(Infinity);
  #liftDeadline: () => void = () => undefined;
  /** Times at which the first and the last of the ranks' time limits end. */
  #earliest = Infinity;
  #latest = 0;

  constructor(
    secret: Uint8Array,
    zone: string | undefined,
    settleMs: number,
    stopListening: () => void,
    addressOf: () => string,
  ) {
    this.#secret = secret;
    this.#zone = zone;
    this.#settleMs = settleMs;
    this.#stopListening = stopListening;
    this.#addressOf = addressOf;
    this.done = new Promise((resolve) => (this.#resolveDone = resolve));
  }

  close(): void {
    this.#liftDeadline();
    clearTimeout(this.#settled);
    this.#stopListening();
    for (const giveUp of this.#answering) giveUp.abort();
    for (const connection of this.#kept) void connection.leave();
    this.#resolveDone();
  }

  /** Keeps a rank's connection open, unless there are too many. */
  keep(connection: BootstrapConnection): boolean {
    if (this.#kept.size < MOST_KEPT) this.#kept.add(connection);
    return this.#kept.has(connection);
  }

  forget(connection: BootstrapConnection): void {
    this.#kept.delete(connection);
  }

  checkIn(checkIn: CheckIn): void {
    if (!this.#rollCall.add(checkIn)) return;
    const patienceEnds = this.#clock.look() + checkIn.remainingMs;
    this.#earliest = Math.min(this.#earliest, patienceEnds);
    this.#latest = Math.max(this.#latest, patienceEnds);
    if (this.#verdict !== undefined) {
      const answer = failure(this.#verdict);
      void this.#answer(checkIn, answer);
      this.#closeAt(this.#latest);
    } else if (this.#rollCall.hasConflict) {
      clearTimeout(this.#settled);
      if (this.#rollCall.isFull) this.#refuse();
      else this.#settled = setTimeout(() => this.#refuse(), this.#settleMs).unref();
    } else if (this.#rollCall.isFull) {
      void this.#accept();
    } else {
      this.#wait(this.#earliest, () => this.#refuse());
    }
  }

  /** All ranks have arrived and match: each gets the address of its successor in the ring. */
  async #accept(): Promise<void> {
    this.#liftDeadline();
    // Close first, so that the next communicator of these ranks can use the same port.
    this.#stopListening();
    const byRank = this.#rollCall.checkIns.sort((a, b) => a.rank - b.rank);
    const sessionNonce = randomBytes(16).toString('hex');
    await this.#answerAll(byRank, ({ rank }) => ({ next: byRank[(rank + 1) % byRank.length]?.peerAddress ?? '', sessionNonce }));
    this.close();
  }

  /** All ranks that have arrived, and all that still arrive, get the same error. */
  #refuse(): void {
    this.#liftDeadline();
    clearTimeout(this.#settled);
    this.#verdict = this.#rollCall.conflict() ?? this.#rollCall.missing(`${this.#addressOf()} on ${hostname()}`);
    const answer = failure(this.#verdict);
    // The others first, because this process may end with the error of its own rank.
    const isOwn = ({ processHash }: CheckIn) => processHash === this.#processHash;
    const checkIns = this.#rollCall.checkIns;
    const othersTold = this.#answerAll(
      checkIns.filter((checkIn) => !isOwn(checkIn)),
      () => answer,
    );
    void Promise.race([othersTold, sleep(HEAD_START_MS, undefined, { ref: false })]).then(() =>
      this.#answerAll(checkIns.filter(isOwn), () => answer),
    );
    this.#closeAt(this.#latest);
  }

  #closeAt(time: number): void {
    this.#wait(Math.max(time, this.#clock.look()) + VERDICT_GRACE_MS, () => this.close());
  }

  /** Sets the next action, at a time of the clock. */
  #wait(time: number, action: () => void): void {
    this.#liftDeadline();
    this.#liftDeadline = afterWatching(Math.max(0, time - this.#clock.look()), action, { clock: this.#clock, ref: false });
  }

  /** Resolves when all have their answer or cannot be reached. */
  async #answerAll(checkIns: readonly CheckIn[], answer: (checkIn: CheckIn) => Answer): Promise<void> {
    const waiting = checkIns.values();
    const worker = async () => {
      for (const checkIn of waiting) await this.#answer(checkIn, answer(checkIn));
    };
    await Promise.all(Array.from({ length: ANSWERS_AT_ONCE }, worker));
  }

  async #answer({ rank, answerAddress, remainingMs }: CheckIn, answer: Answer): Promise<void> {
    const giveUp = new AbortController();
    this.#answering.add(giveUp);
    const stopWaiting = afterWatching(remainingMs + VERDICT_GRACE_MS, () => giveUp.abort(), { ref: false });
    try {
      const connection = await dial({
        address: inZone(parseAddress(answerAddress), this.#zone),
        secret: this.#secret,
        greeting: { purpose: purposes.answer, from: ROOT_RANK, to: rank },
        events: { end: () => undefined },
        signal: giveUp.signal,
      });
      await connection.send(setUpHeader, encodeJson(answer));
      await connection.leave();
    } catch {
      // A rank that cannot be reached runs into its own timeout, whose error mentions the missing answer.
    } finally {
      stopWaiting();
      this.#answering.delete(giveUp);
    }
  }
}

function failure(error: TcclError): Answer {
  return { error: packError(error) };
}
