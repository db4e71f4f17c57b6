import { SystemError, TcclError } from '../../errors.js';
import { callMismatch } from '../algorithms/mismatch.js';
import { operatorOf, readCall } from '../algorithms/call.js';
import { HEADER_BYTES, HEADER_WORDS } from '../algorithms/connections/exchange.js';
import { WaitChains } from '../algorithms/wait-chains.js';
import type { Segment } from '../device/segment.js';
import { operatorCode, PREMUL_SUM } from '../device/types.js';
import { clearInterval, setInterval } from '../platform/platform.js';
import { REPORTS_PER_LIMIT } from '../progress/wait-limits.js';
import type { SocketConnection } from '../transport/socket-connection.js';
import type { Join } from './join.js';
import { defined } from '../../defined.js';

const SUM = operatorCode('sum');
const AVERAGE = operatorCode('avg');

/**
 * The sums of one share of a communicator's data. Takes one message of each host's head, adds them in the order of the hosts,
 * and sends the result to all. It knows a call from the header of its messages only, and holds no more than the slots of its
 * connections: heads wait for credits.
 */
export class ShareSum {
  readonly #segment: Segment;
  readonly #words: Uint32Array;
  readonly #bytes: Uint8Array;
  readonly #nRanks: number;
  readonly #members: (SocketConnection | undefined)[];
  /** Addresses of the sources, then of the destinations, for kernels. */
  readonly #tables: number;
  readonly #waitChains: WaitChains;
  readonly #limitMs: number;
  readonly #ended: () => void;
  #reporting: ReturnType<typeof setInterval> | undefined;
  #isOver = false;

  /** @param ended called once, when all members have left or the first has failed */
  constructor(segment: Segment, { members, nRanks, limitMs }: Join, ended: () => void) {
    this.#segment = segment;
    this.#words = new Uint32Array(segment.buffer);
    this.#bytes = new Uint8Array(segment.buffer);
    this.#nRanks = nRanks;
    this.#members = Array.from({ length: members }, () => undefined);
    this.#tables = segment.allocateBytes(2 * members * 4);
    this.#waitChains = new WaitChains(nRanks);
    this.#limitMs = limitMs;
    this.#ended = ended;
  }

  /** @throws SystemError `NETWORK` where the member is not one of these, or has joined already */
  join(connection: SocketConnection, { member, members, nRanks }: Join): void {
    if (members !== this.#members.length || nRanks !== this.#nRanks || this.#members[member] !== undefined)
      throw new SystemError('NETWORK', `rank ${connection.peer} joins a sum in which host ${member} has a head already`);
    this.#members[member] = connection;
    connection.onNews(() => this.look());
    this.look();
  }

  /** Adds all messages that have arrived from every host. */
  look(): void {
    if (this.#isOver) return;
    try {
      while (this.#addOne());
    } catch (error) {
      this.abort(error as Error);
      return;
    }
    this.#reportWaits();
  }

  abort(reason: Error): void {
    if (this.#isOver) return;
    for (const member of this.#members) member?.abort(reason);
    this.#end();
  }

  #addOne(): boolean {
    const members = this.#members;
    const sources = this.#tables / 4;
    const destinations = sources + members.length;
    let left: Error | undefined;
    let nLeft = 0;
    let nArrived = 0;
    for (const [index, member] of members.entries()) {
      let slot = -1;
      try {
        slot = member?.peek() ?? -1;
      } catch (error) {
        if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
        left = error;
        nLeft++;
      }
      if (slot >= 0) nArrived++;
      this.#words[sources + index] = slot;
    }
    if (left !== undefined && nArrived > 0) throw left;
    if (nLeft > 0 && nLeft === members.filter((member) => member !== undefined).length) this.#close();
    if (nArrived < members.length) return false;
    for (const [index, member] of members.entries()) {
      const slot = member?.acquire() ?? -1;
      if (slot < 0) return false;
      this.#words[destinations + index] = slot;
    }
    const bytes = this.#add(sources, destinations);
    for (const member of members) {
      member?.release();
      member?.post(bytes);
      member?.flush();
    }
    return true;
  }

  /** Adds the messages at the sources into the destinations. Returns their length. */
  #add(sources: number, destinations: number): number {
    const words = this.#words;
    const members = this.#members;
    const first = defined(words[sources]);
    const header = Array.from({ length: HEADER_WORDS }, (_, word) => defined(words[first / 4 + word]));
    const [code = 0, root = 0, low = 0, high = 0, number = 0] = header;
    const call = readCall(code, root, low + high * 2 ** 32);
    const messageBytes = defined(members[0]).messageBytes;
    for (const [index, each] of members.entries()) {
      const member = defined(each);
      const at = defined(words[sources + index]) / 4;
      const [theirCode = 0, theirRoot = 0, theirLow = 0, theirHigh = 0, theirNumber = 0] = words.subarray(at, at + HEADER_WORDS);
      const theirs = readCall(theirCode, theirRoot, theirLow + theirHigh * 2 ** 32);
      if (call === undefined || theirs === undefined || messageBytes < HEADER_BYTES)
        throw new SystemError('NETWORK', `a message from rank ${member.peer} to the aggregator was damaged on the way`);
      const isAlike = header.every((word, place) => word === words[at + place]) && member.messageBytes === messageBytes;
      if (!isAlike)
        throw callMismatch(
          { rank: defined(members[0]).peer, call, counts: undefined, number },
          { rank: member.peer, call: theirs, counts: undefined, number: theirNumber },
        );
    }
    if (call === undefined) return 0;
    for (let index = 0; index < members.length; index++) {
      this.#bytes.copyWithin(defined(words[destinations + index]), first, first + HEADER_BYTES);
      words[sources + index] = defined(words[sources + index]) + HEADER_BYTES;
      words[destinations + index] = defined(words[destinations + index]) + HEADER_BYTES;
    }
    const bytes = messageBytes - HEADER_BYTES;
    if (bytes > 0) this.#combine(call.type.code, operatorOf(code), destinations, bytes);
    return messageBytes;
  }

  #combine(type: number, operator: number, destinations: number, bytes: number): void {
    const { kernels } = this.#segment;
    const nMembers = this.#members.length;
    const isSum = operator === AVERAGE || operator === PREMUL_SUM;
    const tables = this.#tables;
    kernels.reduceCopy(type, isSum ? SUM : operator, tables, nMembers, tables + nMembers * 4, nMembers, 0, bytes);
    if (operator !== AVERAGE) return;
    const first = defined(this.#words[destinations]);
    kernels.divide(type, first, bytes, this.#nRanks);
    for (let index = 1; index < nMembers; index++) kernels.copy(defined(this.#words[destinations + index]), first, bytes);
  }

  /** While some heads wait here for others, sends them for whom, so that errors of a timeout name those. */
  #reportWaits(): void {
    const isWaiting = !this.#isOver && this.#members.some((member) => this.#hasMessage(member));
    if (isWaiting && this.#limitMs > 0) this.#reporting ??= setInterval(() => this.#report(), this.#limitMs / REPORTS_PER_LIMIT);
    else this.#stopReporting();
  }

  #report(): void {
    const awaited = this.#members.flatMap((member) => (member === undefined || this.#hasMessage(member) ? [] : [member]));
    const report = this.#waitChains.look(awaited, this.#limitMs);
    for (const member of this.#members) member?.reportWait(report);
  }

  #hasMessage(member: SocketConnection | undefined): boolean {
    try {
      return (member?.peek() ?? -1) >= 0;
    } catch {
      return false;
    }
  }

  #stopReporting(): void {
    clearInterval(this.#reporting);
    this.#reporting = undefined;
  }

  #close(): void {
    for (const member of this.#members) void member?.close();
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#stopReporting();
    this.#segment.freeBytes(this.#tables);
    this.#ended();
  }
}
