import type { Operation } from '../algorithms/operation.js';
import { Operand } from '../algorithms/operand.js';
import { windowCode, type WindowCall } from '../algorithms/other-calls.js';
import { observed, type WindowCommand, type WindowLane } from './p2p-window.js';
import { ElementChanges, type Change } from './element-changes.js';
import type { Segment } from '../device/segment.js';
import type { DataType, NumericArray, TypedArray } from '../device/types.js';
import { InvalidUsageError, TcclError } from '../../errors.js';
import { closedThere } from '../failure/reasons.js';
import {
  checkLimits,
  checkPeer,
  type BlockingLimits,
  type CallLimits,
  type CallOptions,
  type TimedCallOptions,
} from '../algorithms/arguments.js';
import { abortedBefore, isTimed, limited, runWait, signalUnheard, startWait, type TimedWait } from '../messages/timed-call.js';
import { addCallerFrames, errorOfCall, ofRank, settlerOf } from '../caller-stack.js';
import { alone, checkAlone, promised, refused } from '../messages/running-group.js';
import { clockMs } from '../platform/platform.js';
import { isTurnDue, nextTurn } from '../progress/event-loop-turns.js';
import { progressHere } from '../progress/progress.js';
import { agreeOnWindow, type WindowPart, type WindowParts } from './open-window.js';
import {
  checkGetOptions,
  checkPutOptions,
  checkSenders,
  checkTarget,
  checkWindowArray,
  refuseLimits,
} from './window-arguments.js';
import type { PutOptions } from './window-options.js';
import { WindowAtomics } from './window-atomics.js';
import type { WindowLanes } from './window-lanes.js';
import { countSignal, signalBytes, WindowSignals, type SignalWait } from './window-signals.js';
import { nameRanks } from '../bootstrap/rank-list.js';
import { defined } from '../../defined.js';

const finished = Promise.resolve();
/** Calls that end here between two polls of everything else that this thread has in flight: a poll of a socket takes 1 µs. */
const CALLS_PER_POLL = 16;
/** The same between two reads of the clock, and the time between two checks whether the other ranks live, milliseconds. */
const CALLS_PER_CHECK = 1024;
const CHECK_EVERY_MS = 50;

/**
 * Memory of all ranks of a communicator that each of them can read and write without the owner's help: one-sided
 * communication. A writer notifies the target by a signal, and the target waits for signals, not for data. All data that a
 * rank put before a signal have arrived when the signal arrives.
 *
 * Between ranks that share memory, a put or get is a copy. Between others it is a message that the target carries out when
 * its event loop turns or while it blocks in a call, so a target that computes neither receives nor answers meanwhile.
 *
 * Every form that waits may fail like other calls of the communicator, which ends the communicator.
 */
export class Window<T extends TypedArray = NumericArray> extends WindowAtomics<T> {
  /** This rank's part: the array that the window was made with. */
  readonly array: T;
  readonly #parts: WindowParts;
  /** @internal */
  protected override readonly type: DataType;
  readonly #ranks: readonly WindowPart[];
  readonly #segment: Segment;
  readonly #words: Int32Array;
  readonly #signals: WindowSignals;
  /** Codes of its operations in the ring of calls. */
  readonly #codes: Readonly<Record<Exclude<WindowCall, 'waitSignal'>, number>>;
  readonly #operand: Operand;
  readonly #changes: ElementChanges;
  readonly #lanes: WindowLanes;
  /** Of this thread: all windows, messages and collectives of its communicators. */
  readonly #progress = progressHere();
  readonly #release: () => void;
  #closing: Promise<void> | undefined;
  /** Calls that ended here, and the time of the last check of the other ranks. */
  #callsHere = 0;
  #checkedMs = 0;

  /** @internal Makes a window of all ranks' arrays, at `address` of this rank's memory; see Communicator.window. */
  static async open<T extends TypedArray>(parts: WindowParts, array: T, address: number, type: DataType): Promise<Window<T>> {
    const { ranks, lanes } = await agreeOnWindow(parts, array.length, address, type);
    // From here on, an error ends the communicator, because others may have begun to write.
    await lanes.open();
    return new Window(parts, array, type, ranks, lanes);
  }

  private constructor(parts: WindowParts, array: T, type: DataType, ranks: readonly WindowPart[], lanes: WindowLanes) {
    const {
      bootstrap: { rank, nRanks },
      team: { segment },
      libc,
      messenger,
      observe,
    } = parts;
    const { address, signals } = ranks[rank] as WindowPart;
    super();
    this.array = array;
    this.#parts = parts;
    this.type = type;
    this.#ranks = ranks;
    this.#segment = segment;
    this.#words = new Int32Array(segment.buffer);
    const code = (name: WindowCall) => windowCode(name, type);
    this.#codes = {
      put: code('put'),
      'put with signal': code('put with signal'),
      get: code('get'),
      signal: code('signal'),
      flush: code('flush'),
      accumulate: code('accumulate'),
      fetchAndOp: code('fetchAndOp'),
      compareAndSwap: code('compareAndSwap'),
    };
    this.#operand = new Operand(segment, libc);
    this.#changes = new ElementChanges(type, segment, libc, signals + signalBytes(nRanks));
    this.#lanes = lanes;
    this.#signals = new WindowSignals({
      rank,
      nRanks,
      words: this.#words,
      address: signals,
      messenger,
      observe,
      recorder: parts.pointToPoint.recorder,
      isPolled: (peer) => lanes.of(peer)?.polled ?? peer !== rank,
      isOverSockets: (peer) => lanes.of(peer) !== undefined,
      wakeOn: (peer, sources) => {
        const local = parts.pointToPoint.links.localOf(peer);
        if (local >= 0) sources.addMember(parts.team, local);
        else lanes.of(peer)?.wakeOn(sources);
      },
      whyGone: (peer) => this.#whyGone(peer),
    });
    this.#release = segment.keep({
      uses: (from, to) => from <= address && address < to,
      why: 'the array is in a window that is open, so others may write to it; close the window first',
    });
    messenger.dependents.add(this);
  }

  /**
   * Copies all of `source` to rank `peer`'s part, at `targetOffset` elements from its beginning. Resolves when `source` may
   * be changed again.
   *
   * @throws (rejects) BUFFER_SIZE if it exceeds the target's part, ARGUMENT_TYPE, ARGUMENT_RANGE, CLOSED
   */
  put(source: T, peer: number, targetOffset = 0, options?: PutOptions): Promise<void> {
    const timeoutMs = options?.timeoutMs;
    const limits = timeoutMs === undefined ? undefined : { timeoutMs };
    return this.#start('put', peer, limits, () => this.#put('put', source as NumericArray, peer, targetOffset, options));
  }

  /** The blocking form of {@link put}: where {@link CommunicatorConfig.blocking} allows it. */
  putSync(source: T, peer: number, targetOffset = 0, options?: PutOptions): void {
    this.#checkTarget('putSync', peer);
    this.#checkBlocking('putSync', peer);
    refuseLimits('putSync', options?.timeoutMs);
    this.#finish(this.#put('putSync', source as NumericArray, peer, targetOffset, options), peer);
  }

  /**
   * Fills all of `destination` from rank `peer`'s part, at `targetOffset` elements from its beginning. Data that the owner
   * has not announced by a signal or a barrier may be old or new.
   *
   * @throws (rejects) BUFFER_SIZE if it exceeds the target's part, ARGUMENT_TYPE, ARGUMENT_RANGE, CLOSED
   */
  get(destination: T, peer: number, targetOffset = 0, options?: TimedCallOptions): Promise<void> {
    return this.#start('get', peer, options, () => this.#get('get', destination as NumericArray, peer, targetOffset, options));
  }

  /** The blocking form of {@link get}; see {@link putSync}. */
  getSync(destination: T, peer: number, targetOffset = 0, options?: CallOptions): void {
    this.#checkTarget('getSync', peer);
    this.#checkBlocking('getSync', peer);
    refuseLimits('getSync', (options as TimedCallOptions | undefined)?.timeoutMs);
    this.#finish(this.#get('getSync', destination as NumericArray, peer, targetOffset, options), peer);
  }

  /** Signals rank `peer`: all data that this rank has put there have arrived. */
  signal(peer: number, options?: CallLimits): Promise<void> {
    return this.#start('signal', peer, options, () => {
      checkLimits('signal', options);
      return this.#signal('signal', peer);
    });
  }

  /** The blocking form of {@link signal}; see {@link putSync}. */
  signalSync(peer: number): void {
    this.#checkTarget('signalSync', peer);
    this.#checkBlocking('signalSync', peer);
    this.#finish(this.#signal('signalSync', peer), peer);
  }

  /**
   * Resolves when each of `peers` has sent `count` more signals than earlier waits have consumed. With a signal or a limit of
   * time, a wait that ends before consumes none.
   */
  waitSignal(peers: number | readonly number[], count = 1, options?: CallLimits): Promise<void> {
    return promised(() => {
      const from = this.#checkWait('waitSignal', peers, count, options);
      if (isTimed(options)) return startWait(this.#parts.timed, this.#timedWait('waitSignal', from, count), options);
      return new Promise((resolve) => {
        this.#signals.wait(from, count, settlerOf(resolve));
      });
    });
  }

  /** The blocking form of {@link waitSignal}; see {@link putSync}. */
  waitSignalSync(peers: number | readonly number[], count = 1, options?: BlockingLimits): void {
    const from = this.#checkWait('waitSignalSync', peers, count, options);
    if ((options as CallLimits | undefined)?.signal !== undefined)
      throw signalUnheard('waitSignalSync', this.#parts.bootstrap.rank);
    for (const peer of from) this.#checkBlocking('waitSignalSync', peer);
    if (options?.timeoutMs !== undefined) runWait(this.#parts.timed, this.#timedWait('waitSignalSync', from, count), options);
    else this.#block((settle) => this.#signals.wait(from, count, settle));
  }

  /** Resolves when all data that this rank has put have arrived. */
  flush(options?: CallLimits): Promise<void> {
    return promised(() => {
      this.#ofRank(() => {
        this.#checkOpen('flush');
        checkLimits('flush', options);
      });
      return limited(this.#parts.timed, 'flush', () => this.#flush(), options);
    });
  }

  async #flush(): Promise<void> {
    const ended = this.#parts.observe?.({ name: 'flush', text: 'flush', args: {} });
    try {
      await this.#flushed();
    } catch (error) {
      ended?.(error as Error);
      throw error;
    }
    ended?.();
  }

  /** Closes the window on all ranks, once all data have arrived; every rank calls it. Its arrays stay usable. */
  close(): Promise<void> {
    return alone('window close', this.#parts.bootstrap.rank, () => (this.#closing ??= this.#close()));
  }

  /** @internal Ends the window because the communicator failed. */
  abort(reason: Error): void {
    this.#release();
    this.#lanes.abort(reason);
  }

  /** @internal Called when the communicator is closed while the window is open. */
  async leave(): Promise<void> {
    this.#release();
    await this.#lanes.close();
  }

  // ── one side ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #put(
    call: string,
    source: NumericArray,
    peer: number,
    targetOffset: number,
    options: PutOptions | undefined,
  ): WindowCommand | undefined {
    const part = this.#checkMove(call, 'source', source, peer, targetOffset, options, checkPutOptions);
    const signals = options?.signal === true;
    const ended = this.#parts.observe?.(this.#moveOf('put', 'to', source.length, peer, targetOffset, signals));
    const bytes = source.length * this.type.bytes;
    const offset = targetOffset * this.type.bytes;
    const lane = this.#lanes.of(peer);
    const code = this.#codes[signals ? 'put with signal' : 'put'];
    if (lane !== undefined)
      return observed(() => lane.put(source, bytes, offset, signals), this.#recorded(code, peer, source.length, ended));
    this.#parts.pointToPoint.recorder?.operation(code, peer, source.length);
    if (bytes > 0) {
      this.#operand.use(source);
      this.#operand.copyTo(part.address + offset, 0, bytes);
      this.#operand.forget();
    }
    if (signals) this.#countSignal(part);
    ended?.();
    return undefined;
  }

  #get(
    call: string,
    destination: NumericArray,
    peer: number,
    targetOffset: number,
    options: CallOptions | undefined,
  ): WindowCommand | undefined {
    const part = this.#checkMove(call, 'destination', destination, peer, targetOffset, options);
    const ended = this.#parts.observe?.(this.#moveOf('get', 'from', destination.length, peer, targetOffset, false));
    const bytes = destination.length * this.type.bytes;
    const offset = targetOffset * this.type.bytes;
    const lane = this.#lanes.of(peer);
    if (lane !== undefined)
      return observed(
        () => lane.get(destination, bytes, offset),
        this.#recorded(this.#codes.get, peer, destination.length, ended),
      );
    this.#parts.pointToPoint.recorder?.operation(this.#codes.get, peer, destination.length);
    if (bytes > 0) {
      this.#operand.use(destination);
      this.#operand.write(0, bytes, part.address + offset);
      this.#operand.forget();
    }
    ended?.();
    this.#endedHere(call);
    return undefined;
  }

  /** @internal */
  protected override startChange<C extends Change, R>(
    call: string,
    peer: number,
    targetOffset: number,
    options: CallLimits | undefined,
    checked: () => C,
    resultOf: (change: C) => R,
  ): Promise<R> {
    return alone(call, this.#parts.bootstrap.rank, async () => {
      let change: C | undefined;
      await this.#start(call, peer, options, () => {
        checkLimits(call, options);
        return this.#change(call, peer, targetOffset, (change = this.#ofRank(checked)));
      });
      return resultOf(change as C);
    });
  }

  /** @internal */
  protected override runChange<C extends Change>(call: string, peer: number, targetOffset: number, checked: () => C): C {
    this.#checkTarget(call, peer);
    this.#checkBlocking(call, peer);
    const change = this.#ofRank(checked);
    this.#finish(this.#change(call, peer, targetOffset, change), peer);
    return change;
  }

  #change(call: string, peer: number, targetOffset: number, change: Change): WindowCommand | undefined {
    const { name } = change;
    const count = name === 'accumulate' ? change.source.length : 1;
    const part = this.#checkTarget(call, peer);
    this.#ofRank(() => checkTarget(call, count, targetOffset, peer, part.length));
    const ended = this.#parts.observe?.(this.#moveOf(name, 'to', count, peer, targetOffset, false));
    const offset = targetOffset * this.type.bytes;
    const lane = this.#lanes.of(peer);
    const code = this.#codes[name];
    if (lane !== undefined) return this.#changes.through(lane, change, offset, this.#recorded(code, peer, count, ended));
    this.#parts.pointToPoint.recorder?.operation(code, peer, count);
    this.#changes.here(change, part.address + offset);
    ended?.();
    this.#endedHere(call);
    return undefined;
  }

  /**
   * Progresses everything else now and then: a program may repeat a call until another rank has changed an element, and that
   * rank may wait for this one, or have ended.
   */
  #endedHere(call: string): void {
    const calls = ++this.#callsHere;
    if (calls % CALLS_PER_POLL !== 0) return;
    this.#progress.poll();
    if (calls % CALLS_PER_CHECK !== 0) return;
    const nowMs = clockMs();
    if (nowMs - this.#checkedMs < CHECK_EVERY_MS) return;
    this.#checkedMs = nowMs;
    const { queue, fail } = this.#parts.timed;
    try {
      queue.checkForMessages();
    } catch (error) {
      throw addCallerFrames(fail(error, call));
    }
  }

  #signal(call: string, peer: number): WindowCommand | undefined {
    const part = this.#checkTarget(call, peer);
    const ended = this.#parts.observe?.({ name: 'signal', text: `signal to rank ${peer}`, args: { peer } });
    const lane = this.#lanes.of(peer);
    if (lane !== undefined) return observed(() => lane.signal(), this.#recorded(this.#codes.signal, peer, 0, ended));
    this.#parts.pointToPoint.recorder?.operation(this.#codes.signal, peer, 0);
    this.#countSignal(part);
    ended?.();
    return undefined;
  }

  /** Records a command for a rank that shares no memory with this one, until it ends. */
  #recorded(code: number, peer: number, count: number, ended: WindowCommand['ended']): WindowCommand['ended'] {
    const { recorder } = this.#parts.pointToPoint;
    if (recorder === undefined) return ended;
    const entry = recorder.beginOperation(code, peer, count);
    return (error) => {
      recorder.endApart(entry);
      ended?.(error);
    };
  }

  /** Signals a rank that shares memory with this one. */
  #countSignal({ signals }: WindowPart): void {
    countSignal(this.#words, signals, this.#parts.bootstrap.rank);
    this.#segment.parkedRanks.wake();
  }

  /** Checks the arguments of a put or get, and returns the other rank's part. */
  // eslint-disable-next-line max-params -- small moves should allocate nothing
  #checkMove(
    call: string,
    what: string,
    array: NumericArray,
    peer: number,
    targetOffset: number,
    options: CallOptions | undefined,
    check: (call: string, options: object) => void = checkGetOptions,
  ): WindowPart {
    const part = this.#checkTarget(call, peer);
    this.#ofRank(() => {
      checkWindowArray(call, what, array, this.type, options, check);
      checkTarget(call, array.length, targetOffset, peer, part.length);
    });
    return part;
  }

  #moveOf(
    name: 'put' | 'get' | Change['name'],
    direction: string,
    count: number,
    peer: number,
    at: number,
    signals: boolean,
  ): Operation {
    const { name: type, bytes } = this.type;
    const text = `${name} of ${count} ${type} ${direction} rank ${peer} at ${at}${signals ? ', with a signal' : ''}`;
    return { name, text, args: { peer, count, type, bytes: count * bytes, at, signals } };
  }

  /** The part of the rank that a call is about. */
  #checkTarget(call: string, peer: number): WindowPart {
    return this.#ofRank(() => {
      this.#checkOpen(call);
      checkPeer(call, peer, this.#ranks.length);
      return defined(this.#ranks[peer]);
    });
  }

  #checkOpen(call: string): void {
    this.#parts.checkUsable(`window.${call}`);
    const { rank } = this.#parts.bootstrap;
    checkAlone(call, rank);
    if (this.#closing !== undefined)
      throw new InvalidUsageError('CLOSED', `${call}: rank ${rank} has closed the window`, { rank });
  }

  #ofRank<R>(check: () => R): R {
    return ofRank(this.#parts.bootstrap.rank, check);
  }

  // ── waiting ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #timedWait(name: string, from: readonly number[], count: number): TimedWait {
    let wait: SignalWait | undefined;
    return {
      name,
      missing: `no ${count === 1 ? 'signal' : `${count} signals`} from ${nameRanks(from)} came to rank ${this.#parts.bootstrap.rank}`,
      ranks: () => wait?.awaited() ?? from,
      begin: (settled) => {
        const begun = (wait = this.#signals.wait(from, count, settled));
        return (error) => begun.withdraw(error);
      },
    };
  }

  #checkWait(call: string, peers: number | readonly number[], count: number, options: CallLimits | undefined): readonly number[] {
    return this.#ofRank(() => {
      this.#checkOpen(call);
      checkLimits(call, options);
      return checkSenders(call, peers, count, this.#ranks.length);
    });
  }

  /** Reason why no more data come from a rank, if there is one. */
  #whyGone(peer: number): Error | undefined {
    const reason = this.#whyEnded(peer);
    // While all close the window, others may finish sooner: close() then ends the remaining waits.
    const isClosing = this.#closing !== undefined && reason instanceof TcclError && reason.code === 'CLOSED';
    return isClosing ? undefined : reason;
  }

  #whyEnded(peer: number): Error | undefined {
    const { team, pointToPoint } = this.#parts;
    const lane = this.#lanes.of(peer);
    if (lane !== undefined) return lookAt(lane);
    const local = pointToPoint.links.localOf(peer);
    return local >= 0 && team.hasLeft(local) ? (team.recordedFailure() ?? closedThere(peer)) : undefined;
  }

  #checkBlocking(call: string, peer: number): void {
    if (!this.#lanes.isBlocking(peer)) this.#parts.messenger.checkBlocking(call, peer);
  }

  /** Starts a command that rank `peer` may have to carry out, and returns its promise. */
  #start(name: string, peer: number, options: CallLimits | undefined, begin: () => WindowCommand | undefined): Promise<void> {
    try {
      const refused = options === undefined ? undefined : abortedBefore(options);
      if (refused !== undefined) return refused;
      const command = begin();
      if (command === undefined || command.done) return isTurnDue() ? nextTurn() : finished;
      return limited(this.#parts.timed, name, () => this.#whenDone(command, peer), options);
    } catch (error) {
      return refused(errorOfCall(error, this.#parts.bootstrap.rank));
    }
  }

  /** Blocks until a command is done. */
  #finish(command: WindowCommand | undefined, peer: number): void {
    if (command?.done === false) this.#block((settle) => this.#wait(command, peer, settle));
  }

  /** Blocks until the operation that `begin` starts is settled. */
  #block(begin: (settle: (error?: Error) => void) => void): void {
    let outcome: { readonly error: Error | undefined } | undefined;
    begin((error) => (outcome = { error }));
    this.#parts.messenger.waitUntil(() => outcome !== undefined);
    const { error } = outcome ?? { error: undefined };
    if (error !== undefined) throw addCallerFrames(error);
  }

  #whenDone(command: WindowCommand, peer: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wait(command, peer, settlerOf(resolve));
    });
  }

  #wait(command: WindowCommand, peer: number, settled: (error?: Error) => void): void {
    const lane = this.#lanes.of(peer);
    this.#parts.messenger.waitFor({
      isMet: () => {
        // First, because results from before the other rank left are valid.
        const failure = lane === undefined ? undefined : lookAt(lane);
        if (failure !== undefined && !command.done) throw failure;
        return command.done;
      },
      awaited: () => [peer],
      get polled() {
        return lane?.polled === true;
      },
      overSockets: lane !== undefined,
      wakeOn: (sources) => lane?.wakeOn(sources),
      text: `a window's operation with rank ${peer}`,
      settled: (error) => {
        if (error !== undefined) command.ended?.(error);
        settled(error);
      },
    });
  }

  /** Resolves when the others have carried out all commands. */
  async #flushed(): Promise<void> {
    await Promise.all(
      this.#ranks.map((_, peer) => {
        const lane = this.#lanes.of(peer);
        if (lane?.isUsed !== true) return finished;
        return this.#whenDone(
          observed(() => lane.flush(), this.#recorded(this.#codes.flush, peer, 0, undefined)),
          peer,
        );
      }),
    );
  }

  async #close(): Promise<void> {
    const { messenger, meet, number, bootstrap } = this.#parts;
    await meet(number, this.#flushed());
    this.#signals.endWaits();
    messenger.dependents.delete(this);
    await this.leave();
    this.#segment.freeBytes(defined(this.#ranks[bootstrap.rank]).signals);
  }
}

/** Takes arrived messages of a lane. Returns the reason if no more can arrive. */
function lookAt(lane: WindowLane): Error | undefined {
  if (lane.polled) lane.progress();
  return lane.failure();
}
