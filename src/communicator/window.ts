import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { Observe, Operation } from '../collectives/operation.js';
import { Operand } from '../collectives/operand.js';
import type { PointToPoint } from '../collectives/p2p.js';
import { WindowLane, type WindowCommand } from '../collectives/p2p-window.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { Team } from '../device/team.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InvalidArgumentError, InvalidUsageError, SystemError, withRank } from '../errors.js';
import { closedThere } from '../transport/ending.js';
import { checkPeer, type CallOptions } from './arguments.js';
import type { Messenger } from './messenger.js';
import { tellAll } from './out-of-band.js';
import { checkSenders, checkTarget, checkWindowArray } from './window-arguments.js';
import { countSignal, signalBytes, WindowSignals } from './window-signals.js';

const finished = Promise.resolve();

/** @internal What a window needs of its communicator. */
export interface WindowParts {
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly libc: Libc | undefined;
  readonly pointToPoint: PointToPoint;
  readonly messenger: Messenger;
  /** Tells the window from others, alike on all ranks; from 1. */
  readonly number: number;
  /** Throws unless the communicator can be used. */
  readonly checkUsable: (call: string) => void;
  /** Told of each operation, where somebody wants to know. */
  readonly observe: Observe | undefined;
  readonly barrier: () => Promise<void>;
}

/** What a rank tells the others of its part. Addresses are in the segment of its host. */
interface Part {
  readonly type: DataType['name'];
  /** Elements. */
  readonly length: number;
  readonly address: number;
  /** A line a rank, with how often that rank has signalled. */
  readonly signals: number;
}

export interface PutOptions extends CallOptions {
  /** Whether the target is signalled once the data are there. Default false. */
  readonly signal?: boolean | undefined;
}

const putOptionNames: readonly (keyof PutOptions)[] = ['type', 'signal'];

/**
 * Memory of all ranks of a communicator that each of them can read and write without the other's doing: one-sided
 * communication. A rank that has written tells the target by a signal; the target waits for signals, not for data. What
 * a rank puts to another before it signals it is there when the signal is.
 *
 * Where ranks share memory, a put or get is a copy. Elsewhere it is a message that the target carries out when its event
 * loop turns, so a target that computes without a break sees nothing new meanwhile, and answers nothing.
 *
 * Every form that waits may fail as other calls of the communicator do, and then ends it.
 */
export class Window {
  /** This rank's part: the array that the window was made with. */
  readonly array: NumericArray;
  readonly #parts: WindowParts;
  readonly #type: DataType;
  readonly #ranks: readonly Part[];
  readonly #segment: Segment;
  readonly #words: Int32Array;
  readonly #signals: WindowSignals;
  readonly #operand: Operand;
  /** By rank, where ranks share no memory with this one. */
  readonly #lanes = new Map<number, WindowLane>();
  readonly #unpin: () => void;
  #closing: Promise<void> | undefined;

  /** @internal Makes a window of all ranks' arrays, at `address` of this rank's memory; see Communicator.window. */
  static async open(parts: WindowParts, array: NumericArray, address: number, type: DataType): Promise<Window> {
    const { bootstrap, team: { segment } } = parts;
    const bytes = signalBytes(bootstrap.nRanks);
    let failure: Error | undefined;
    let signals = -1;
    try {
      signals = segment.allocateBytes(bytes);
      new Uint8Array(segment.buffer, signals, bytes).fill(0);
    } catch (error) {
      failure = error as Error;
    }
    const mine: Part = { type: type.name, length: array.length, address, signals };
    try {
      const all = await tellAll(bootstrap, 'window', mine);
      const without = all.findIndex((part) => part.signals < 0);
      if (without >= 0) throw failure ?? new SystemError('OUT_OF_MEMORY', `rank ${without} has no memory for the signals of the window`, { rank: without });
      const other = all.findIndex((part) => part.type !== all[0]?.type);
      if (other >= 0) {
        throw new InvalidUsageError(
          'CALL_MISMATCH', `a window has one type, but rank 0 made it of ${all[0]?.type ?? ''} and rank ${other} of ${all[other]?.type ?? ''}; pass arrays of one type`, { ranks: [0, other] },
        );
      }
      return new Window(parts, array, type, all, mine);
    } catch (error) {
      if (signals >= 0) segment.freeBytes(signals);
      throw error;
    }
  }

  private constructor(parts: WindowParts, array: NumericArray, type: DataType, ranks: readonly Part[], mine: Part) {
    const { bootstrap: { rank, nRanks }, team: { segment }, libc, pointToPoint, messenger, number, observe } = parts;
    this.array = array;
    this.#parts = parts;
    this.#type = type;
    this.#ranks = ranks;
    this.#segment = segment;
    this.#words = new Int32Array(segment.buffer);
    this.#operand = new Operand(segment, libc);
    this.#signals = new WindowSignals({
      rank, nRanks, words: this.#words, address: mine.signals, messenger, observe,
      isPolled: (peer) => !this.#lanes.has(peer) && peer !== rank,
      whyGone: (peer) => this.#whyGone(peer),
    });
    this.#unpin = segment.pin(mine.address, 'the array is in a window that is open, so others may write to it; close the window first');
    messenger.guests.add(this);
    ranks.forEach((_, peer) => {
      if (peer === rank || pointToPoint.localOf(peer) >= 0) return;
      const dialling = pointToPoint.dialling(number, () => {
        this.#lanes.get(peer)?.progress();
        messenger.onNews();
      });
      const onSignal = (): void => countSignal(this.#words, mine.signals, peer);
      const lane = new WindowLane({ segment, libc, peer, address: mine.address, bytes: mine.length * type.bytes, dialling, onSignal });
      this.#lanes.set(peer, lane);
    });
  }

  /**
   * Copies all of `source` to rank `peer`'s part, `targetOffset` elements from its beginning. Resolves when `source`
   * may be changed again.
   *
   * @throws (rejects) BUFFER_SIZE where the target has no room, ARGUMENT_TYPE, ARGUMENT_RANGE, CLOSED
   */
  put(source: NumericArray, peer: number, targetOffset = 0, options?: PutOptions): Promise<void> {
    return this.#start(peer, () => this.#put('put', source, peer, targetOffset, options));
  }

  /** The blocking form of {@link put}, where `peer` shares memory with this rank. */
  putSync(source: NumericArray, peer: number, targetOffset = 0, options?: PutOptions): void {
    this.#parts.messenger.checkBlocking(peer);
    this.#put('putSync', source, peer, targetOffset, options);
  }

  /**
   * Fills all of `destination` with rank `peer`'s part, from `targetOffset` elements behind its beginning on. What that
   * rank has not written for this one to see, by a signal or a barrier, may be old or new.
   *
   * @throws (rejects) BUFFER_SIZE where the target has less, ARGUMENT_TYPE, ARGUMENT_RANGE, CLOSED
   */
  get(destination: NumericArray, peer: number, targetOffset = 0, options?: CallOptions): Promise<void> {
    return this.#start(peer, () => this.#get('get', destination, peer, targetOffset, options));
  }

  /** The blocking form of {@link get}, where `peer` shares memory with this rank. */
  getSync(destination: NumericArray, peer: number, targetOffset = 0, options?: CallOptions): void {
    this.#parts.messenger.checkBlocking(peer);
    this.#get('getSync', destination, peer, targetOffset, options);
  }

  /** Signals rank `peer`: what this rank has put there is there. */
  signal(peer: number): Promise<void> {
    return this.#start(peer, () => this.#signal('signal', peer));
  }

  /** The blocking form of {@link signal}. */
  signalSync(peer: number): void {
    this.#parts.messenger.checkBlocking(peer);
    this.#signal('signalSync', peer);
  }

  /** Resolves when each of `peers` has signalled `count` times more than was waited for before. */
  waitSignal(peers: number | readonly number[], count = 1): Promise<void> {
    try {
      const from = this.#checkWait('waitSignal', peers, count);
      return new Promise((resolve, reject) => {
        this.#signals.wait(from, count, (error) => (error === undefined ? resolve() : reject(error)));
      });
    } catch (error) {
      return Promise.reject(this.#ofThisRank(error));
    }
  }

  /** The blocking form of {@link waitSignal}, where all `peers` share memory with this rank. */
  waitSignalSync(peers: number | readonly number[], count = 1): void {
    const { messenger } = this.#parts;
    const from = this.#checkWait('waitSignalSync', peers, count);
    for (const peer of from) messenger.checkBlocking(peer);
    let outcome: { readonly error: Error | undefined } | undefined;
    this.#signals.wait(from, count, (error) => (outcome = { error }));
    messenger.waitUntil(() => outcome !== undefined);
    const { error } = outcome ?? { error: undefined };
    if (error !== undefined) throw error;
  }

  /** Resolves when all that this rank has put is there. */
  async flush(): Promise<void> {
    this.#checkOpen('flush');
    const ended = this.#parts.observe?.({ name: 'flush', text: 'flush', args: {} });
    try {
      await this.#flushed();
    } catch (error) {
      ended?.(error as Error);
      throw error;
    }
    ended?.();
  }

  /** Ends the window on all ranks, once all that was put is there: every rank calls it. Its arrays stay. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** @internal The communicator failed. */
  abort(reason: Error): void {
    this.#unpin();
    for (const lane of this.#lanes.values()) lane.abort(reason);
  }

  /** @internal The communicator is closed while the window is open. */
  async leave(): Promise<void> {
    this.#unpin();
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()));
  }

  // ── what another rank need not do anything for ────────────────────────────────────────────────────────────────────

  #put(call: string, source: NumericArray, peer: number, targetOffset: number, options: PutOptions | undefined): WindowCommand | undefined {
    const part = this.#checkMove(call, 'source', source, peer, targetOffset, options, putOptionNames);
    const signals = options?.signal === true;
    const ended = this.#parts.observe?.(this.#moveOf('put', 'to', source.length, peer, targetOffset, signals));
    const bytes = source.length * this.#type.bytes;
    const offset = targetOffset * this.#type.bytes;
    const lane = this.#lanes.get(peer);
    if (lane !== undefined) return observed(lane.put(source, bytes, offset, signals), ended);
    if (bytes > 0) {
      this.#operand.use(source);
      this.#operand.copyTo(part.address + offset, 0, bytes);
      this.#operand.forget();
    }
    if (signals) countSignal(this.#words, part.signals, this.#parts.bootstrap.rank);
    ended?.();
    return undefined;
  }

  #get(call: string, destination: NumericArray, peer: number, targetOffset: number, options: CallOptions | undefined): WindowCommand | undefined {
    const part = this.#checkMove(call, 'destination', destination, peer, targetOffset, options);
    const ended = this.#parts.observe?.(this.#moveOf('get', 'from', destination.length, peer, targetOffset, false));
    const bytes = destination.length * this.#type.bytes;
    const offset = targetOffset * this.#type.bytes;
    const lane = this.#lanes.get(peer);
    if (lane !== undefined) return observed(lane.get(destination, bytes, offset), ended);
    if (bytes > 0) {
      this.#operand.use(destination);
      this.#operand.write(0, bytes, part.address + offset);
      this.#operand.forget();
    }
    ended?.();
    return undefined;
  }

  #signal(call: string, peer: number): WindowCommand | undefined {
    this.#checkOpen(call);
    const part = this.#partOf(call, peer);
    const ended = this.#parts.observe?.({ name: 'signal', text: `signal to rank ${peer}`, args: { peer } });
    const lane = this.#lanes.get(peer);
    if (lane !== undefined) return observed(lane.signal(), ended);
    countSignal(this.#words, part.signals, this.#parts.bootstrap.rank);
    ended?.();
    return undefined;
  }

  /** Checks what a put or get is about, and gives the other's part. */
  #checkMove(call: string, what: string, array: NumericArray, peer: number, targetOffset: number, options: CallOptions | undefined, optionNames?: readonly string[]): Part {
    this.#checkOpen(call);
    const part = this.#partOf(call, peer);
    checkWindowArray(call, what, array, this.#type, options, optionNames);
    checkTarget(call, array.length, targetOffset, peer, part.length);
    return part;
  }

  #moveOf(name: 'put' | 'get', direction: string, count: number, peer: number, at: number, signals: boolean): Operation {
    const { name: type, bytes } = this.#type;
    const text = `${name} of ${count} ${type} ${direction} rank ${peer} at ${at}${signals ? ', with a signal' : ''}`;
    return { name, text, args: { peer, count, type, bytes: count * bytes, at, signals } };
  }

  #partOf(call: string, peer: number): Part {
    checkPeer(call, peer, this.#ranks.length);
    const part = this.#ranks[peer];
    if (part === undefined) throw new InvalidArgumentError('ARGUMENT_RANGE', `${call}: there is no rank ${peer}`);
    return part;
  }

  #checkOpen(call: string): void {
    this.#parts.checkUsable(`window.${call}`);
    const { rank } = this.#parts.bootstrap;
    if (this.#closing !== undefined) throw new InvalidUsageError('CLOSED', `rank ${rank} called ${call} on a window that it has closed`, { rank });
  }

  #ofThisRank(error: unknown): unknown {
    return withRank(error, this.#parts.bootstrap.rank);
  }

  // ── what has to wait for another rank ─────────────────────────────────────────────────────────────────────────────

  #checkWait(call: string, peers: number | readonly number[], count: number): readonly number[] {
    this.#checkOpen(call);
    return checkSenders(call, peers, count, this.#ranks.length);
  }

  /** Why nothing more comes from a rank, if so. */
  #whyGone(peer: number): Error | undefined {
    const { team, pointToPoint } = this.#parts;
    const lane = this.#lanes.get(peer);
    if (lane !== undefined) return lane.failure();
    const local = pointToPoint.localOf(peer);
    return local >= 0 && team.hasLeft(local) ? pointToPoint.lastWords() ?? closedThere(peer) : undefined;
  }

  /** The promise of what `begin` begins, which rank `peer` may have to carry out. */
  #start(peer: number, begin: () => WindowCommand | undefined): Promise<void> {
    try {
      const command = begin();
      return command === undefined ? finished : this.#whenDone(command, peer);
    } catch (error) {
      return Promise.reject(this.#ofThisRank(error));
    }
  }

  #whenDone(command: WindowCommand, peer: number): Promise<void> {
    if (command.done) {
      command.ended?.();
      return finished;
    }
    return new Promise((resolve, reject) => {
      this.#parts.messenger.waitFor({
        isMet: () => {
          const failure = command.done ? undefined : this.#lanes.get(peer)?.failure();
          if (failure !== undefined) throw failure;
          return command.done;
        },
        awaited: () => [peer],
        polled: false,
        settled: (error) => {
          command.ended?.(error);
          if (error === undefined) resolve();
          else reject(error);
        },
      });
    });
  }

  /** Resolves when the others have carried out all commands. */
  async #flushed(): Promise<void> {
    await Promise.all([...this.#lanes].map(([peer, lane]) => (lane.isUsed ? this.#whenDone(lane.flush(), peer) : finished)));
  }

  async #close(): Promise<void> {
    const { messenger, barrier, bootstrap } = this.#parts;
    await this.#flushed();
    await barrier();
    this.#signals.endWaits();
    messenger.guests.delete(this);
    await this.leave();
    this.#segment.freeBytes(this.#ranks[bootstrap.rank]?.signals ?? 0);
  }
}

function observed(command: WindowCommand, ended: ((error?: Error) => void) | undefined): WindowCommand {
  command.ended = ended;
  return command;
}
