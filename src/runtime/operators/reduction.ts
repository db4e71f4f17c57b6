import { derivedBits, type CallKind, type DerivedCall } from '../algorithms/call.js';
import type { CallChain, QueuedCall } from '../algorithms/queued-call.js';
import { callKinds } from '../device/kernels/call-kinds.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InvalidArgumentError, namingCall } from '../../errors.js';
import { foldOf, type Fold } from './fold.js';
import type { CheckedOperator } from './operator.js';

/*
 * A reduction by an operator of the program's own, piece by piece, in collectives with no other call between them:
 *
 *     short   all ranks get all inputs, and each combines them for itself
 *     long    all-to-all: each rank gets its share of all inputs, and combines it in the order of ranks;
 *             then an all-gather (allReduce), a gather (reduce) or an all-to-all (scans) of the results
 *
 * So each rank calls the operator nRanks - 1 times for each element of its share, and scratch memory has a bound.
 */

/** Pieces up to this length, in bytes of one rank's input, are short. */
const SHORT_BYTES = 4 * 1024;
/** Scratch memory for the inputs of all ranks, in bytes, unless a unit of each is longer. */
const SCRATCH_BYTES = 1024 * 1024;

export type ReductionName = 'allReduce' | 'reduce' | 'reduceScatter' | 'scan' | 'exscan';

/** A reduction whose arguments were checked; `count` as in a call. */
interface OwnReduction {
  /** The public method, for errors. */
  readonly call: string;
  readonly name: ReductionName;
  readonly type: DataType;
  readonly root: number;
  readonly send: NumericArray;
  readonly recv: NumericArray;
  readonly count: number;
  readonly operator: CheckedOperator;
}

/** The collectives that carry out a reduction. */
export class ReductionChain implements CallChain {
  /** The first of them. */
  readonly first: QueuedCall;
  readonly #steps: Iterator<QueuedCall, void>;
  readonly #reduction: OwnReduction;
  readonly #sendLength: number;
  readonly #recvLength: number;

  constructor(
    rank: number,
    nRanks: number,
    reduction: OwnReduction,
    readonly scratch: Scratch,
  ) {
    this.#reduction = reduction;
    this.#sendLength = reduction.send.length;
    this.#recvLength = reduction.recv.length;
    this.#steps = new Steps(rank, nRanks, reduction, scratch).all();
    const { value } = this.#steps.next();
    if (value === undefined) throw new RangeError(`${reduction.name} exchanges nothing`);
    this.first = { ...value, chain: this };
  }

  next(): QueuedCall | undefined {
    const { call, send, recv } = this.#reduction;
    if (send.length !== this.#sendLength || recv.length !== this.#recvLength) throw gone(call);
    const { value, done } = this.#steps.next();
    return done === true ? undefined : value;
  }

  arrays(): readonly NumericArray[] {
    return [this.#reduction.send, this.#reduction.recv];
  }
}

/** Memory for the inputs of all ranks and for results, which the calls of a communicator use one after the other. */
export class Scratch {
  readonly #rooms: ArrayBuffer[] = [];

  /** @param index 0 for inputs, 1 for results */
  array(index: 0 | 1, type: DataType, length: number): NumericArray {
    const bytes = length * type.bytes;
    let room = this.#rooms[index];
    if (room === undefined || room.byteLength < bytes) this.#rooms[index] = room = new ArrayBuffer(bytes);
    return new type.array(room, 0, length);
  }
}

class Steps {
  readonly #fold: Fold;

  constructor(
    readonly rank: number,
    readonly nRanks: number,
    readonly reduction: OwnReduction,
    readonly scratch: Scratch,
  ) {
    const { operator, type, call } = reduction;
    this.#fold = foldOf(operator, type, { call, rank });
  }

  *all(): Generator<QueuedCall, void> {
    const { nRanks } = this;
    const {
      name,
      count,
      type,
      operator: { unit },
    } = this.reduction;
    const whole = (elements: number): number => Math.floor(elements / unit) * unit;
    const most = Math.max(unit, whole(SCRATCH_BYTES / (nRanks * type.bytes)));
    if (name === 'reduceScatter') {
      for (let at = 0; at === 0 || at < count; at += most) yield* this.#scatterPiece(at, Math.min(most, count - at));
      return;
    }
    for (let at = 0; at === 0 || at < count;) {
      const left = count - at;
      const share = Math.min(most, whole(left / nRanks));
      const isShort = share === 0 || left * type.bytes <= SHORT_BYTES;
      const length = isShort ? left : share * nRanks;
      yield* isShort ? this.#shortPiece(at, length) : this.#longPiece(at, share);
      at += Math.max(length, 1);
    }
  }

  *#shortPiece(at: number, length: number): Generator<QueuedCall, void> {
    const { rank } = this;
    const { name, send, recv, root } = this.reduction;
    const isReceiver = name !== 'reduce' || rank === root;
    const inputs = this.#inputs(isReceiver ? length : 0);
    const own = send.subarray(at, at + length);
    if (name === 'reduce') yield this.#call('gather', root, own, inputs, length);
    else yield this.#call('allGather', this.#total, own, inputs, length);
    if (!isReceiver || (name === 'exscan' && rank === 0)) return;
    const last = name === 'scan' ? rank : name === 'exscan' ? rank - 1 : this.nRanks - 1;
    this.#combine(inputs, length, last, recv.subarray(at, at + length));
  }

  *#longPiece(at: number, share: number): Generator<QueuedCall, void> {
    const { rank, nRanks } = this;
    const { name, send, recv, root } = this.reduction;
    const length = share * nRanks;
    const inputs = this.#inputs(share);
    const piece = recv.subarray(at, at + length);
    yield this.#call('allToAll', this.#total, send.subarray(at, at + length), inputs, share);
    if (name === 'allReduce') {
      const own = piece.subarray(rank * share, (rank + 1) * share);
      this.#combine(inputs, share, nRanks - 1, own);
      yield this.#call('allGather', this.#total, own, piece, share);
    } else if (name === 'reduce') {
      const own = this.#results(share);
      this.#combine(inputs, share, nRanks - 1, own);
      yield this.#call('gather', root, own, piece, share);
    } else {
      const results = this.#results(length);
      this.#scan(inputs, share, results, name === 'exscan' ? 1 : 0);
      // Rank 0 has nothing before it, and keeps its elements.
      yield this.#call('allToAll', this.#total, results, name === 'exscan' && rank === 0 ? inputs : piece, share);
    }
  }

  /** The elements from `at` on of each rank's part. */
  *#scatterPiece(at: number, length: number): Generator<QueuedCall, void> {
    const { nRanks } = this;
    const { send, recv, count } = this.reduction;
    let given = send;
    if (length < count) {
      given = this.#results(length * nRanks);
      for (let r = 0; r < nRanks; r++) given.set(send.subarray(r * count + at, r * count + at + length) as never, r * length);
    }
    const inputs = this.#inputs(length);
    yield this.#call('allToAll', this.#total, given, inputs, length);
    this.#combine(inputs, length, nRanks - 1, recv.subarray(at, at + length));
  }

  /** Combines the inputs of ranks 0 to `last` into `into`. */
  #combine(inputs: NumericArray, length: number, last: number, into: NumericArray): void {
    into.set(inputs.subarray(0, length) as never);
    for (let r = 1; r <= last; r++) this.#fold(into, inputs.subarray(r * length, (r + 1) * length));
  }

  /** Combines the inputs of ranks 0 to r into part r + `after` of `results`, for each rank that has such a part. */
  #scan(inputs: NumericArray, length: number, results: NumericArray, after: 0 | 1): void {
    const { nRanks } = this;
    if (after === nRanks) return;
    results.set(inputs.subarray(0, length) as never, after * length);
    for (let r = 1; r < nRanks - after; r++) {
      const part = (r + after) * length;
      results.copyWithin(part, part - length, part);
      this.#fold(results.subarray(part, part + length), inputs.subarray(r * length, (r + 1) * length));
    }
  }

  #inputs(length: number): NumericArray {
    return this.scratch.array(0, this.reduction.type, length * this.nRanks);
  }

  #results(length: number): NumericArray {
    return this.scratch.array(1, this.reduction.type, length);
  }

  /** In calls without a root: the count of the program's call, so that ranks notice where it differs. */
  get #total(): number {
    return this.reduction.count >>> 0;
  }

  #call(kind: CallKind, root: number, send: NumericArray, recv: NumericArray, count: number): QueuedCall {
    const { type, name } = this.reduction;
    const derived: DerivedCall = name;
    const code = callKinds[kind] | (type.code << 4) | derivedBits(derived);
    return { code, type, root, send, recv, count, details: undefined };
  }
}

function gone(call: string): InvalidArgumentError {
  return namingCall(
    new InvalidArgumentError(
      'BUFFER_DETACHED',
      `${call}: an array's memory was transferred or resized away before the call had ended; keep it until then`,
    ),
  );
}
