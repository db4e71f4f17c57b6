import { formatRanks } from '../bootstrap/rank-list.js';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { PointToPoint } from '../collectives/p2p.js';
import type { Observe, Operation } from '../collectives/operation.js';
import { WindowLane, type WindowCommand } from '../collectives/p2p-window.js';
import { Operand } from '../collectives/operand.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { Team } from '../device/team.js';
import type { DataType, NumericArray } from '../device/types.js';
import { describeValue } from '../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, SystemError, withRank } from '../errors.js';
import { closedThere } from '../transport/ending.js';
import { checkArray, checkCallOptions, checkPeer, type CallOptions } from './arguments.js';
import type { Condition, Messenger } from './messenger.js';
import { tellAll } from './out-of-band.js';

const LINE = 64;
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
  readonly signal?: boolean;
}

const putOptionNames: readonly (keyof PutOptions)[] = ['type', 'signal'];

/** @internal Checks what a window is to be made of. Throws ARGUMENT_TYPE, UNKNOWN_NAME or BUFFER_DETACHED. */
export function checkWindow(array: NumericArray, options: CallOptions | undefined, segment: Segment): { readonly type: DataType; readonly address: number } {
  const type = checkArray('window', array, options);
  const address = segment.offsetOf(array);
  if (address >= 0) return { type, address };
  throw new InvalidArgumentError('ARGUMENT_TYPE', 'window: others can only write to memory that is shared; pass an array from alloc() of this communicator');
}

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
  /** Signals of each rank that were waited for. */
  readonly #consumed: Int32Array;
  readonly #operand: Operand;
  /** By rank, where ranks share no memory with this one. */
  readonly #lanes = new Map<number, WindowLane>();
  /** Waits for signals that have not ended. */
  readonly #waits = new Set<Condition>();
  readonly #unpin: () => void;
  #closing: Promise<void> | undefined;

  /** @internal Makes a window of all ranks' arrays, at `address` of this rank's memory; see Communicator.window. */
  static async open(parts: WindowParts, array: NumericArray, address: number, type: DataType): Promise<Window> {
    const { bootstrap, team: { segment } } = parts;
    let failure: Error | undefined;
    let signals = -1;
    try {
      signals = segment.allocateBytes(bootstrap.nRanks * LINE);
      new Uint8Array(segment.buffer, signals, bootstrap.nRanks * LINE).fill(0);
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
    const { bootstrap, team: { segment }, libc, pointToPoint, messenger, number } = parts;
    this.array = array;
    this.#parts = parts;
    this.#type = type;
    this.#ranks = ranks;
    this.#segment = segment;
    this.#words = new Int32Array(segment.buffer);
    this.#consumed = new Int32Array(ranks.length);
    this.#operand = new Operand(segment, libc);
    this.#unpin = segment.pin(mine.address, 'the array is in a window that is open, so others may write to it; close the window first');
    messenger.guests.add(this);
    ranks.forEach((_, peer) => {
      if (peer === bootstrap.rank || pointToPoint.localOf(peer) >= 0) return;
      const dialling = pointToPoint.dialling(number, () => {
        this.#lanes.get(peer)?.progress();
        messenger.onNews();
      });
      const onSignal = (): void => this.#count(mine.signals, peer);
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
    try {
      const command = this.#put('put', source, peer, targetOffset, options);
      return command === undefined ? finished : this.#whenDone(command, peer);
    } catch (error) {
      return Promise.reject(this.#ofThisRank(error));
    }
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
    try {
      const command = this.#get('get', destination, peer, targetOffset, options);
      return command === undefined ? finished : this.#whenDone(command, peer);
    } catch (error) {
      return Promise.reject(this.#ofThisRank(error));
    }
  }

  /** The blocking form of {@link get}, where `peer` shares memory with this rank. */
  getSync(destination: NumericArray, peer: number, targetOffset = 0, options?: CallOptions): void {
    this.#parts.messenger.checkBlocking(peer);
    this.#get('getSync', destination, peer, targetOffset, options);
  }

  /** Signals rank `peer`: what this rank has put there is there. */
  signal(peer: number): Promise<void> {
    try {
      const command = this.#signal('signal', peer);
      return command === undefined ? finished : this.#whenDone(command, peer);
    } catch (error) {
      return Promise.reject(this.#ofThisRank(error));
    }
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
        this.#waitFor(from, count, (error) => (error === undefined ? resolve() : reject(error)));
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
    this.#waitFor(from, count, (error) => (outcome = { error }));
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

  // ── one side ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #put(call: string, source: NumericArray, peer: number, targetOffset: number, options: PutOptions | undefined): WindowCommand | undefined {
    const { part, bytes, offset } = this.#placeOf(call, 'source', source, peer, targetOffset, options, putOptionNames);
    const signals = options?.signal === true;
    const ended = this.#parts.observe?.(this.#moveOf('put', 'to', source.length, peer, targetOffset, signals));
    const lane = this.#lanes.get(peer);
    if (lane !== undefined) return observed(lane.put(source, bytes, offset, signals), ended);
    if (bytes > 0) {
      this.#operand.use(source);
      this.#operand.copyTo(part.address + offset, 0, bytes);
      this.#operand.forget();
    }
    if (signals) this.#count(part.signals, this.#parts.bootstrap.rank);
    ended?.();
    return undefined;
  }

  #get(call: string, destination: NumericArray, peer: number, targetOffset: number, options: CallOptions | undefined): WindowCommand | undefined {
    const { part, bytes, offset } = this.#placeOf(call, 'destination', destination, peer, targetOffset, options);
    const ended = this.#parts.observe?.(this.#moveOf('get', 'from', destination.length, peer, targetOffset, false));
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

  /** Checks what a put or get is about. */
  #placeOf(
    call: string, what: string, array: NumericArray, peer: number, targetOffset: number, options: CallOptions | undefined, optionNames?: readonly string[],
  ): { readonly part: Part; readonly bytes: number; readonly offset: number } {
    this.#checkOpen(call);
    const part = this.#partOf(call, peer);
    if (options !== undefined) checkCallOptions(call, options, optionNames);
    const type = checkArray(call, array, { type: options?.type ?? this.#type.name });
    if (type !== this.#type) {
      throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: the ${what} holds ${type.name}, but the window is of ${this.#type.name}; pass an array of that type`);
    }
    if (!Number.isSafeInteger(targetOffset) || targetOffset < 0) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `${call}: the target's offset is ${describeValue(targetOffset)}; pass a whole number of elements from 0`);
    }
    if (targetOffset + array.length > part.length) {
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `${call}: ${array.length} elements at offset ${String(targetOffset)} are not within the ${part.length} elements that rank ${peer} has in the window`,
        { rank: peer },
      );
    }
    return { part, bytes: array.length * type.bytes, offset: targetOffset * type.bytes };
  }

  #signal(call: string, peer: number): WindowCommand | undefined {
    this.#checkOpen(call);
    const part = this.#partOf(call, peer);
    const ended = this.#parts.observe?.({ name: 'signal', text: `signal to rank ${peer}`, args: { peer } });
    const lane = this.#lanes.get(peer);
    if (lane !== undefined) return observed(lane.signal(), ended);
    this.#count(part.signals, this.#parts.bootstrap.rank);
    ended?.();
    return undefined;
  }

  #moveOf(name: 'put' | 'get', direction: string, count: number, peer: number, at: number, signals: boolean): Operation {
    const { name: type, bytes } = this.#type;
    const text = `${name} of ${count} ${type} ${direction} rank ${peer} at ${at}${signals ? ', with a signal' : ''}`;
    return { name, text, args: { peer, count, type, bytes: count * bytes, at, signals } };
  }

  /** One signal more from rank `from`, where counters begin at `signals`. What was stored before is seen with it. */
  #count(signals: number, from: number): void {
    Atomics.add(this.#words, (signals + from * LINE) / 4, 1);
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

  // ── the other side ────────────────────────────────────────────────────────────────────────────────────────────────

  #checkWait(call: string, peers: number | readonly number[], count: number): readonly number[] {
    this.#checkOpen(call);
    const from = Array.isArray(peers) ? [...new Set(peers as readonly number[])] : [peers as number];
    for (const peer of from) checkPeer(call, peer, this.#ranks.length);
    if (!Number.isInteger(count) || count < 1 || count >= 2 ** 30) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `${call}: ${describeValue(count)} is not a number of signals from 1`);
    }
    return from;
  }

  #waitFor(peers: readonly number[], count: number, settle: (error?: Error) => void): void {
    const ended = this.#parts.observe?.({ name: 'waitSignal', text: `waitSignal of ${count} from rank${peers.length === 1 ? '' : 's'} ${formatRanks(peers)}`, args: { peers, count } });
    const settled = ended === undefined ? settle : (error?: Error): void => {
      ended(error);
      settle(error);
    };
    const wait: Condition = {
      isMet: () => this.#take(peers, count),
      awaited: () => peers.filter((peer) => !this.#has(peer, count)),
      polled: peers.some((peer) => !this.#lanes.has(peer) && peer !== this.#parts.bootstrap.rank),
      settled: (error) => {
        this.#waits.delete(wait);
        settled(error);
      },
    };
    this.#waits.add(wait);
    this.#parts.messenger.waitFor(wait);
  }

  /** Takes `count` signals of each of `peers`, if all of them are there. Throws when they cannot come any more. */
  #take(peers: readonly number[], count: number): boolean {
    const { team, pointToPoint } = this.#parts;
    for (const peer of peers) {
      const lane = this.#lanes.get(peer);
      const local = lane === undefined ? pointToPoint.localOf(peer) : -1;
      // The order matters: what it signalled before it left counts.
      const hasLeft = local >= 0 && team.hasLeft(local);
      if (this.#has(peer, count)) continue;
      if (hasLeft) {
        pointToPoint.throwLastWords();
        throw closedThere(peer);
      }
      lane?.check();
      return false;
    }
    for (const peer of peers) this.#consumed[peer] = (this.#consumed[peer] ?? 0) + count;
    return true;
  }

  #has(peer: number, count: number): boolean {
    const signals = this.#ranks[this.#parts.bootstrap.rank]?.signals ?? 0;
    return ((Atomics.load(this.#words, (signals + peer * LINE) / 4) - (this.#consumed[peer] ?? 0)) | 0) >= count;
  }

  #whenDone(command: WindowCommand, peer: number): Promise<void> {
    if (command.done) {
      command.ended?.();
      return finished;
    }
    return new Promise((resolve, reject) => {
      this.#parts.messenger.waitFor({
        isMet: () => {
          if (!command.done) this.#lanes.get(peer)?.check();
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
    // All have closed the window, and what they signalled before is there.
    for (const wait of this.#waits) {
      messenger.endWait(wait, () => {
        const awaited = wait.awaited();
        return new InvalidUsageError('CLOSED', `rank ${bootstrap.rank} waits for signals of rank${awaited.length === 1 ? '' : 's'} ${formatRanks(awaited)} in a window that all ranks have closed; close it when all signals have come`, { rank: bootstrap.rank });
      });
    }
    messenger.guests.delete(this);
    await this.leave();
    this.#segment.freeBytes(this.#ranks[bootstrap.rank]?.signals ?? 0);
  }
}

function observed(command: WindowCommand, ended: ((error?: Error) => void) | undefined): WindowCommand {
  command.ended = ended;
  return command;
}
