import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import { dataTypes, int32, type DataType, type NumericArray } from '../device/types.js';
import { InvalidUsageError, TimeoutError } from '../../errors.js';
import type { Deed } from '../algorithms/deed.js';
import { Operand } from '../algorithms/operand.js';

/** Hears how a transfer ended: without an argument, well. */
export interface TransferOwner {
  settled(error?: Error): void;
}

/** One send or receive under way. Objects serve many transfers, one after the other. */
export class Transfer {
  sends = false;
  peer = 0;
  type: DataType = int32;
  /** Elements of the message. */
  count = 0;
  bytes = 0;
  /** Bytes that this side has dealt with: handed over, or received. */
  moved = 0;
  /** Whether this side has nothing more to do but, maybe, to wait for the other. */
  handedOver = false;
  /** The post after which the peer no longer needs the array of a send; see Outbox. */
  lastPost = 0;
  /** Where the array of a send is read by the receiver in the sender's memory; 0: it is not. */
  place = 0;
  /** Whether a receive has compared its call with the sender's. */
  met = false;
  done = false;
  owner: TransferOwner | undefined;
  /** Where the transfer is observed, told of its end. */
  ended: ((error?: Error) => void) | undefined;
  /** The one behind it in its queue. */
  next: Transfer | undefined;
  /** What `moved` was when the deadline was last looked at, and since when. */
  movedBefore = -1;
  sinceMs = 0;
  /** Whether a warning was about it. */
  warned = false;
  readonly operand: Operand;

  constructor(segment: Segment, libc: Libc | undefined) {
    this.operand = new Operand(segment, libc);
  }

  /** @param count of the message, where `array` is a piece of it */
  set(
    sends: boolean,
    peer: number,
    array: NumericArray,
    type: DataType,
    owner: TransferOwner | undefined,
    count = array.length,
  ): void {
    this.sends = sends;
    this.peer = peer;
    this.type = type;
    this.count = count;
    this.bytes = array.length * type.bytes;
    this.moved = this.place = 0;
    this.handedOver = this.met = this.done = this.warned = false;
    this.owner = owner;
    this.next = undefined;
    this.movedBefore = -1;
    this.sinceMs = 0;
    this.operand.use(array);
  }

  /** Forgets the array and who waits. */
  clear(): void {
    this.operand.forget();
    this.owner = undefined;
    this.ended = undefined;
    this.next = undefined;
  }
}

/** Makes the error for a message of another type or length than expected, whose type's code and elements it is given. */
export type Mismatch = (expected: Transfer, typeCode: number, count: number) => Error;

/**
 * The error for a message that its receiver did not expect: the same at both ranks.
 *
 * @param typeCode of the sender's type
 */
export function transferMismatch(
  sender: number,
  typeCode: number,
  count: number,
  receiver: number,
  expected: Transfer,
): InvalidUsageError {
  const sent = dataTypes.find((type) => type.code === typeCode)?.name ?? `type ${typeCode}`;
  return new InvalidUsageError(
    'CALL_MISMATCH',
    `rank ${sender} sent ${count} ${sent} to rank ${receiver}, which receives ${expected.count} ${expected.type.name} at that place; ` +
      'the n-th send to a rank and its n-th receive from there must agree in type and length',
    { rank: sender, ranks: [sender, receiver] },
  );
}

/** A message, or more, that is waited for for long. */
export interface LongWait {
  /** The first of them, as a person reads it. */
  readonly text: string;
  readonly deed: Deed;
  readonly ranks: readonly number[];
  /** Whether this rank still waits so. */
  readonly holds: () => boolean;
}

/** Ends a sentence about whom a rank waits for. */
export const CIRCLE = ': the ranks wait for each other in a circle';

/**
 * The error for waiting too long for messages with some ranks.
 *
 * @param what was waited for
 * @param whom `late` with what is known of them
 */
export function transferTimeout(
  rank: number,
  timeoutMs: number,
  what: string,
  late: readonly number[],
  whom: string,
): TimeoutError {
  return new TimeoutError(
    'TIMEOUT',
    `rank ${rank} waited ${timeoutMs / 1000} s in ${what}, for ${whom} (TCCL_TIMEOUT sets the seconds, 0 waits for ever)`,
    { ranks: late },
  );
}
