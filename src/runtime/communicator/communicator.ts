import { nodeOf } from '../bootstrap/peer-info.js';
import type { UniqueId } from '../bootstrap/unique-id.js';
import type { WaitLine } from '../bootstrap/wait-line.js';
import type { Algorithm, CallKind } from '../algorithms/call.js';
import { PointToPoint } from '../messages/p2p.js';
import type { SegmentMemory } from '../device/memory-use.js';
import { rankStates } from '../device/rank-lines.js';
import type { Segment } from '../device/segment.js';
import type { DataType, NumericArray, NumericArrayConstructor } from '../device/types.js';
import { describeError, InternalError, InvalidUsageError, RemoteError, TcclError, withRank } from '../../errors.js';
import { packReason } from '../transport/ending.js';
import { checkArray, checkPeer, type CallOptions } from '../algorithms/arguments.js';
import { spinsFor } from '../progress/backoff.js';
import { progressHere } from '../progress/progress.js';
import { errorOfCall, leadToCaller } from '../caller-stack.js';
import { CallQueue } from '../algorithms/call-queue.js';
import { CheckedCall } from './checked-call.js';
import { checkShrink, checkSplit, shrink, split } from './children.js';
import { Collectives } from './collectives.js';
import type { CompositeEngine } from '../algorithms/composite-engine.js';
import { checkOptions, LONGEST_MS, type ChildOptions } from './config.js';
import { onExit } from '../exit.js';
import { raiseTeamAbort } from '../algorithms/direct-engine.js';
import { explainCall, groundsOf, type Explanation } from './explain.js';
import { currentGroup, group, groupSync, refused, type GroupMember } from './group.js';
import { makeGroupMember } from './group-member.js';
import { grow } from './grow.js';
import { Messenger } from '../messages/messenger.js';
import type { CommunicatorParts } from './origin.js';
import { OutOfBandCalls } from './out-of-band.js';
import type { Registration } from './registration.js';
import { named, warnNow } from '../warn.js';
import { checkWindow } from '../windows/window-arguments.js';
import { Window } from '../windows/window.js';

/** How often a rank that knows of a failure looks whether its calls still get further. */
const NEWS_LOOK_MS = 100;

/**
 * A group of ranks that exchange data. Every rank calls the same operations in the same order; each call has a promise
 * form and a blocking form (…Sync), which may be mixed. Counts are elements; the type of the elements is that of the
 * arrays. Arrays from {@link alloc} are exchanged without copies; all other typed arrays work too.
 *
 * Errors of arguments (InvalidArgumentError, InvalidUsageError) are thrown, or reject, before anything is exchanged and
 * leave the communicator as it was. All others end it: every rank's current and later calls fail with the same cause.
 *
 * @example
 * const comm = await init();
 * const x = comm.alloc(Float32Array, 4).fill(comm.rank);
 * await comm.allReduce(x);      // each element is now 0 + 1 + … + (nRanks - 1)
 * await comm.close();
 */
export class Communicator extends Collectives {
  /** This rank's number, from 0 to `nRanks - 1`. */
  readonly rank: number;
  /** How many ranks there are. */
  readonly nRanks: number;
  /** Place among the ranks on this host. */
  readonly localRank: number;
  /** How many ranks are on this host. */
  readonly nLocalRanks: number;
  /**
   * Number of this rank's host; hosts are counted by their lowest ranks. `split(comm.node)` makes a communicator of
   * each host.
   */
  readonly node: number;
  /** How many hosts there are. */
  readonly nNodes: number;
  readonly #parts: CommunicatorParts;
  readonly #segment: Segment;
  readonly #engine: CompositeEngine;
  readonly #call: CheckedCall;
  readonly #pointToPoint: PointToPoint;
  readonly #messenger: Messenger;
  readonly #queue: CallQueue;
  readonly #waitLine: WaitLine | undefined;
  /** Whether blocking calls are allowed and can be done. */
  readonly #mayBlock: boolean;
  /** Whether they stop nothing, since all ranks share memory. */
  readonly #blocksFreely: boolean;
  /** Windows made so far. */
  #windows = 0;
  readonly #member: GroupMember;
  readonly #stopExit: () => void;
  readonly #stopNews: () => void;
  /** Looks whether calls still get further, though a rank has failed. */
  #newsWatch: NodeJS.Timeout | undefined;
  readonly #release: () => void;
  #failure: TcclError | undefined;
  #closing: Promise<void> | undefined;
  #hasLeft = false;
  readonly #registrations = new Set<Registration>();
  readonly #outOfBand: OutOfBandCalls;

  /** @internal Made by init(). */
  constructor(parts: CommunicatorParts) {
    super();
    this.#parts = parts;
    this.#segment = parts.team.segment;
    this.#engine = parts.engine;
    this.rank = parts.bootstrap.rank;
    this.nRanks = parts.bootstrap.nRanks;
    this.localRank = parts.bootstrap.localRank;
    this.nLocalRanks = parts.bootstrap.localRanks.length;
    ({ node: this.node, nNodes: this.nNodes } = nodeOf(parts.bootstrap.peers, this.rank));
    this.#call = new CheckedCall(this.rank, this.nRanks);
    this.#mayBlock = parts.config.blocking !== false && parts.engine.blocking;
    const { origin, bootstrap, team, engine, thread, nCores } = parts;
    const { libc, shared, settings, options } = origin.facts;
    this.#blocksFreely = this.#mayBlock && shared && this.nLocalRanks === this.nRanks;
    origin.use();
    const crowded = this.nLocalRanks > nCores;
    const spins = spinsFor(this.nLocalRanks, nCores);
    const fail = (error: unknown): TcclError => this.#failWith(error);
    // Who shares memory sees there what the others do.
    const waitLine =
      shared && this.nLocalRanks === this.nRanks ? undefined : bootstrap.openLastingWaitLine(() => this.#queue.lastWords());
    this.#waitLine = waitLine;
    const tell = options.onWarning ?? warnNow;
    const warn = (text: string): void => tell(this.#named(text));
    const progress = progressHere();
    this.#pointToPoint = new PointToPoint({
      bootstrap,
      team,
      libc,
      shared,
      server: thread?.messages,
      openTransport: parts.openTransport,
      onNews: progress.wake,
      waitLine,
      tellInCalls: (report) => engine.tellWaits(report),
      observe: engine.observe,
    });
    this.#queue = new CallQueue({
      engine,
      rank: this.rank,
      libc,
      spins,
      patience: crowded ? 2 * Math.ceil(this.nLocalRanks / nCores) : 0,
      limits: settings,
      waitLine,
      warn,
      fail,
      messages: {
        throwLastWords: () => this.#pointToPoint.throwLastWords(),
        tellWaits: (report) => this.#pointToPoint.tellWaits(report),
      },
      progress,
      sleepers: this.#segment.sleepers,
    });
    this.#messenger = new Messenger({
      rank: this.rank,
      pointToPoint: this.#pointToPoint,
      progress,
      sleepers: this.#segment.sleepers,
      spins,
      limits: settings,
      warn,
      rest: thread?.rest,
      fail,
      collectives: { check: () => this.#queue.checkForMessages(), doing: (rank) => this.#queue.doing(rank) },
    });
    this.#outOfBand = new OutOfBandCalls({
      bootstrap,
      team,
      limits: settings,
      waitLine,
      warn,
      fail,
      checkAlive: () => {
        if (this.#failure !== undefined) throw this.#failure;
      },
    });
    this.#member = makeGroupMember({
      rank: this.rank,
      engine,
      team,
      messenger: this.#messenger,
      queue: this.#queue,
      checkUsable: (call) => this.#checkUsable(call),
      checkBlocking: () => this.#checkBlocking(),
    });
    this.#stopNews = bootstrap.onFailure((error) => this.#hearOf(error));
    this.#stopExit = onExit(this.#leave);
    this.#release = this.#segment.keep({
      uses: (from, to) =>
        this.#queue.arrays().some((array) => this.#segment.overlaps(array, from, to)) || this.#pointToPoint.uses(from, to),
      why: 'a call that uses the array is under way; await it first',
      freed: () => this.#call.forget(),
    });
  }

  /** As init(), split(), shrink() or grow() was given it. */
  get name(): string | undefined {
    return this.#parts.config.name;
  }

  /** The algorithm that carries out large all-reduces. */
  get algorithm(): Algorithm {
    return this.#engine.algorithmOf('allReduce', Infinity);
  }

  /**
   * How a call of this communicator is carried out and how long that should take, by this host's profile (`tccl tune`)
   * or, without one, by another machine's.
   *
   * @param bytes the call's count, as NCCL counts it, times its elements' size: of allGather, this rank's own block
   */
  explain(collective: CallKind, bytes: number): Explanation {
    return this.#ofThisRank(() => explainCall(collective, bytes, groundsOf(this.#parts)));
  }

  /**
   * An array of `length` zeros in memory that the ranks of this host share: collectives work on it without copies.
   * Throws SystemError OUT_OF_MEMORY rather than let a later access fail.
   */
  alloc<T extends NumericArray>(type: NumericArrayConstructor<T>, length: number): T {
    this.#checkUsable('alloc');
    return this.#ofThisRank(() => this.#segment.alloc(type, length));
  }

  /**
   * Gives back an array from alloc() that no call under way uses. It is not to be used any more, nor are parts of it:
   * another may come to lie there. Calls refuse it, but not its parts (`BUFFER_DETACHED`).
   */
  free(array: NumericArray): void {
    this.#checkUsable('free');
    this.#ofThisRank(() => this.#segment.free(array));
  }

  /**
   * Sends all of `array` to rank `peer`, which receives it with {@link recv}. Resolves when the array may be changed
   * again; small messages, and those from arrays that are copied on their way, don't wait for the receiver.
   *
   * Sends and receives are no collectives: all that are under way progress at once, so `Promise.all` of a send and a
   * receive never waits for itself. From one rank to another the n-th send meets the n-th receive, and both must agree
   * in type and length. docs/guides/p2p.md has examples.
   */
  send(array: NumericArray, peer: number, options?: CallOptions): Promise<void> {
    return this.#message('send', array, peer, options);
  }

  /** The blocking form of {@link send}: where this rank shares memory with `peer`, and with `blocking: true` elsewhere, too. */
  sendSync(array: NumericArray, peer: number, options?: CallOptions): void {
    this.#messageSync('send', array, peer, options);
  }

  /** Fills `array` with what rank `peer` sends; see {@link send}. */
  recv(array: NumericArray, peer: number, options?: CallOptions): Promise<void> {
    return this.#message('recv', array, peer, options);
  }

  /** The blocking form of {@link recv}; see {@link sendSync}. */
  recvSync(array: NumericArray, peer: number, options?: CallOptions): void {
    this.#messageSync('recv', array, peer, options);
  }

  /**
   * Lets all ranks write to each other's `array`, which must be from {@link alloc}; lengths may differ. All ranks call
   * it. It keeps the process alive between hosts until it is closed.
   *
   * @throws InvalidArgumentError `ARGUMENT_TYPE` at the rank whose array it cannot be; TimeoutError `TIMEOUT` when others
   *   do not call it in time (TCCL_TIMEOUT); SystemError `OUT_OF_MEMORY`, which leaves the communicator as it was
   */
  async window(array: NumericArray, options?: CallOptions): Promise<Window> {
    this.#checkUsable('window');
    const { type, address } = this.#ofThisRank(() => checkWindow(array, options, this.#segment));
    const { bootstrap, team, thread } = this.#parts;
    const {
      libc,
      settings: { timeoutMs },
    } = this.#parts.origin.facts;
    return this.#outOfBand.withAll('window', { timeoutMs: timeoutMs === 0 ? LONGEST_MS : Math.min(timeoutMs, LONGEST_MS) }, () =>
      Window.open(
        {
          bootstrap,
          team,
          libc,
          pointToPoint: this.#pointToPoint,
          messenger: this.#messenger,
          number: ++this.#windows,
          lanesOf: thread?.lanesOf,
          checkUsable: (call) => this.#checkUsable(call),
          observe: this.#engine.observe,
          barrier: () => this.barrier(),
        },
        array,
        address,
        type,
      ),
    );
  }

  /** Starts all operations that `body` calls together, on this or other communicators: {@link group}. */
  group(body: () => void): Promise<void> {
    return group(body);
  }

  /** The blocking form of {@link Communicator.group}. */
  groupSync(body: () => void): void {
    groupSync(body);
  }

  /**
   * Makes new communicators of this one's ranks: one of all ranks that give the same color, in the order of their keys,
   * then ranks. Every rank calls it; `null` as color makes none for this rank. Arrays from {@link alloc} are exchanged
   * without copies in children too, and a child outlives its parent.
   *
   * @throws SystemError `OUT_OF_MEMORY`, which leaves this communicator as it was
   */
  split(color: number, key?: number, options?: ChildOptions): Promise<Communicator>;
  split(color: number | null, key?: number, options?: ChildOptions): Promise<Communicator | null>;
  async split(color: number | null, key = 0, options: ChildOptions = {}): Promise<Communicator | null> {
    this.#checkUsable('split');
    this.#ofThisRank(() => {
      checkSplit(color, key);
      checkOptions('split', options);
    });
    const parts = await this.#outOfBand.withAll('split', options, (signal) => split(this.#parts, color, key, options, signal));
    return parts === null ? null : new Communicator(parts);
  }

  /**
   * Makes a communicator without some ranks, those that died, and those that have closed this one; the others keep their
   * order. Every rank that stays calls it, and no other. It is the way on after a rank died, when this communicator has
   * failed; where it has not, `abort` ends what is under way on it first, else that is finished before.
   *
   * @throws TimeoutError `RANK_MISSING` with the ranks that neither are gone nor called
   */
  async shrink(
    excluded: readonly number[] = [],
    options: ChildOptions & { readonly abort?: boolean | undefined } = {},
  ): Promise<Communicator> {
    if (this.#closing !== undefined) this.#checkUsable('shrink');
    this.#ofThisRank(() => {
      checkShrink(excluded, this.rank, this.nRanks);
      checkOptions('shrink', options, ['abort']);
    });
    if (options.abort === true) this.abort('it shrinks the communicator');
    if (this.#failure === undefined) await this.#queue.drained();
    const parts = await this.#outOfBand.withRest('shrink', options, (signal) => shrink(this.#parts, excluded, options, signal));
    return new Communicator(parts);
  }

  /**
   * Makes a communicator with more ranks: those of this one keep their ranks, new ones get the ranks after them, and join
   * by `init({ commId, nRanks, rank })`. Every rank calls it, one or more with the id from getUniqueId() that the new
   * ranks were given. The new communicator has memory of its own; arrays of this one work there through staging.
   */
  async grow(
    nRanks: number,
    options: ChildOptions & { readonly commId?: UniqueId | string | undefined } = {},
  ): Promise<Communicator> {
    this.#checkUsable('grow');
    this.#ofThisRank(() => checkOptions('grow', options, ['commId']));
    return new Communicator(
      await this.#outOfBand.withAll('grow', options, (signal) => grow(this.#parts, nRanks, options, signal)),
    );
  }

  /** A second queue with the same ranks: what is called on it need not wait for what is under way here. Every rank calls it. */
  async stream(options: ChildOptions = {}): Promise<Communicator> {
    this.#checkUsable('stream');
    this.#ofThisRank(() => checkOptions('stream', options));
    return this.split(0, this.rank, options);
  }

  /** What NCCL's users call before they use a buffer often; here it tells whether the array is used without copies. */
  register(array: NumericArray): Registration {
    this.#checkUsable('register');
    this.#ofThisRank(() => checkArray('register', array, array instanceof Uint16Array ? { type: 'float16' } : undefined));
    const registration: Registration = Object.freeze({ array, zeroCopy: this.#segment.offsetOf(array) >= 0 });
    this.#registrations.add(registration);
    return registration;
  }

  /** Ends a registration; the array stays as it is. */
  deregister(registration: Registration): void {
    if (!this.#registrations.delete(registration)) {
      throw leadToCaller(
        new InvalidUsageError('ARGUMENT_TYPE', 'deregister takes what register of this communicator gave, once', {
          rank: this.rank,
        }),
      );
    }
  }

  /** How the memory of this rank is used, by all communicators that come from one init(). */
  memStats(): SegmentMemory {
    return this.#segment.memoryUse();
  }

  /**
   * Finishes what was started, then leaves: every rank calls it when it has no more to exchange. Calling it again
   * gives the same promise.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Ends the communicator at once on all ranks: their calls fail and name this rank and the reason. After close(), nothing. */
  abort(reason = 'it called abort'): void {
    if (this.#hasLeft) return;
    const error = new RemoteError('ABORTED', `rank ${this.rank} aborted the communicator: ${reason}`, { rank: this.rank });
    if (this.#failure === undefined) this.#parts.team.sayLastWords(packReason(error));
    this.#fail(error);
  }

  /** Checks in place: see CallQueue.run(). */
  protected override prepare(call: string): CheckedCall {
    if (this.#failure !== undefined || this.#closing !== undefined) this.#refuse(call);
    return this.#call;
  }

  #checkUsable(call: string): void {
    this.prepare(call);
  }

  /** What `check` gives; its errors are those of a call of this rank. */
  #ofThisRank<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      throw errorOfCall(error, this.rank);
    }
  }

  #refuse(call: string): never {
    if (this.#failure !== undefined) throw leadToCaller(this.#failure);
    throw leadToCaller(
      new InvalidUsageError('CLOSED', `rank ${this.rank} called ${call} after it closed the communicator`, { rank: this.rank }),
    );
  }

  // ── messages between two ranks ────────────────────────────────────────────────────────────────────────────────────

  #checkMessage(call: string, array: NumericArray, peer: number, options: CallOptions | undefined): DataType {
    this.#checkUsable(call);
    return this.#ofThisRank(() => {
      checkPeer(call, peer, this.nRanks);
      return checkArray(call, array, options);
    });
  }

  #message(call: 'send' | 'recv', array: NumericArray, peer: number, options: CallOptions | undefined): Promise<void> {
    try {
      const type = this.#checkMessage(call, array, peer, options);
      const group = currentGroup();
      return group === undefined
        ? this.#messenger.start(call === 'send', peer, array, type)
        : group.addMessage(this.#member, call === 'send', peer, array, type);
    } catch (error) {
      return refused(error);
    }
  }

  #messageSync(call: 'send' | 'recv', array: NumericArray, peer: number, options: CallOptions | undefined): void {
    const type = this.#checkMessage(`${call}Sync`, array, peer, options);
    const group = currentGroup();
    if (group === undefined) this.#messenger.run(call === 'send', peer, array, type);
    else void group.addMessage(this.#member, call === 'send', peer, array, type);
  }

  // ── collectives ─────────────────────────────────────────────────────────────────────────────────────────────────────

  protected override runSync(call: CheckedCall): void {
    if (currentGroup() === undefined && this.#blocksFreely) this.#queue.run(call);
    else this.#runWithCare(call);
  }

  /** A blocking call in the body of a group, or beside sockets. */
  #runWithCare(call: CheckedCall): void {
    const group = currentGroup();
    if (group !== undefined) {
      void group.addCollective(this.#member, call);
      return;
    }
    this.#checkBlocking();
    const { thread } = this.#parts;
    if (thread === undefined) this.#queue.run(call);
    else thread.inPlace(() => this.#queue.run(call));
  }

  protected override start(call: CheckedCall): Promise<void> {
    const group = currentGroup();
    return group === undefined ? this.#queue.start(call) : group.addCollective(this.#member, call);
  }

  #checkBlocking(): void {
    if (!this.#mayBlock) this.#refuseBlocking();
  }

  #refuseBlocking(): never {
    throw leadToCaller(
      new InvalidUsageError(
        'UNSUPPORTED',
        this.#parts.config.blocking === false
          ? 'this communicator was made with blocking: false, which refuses blocking calls: use the promise form'
          : 'these ranks talk over sockets, which move only in the event loop that a blocking call stops: pass blocking: true to init() ' +
              'on all ranks, which gives the sockets to a thread of their own, or use the promise form',
        { rank: this.rank },
      ),
    );
  }

  // ── failure ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends the communicator for an error of an operation, also one that nobody expected: else the others would wait for ever. */
  #failWith(cause: unknown): TcclError {
    const error =
      cause instanceof TcclError
        ? cause
        : new InternalError('INTERNAL', `rank ${this.rank} failed: ${describeError(cause)}`, { cause });
    withRank(error, this.rank);
    if (this.#failure === undefined) error.message = this.#named(error.message);
    this.#fail(error);
    return error;
  }

  /** A message with the communicator's name. Another rank's error, which ended this call, has it already. */
  #named(text: string): string {
    return named(text, this.#parts.config.name);
  }

  #fail(error: TcclError): void {
    if (this.#failure !== undefined) return;
    const {
      team,
      bootstrap,
      origin: {
        facts: { shared },
      },
    } = this.#parts;
    this.#failure = error;
    this.#stopHearing();
    this.#messenger.abort(error);
    this.#engine.abort(error);
    // Also who waits for something else than the engine's hears of it.
    raiseTeamAbort(team, shared ? bootstrap.localRanks : [this.rank], error);
    bootstrap.fail(error);
    this.#queue.abort(error);
    this.#waitLine?.close();
  }

  /**
   * Another rank has failed. What it sent before may still be on its way, and a call that gets further may have all
   * that it needs; one that stands still ends with the news, whichever ranks it waits for.
   */
  #hearOf(error: Error): void {
    if (this.#failure !== undefined || this.#newsWatch !== undefined) return;
    let stepsBefore = -1;
    this.#newsWatch = setInterval(() => {
      const steps = this.#engine.steps + this.#pointToPoint.steps;
      if (!this.#queue.isPending && !this.#messenger.isPending) stepsBefore = -1;
      else if (steps !== stepsBefore) stepsBefore = steps;
      else this.#failWith(error);
    }, NEWS_LOOK_MS).unref();
  }

  #stopHearing(): void {
    this.#stopNews();
    clearInterval(this.#newsWatch);
  }

  // ── leaving ───────────────────────────────────────────────────────────────────────────────────────────────────────

  async #close(): Promise<void> {
    await this.#outOfBand.ended();
    await this.#queue.drained();
    await this.#messenger.close();
    this.#stopExit();
    this.#stopHearing();
    this.#waitLine?.close();
    // After a failure too: what is still on its way comes from the segment.
    await this.#engine.close();
    this.#parts.team.leave();
    this.#parts.origin.leave();
    await this.#parts.bootstrap.close();
    this.#release();
    this.#hasLeft = true;
  }

  /** A process that ends in order without closing tells the others, so that they need not find out. */
  readonly #leave = (exitCode: number): void => {
    if (exitCode !== 0) return;
    this.#segment.ranks.setState(rankStates.closed);
    if (this.#failure !== undefined) return;
    this.#parts.team.leave();
    void this.#engine.close();
    void this.#messenger.leave();
    void this.#parts.bootstrap.close();
  };
}
