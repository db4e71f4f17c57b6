import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import { describeElements, int32, typeOfCode, type DataType, type NumericArray } from '../device/types.js';
import { InvalidUsageError, TimeoutError } from '../../errors.js';
import { oddRanks } from '../bootstrap/rank-list.js';
import type { Activity } from '../algorithms/activity.js';
import { Operand } from '../algorithms/operand.js';
import { limitSource, type WaitLimits } from '../progress/wait-limits.js';

/** Called at the end of a transfer; without an argument if it succeeded. */
export interface TransferOwner {
  settled(error?: Error): void;
  /** The call that the transfer is a part of, unless the program called send or recv. */
  readonly call?: string | undefined;
  /** The program's message that the transfer is a part of, for reports of waits. */
  readonly shows?: ShownMessage | undefined;
}

export interface ShownMessage {
  readonly sends: boolean;
  readonly count: number;
  readonly type: DataType;
  readonly tag: number;
}

/** Tag of a receive that takes messages of any tag. */
export const ANY_TAG = -1;

/** True if a receive takes a message. */
export function accepts(wanted: number, tag: number): boolean {
  return wanted === ANY_TAG || wanted === tag;
}

/** Type and length of a message, and its tag. */
export interface MessageHead {
  /** Code of the type. */
  readonly type: number;
  readonly count: number;
  readonly tag: number;
}

/** The word of a message's header that has its type and tag. */
export function typeWord({ type, tag }: Transfer): number {
  return type.code | (tag << 8);
}

/** The head of a message, by its header's words. */
export function headOf(word: number, low: number, high: number): MessageHead {
  return { type: word & 255, tag: word >>> 8, count: (low >>> 0) + (high >>> 0) * 2 ** 32 };
}

const nothing = new Uint8Array(0);

/** One send or receive in flight. Objects are reused for later transfers. */
export class Transfer {
  sends = false;
  peer = 0;
  type: DataType = int32;
  /** Tag of the message; before it has arrived, that of the receive, which may be ANY_TAG. */
  tag = 0;
  /** Number of elements of the message. */
  count = 0;
  bytes = 0;
  /** Bytes that this side has handed over or received. */
  moved = 0;
  /** The post after which the peer no longer needs the array of a send; see Outbox. */
  lastPost = 0;
  /** Address at which the receiver reads the array of a send in the sender's memory; 0 if it does not. */
  place = 0;
  /** True if a receive has compared its arguments with the sender's. */
  met = false;
  /** True for a receive that also takes a shorter message, whose `count` and `bytes` it then has. */
  atMost = false;
  done = false;
  /** Its entry in the ring of calls. */
  entry = -1;
  /** True for a message that no receive accepted: this rank keeps it for a later one. */
  isKept = false;
  /** The receive from any rank of which this is the place at its peer. */
  any: AnyReceive | undefined;
  owner: TransferOwner | undefined;
  /** Called at the end of an observed transfer. */
  ended: ((error?: Error) => void) | undefined;
  array: NumericArray = nothing;
  /** The next transfer in its queue. */
  next: Transfer | undefined;
  /** `moved` at the last check of the deadline, and the time since which it has not changed. */
  movedBefore = -1;
  sinceMs = 0;
  /** True after a warning about it. */
  warned = false;
  readonly operand: Operand;

  constructor(segment: Segment, libc: Libc | undefined) {
    this.operand = new Operand(segment, libc);
  }

  set(
    sends: boolean,
    peer: number,
    array: NumericArray,
    type: DataType,
    owner: TransferOwner | undefined,
    tag = sends ? 0 : ANY_TAG,
  ): void {
    this.sends = sends;
    this.peer = peer;
    this.type = type;
    this.tag = tag;
    this.count = array.length;
    this.bytes = array.length * type.bytes;
    this.moved = this.place = 0;
    this.met = this.atMost = this.done = this.warned = this.isKept = false;
    this.any = undefined;
    this.entry = -1;
    this.owner = owner;
    this.next = undefined;
    this.movedBefore = -1;
    this.sinceMs = 0;
    this.array = array;
    this.operand.use(array);
  }

  /** Compares a receive with the received message. Returns false if they do not match. */
  meets(typeCode: number, count: number): boolean {
    if (typeCode !== this.type.code || (this.atMost ? count > this.count : count !== this.count)) return false;
    this.met = true;
    if (this.atMost) this.setCount(count);
    return true;
  }

  /** Sets the length of the received message, for a receive with `atMost`. */
  setCount(count: number): void {
    this.count = count;
    this.bytes = count * this.type.bytes;
  }

  /** Drops the references to the array and the owner. */
  clear(): void {
    this.operand.forget();
    this.array = nothing;
    this.owner = undefined;
    this.ended = undefined;
    this.next = undefined;
  }
}

/** A receive from any rank: its places in the lists of all peers, until a message claims one. */
export class AnyReceive {
  /** By rank. */
  readonly places = new Map<number, Transfer>();
  /** The receive of the message, once it has begun to arrive; it keeps source, tag and count until its owner was called. */
  claimed: Transfer | undefined;
  /** Its entry in the ring of calls. */
  entry = -1;
  /** Called at its end, if it is observed and nothing has claimed it. */
  ended: ((error?: Error) => void) | undefined;

  constructor(readonly owner: TransferOwner) {}
}

/** Makes the error for a message whose type or length is not the expected one, from the sender's type code and count. */
export type Mismatch = (expected: Transfer, typeCode: number, count: number) => Error;

/**
 * Error for a message that does not match its receive: the same on both ranks.
 *
 * @param typeCode of the sender's type
 */
export function transferMismatch(
  sender: number,
  typeCode: number,
  count: number,
  receiver: number,
  expected: Pick<Transfer, 'type' | 'count' | 'atMost'>,
): InvalidUsageError {
  const type = typeOfCode(typeCode);
  const sent = type === undefined ? `${count} type ${typeCode}` : describeElements(count, type);
  return new InvalidUsageError(
    'CALL_MISMATCH',
    `rank ${sender} sent ${sent} to rank ${receiver}, which receives ${expected.atMost ? 'at most ' : ''}${describeElements(expected.count, expected.type)} there; ` +
      'the n-th send to a rank and its n-th receive from there must agree in type and length',
    { rank: sender, ranks: oddRanks([[sender], [receiver]]) },
  );
}

/** One or more messages that have waited for long. */
export interface LongWait {
  /** Description of the first one. */
  readonly text: string;
  readonly activity: Activity;
  readonly ranks: readonly number[];
  /** True while this rank still waits. */
  readonly holds: () => boolean;
}

/** End of a sentence about the ranks that a rank waits for. */
export const DEADLOCK = ': the ranks wait for each other in a circle';

/**
 * Error for a timeout of messages with other ranks.
 *
 * @param what description of the wait
 * @param whom `late`, with what is known of these ranks
 */
export function transferTimeout(
  rank: number,
  limits: WaitLimits,
  what: string,
  late: readonly number[],
  whom: string,
): TimeoutError {
  return new TimeoutError(
    'TIMEOUT',
    `rank ${rank} waited ${limits.timeoutMs / 1000} s in ${what}, for ${whom} (${limitSource(limits)})`,
    { ranks: late },
  );
}
