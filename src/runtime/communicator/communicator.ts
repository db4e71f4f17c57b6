import { MAY_BLOCK } from '#platform/process';
import { netOf } from '../resources/agree.js';
import { nodeOf } from '../bootstrap/peer-info.js';
import { callName, type Algorithm, type CallKind, type DeviceCall } from '../algorithms/call.js';
import { PointToPoint } from '../messages/p2p.js';
import type { SegmentMemory } from '../device/memory-use.js';
import type { Segment } from '../device/segment.js';
import {
  type AllocatedArray,
  type DataType,
  type GivenArray,
  type NumericArray,
  type NumericArrayConstructor,
  type TypedArray,
} from '../device/types.js';
import { InvalidUsageError, namingCall, ofCall, RemoteError, TcclError } from '../../errors.js';
import { checkLimits, checkMoved, type BlockingLimits, type CallLimits, type TimedCallOptions } from '../algorithms/arguments.js';
import { spinsFor } from '../progress/backoff.js';
import { turnSoon } from '../progress/event-loop-turns.js';
import { progressHere, type Progress } from '../progress/progress.js';
import { addCallerFrames, ofRank } from '../caller-stack.js';
import { CallQueue } from '../algorithms/call-queue.js';
import { deviceCallOf, meetingOf } from '../algorithms/meeting-call.js';
import type { QueuedCall } from '../algorithms/queued-call.js';
import { CheckedCall } from './checked-call.js';
import { agree, checkFlag, checkShrink, checkSplit, shrink, split, type SplitColor } from './children.js';
import type { CompositeEngine } from '../algorithms/composite-engine.js';
import {
  checkOptions,
  LONGEST_MS,
  type Agreement,
  type ChildOptions,
  type RecoverOptions,
  type ShrinkOptions,
} from '../resources/config.js';
import { explainCall, explainContextOf, type Explanation } from './explain.js';
import { blockingLimit, currentGroup, group, groupSync, type GroupMember } from './group.js';
import { alone } from '../messages/running-group.js';
import { makeGroupMember } from './group-member.js';
import { checkGraph, checkNeighbours, Graph, type GraphNeighbours } from './graph.js';
import { checkGrow, grow } from './grow.js';
import { Lifecycle } from './lifecycle.js';
import { Messenger } from '../messages/messenger.js';
import { MessageCalls } from './message-calls.js';
import { MessageExchange } from './message-exchange.js';
import { Objects } from '../objects/objects.js';
import { closeAtEndOfBlock, type PlatformAsyncDisposable } from '../platform/declarations.js';
import type { CommunicatorParts } from '../resources/shared-resources.js';
import { OutOfBandCalls } from './out-of-band.js';
import type { Registration } from './registration.js';
import { abortedBefore, isTimed, limitedInGroup, startTimedCollective, type TimedCallParts } from '../messages/timed-call.js';
import { ReductionChain, Scratch, type ReductionName } from '../operators/reduction.js';
import { warnNow } from '../warn.js';
import { checkWindow } from '../windows/window-arguments.js';
import type { AnyProgram } from '../../planner/schedule/program.js';
import { gatherJson } from '../bootstrap/gather-json.js';
import { secretOf, type UniqueId } from '../bootstrap/unique-id.js';
import { dataHost } from '../algorithms/connections/data-host.js';
import { ProgramRunner, type ScheduleMaker } from '../programs/program.js';
import type { Window } from '../windows/window.js';

/**
 * A group of ranks that exchange data. Every rank calls the same operations in the same order; each call has a promise form
 * and a blocking form (…Sync), which may be mixed. Counts are in elements, whose type is that of the arrays. Arrays from
 * {@link alloc} are exchanged without copies; all other typed arrays work too.
 *
 * Errors of arguments (InvalidArgumentError, InvalidUsageError) are thrown, or reject, before data are exchanged, and the
 * communicator stays usable. All other errors end it: current and later calls of every rank fail with the same cause.
 *
 * @example
 * const comm = await init();
 * const x = comm.alloc(Float32Array, 4).fill(comm.rank);
 * await comm.allReduce(x);      // each element is now 0 + 1 + … + (nRanks - 1)
 * await comm.close();
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- what it adds is defined below the class
export class Communicator extends MessageCalls {
  /** This rank's number, from 0 to `nRanks - 1`. */
  override readonly rank: number;
  /** Number of ranks. */
  override readonly nRanks: number;
  /** Number of this rank among those on this host. */
  readonly localRank: number;
  /** Number of ranks on this host. */
  readonly nLocalRanks: number;
  /**
   * Number of this rank's host. Hosts are numbered in the order of their lowest ranks. `split(comm.node)` makes a
   * communicator for each host.
   */
  readonly node: number;
  /** Number of hosts. */
  readonly nNodes: number;
  /** Host name of each rank. */
  readonly hosts: readonly string[];
  /** The name given to init(), split(), shrink() or grow(). */
  readonly name: string | undefined;
  /**
   * Time that a call may stand still before it ends with `TIMEOUT`, milliseconds; 0 for no limit. From init(), or
   * TCCL_TIMEOUT. A call's own `timeoutMs` limits that call, counted from its start.
   */
  readonly timeoutMs: number;
  /** The algorithm of large all-reduces. */
  readonly algorithm: Algorithm;
  /**
   * Resolves with the reason once the communicator has failed on this rank, or another rank of it has died or failed, if the
   * event loop turns. Calls that begin later throw the reason. It never rejects, stays pending after an orderly close(), and does
   * not keep the process alive: in Node.js, a rank that only awaits it exits with code 13.
   */
  readonly failed: Promise<TcclError>;
  readonly #life: Lifecycle;
  #parts: CommunicatorParts;
  #segment: Segment;
  #engine: CompositeEngine;
  readonly #progress: Progress;
  readonly #call: CheckedCall;
  #pointToPoint: PointToPoint;
  #messenger: Messenger;
  #queue: CallQueue;
  /** True if blocking calls are allowed and possible. */
  readonly #mayBlock: boolean;
  /** Numbers of windows and programs made so far. */
  #windows = 0;
  #programs = 0;
  /** Resolves when the windows that are being closed are flushed. */
  #flushed: Promise<unknown> = Promise.resolve();
  #member: GroupMember;
  /** @internal */
  protected override messages: MessageExchange;
  /** @internal */
  protected override objects: Objects;
  #timed: TimedCallParts;
  /** Memory of reductions by operators of the program's own. */
  readonly #scratch = new Scratch();
  /** Memory use at close(). */
  #lastMemory: SegmentMemory | undefined;
  readonly #registrations = new Set<Registration>();
  #outOfBand: OutOfBandCalls;

  /** @internal Made by init(). */
  // eslint-disable-next-line max-lines-per-function -- its parts use each other
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
    this.hosts = Object.freeze(parts.bootstrap.peers.map(({ hostname }) => hostname));
    this.name = parts.config.name;
    this.timeoutMs = parts.resources.facts.settings.timeoutMs;
    const life = (this.#life = new Lifecycle(parts));
    this.failed = life.whenFailed();
    this.algorithm = parts.engine.algorithmOf('allReduce', Infinity);
    this.#call = new CheckedCall(this.rank, this.nRanks);
    this.#mayBlock = parts.config.blocking !== false && parts.engine.blocking;
    const { resources, bootstrap, team, engine, pointToPoint, waitQueries, nCores } = parts;
    const { libc, settings, options } = resources.facts;
    resources.use();
    const crowded = this.nLocalRanks > nCores;
    const spins = spinsFor(this.nLocalRanks, nCores);
    const fail = (error: unknown, call?: string): TcclError => life.fail(error, call);
    const { ending } = life;
    const { onWarning = warnNow } = options;
    const warn = (text: string): void => onWarning(life.named(text));
    const progress = (this.#progress = progressHere());
    const { id, members } = bootstrap;
    const { name, rank, nRanks } = this;
    const recorder = this.#segment.board.show({ id, name, rank, nRanks, members });
    this.#pointToPoint = pointToPoint;
    pointToPoint.recorder = recorder;
    waitQueries?.setDefaultAnswer(() => this.#queue.lastCall());
    this.#queue = new CallQueue({
      engine,
      rank: this.rank,
      libc,
      spins,
      patience: crowded ? 2 * Math.ceil(this.nLocalRanks / nCores) : 0,
      limits: settings,
      waitQueries,
      warn,
      fail,
      ending,
      messages: {
        throwRecordedFailure: () => this.#pointToPoint.throwRecordedFailure(),
        forwardReport: (report) => this.#pointToPoint.waits.forwardReport(report),
        readReports: (limitMs) => this.#pointToPoint.waits.readReports(limitMs),
        doing: (rank) => this.#pointToPoint.waits.doing(rank),
      },
      progress,
      parkedRanks: this.#segment.parkedRanks,
      recorder,
    });
    this.#messenger = new Messenger({
      rank: this.rank,
      pointToPoint: this.#pointToPoint,
      progress,
      parkedRanks: this.#segment.parkedRanks,
      recorder,
      spins,
      limits: settings,
      warn,
      fail,
      ending,
      collectives: { check: () => this.#queue.checkForMessages(), doing: (rank) => this.#queue.doing(rank) },
    });
    this.#outOfBand = new OutOfBandCalls({
      bootstrap,
      team,
      recorder,
      limits: settings,
      waitQueries,
      defaultMs: settings.initTimeoutMs,
      meet: (name, limits) => startTimedCollective(this.#timed, meetingOf(name), limits),
      warn,
      fail,
      abort: (reason) => this.abort(reason),
      checkAlive: () => ending.throwIfEnded(),
    });
    this.#member = makeGroupMember({
      rank: this.rank,
      engine,
      team,
      messenger: this.#messenger,
      queue: this.#queue,
      checkUsable: (call) => this.#checkUsable(call),
      checkBlocking: (call) => this.#checkBlocking(call),
      fail,
      abort: (reason) => this.abort(reason),
    });
    this.#timed = {
      rank: this.rank,
      queue: this.#queue,
      messenger: this.#messenger,
      fail,
      abort: (reason) => this.abort(reason),
    };
    this.messages = new MessageExchange({
      nRanks: this.nRanks,
      timed: this.#timed,
      member: this.#member,
      checkUsable: (call) => this.#checkUsable(call),
    });
    this.objects = new Objects({ nRanks: this.nRanks, timed: this.#timed, checkBlocking: (call) => this.#checkBlocking(call) });
    const release = this.#segment.keep({
      uses: this.#usesArray,
      why: 'a call that uses the array is under way; await it first',
      forget: () => this.#call.forget(),
    });
    life.begin({
      queue: this.#queue,
      messenger: this.#messenger,
      outOfBand: this.#outOfBand,
      recorder,
      abandonArrays: () => this.#abandonArrays(),
      left: () => {
        release();
        this.#forget();
      },
    });
  }

  /**
   * Explains how a call of this communicator is carried out and how long it should take, by this host's profile (`tccl tune`)
   * or, without one, by another machine's.
   *
   * @param bytes the call's count, as NCCL counts it, times the size of an element: for allGather, this rank's own block
   */
  explain(collective: CallKind, bytes: number): Explanation {
    if (this.#life.hasLeft) this.#refuse('explain');
    return ofRank(this.rank, () => explainCall(collective, bytes, explainContextOf(this.#parts)));
  }

  /**
   * Allocates an array of `length` zeros in memory that the ranks of this host share; collectives use it without copies.
   * Throws SystemError OUT_OF_MEMORY here, so that a later access cannot fail.
   *
   * Its memory is free again after {@link free}, at the end of the block with `using x = comm.alloc(…)`, or some time after the
   * program has dropped the array and all parts of it; a loop of blocking calls must free by itself. All ranks of a host share
   * 4 GiB for such arrays, in equal parts; ordinary typed arrays work in every call, too, and have no such limit.
   */
  alloc<T extends TypedArray>(type: NumericArrayConstructor<T>, length: number): AllocatedArray<T> {
    this.#checkUsable('alloc');
    return ofRank(this.rank, () => {
      try {
        const array = this.#segment.alloc(type, length);
        if (this.#segment.isCollectionDue) turnSoon();
        return array;
      } catch (error) {
        throw error instanceof TcclError ? ofCall(error, 'alloc') : error;
      }
    });
  }

  /**
   * Frees an array from alloc() that no running call uses. Neither it nor its parts may be used afterwards: the memory may be
   * reused. Calls refuse the array, but cannot detect its parts (`BUFFER_DETACHED`).
   */
  free(array: TypedArray): void {
    this.#checkUsable('free');
    ofRank(this.rank, () => this.#segment.free(array));
  }

  /**
   * Progresses the calls in flight, without waiting for any: call it now and then in a long computation, which keeps the event
   * loop from doing so. Errors of the calls come from their promises.
   */
  poll(): void {
    this.#progress.poll();
  }

  /**
   * Lets all ranks write to each other's `array`, which must come from {@link alloc}; lengths may differ. All ranks call it.
   * Between hosts, an open window keeps the process alive.
   *
   * @throws InvalidArgumentError `ARGUMENT_TYPE` on the rank whose array is unsuitable; TimeoutError `TIMEOUT` when other
   *   ranks do not call it in time (TCCL_TIMEOUT); SystemError `OUT_OF_MEMORY`, after which the communicator stays usable
   */
  window<T extends TypedArray>(array: GivenArray<T>, options?: TimedCallOptions): Promise<Window<T>> {
    return alone('window', this.rank, async () => {
      this.#checkUsable('window');
      const { type, address } = ofRank(this.rank, () => checkWindow(array as NumericArray, options, this.#segment));
      const { bootstrap, team } = this.#parts;
      const { libc } = this.#parts.resources.facts;
      return this.#outOfBand.withAll('window', { timeoutMs: this.#longestMs, ...options }, async () => {
        const { Window } = await import('../windows/window.js');
        return Window.open(
          {
            bootstrap,
            team,
            libc,
            pointToPoint: this.#pointToPoint,
            messenger: this.#messenger,
            number: ++this.#windows,
            checkUsable: (call) => this.#checkUsable(call),
            observe: this.#engine.observe,
            timed: this.#timed,
            meet: (number, flushed) => this.#closeWindow(number, flushed),
          },
          array,
          address,
          type,
        );
      });
    });
  }

  /** @internal Makes an exchange within a call on arrays of devices: of records, or without them a barrier. */
  deviceCall(
    name: DeviceCall,
    type: DataType | undefined,
    limits: CallLimits,
    mine?: Uint8Array,
    all?: Uint8Array,
  ): Promise<void> {
    this.#checkUsable(name);
    const call = deviceCallOf(name, type, mine, all);
    return isTimed(limits) ? startTimedCollective(this.#timed, call, limits) : this.#queue.start(call);
  }

  /** @internal Writes a line about the ways of data to the log, if there is one. */
  note(text: string): void {
    this.#engine.note?.(text);
  }

  /** Meets the ranks that close a window: windows in the order of the calls, however long the data of each take. */
  async #closeWindow(number: number, flushed: Promise<void>): Promise<void> {
    const turn = Promise.all([this.#flushed, flushed]);
    this.#flushed = turn.catch(() => undefined);
    await turn;
    this.#checkUsable('window.close');
    await this.#queue.start(meetingOf('window close', number));
  }

  /**
   * Makes a graph of the ranks, for exchanges between neighbours. All ranks call it, each with its own neighbours: a list, if
   * they list it too, or the ranks that it receives from and those that it sends to. A rank may be listed more than once, and
   * list itself.
   *
   * @throws InvalidArgumentError `ARGUMENT_RANGE` on all ranks, with the ranks of an edge that only one of them lists
   */
  graph(neighbours: readonly number[] | GraphNeighbours, options?: CallLimits): Promise<Graph> {
    return alone('graph', this.rank, async () => {
      this.#checkUsable('graph');
      const mine = ofRank(this.rank, () => {
        checkLimits('graph', options);
        return checkNeighbours(neighbours, this.nRanks);
      });
      return this.#outOfBand.withAll('graph', { timeoutMs: this.#longestMs, ...options }, async () => {
        checkGraph(await gatherJson(this.#parts.bootstrap, 'graph', mine));
        return new Graph(this.neighbourhood, mine);
      });
    });
  }

  /**
   * Prepares an algorithm of the caller's own, or one that a plan schedules: it is verified, and the connections that it needs
   * are made. All ranks call it with the same program. docs/guides/programs.md has an example.
   *
   * @throws InputError `CONTENT` for a program that deadlocks or gives a wrong result; InvalidArgumentError `ARGUMENT_RANGE` for
   *   one of another number of ranks; InvalidUsageError `CALL_MISMATCH` where ranks give different ones
   */
  program(program: AnyProgram | ScheduleMaker, options?: CallLimits): Promise<ProgramRunner> {
    return alone('program', this.rank, async () => {
      this.#checkUsable('program');
      ofRank(this.rank, () => {
        ProgramRunner.check(program, this.nRanks);
        checkLimits('program', options);
      });
      const { bootstrap, team, resources, facts } = this.#parts;
      const { libc, shared, network, id } = resources.facts;
      const net = netOf(facts);
      return this.#outOfBand.withAll('program', { timeoutMs: this.#longestMs, ...options }, (signal) =>
        ProgramRunner.open(
          {
            bootstrap,
            team,
            libc,
            messenger: this.#messenger,
            number: ++this.#programs,
            connect: async (size, ends) => {
              const host = dataHost(bootstrap, network, id);
              const { connectBeside } = await import('../algorithms/connections/open-network.js');
              return connectBeside({ bootstrap, shared, team, libc, net, host, secret: secretOf(id) }, size, ends, signal);
            },
            checkUsable: (call) => this.#checkUsable(call),
            timed: this.#timed,
            fail: (error) => this.#life.fail(error),
            observe: this.#engine.observe,
          },
          program,
        ),
      );
    });
  }

  /** Starts all operations that `body` calls together, on this or other communicators: {@link group}. */
  group(body: () => void, options?: CallLimits): Promise<void> {
    return group(body, options);
  }

  /** The blocking form of {@link Communicator.group}. */
  groupSync(body: () => void, options?: BlockingLimits): void {
    groupSync(body, options);
  }

  /**
   * Makes one communicator for each color, of the ranks that give it, ordered by key and then by rank. Every rank calls it;
   * `null` as color makes none for this rank. A list of ranks in place of a color makes one of these, in that order: they
   * all pass it, and a rank that is not in its list gets null. Arrays from {@link alloc} are exchanged without copies in
   * children too, and a child may outlive its parent.
   *
   * @throws SystemError `OUT_OF_MEMORY`, InvalidUsageError `UNSUPPORTED` (settings that do not fit the ranks of a color), after
   *   which this communicator stays usable
   */
  split(color: number, key?: number, options?: ChildOptions): Promise<Communicator>;
  split(color: number | readonly number[] | null, key?: number, options?: ChildOptions): Promise<Communicator | null>;
  split(color: SplitColor, key = 0, options: ChildOptions = {}): Promise<Communicator | null> {
    return alone('split', this.rank, async () => {
      this.#checkUsable('split');
      ofRank(this.rank, () => {
        checkSplit(color, key, this.nRanks);
        checkOptions('split', options);
      });
      return this.#split('split', color, key, options);
    });
  }

  async #split(call: 'split' | 'stream', color: SplitColor, key: number, options: ChildOptions): Promise<Communicator | null> {
    const parts = await this.#outOfBand.withAll(call, options, (signal) => split(this.#parts, color, key, options, signal));
    return parts === null ? null : new Communicator(parts);
  }

  /**
   * Makes a communicator without the excluded ranks, those that died, and those that have closed this one; the others keep
   * their order. Every rank that stays calls it, and no other. Use it to continue after a rank died and this communicator
   * failed. Otherwise it waits for running calls, unless `abort` ends them.
   *
   * @throws TimeoutError `RANK_MISSING` with the ranks that neither left nor called; RemoteError `NO_QUORUM` with the ranks that
   *   are lost, if the others are no majority and a rank asks for one
   */
  shrink(excluded: readonly number[] = [], options: ShrinkOptions = {}): Promise<Communicator> {
    return alone('shrink', this.rank, async () => {
      if (this.#life.isClosing) this.#checkUsable('shrink');
      ofRank(this.rank, () => checkShrink('shrink', excluded, options, this));
      if (options.abort === true) this.abort('shrink was called with abort');
      if (this.#life.ending.reason === undefined) await this.#queue.drained();
      const parts = await this.#outOfBand.withRest('shrink', options, (signal, over) =>
        shrink(this.#parts, excluded, options, signal, over),
      );
      return new Communicator(parts);
    });
  }

  /**
   * Agrees on a flag and on who is left, in spite of deaths: every rank that gets a result gets the same one. Every living rank
   * calls it, also after the communicator has failed. docs/guides/failures.md has a loop that uses it.
   *
   * @throws TimeoutError `RANK_MISSING` with the ranks that neither left nor called
   */
  agree(flag: boolean, options: CallLimits = {}): Promise<Agreement> {
    return alone('agree', this.rank, async () => {
      if (this.#life.isClosing) this.#checkUsable('agree');
      ofRank(this.rank, () => checkFlag(flag, options));
      if (this.#life.ending.reason === undefined) await this.#queue.drained();
      return this.#outOfBand.withRest('agree', options, (signal, over) => agree(this.#parts, flag, signal, over));
    });
  }

  /**
   * Revokes this communicator, replaces it by one of the ranks that are left, on which these agree, and closes it. Every living
   * rank that is not excluded calls it, after any failure. With `replace`, dead ranks have successors with their numbers, which
   * `tccl run --max-restarts N --restart rank` starts and which call init(); it takes only the communicator of init().
   *
   * @throws as {@link shrink}; then this communicator stays open, and the call can be repeated, without more ranks
   */
  recover(excluded: readonly number[] = [], options: RecoverOptions = {}): Promise<Communicator> {
    return alone('recover', this.rank, async () => {
      if (this.#life.isClosing) this.#checkUsable('recover');
      ofRank(this.rank, () => checkShrink('recover', excluded, options, this));
      await abortedBefore(options);
      const { replace = false, ...others } = options;
      if (replace) return this.#replaced(others);
      this.revoke('it called recover');
      const rest = await this.shrink(excluded, others);
      try {
        const { timeoutMs, signal } = options;
        const { ranks } = await rest.agree(true, { timeoutMs, signal });
        const next = ranks.length === rest.nRanks ? rest : await rest.recover([], options);
        await this.close();
        return next;
      } catch (error) {
        rest.abort('recover failed');
        await rest.close();
        throw error;
      }
    });
  }

  async #replaced(options: RecoverOptions): Promise<Communicator> {
    const { checkReplace, rejoin } = await import('./rejoin.js');
    ofRank(this.rank, () => checkReplace(this.#parts));
    this.revoke('it called recover');
    const next = await rejoin(this.#parts, options);
    await this.close();
    return new Communicator(next);
  }

  /**
   * Makes a communicator with more ranks: the present ones keep their ranks, new ones follow and join by `init({ commId,
   * nRanks, rank })`. Every rank calls it; at least one passes the id from getUniqueId() that the new ranks were given. The
   * new communicator has memory of its own, in which arrays of this one are staged.
   */
  grow(nRanks: number, options: ChildOptions & { readonly commId?: UniqueId | string | undefined } = {}): Promise<Communicator> {
    return alone('grow', this.rank, async () => {
      this.#checkUsable('grow');
      ofRank(this.rank, () => {
        checkGrow(nRanks, this.nRanks);
        checkOptions('grow', options, ['commId']);
      });
      return new Communicator(
        await this.#outOfBand.withAll('grow', options, (signal) => grow(this.#parts, nRanks, options, signal)),
      );
    });
  }

  /** Makes a second queue with the same ranks: calls on it do not wait for calls on this one. Every rank calls it. */
  stream(options: ChildOptions = {}): Promise<Communicator> {
    return alone('stream', this.rank, async () => {
      this.#checkUsable('stream');
      ofRank(this.rank, () => checkOptions('stream', options));
      return (await this.#split('stream', 0, this.rank, options)) as Communicator;
    });
  }

  /**
   * Registers an array, like NCCL's registration of a buffer that is used often; the result shows whether calls use it without
   * copies.
   */
  register(array: TypedArray): Registration {
    this.#checkUsable('register');
    ofRank(this.rank, () => checkMoved('register', array as NumericArray, undefined));
    const registration: Registration = Object.freeze({ array, zeroCopy: this.#segment.offsetOf(array) >= 0 });
    this.#registrations.add(registration);
    return registration;
  }

  /** Ends a registration; the array is not changed. */
  deregister(registration: Registration): void {
    if (!this.#registrations.delete(registration)) {
      throw addCallerFrames(
        new InvalidUsageError('ARGUMENT_TYPE', 'deregister: pass what register of this communicator gave, once', {
          rank: this.rank,
        }),
      );
    }
  }

  /** Memory use of this rank, by all communicators that come from one init(). */
  memStats(): SegmentMemory {
    return this.#lastMemory ?? this.#segment.memoryUse();
  }

  /**
   * Waits for everything that was started, then leaves the communicator. Every rank calls it when it is done. A second call
   * returns the same promise.
   */
  close(): Promise<void> {
    return this.#life.close();
  }

  /** Ends the communicator on all ranks: their calls fail and name this rank and the reason. Does nothing after close(). */
  abort(reason = 'it called abort'): void {
    this.#life.abort(new RemoteError('ABORTED', `rank ${this.rank} aborted the communicator: ${reason}`, { rank: this.rank }));
  }

  /**
   * Ends all calls of the communicator on all ranks with `REVOKED`, so that they meet in {@link agree}, {@link shrink} or
   * {@link recover}. Does nothing after a failure or close().
   */
  revoke(reason = 'it called revoke'): void {
    this.#life.abort(new RemoteError('REVOKED', `rank ${this.rank} revoked the communicator: ${reason}`, { rank: this.rank }));
  }

  /** @internal False once it has failed or was closed. */
  get isUsable(): boolean {
    return this.#life.isUsable;
  }

  /** @internal Throws what a call of this name does once it has failed or was closed. */
  checkUsable(call: string): void {
    this.#checkUsable(call);
  }

  /** @internal Frees arrays of the last job that the program no longer has. */
  collectArrays(leastBytes: number): void {
    if (!this.#life.hasLeft) this.#segment.collectArrays(leastBytes);
  }

  /** @internal Never collects the arrays in a value that another thread gets. */
  keepArraysIn(value: unknown): void {
    if (!this.#life.hasLeft) this.#segment.keepArraysIn(value);
  }

  /** Checks for failures first; see CallQueue.run(). */
  protected override prepare(call: string): CheckedCall {
    if (!this.#life.isUsable) this.#refuse(call);
    const checked = this.#call;
    if (checked.name !== call) checked.name = call;
    return checked;
  }

  /** True if a call in flight, or in the group whose body is running, uses memory between two addresses. */
  readonly #usesArray = (from: number, to: number): boolean =>
    [...this.#queue.arrays(), ...(currentGroup()?.arraysOf(this.#member) ?? [])].some((array) =>
      this.#segment.overlaps(array, from, to),
    ) || this.#pointToPoint.inFlight.uses(from, to);

  #checkUsable(call: string): void {
    this.prepare(call);
  }

  #refuse(call: string): never {
    const failure = this.#life.refusal(call);
    if (failure !== undefined) throw addCallerFrames(failure);
    throw addCallerFrames(
      new InvalidUsageError('CLOSED', `${call}: rank ${this.rank} has closed the communicator`, { rank: this.rank }),
    );
  }

  /** Longest wait of calls that all ranks make over the bootstrap network. */
  get #longestMs(): number {
    const { timeoutMs } = this;
    return timeoutMs === 0 ? LONGEST_MS : Math.min(timeoutMs, LONGEST_MS);
  }

  // ── collectives ─────────────────────────────────────────────────────────────────────────────────────────────────────

  protected override runSync(call: CheckedCall, options?: TimedCallOptions): void {
    if ((options !== undefined && isTimed(options)) || call.own !== undefined) {
      this.#runSpecial(call, options);
      return;
    }
    const group = currentGroup();
    if (group !== undefined) void group.addCollective(this.#member, call);
    else if (this.#mayBlock) this.#queue.run(call);
    else this.#refuseBlocking(call.name);
  }

  protected override start(call: CheckedCall, options?: TimedCallOptions): Promise<void> {
    if ((options !== undefined && isTimed(options)) || call.own !== undefined) return this.#startSpecial(call, options);
    const group = currentGroup();
    return group === undefined ? this.#queue.start(call) : group.addCollective(this.#member, call);
  }

  /** Blocks in a call with a limit, or by an operator of the program's own. */
  #runSpecial(call: CheckedCall, options: TimedCallOptions | undefined): void {
    const { name } = call;
    const timeoutMs = isTimed(options) ? blockingLimit(name, options, this.rank) : undefined;
    const first = this.#queuedCall(call);
    const group = currentGroup();
    if (group !== undefined) void group.addCollective(this.#member, first);
    else if (!this.#mayBlock) this.#refuseBlocking(name);
    else if (timeoutMs === undefined) this.#queue.runChain(first);
    else this.#queue.within(timeoutMs, name, () => this.#queue.runChain(first));
  }

  /** The promise form of {@link #runSpecial}. */
  #startSpecial(call: CheckedCall, options: TimedCallOptions | undefined): Promise<void> {
    const group = currentGroup();
    if (isTimed(options)) {
      if (group !== undefined) throw limitedInGroup(call.name, this.rank);
      return startTimedCollective(this.#timed, this.#queuedCall(call), options);
    }
    const first = this.#queuedCall(call);
    return group === undefined ? this.#queue.startChain(first) : group.addCollective(this.#member, first);
  }

  /** A checked call as it is queued: with an operator of the program's own, the first of several. */
  #queuedCall({ name, code, type, root, send, recv, count, details, own }: CheckedCall): QueuedCall {
    if (own === undefined) return { code, type, root, send, recv, count, details };
    const reduction = { call: name, name: callName(code, root) as ReductionName, type, root, send, recv, count, operator: own };
    return new ReductionChain(this.rank, this.nRanks, reduction, this.#scratch).first;
  }

  #checkBlocking(call: string): void {
    if (!this.#mayBlock) this.#refuseBlocking(call);
  }

  #refuseBlocking(call: string): never {
    const why = !MAY_BLOCK
      ? "the page's own thread cannot wait: use the promise form, or start ranks as workers with spawnRanks"
      : this.#parts.config.blocking === false
        ? 'this communicator was made with blocking: false, which refuses blocking calls: use the promise form'
        : this.#pointToPoint.links.connectsAll
          ? 'system calls cannot reach the sockets of this process, since this Node.js hides their descriptors: use the promise form, or ' +
            "engine: 'thread'"
          : 'these ranks talk over sockets and make connections at first use, which a call that blocks cannot: pass blocking: true to ' +
            'init() on all ranks, which makes all of them there, or use the promise form';
    throw addCallerFrames(namingCall(new InvalidUsageError('UNSUPPORTED', `${call}: ${why}`, { rank: this.rank })));
  }

  // ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Never reuses the memory of running calls and of the last one, which may block: other ranks may still write it. */
  #abandonArrays(): void {
    const { send, recv } = this.#call;
    const ofLast = (from: number, to: number): boolean => [send, recv].some((array) => this.#segment.overlaps(array, from, to));
    this.#segment.abandonArrays((from, to) => this.#usesArray(from, to) || ofLast(from, to));
  }

  /** Drops what leads to the memory, which takes 10 GB of addresses: the program may keep a closed communicator. */
  #forget(): void {
    this.#lastMemory = this.#segment.memoryUse();
    // Every call is refused before it uses them.
    const gone = undefined as never;
    this.#parts = this.#segment = this.#engine = this.#pointToPoint = this.#messenger = this.#queue = gone;
    this.#member = this.#timed = this.#outOfBand = gone;
    const { rank, nRanks } = this;
    const timed = { rank, queue: gone, messenger: gone, fail: gone, abort: gone };
    this.messages = new MessageExchange({ nRanks, timed, member: gone, checkUsable: (call) => this.#checkUsable(call) });
    this.objects = gone;
    this.#call.forget();
  }
}

/** `await using comm = await init()` closes it at the end of the block. */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging, @typescript-eslint/no-empty-object-type -- below
export interface Communicator extends PlatformAsyncDisposable {}
closeAtEndOfBlock(Communicator.prototype);
