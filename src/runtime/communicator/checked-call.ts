import { counted } from '../../counted.js';
import { isUneven } from '../algorithms/call-traits.js';
import { derivedBits, partsHash, type CallDetails } from '../algorithms/call.js';
import { callKinds } from '../device/kernels/kernels.js';
import { SCALAR_BYTES, writeScalar } from '../device/scalar.js';
import {
  int32,
  movedTypeOf,
  operatorCode,
  operatorNames,
  PREMUL_SUM,
  type DataType,
  type MovableArray,
  type NumericArray,
  type ReductionOperator,
} from '../device/types.js';
import { InvalidArgumentError } from '../../errors.js';
import { errorOfCall, ofRank } from '../caller-stack.js';
import {
  asElements,
  checkArray,
  checkLimits,
  checkLength,
  checkMoved,
  checkOverlap,
  checkRoom,
  checkRoot,
  checkSameType,
  type CallLimits,
  type CallOptions,
} from '../algorithms/arguments.js';
import {
  checkFurther,
  checkOwnOperator,
  isOwnOperator,
  type CheckedOperator,
  type UncheckedOperator,
} from '../operators/operator.js';
import { checkOutputGiven, checkOutputPlace, misplaced } from './misplaced.js';
import { checkAllApart, checkCounts, checkDisplacements, checkBeside, checkParts, extent, total, type Parts } from './parts.js';
import { defined } from '../../defined.js';

const GATHER_V = callKinds.allToAllV | derivedBits('gatherV');
const SCATTER_V = callKinds.allToAllV | derivedBits('scatterV');

/** An operator of a reduction, built in or the program's own. */
export type AnyOperator = ReductionOperator | UncheckedOperator;

/** Empty array of a barrier. */
const nothing = new Int32Array(0);
/** Buffer for a test whether a type can represent a scalar. */
const scalarRoom = new ArrayBuffer(SCALAR_BYTES);

/**
 * A collective with checked arguments, in the form that engines take. One object serves all calls of a communicator, so that a
 * call allocates nothing; calls on the same arrays with the same lengths as the last one are not checked again.
 *
 * All methods throw ARGUMENT_TYPE, BUFFER_SIZE, BUFFER_DETACHED, BUFFER_OVERLAP, ROOT_RANGE, ARGUMENT_RANGE or UNKNOWN_NAME,
 * with this rank's number, before data are exchanged.
 */
export class CheckedCall {
  /** The public method, allReduce or allReduceSync, for errors. */
  name = '';
  /** Kind, type and operator (call.ts). */
  code = 0;
  type: DataType = int32;
  root = 0;
  send: NumericArray = nothing;
  recv: NumericArray = nothing;
  count = 0;
  details: CallDetails | undefined;
  /** The program's own operator; the rest is then that of the call, not of the calls that carry it out. */
  own: CheckedOperator | undefined;
  /** Remaining arguments of the last check. */
  #kind = 0;
  #typeName: string | undefined;
  #options: CallOptions | undefined;
  #sendLength = -1;
  #recvLength = -1;
  /** The operator, if `code` describes it completely. */
  #operator: string | undefined;

  constructor(
    readonly rank: number,
    readonly nRanks: number,
  ) {}

  barrier(options?: CallLimits): this {
    if (options !== undefined) ofRank(this.rank, () => checkLimits(this.name, options));
    return this.#set(callKinds.barrier, int32, 0, nothing, nothing, 0);
  }

  allReduce(send: NumericArray, recv = send, operator: AnyOperator = 'sum', options?: CallOptions): this {
    if (operator === this.#operator && this.#isAsBefore(callKinds.allReduce, 0, send, recv, options)) return this;
    return this.#newAllReduce(send, recv, operator, options);
  }

  #newAllReduce(send: NumericArray, recv: NumericArray, operator: AnyOperator, options: CallOptions | undefined): this {
    return ofRank(this.rank, () => {
      if (!this.#isAsBefore(callKinds.allReduce, 0, send, recv, options))
        this.#checkAlike(callKinds.allReduce, 0, send, recv, options);
      return this.#combining(callKinds.allReduce, operator);
    });
  }

  reduce(
    send: NumericArray,
    recv: NumericArray | null = send,
    operator: AnyOperator = 'sum',
    root = 0,
    options?: CallOptions,
  ): this {
    if (recv === null || !this.#isAsBefore(callKinds.reduce, root, send, recv, options))
      this.#checkReduce(send, recv, root, options);
    return this.#combining(callKinds.reduce, operator);
  }

  #checkReduce(send: NumericArray, recv: NumericArray | null, root: number, options: CallOptions | undefined): void {
    ofRank(this.rank, () => {
      if (recv !== send) checkOutputPlace(this.name, recv);
      checkRoot(this.name, root, this.nRanks);
      const isRoot = this.rank === root;
      if (isRoot && recv === null) throw missing(this.name, 'output', root);
      const output = recv ?? nothing;
      if (isRoot) this.#checkAlike(callKinds.reduce, root, send, output, options);
      else this.#set(callKinds.reduce, checkArray(this.name, send, options), root, send, output, send.length, options);
    });
  }

  scan(send: NumericArray, recv = send, operator: AnyOperator = 'sum', options?: CallOptions): this {
    return this.#scan('scan', send, recv, operator, options);
  }

  exscan(send: NumericArray, recv = send, operator: AnyOperator = 'sum', options?: CallOptions): this {
    return this.#scan('exscan', send, recv, operator, options);
  }

  #scan(
    kind: 'scan' | 'exscan',
    send: NumericArray,
    recv: NumericArray,
    operator: AnyOperator,
    options: CallOptions | undefined,
  ): this {
    if (!this.#isAsBefore(callKinds[kind], 0, send, recv, options))
      ofRank(this.rank, () => this.#checkAlike(callKinds[kind], 0, send, recv, options));
    if (operator === 'avg') throw errorOfCall(noRunningAverage(this.name), this.rank);
    return this.#combining(callKinds[kind], operator);
  }

  /** Checks a reduction whose input and output have one length. */
  #checkAlike(kind: number, root: number, send: NumericArray, recv: NumericArray, options: CallOptions | undefined): this {
    const type = this.#checkPair(send, recv, options);
    const { length } = send;
    if (recv !== send) this.#checkOutput(send, length, recv, length, 0);
    return this.#set(kind, type, root, send, recv, length, options);
  }

  broadcast(send: MovableArray | null, recv: MovableArray | null, root: number, options: CallOptions | undefined): this {
    if (send !== null && recv !== null && this.#isAsBefore(callKinds.broadcast, root, send, recv, options)) return this;
    return ofRank(this.rank, () => {
      checkRoot(this.name, root, this.nRanks);
      // Only the root's input is used; on other ranks it may be null, or any array of the right type.
      const isRoot = this.rank === root;
      if (isRoot && send === null) throw missing(this.name, 'input', root);
      if (recv === null)
        throw new InvalidArgumentError(
          'ARGUMENT_TYPE',
          `${this.name}: every rank needs an array for the output; only the input may be null, and only on ranks other than the root`,
        );
      const [input, output, type] = this.#movedPair(send ?? recv, recv, options);
      const count = isRoot ? input.length : output.length;
      if (isRoot && input !== output) this.#checkOutput(input, count, output, count, 0);
      return this.#set(callKinds.broadcast, type, root, input, output, count, options);
    });
  }

  allGather(send: MovableArray, recv: MovableArray, options: CallOptions | undefined): this {
    if (this.#isAsBefore(callKinds.allGather, 0, send, recv, options)) return this;
    return ofRank(this.rank, () => {
      const [input, output, type] = this.#movedPair(send, recv, options);
      const count = input.length;
      this.#checkOutput(input, count, output, count * this.nRanks, this.rank * count);
      return this.#set(callKinds.allGather, type, 0, input, output, count, options);
    });
  }

  reduceScatter(send: NumericArray, recv: NumericArray, operator: AnyOperator, options: CallOptions | undefined): this {
    if (!this.#isAsBefore(callKinds.reduceScatter, 0, send, recv, options)) this.#checkReduceScatter(send, recv, options);
    return this.#combining(callKinds.reduceScatter, operator);
  }

  #checkReduceScatter(send: NumericArray, recv: NumericArray, options: CallOptions | undefined): void {
    ofRank(this.rank, () => {
      const type = this.#checkPair(send, recv, options);
      const count = recv.length;
      this.#checkDivided(send, recv);
      this.#set(callKinds.reduceScatter, type, 0, send, recv, count, options);
    });
  }

  allToAll(send: MovableArray, recv: MovableArray, options: CallOptions | undefined): this {
    if (this.#isAsBefore(callKinds.allToAll, 0, send, recv, options)) return this;
    return ofRank(this.rank, () => {
      const [input, output, type] = this.#movedPair(send, recv, options);
      const { length } = input;
      if (length % this.nRanks !== 0) {
        throw new InvalidArgumentError(
          'BUFFER_SIZE',
          `${this.name}: the input's ${counted(length, 'element')} cannot be divided evenly among ${String(this.nRanks)} ranks; pass a multiple, or use allToAllV`,
        );
      }
      if (output !== input) this.#checkOutput(input, length, output, length, 0);
      return this.#set(callKinds.allToAll, type, 0, input, output, length / this.nRanks, options);
    });
  }

  gather(send: MovableArray, recv: MovableArray | null, root: number, options: CallOptions | undefined): this {
    if (recv !== null && this.#isAsBefore(callKinds.gather, root, send, recv, options)) return this;
    return ofRank(this.rank, () => {
      if (recv !== send) checkOutputPlace(this.name, recv);
      checkRoot(this.name, root, this.nRanks);
      if (this.rank !== root) {
        const input = asElements(this.name, send);
        return this.#set(callKinds.gather, checkMoved(this.name, input, options), root, input, nothing, input.length);
      }
      if (recv === null) throw missing(this.name, 'output', root);
      const [input, output, type] = this.#movedPair(send, recv, options);
      const count = input.length;
      this.#checkOutput(input, count, output, count * this.nRanks, root * count);
      return this.#set(callKinds.gather, type, root, input, output, count, options);
    });
  }

  scatter(send: MovableArray | null, recv: MovableArray, root: number, options: CallOptions | undefined): this {
    if (send !== null && this.#isAsBefore(callKinds.scatter, root, send, recv, options)) return this;
    return ofRank(this.rank, () => {
      checkRoot(this.name, root, this.nRanks);
      if (this.rank !== root) {
        const output = asElements(this.name, recv);
        return this.#set(callKinds.scatter, checkMoved(this.name, output, options), root, nothing, output, output.length);
      }
      if (send === null) throw missing(this.name, 'input', root);
      const [input, output, type] = this.#movedPair(send, recv, options);
      const count = output.length;
      this.#checkDivided(input, output);
      return this.#set(callKinds.scatter, type, root, input, output, count, options);
    });
  }

  allGatherV(
    send: MovableArray,
    recv: MovableArray,
    given: ArrayLike<number>,
    displacements: ArrayLike<number> | undefined,
    options: CallOptions | undefined,
  ): this {
    return ofRank(this.rank, () => {
      const [input, output, type] = this.#movedPair(send, recv, options);
      const counts = checkCounts(this.name, given, this.nRanks);
      checkLength(this.name, input, defined(counts[this.rank]), `this rank's count`);
      const places = checkDisplacements(this.name, output, counts, displacements, true);
      checkRoom(this.name, output, extent(counts, places), `what ${String(this.nRanks)} ranks send`);
      checkBeside(this.name, 'input', input, output, counts, places, this.rank);
      this.#set(callKinds.allGatherV, type, partsHash(counts), input, output, total(counts));
      this.details = { counts, displacements: places };
      return this;
    });
  }

  reduceScatterV(
    send: NumericArray,
    recv: NumericArray,
    given: ArrayLike<number>,
    operator: AnyOperator,
    options: CallOptions | undefined,
  ): this {
    return ofRank(this.rank, () => {
      const type = this.#checkPair(send, recv, options);
      const counts = checkCounts(this.name, given, this.nRanks);
      const count = total(counts);
      checkLength(this.name, send, count, 'the sum of the counts');
      const places = checkDisplacements(this.name, send, counts, undefined, false);
      const own = defined(counts[this.rank]);
      checkRoom(this.name, recv, own, `this rank's count`);
      checkOverlap(this.name, send, count, recv, own, -defined(places[this.rank]));
      this.#set(callKinds.reduceScatterV, type, partsHash(counts), send, recv, count);
      this.details = { counts };
      this.#combining(callKinds.reduceScatterV, operator);
      this.details = { ...this.details, counts, displacements: places };
      return this;
    });
  }

  allToAllV(send: Parts, recv: Parts, options: CallOptions | undefined): this {
    return ofRank(this.rank, () => {
      checkParts(this.name, 'first', send);
      checkParts(this.name, 'second', recv);
      const [input, output, type] = this.#movedPair(send.array, recv.array, options);
      const counts = checkCounts(this.name, send.counts, this.nRanks);
      const recvCounts = checkCounts(this.name, recv.counts, this.nRanks);
      const displacements = checkDisplacements(this.name, input, counts, send.displacements, false);
      const recvDisplacements = checkDisplacements(this.name, output, recvCounts, recv.displacements, true);
      const sendExtent = extent(counts, displacements);
      if (sendExtent > input.length) checkLength(this.name, input, sendExtent, 'the sum of the counts');
      checkRoom(this.name, output, extent(recvCounts, recvDisplacements), 'the sum of the counts');
      // Not in place, because input and output parts may differ in length.
      const details = { counts, displacements, recvCounts, recvDisplacements };
      checkAllApart(this.name, input, output, details);
      this.#set(callKinds.allToAllV, type, 0, input, output, 0);
      this.details = details;
      return this;
    });
  }

  gatherV(send: MovableArray, recv: Parts | null, root: number, options: CallOptions | undefined): this {
    return ofRank(this.rank, () => {
      checkRoot(this.name, root, this.nRanks);
      if (this.rank !== root) {
        const input = asElements(this.name, send);
        this.#set(GATHER_V, checkMoved(this.name, input, options), root, input, nothing, 0);
        this.details = { ...alone(this.nRanks, root, input.length), ...received(alone(this.nRanks, root, 0)) };
        return this;
      }
      if (recv === null) throw missing(this.name, 'output', root);
      checkParts(this.name, 'second', recv);
      const [input, output, type] = this.#movedPair(send, recv.array, options);
      const counts = checkCounts(this.name, recv.counts, this.nRanks);
      checkLength(this.name, input, defined(counts[root]), `this rank's count`);
      const displacements = checkDisplacements(this.name, output, counts, recv.displacements, true);
      checkRoom(this.name, output, extent(counts, displacements), 'the sum of the counts');
      checkBeside(this.name, 'input', input, output, counts, displacements, root);
      this.#set(GATHER_V, type, root, input, output, 0);
      this.details = { ...alone(this.nRanks, root, input.length), ...received({ counts, displacements }) };
      return this;
    });
  }

  scatterV(send: Parts | null, recv: MovableArray, root: number, options: CallOptions | undefined): this {
    return ofRank(this.rank, () => {
      checkRoot(this.name, root, this.nRanks);
      if (this.rank !== root) {
        const output = asElements(this.name, recv);
        this.#set(SCATTER_V, checkMoved(this.name, output, options), root, nothing, output, 0);
        this.details = { ...alone(this.nRanks, root, 0), ...received(alone(this.nRanks, root, output.length)) };
        return this;
      }
      if (send === null) throw missing(this.name, 'input', root);
      checkParts(this.name, 'first', send);
      const [input, output, type] = this.#movedPair(send.array, recv, options);
      const counts = checkCounts(this.name, send.counts, this.nRanks);
      const own = defined(counts[root]);
      checkRoom(this.name, output, own, `this rank's count`);
      const displacements = checkDisplacements(this.name, input, counts, send.displacements, false);
      if (extent(counts, displacements) > input.length) checkLength(this.name, input, total(counts), 'the sum of the counts');
      checkBeside(this.name, 'output', output.subarray(0, own), input, counts, displacements, root);
      this.#set(SCATTER_V, type, root, input, output, 0);
      this.details = { counts, displacements, ...received(alone(this.nRanks, root, own)) };
      return this;
    });
  }

  /** Forgets the last check, because its arrays may have become invalid. */
  forget(): void {
    this.#sendLength = -1;
  }

  /** True if these arrays passed the last check and have not changed since. */
  #isAsBefore(kind: number, root: number, send: MovableArray, recv: MovableArray, options: CallOptions | undefined): boolean {
    return (
      send === this.send &&
      recv === this.recv &&
      kind === this.#kind &&
      root === this.root &&
      send.length === this.#sendLength &&
      recv.length === this.#recvLength &&
      options?.type === this.#typeName &&
      (options === this.#options || isOnlyType(options))
    );
  }

  // eslint-disable-next-line max-params -- small calls should allocate nothing
  #set(
    kind: number,
    type: DataType,
    root: number,
    send: NumericArray,
    recv: NumericArray,
    count: number,
    options?: CallOptions,
  ): this {
    this.code = kind | (kind === callKinds.barrier ? 0 : type.code << 4);
    this.type = type;
    this.root = root;
    this.send = send;
    this.recv = recv;
    this.count = count;
    this.details = undefined;
    this.own = undefined;
    this.#operator = undefined;
    this.#kind = kind;
    this.#typeName = options?.type;
    this.#options = options;
    // Arrays without elements may lose their memory without a change of length.
    this.#sendLength = send.length === 0 ? -1 : send.length;
    this.#recvLength = recv.length === 0 ? -1 : recv.length;
    return this;
  }

  /** Sets the operator of a reduction, the one argument that may change while the rest is as before. */
  #combining(kind: number, operator: AnyOperator): this {
    return ofRank(this.rank, () => {
      if (isOwnOperator(operator)) return this.#combiningOwn(kind, operator);
      this.own = undefined;
      const code = this.#operatorCode(operator);
      const lengths = isUneven(kind) ? (this.details?.counts ?? []) : [this.count];
      if (code > PREMUL_SUM) checkFurther(this.name, operatorNames[code] ?? 'sum', this.type, lengths);
      this.code = kind | (this.type.code << 4) | (code << 8);
      this.#operator = typeof operator === 'string' ? operator : undefined;
      if (typeof operator === 'object') {
        const { premulSum } = operator;
        writeScalar(this.type, premulSum, scalarRoom, 0);
        // A bigint that is converted to a floating-point number may have any size.
        this.details = { scalar: this.type.isFloat ? Number(premulSum) : premulSum };
      } else this.details = undefined;
      return this;
    });
  }

  #combiningOwn(kind: number, operator: UncheckedOperator): this {
    if (isUneven(kind)) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `${this.name}: it takes no operator of your own; use reduceScatter with equal parts, or allReduce`,
      );
    }
    this.own = checkOwnOperator(this.name, operator, this.count);
    this.#operator = undefined;
    this.details = undefined;
    return this;
  }

  #operatorCode(operator: ReductionOperator): number {
    try {
      return operatorCode(operator, this.name);
    } catch (error) {
      throw misplaced(this.name, operator, 2) ?? error;
    }
  }

  #checkPair(send: NumericArray, recv: NumericArray, options: CallOptions | undefined): DataType {
    const type = checkArray(this.name, send, options);
    if (recv !== send) checkOutputGiven(this.name, recv);
    if (recv !== send) checkSameType(this.name, type, recv, options);
    return type;
  }

  /** The elements of input and output, and their type. */
  #movedPair(
    send: MovableArray,
    recv: MovableArray,
    options: CallOptions | undefined,
  ): readonly [input: NumericArray, output: NumericArray, type: DataType] {
    const input = asElements(this.name, send);
    const output = asElements(this.name, recv);
    const type = checkMoved(this.name, input, options);
    if (output !== input) checkOutputGiven(this.name, output);
    if (output !== input) checkSameType(this.name, type, output, options, movedTypeOf);
    return [input, output, type];
  }

  /** Checks an input that has a part as long as the output for each rank. */
  #checkDivided(send: NumericArray, recv: NumericArray): void {
    const { length } = recv;
    checkLength(this.name, send, length * this.nRanks, `an output of ${length} for each of ${counted(this.nRanks, 'rank')}`);
    checkOverlap(this.name, send, send.length, recv, length, -this.rank * length);
  }

  #checkOutput(send: NumericArray, sendElements: number, recv: NumericArray, recvElements: number, inPlaceAt: number): void {
    const what = recvElements === sendElements ? 'the input' : `what ${String(this.nRanks)} ranks send`;
    checkRoom(this.name, recv, recvElements, what);
    checkOverlap(this.name, send, sendElements, recv, recvElements, inPlaceAt);
  }
}

/**
 * True if `type` is the only option. Most programs pass a new object in each call, which may have a misspelt name; an object
 * that was checked before is not checked again.
 */
function isOnlyType(options: CallOptions | null | undefined): boolean {
  // Unlike Object.keys(), this allocates no array.
  for (const name in options) if (name !== 'type') return false;
  return options === undefined || (typeof options === 'object' && options !== null);
}

/** Parts of which only one rank's has elements. */
function alone(nRanks: number, rank: number, count: number): { counts: readonly number[]; displacements: readonly number[] } {
  const zeros = Array<number>(nRanks).fill(0);
  return { counts: zeros.map((zero, r) => (r === rank ? count : zero)), displacements: zeros };
}

/** Parts as those of an allToAllV's output. */
function received({ counts, displacements }: ReturnType<typeof alone>): Partial<CallDetails> {
  return { recvCounts: counts, recvDisplacements: displacements };
}

function noRunningAverage(call: string): InvalidArgumentError {
  return new InvalidArgumentError(
    'UNKNOWN_NAME',
    `${call}: avg divides by the number of all ranks; take 'sum' and divide by the number of ranks before this one`,
  );
}

function missing(call: string, what: string, root: number): InvalidArgumentError {
  return new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: rank ${String(root)} is the root, so it needs an array for the ${what}; only other ranks pass null`,
  );
}
