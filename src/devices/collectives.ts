import { checkCallOptions, checkRoot, timedOptionNames, type TimedCallOptions } from '../runtime/algorithms/arguments.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { SCALAR_BYTES, writeScalar } from '../runtime/device/scalar.js';
import {
  dataTypeOf,
  movedTypeOf,
  operatorCode,
  operatorNames,
  type DataType,
  type NumericArray,
  type OperatorName,
  type ReductionOperator,
  type TypedArray,
} from '../runtime/device/types.js';
import { describeValue } from '../describe-value.js';
import { checkFurther, checkOwnOperator, isOwnOperator, type OwnOperator } from '../runtime/operators/operator.js';
import { InvalidArgumentError, InvalidUsageError } from '../errors.js';
import type { DeviceArray } from './device-array.js';
import type { Part } from './memory.js';
import type { Step } from './pipeline.js';

/** Options of a collective on arrays of devices. */
export interface DeviceCallOptions extends TimedCallOptions, QueuedOption {}

/** Option of calls that may resolve when they are queued. */
export interface QueuedOption {
  /**
   * Resolves when the call is queued, in front of all that the program queues on its stream afterwards. A call that goes through
   * memory of the host resolves when it is done, as without.
   */
  readonly queued?: boolean | undefined;
}

const optionNames: readonly (keyof DeviceCallOptions)[] = [...timedOptionNames, 'queued'];

/** Arguments of a collective, as its row of the table reads them. */
export interface Arguments<Buffer> {
  readonly send: DeviceArray<TypedArray, Buffer> | null;
  readonly recv: DeviceArray<TypedArray, Buffer> | null;
  readonly operator: ReductionOperator | OwnOperator;
  readonly root: number;
  readonly options: TimedCallOptions | undefined;
}

type HostCall = (
  comm: Communicator,
  send: NumericArray,
  recv: NumericArray,
  rest: Arguments<unknown> & { readonly isRoot: boolean },
) => Promise<void>;

/** A collective: which ranks have an input and an output, and whether these have one part or a part for each rank. */
interface Row {
  readonly send: 'one' | 'all';
  readonly recv: 'one' | 'all';
  readonly sends: 'each' | 'root';
  readonly receives: 'each' | 'root';
  readonly combines: boolean;
  readonly call: HostCall;
}

const row = (send: 'one' | 'all', recv: 'one' | 'all', call: HostCall, others: Partial<Row> = {}): Row => ({
  send,
  recv,
  call,
  sends: 'each',
  receives: 'each',
  combines: false,
  ...others,
});

/** The collectives on arrays of devices. */
const rows = {
  allReduce: row('one', 'one', (comm, send, recv, { operator, options }) => comm.allReduce(send, recv, operator, options), {
    combines: true,
  }),
  reduce: row(
    'one',
    'one',
    (comm, send, recv, { operator, root, isRoot, options }) => comm.reduce(send, isRoot ? recv : null, operator, root, options),
    { receives: 'root', combines: true },
  ),
  broadcast: row('one', 'one', (comm, send, recv, { root, options }) => comm.broadcast(send, recv, root, options), {
    sends: 'root',
  }),
  allGather: row('one', 'all', (comm, send, recv, { options }) => comm.allGather(send, recv, options)),
  reduceScatter: row(
    'all',
    'one',
    (comm, send, recv, { operator, options }) => comm.reduceScatter(send, recv, operator, options),
    { combines: true },
  ),
  allToAll: row('all', 'all', (comm, send, recv, { options }) => comm.allToAll(send, recv, options)),
  gather: row(
    'one',
    'all',
    (comm, send, recv, { root, isRoot, options }) => comm.gather(send, isRoot ? recv : null, root, options),
    { receives: 'root' },
  ),
  scatter: row(
    'all',
    'one',
    (comm, send, recv, { root, isRoot, options }) => comm.scatter(isRoot ? send : null, recv, root, options),
    { sends: 'root' },
  ),
} satisfies Readonly<Record<string, Row>>;

export type CollectiveName = keyof typeof rows;
export const collectiveNames = Object.keys(rows) as readonly CollectiveName[];

/** Bytes of a step on the host. Smaller ones were slower (docs/notes/webgpu.md). */
const STEP_BYTES = 1 << 22;

/** A collective with checked arguments. */
export class Collective<Buffer> {
  readonly name: CollectiveName;
  readonly #comm: Communicator;
  readonly #arguments: Arguments<Buffer>;
  readonly #row: Row;
  /** Of the elements. */
  readonly type: DataType;
  /** Elements of one part. */
  readonly count: number;
  /** True if the program waits until the call is queued, not done. */
  readonly isQueued: boolean;

  /**
   * @param alignment of the device
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `UNKNOWN_NAME`, `ROOT_RANGE`, `BUFFER_SIZE`; InvalidUsageError `BUFFER_OVERLAP`
   */
  constructor(
    comm: Communicator,
    name: CollectiveName,
    given: Arguments<Buffer> & { readonly options: DeviceCallOptions | undefined },
    alignment: number,
  ) {
    const { nRanks, rank } = comm;
    const { send, recv, operator, root } = given;
    const { queued, ...options } = given.options ?? {};
    const of = (this.#row = rows[name]);
    this.name = name;
    this.#comm = comm;
    this.#arguments = { ...given, options };
    this.isQueued = queued === true;
    checkRoot(name, root, nRanks);
    if (of.combines && !isOwnOperator(operator)) operatorCode(operator, name);
    const isRoot = rank === root;
    const sends = of.sends === 'each' || isRoot;
    const receives = of.receives === 'each' || isRoot;
    if (sends && send === null) throw missing(name, 'input');
    if (receives && recv === null) throw missing(name, 'output');
    const input = sends ? send : null;
    const output = receives ? recv : null;
    const one = input ?? output;
    if (one === null) throw missing(name, 'input');
    if (given.options !== undefined) checkCallOptions(name, given.options, optionNames);
    checkQueued(name, queued);
    const typeOf = of.combines ? dataTypeOf : movedTypeOf;
    this.type = typeOf(noElements(one), options.type, name);
    if (input !== null && output !== null && (input.type as unknown) !== output.type) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `${name}: input is a ${input.type.name}, output a ${output.type.name}; both must have one type`,
      );
    }
    const parts = (kind: 'one' | 'all'): number => (kind === 'all' ? nRanks : 1);
    const count = (this.count = one.length / parts(one === input ? of.send : of.recv));
    if (!Number.isInteger(count)) {
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `${name}: ${one.length} elements are not a multiple of ${nRanks}, the number of ranks; pass an array (or slice) of that length`,
      );
    }
    if (of.combines) checkOperator(name, operator, this.type, count);
    const size = one.type.BYTES_PER_ELEMENT;
    if (parts(of.send) * parts(of.recv) > 1 && (count * size) % alignment !== 0) {
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `${name}: a part of ${count} elements has ${count * size} bytes; the device copies multiples of ${alignment} bytes, so pass ` +
          `a multiple of ${alignment / size} elements for each rank`,
      );
    }
    if (output !== null && output.length < count * parts(of.recv)) {
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `${name}: the output has ${output.length} elements, but needs ${count * parts(of.recv)}; pass a longer one`,
      );
    }
    if (input !== null && output !== null) {
      // In place, the smaller one is this rank's part of the larger.
      const [fromSend, fromRecv] = of.send === of.recv ? [0, 0] : of.send === 'all' ? [rank * count, 0] : [0, rank * count];
      const distance = input.byteOffset + fromSend * size - (output.byteOffset + fromRecv * size);
      const overlaps =
        input.byteOffset < output.byteOffset + count * parts(of.recv) * size &&
        output.byteOffset < input.byteOffset + count * parts(of.send) * size;
      if (input.place.buffer === output.place.buffer && overlaps && distance !== 0 && count > 0) {
        throw new InvalidUsageError(
          'BUFFER_OVERLAP',
          `${name}: input and output overlap without being in place; pass the same array, this rank's part of it, or arrays apart`,
        );
      }
    }
  }

  get arrays(): readonly DeviceArray<TypedArray, Buffer>[] {
    const { send, recv } = this.#arguments;
    return [send, recv].filter((array) => array !== null);
  }

  get root(): number {
    return this.#arguments.root;
  }

  /** Operator of a reduction, if it has a name. */
  get operator(): OperatorName | undefined {
    const { operator } = this.#arguments;
    return this.#row.combines && !isOwnOperator(operator) ? operatorNames[operatorCode(operator)] : undefined;
  }

  /** Most parts that an array of any rank has. */
  get parts(): number {
    return this.#row.send === 'all' || this.#row.recv === 'all' ? this.#comm.nRanks : 1;
  }

  /** True if another operator combines elements than one with a name. */
  get hasOwnOperator(): boolean {
    return this.#row.combines && isOwnOperator(this.#arguments.operator);
  }

  /** Scalar of `premulSum`, or 0. */
  get scalar(): number | bigint {
    const { operator } = this.#arguments;
    return typeof operator === 'object' && 'premulSum' in operator ? operator.premulSum : 0;
  }

  /** This rank's input, with the number of its parts. */
  get input(): { readonly array: DeviceArray<TypedArray, Buffer>; readonly parts: number } | undefined {
    const { send } = this.#arguments;
    const has = this.#row.sends === 'each' || this.#comm.rank === this.root;
    return send === null || !has ? undefined : { array: send, parts: this.#row.send === 'all' ? this.#comm.nRanks : 1 };
  }

  get output(): { readonly array: DeviceArray<TypedArray, Buffer>; readonly parts: number } | undefined {
    const { recv } = this.#arguments;
    const has = this.#row.receives === 'each' || this.#comm.rank === this.root;
    return recv === null || !has ? undefined : { array: recv, parts: this.#row.recv === 'all' ? this.#comm.nRanks : 1 };
  }

  /** The host's calls on consecutive elements of all parts, in a number that all ranks find alike. */
  steps(): readonly Step<Buffer>[] {
    const [one] = this.arrays;
    const { operator } = this.#arguments;
    const unit = typeof operator === 'object' && 'combine' in operator ? (operator.unit ?? 1) : 1;
    // A multiple of 8, so that steps begin at multiples of 8 bytes, and elements that belong together are in one step.
    const least = 8 * unit;
    const most = Math.max(Math.floor(STEP_BYTES / (this.parts * (one?.type.BYTES_PER_ELEMENT ?? 1)) / least), 1) * least;
    const steps: Step<Buffer>[] = [];
    for (let from = 0; from < this.count || from === 0; from += most)
      steps.push(this.step(from, Math.min(most, this.count - from)));
    return steps;
  }

  /** The host's call on `length` elements of each part, from `from` on. */
  step(from = 0, length = this.count): Step<Buffer> {
    const { rank, nRanks } = this.#comm;
    const { send, recv, root } = this.#arguments;
    const of = this.#row;
    const isRoot = rank === root;
    const type = (send ?? recv)?.type as unknown as new (buffer: ArrayBufferLike, offset: number, length: number) => NumericArray;
    const size = (send ?? recv)?.type.BYTES_PER_ELEMENT ?? 1;
    const partsOf = (array: DeviceArray<TypedArray, Buffer> | null, kind: 'one' | 'all'): readonly Part<Buffer>[] =>
      array === null || length === 0
        ? []
        : Array.from({ length: kind === 'all' ? nRanks : 1 }, (_, part) => array.part(part * this.count + from, length));
    const [inputs, outputs] = [of.send, of.recv].map((kind) => (kind === 'all' ? nRanks : 1) * length) as [number, number];
    const isInPlace = of.send === 'one' && of.recv === 'one';
    // A broadcast into its own input has nothing to write at the root.
    const isWritten = of.receives === 'each' ? !(of.sends === 'root' && isRoot && send === recv && isInPlace) : isRoot;
    return {
      reads: of.sends === 'each' || isRoot ? partsOf(send, of.send) : [],
      writes: isWritten ? partsOf(recv, of.recv) : [],
      sendBytes: inputs * size,
      recvBytes: isInPlace ? 0 : outputs * size,
      run: (from, to, options = this.#arguments.options) => {
        const input = new type(from.buffer, from.byteOffset, inputs);
        const output = isInPlace ? input : new type(to.buffer, to.byteOffset, outputs);
        return of.call(this.#comm, input, output, { ...this.#arguments, options, isRoot });
      },
    };
  }
}

export function checkQueued(call: string, queued: unknown): void {
  if (queued === undefined || typeof queued === 'boolean') return;
  throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: queued is true or false, not ${describeValue(queued)}`);
}

/** Throws what the host's call would throw, when other ranks may wait in it for this one. */
function checkOperator(call: string, operator: Arguments<unknown>['operator'], type: DataType, count: number): void {
  if (isOwnOperator(operator)) checkOwnOperator(call, operator, count);
  else if (typeof operator === 'object') writeScalar(type, operator.premulSum, new ArrayBuffer(SCALAR_BYTES), 0);
  else checkFurther(call, operator, type, [count]);
}

function missing(call: string, what: string): InvalidArgumentError {
  return new InvalidArgumentError('ARGUMENT_TYPE', `${call}: this rank has no ${what}; pass an array of the device`);
}

function noElements(array: DeviceArray<TypedArray, unknown>): NumericArray {
  return new (array.type as unknown as new (length: number) => NumericArray)(0);
}
