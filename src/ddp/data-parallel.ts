import { counted } from '../counted.js';
import { describeValue } from '../describe-value.js';
import { InvalidArgumentError, InvalidUsageError } from '../errors.js';
import { checkOptionNames } from '../option-names.js';
import { didYouMean } from '../suggest.js';
import { withCallerFrames } from '../runtime/caller-stack.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { dataTypeOf, type DataType, type NumericArray, type NumericArrayConstructor } from '../runtime/device/types.js';
import { agree } from './agree.js';
import { add, scale, sumOfSquares } from './arithmetic.js';
import {
  checkFlag,
  checkFunction,
  checkMaxNorm,
  checkMetrics,
  checkTensors,
  elementsOf,
  entriesOf,
  readParameters,
  type ReadParameter,
} from './arguments.js';
import { bucketsOf, type BucketForm } from './buckets.js';
import { copy, plainArrays, type Tensors } from './tensors.js';

/** Options of dataParallel(). */
export interface DataParallelOptions<Tensor> {
  /**
   * Access to the tensors of a library or a device: `tfjsTensors(tf)`, `onnxTensors(ort)`, `deviceTensors(gpu)`. Default:
   * parameters are typed arrays.
   */
  readonly tensors?: Tensors<Tensor> | undefined;
  /** Size of a bucket, after which its all-reduce begins. Default 4 MiB. The same on all ranks. */
  readonly bucketBytes?: number | undefined;
  /** Counts a gradient that is missing at finish() as zeros; otherwise it is an error. Default false. */
  readonly allowUnused?: boolean | undefined;
}

const optionNames = Object.keys({ tensors: true, bucketBytes: true, allowUnused: true } satisfies Record<
  keyof DataParallelOptions<unknown>,
  true
>);

/** Options of finish(). */
export interface FinishOptions {
  /**
   * Largest norm of all gradients together (the square root of the sum of their squares): larger ones are scaled down to it.
   * A finite number above 0.
   */
  readonly maxNorm?: number | undefined;
}

const finishOptionNames = Object.keys({ maxNorm: true } satisfies Record<keyof FinishOptions, true>);

/** The class of an array on any buffer: gradients lie in memory of `alloc`. */
type OnAnyBuffer<T> = NumericArray extends infer Each
  ? Each extends NumericArray
    ? T extends Each
      ? Each
      : never
    : never
  : never;

/** Gradients of parameters that are typed arrays. */
type ArraysLike<Parameters> = { readonly [Name in keyof Parameters]: OnAnyBuffer<Parameters[Name]> };

/** Parameters or gradients by name. */
type ByName<Tensor> = Readonly<Record<string, Tensor>>;

const DEFAULT_BUCKET_BYTES = 4 * 2 ** 20;

/** A bucket of the running step. */
interface Bucket {
  readonly form: BucketForm;
  readonly array: NumericArray;
  readonly type: DataType;
  /** Number of missing gradients. */
  missing: number;
}

/** Place of a parameter's gradient. */
interface Place<Tensor> {
  readonly bucket: Bucket;
  /** Its part of the bucket's array. */
  readonly part: NumericArray;
  readonly parameter: Tensor;
  isReady: boolean;
  /** True if the part holds gradients of steps of noSync(), to which the next is added. */
  isKept: boolean;
}

/**
 * Prepares data-parallel training: gives every rank rank 0's parameters, and buckets for the gradients. Every rank calls it
 * with parameters of the same names, lengths and types, in the same order. Gradients have the names and classes of the
 * parameters.
 *
 * @param parameters by name; arrays, or variables of a library, which are overwritten
 * @throws InvalidUsageError `CALL_MISMATCH` on all ranks when parameters differ; InvalidArgumentError `ARGUMENT_TYPE`,
 *   `ARGUMENT_RANGE`, `UNKNOWN_NAME`; SystemError `OUT_OF_MEMORY`
 *
 * @example
 * const ddp = await dataParallel(comm, { kernel, bias });
 * // in the backward pass, for each layer:
 * ddp.ready('bias', gradientOfBias);
 * // after it:
 * const gradients = await ddp.finish();
 */
export function dataParallel<Parameters extends ByName<NumericArray>>(
  comm: Communicator,
  parameters: Parameters,
  options?: DataParallelOptions<NumericArray> & { readonly tensors?: undefined },
): Promise<DataParallel<ArraysLike<Parameters>>>;
export function dataParallel<Tensor, Name extends string>(
  comm: Communicator,
  parameters: Readonly<Record<Name, Tensor>>,
  options: DataParallelOptions<Tensor> & { readonly tensors: Tensors<Tensor> },
): Promise<DataParallel<Readonly<Record<Name, Tensor>>>>;
export async function dataParallel<Tensor>(
  comm: Communicator,
  parameters: ByName<Tensor>,
  options: DataParallelOptions<Tensor> = {},
): Promise<DataParallel<ByName<Tensor>>> {
  const entries = entriesOf('dataParallel', 'dataParallel(comm, { weights })', comm, parameters);
  checkOptionNames('dataParallel', options, optionNames, '{ bucketBytes: 2 ** 20 }');
  const { bucketBytes = DEFAULT_BUCKET_BYTES, allowUnused = false } = options;
  if (!(typeof bucketBytes === 'number' && bucketBytes > 0)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `dataParallel: bucketBytes is a number of bytes above 0, not ${describeValue(bucketBytes)}`,
    );
  }
  checkFlag('dataParallel', { allowUnused });
  const tensors = options.tensors ?? (plainArrays as unknown as Tensors<Tensor>);
  checkTensors('dataParallel', tensors);
  const read = await readParameters(entries, tensors);
  const forms = read.map(({ form }) => form);
  await agree('dataParallel', comm, forms, [`bucketBytes ${bucketBytes}`]);
  for (const { array, tensor, form } of read) {
    const values = array.slice();
    await comm.broadcast(values, values, 0, { type: form.type });
    await tensors.write(tensor, values);
  }
  return new DataParallel(comm, read, bucketsOf(forms, bucketBytes), tensors, allowUnused);
}

/** Averages the gradients of a model that every rank has. Made by {@link dataParallel}; `Gradients` are their types by name. */
export class DataParallel<Gradients extends Readonly<Record<keyof Gradients, unknown>> = ByName<NumericArray>> {
  /** The communicator of the gradients. */
  readonly comm: Communicator;
  /** Number of all-reduces of a step. */
  readonly nBuckets: number;
  readonly #tensors: Tensors<Gradients[keyof Gradients]>;
  readonly #allowUnused: boolean;
  readonly #buckets: readonly Bucket[];
  readonly #places = new Map<string, Place<Gradients[keyof Gradients]>>();
  /** All-reduces that have begun, of the first buckets: the order is the same on all ranks. */
  readonly #begun: Promise<void>[] = [];
  /** Copies of gradients from a device since the last finish() or noSync(). */
  readonly #reads: Promise<void>[] = [];
  #gradientNorm: number | undefined;
  #isKeeping = false;
  #isClosed = false;

  /** @internal */
  constructor(
    comm: Communicator,
    parameters: readonly ReadParameter<Gradients[keyof Gradients]>[],
    forms: readonly BucketForm[],
    tensors: Tensors<Gradients[keyof Gradients]>,
    allowUnused: boolean,
  ) {
    this.comm = comm;
    this.nBuckets = forms.length;
    this.#tensors = tensors;
    this.#allowUnused = allowUnused;
    this.#buckets = forms.map((form) => {
      const [first] = form.parameters;
      const sample = parameters.find((parameter) => parameter.form === first)?.array;
      if (sample === undefined) throw new Error('unreachable: a bucket has parameters');
      const array = comm.alloc(sample.constructor as NumericArrayConstructor, form.length);
      return { form, array, type: dataTypeOf(array, first?.type), missing: form.parameters.length };
    });
    const parts = new Map<string, Pick<Place<unknown>, 'bucket' | 'part'>>();
    for (const bucket of this.#buckets) {
      let at = 0;
      for (const { name, length } of bucket.form.parameters) {
        parts.set(name, { bucket, part: bucket.array.subarray(at, at + length) });
        at += length;
      }
    }
    for (const { form, tensor } of parameters) {
      const place = parts.get(form.name);
      if (place !== undefined) this.#places.set(form.name, { ...place, parameter: tensor, isReady: false, isKept: false });
    }
  }

  /**
   * Norm of the last step's averaged gradients before they were scaled, the same on all ranks; undefined unless finish() got
   * `maxNorm`.
   */
  get gradientNorm(): number | undefined {
    return this.#gradientNorm;
  }

  /**
   * Hands over a gradient, in any order; it is copied. The all-reduce of a bucket begins when it has all its gradients and
   * those of the buckets before it have begun. Errors of an all-reduce come from finish(), as do those of a gradient on a
   * device, which must stay until then.
   *
   * @throws InvalidArgumentError `UNKNOWN_NAME`, `BUFFER_SIZE`, `ARGUMENT_TYPE`; InvalidUsageError `CLOSED`, or `UNSUPPORTED` for
   *   a second gradient of one parameter
   */
  ready<Name extends keyof Gradients & string>(name: Name, gradient: Gradients[Name]): void {
    this.#checkOpen('ready');
    const given: unknown = name;
    const place = this.#places.get(name);
    if (place === undefined) {
      throw new InvalidArgumentError(
        'UNKNOWN_NAME',
        `ready: there is no parameter ${describeValue(given)}${didYouMean(String(given), this.#places.keys())}`,
      );
    }
    if (place.isReady) {
      throw new InvalidUsageError(
        'UNSUPPORTED',
        `ready: the gradient of ${name} is there already; add up gradients of one step first, and call finish() before the next, or noSync()`,
      );
    }
    const elements = elementsOf(this.#tensors, gradient, `ready: the gradient of ${name}`, place.isKept ? undefined : place.part);
    if (elements instanceof Promise) {
      place.isReady = true;
      const read = elements.then((array) => {
        if (!this.#isClosed) this.#take(name, place, array);
      });
      read.catch(() => undefined);
      this.#reads.push(read);
    } else this.#take(name, place, elements);
  }

  /** Puts a gradient into its bucket. */
  #take(name: string, place: Place<unknown>, array: NumericArray): void {
    if (array.constructor !== place.part.constructor) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `ready: the gradient of ${name} is ${describeValue(array)}, its parameter ${describeValue(place.part)}`,
      );
    }
    if (array.length !== place.part.length) {
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `ready: the gradient of ${name} has ${counted(array.length, 'element')}, its parameter ${place.part.length}`,
      );
    }
    if (place.isKept) add(array, place.part, place.bucket.type);
    else if (array !== place.part) copy(array, place.part);
    place.isReady = true;
    if (this.#isKeeping) return;
    this.#settle(place);
    // The backward pass keeps the event loop from doing so.
    this.comm.poll();
  }

  /**
   * Keeps the gradients that `step` hands over, without averaging them: those of the next step are added to them, and its
   * finish() averages the sums over the ranks. An error discards all gradients that are kept.
   *
   * @param step one backward pass, which may return a promise; after the last finish(), and before the first ready() outside
   * @throws errors of `step`; InvalidUsageError `CLOSED`, or `UNSUPPORTED` within a step, or when gradients are missing, unless
   *   `allowUnused`
   *
   * @example
   * await ddp.noSync(() => backward(firstHalf));
   * backward(secondHalf);
   * const gradients = await ddp.finish();
   */
  async noSync<Result>(step: () => Result | PromiseLike<Result>): Promise<Result> {
    this.#checkOpen('noSync');
    checkFunction('noSync', step, 'noSync(() => backward(batch))');
    if (this.#isKeeping || [...this.#places.values()].some(({ isReady }) => isReady)) {
      const reason = this.#isKeeping ? 'another noSync() runs' : 'this step has gradients already';
      throw new InvalidUsageError('UNSUPPORTED', `noSync: ${reason}; wait for its end first`, { rank: this.comm.rank });
    }
    this.#isKeeping = true;
    let isWhole = false;
    try {
      const result = await step();
      await this.#readAll();
      this.#checkOpen('noSync');
      this.#missing('noSync');
      isWhole = true;
      return result;
    } finally {
      // After an error of `step`, too, its gradients are not those of the next step.
      await Promise.allSettled(this.#reads.splice(0));
      this.#isKeeping = false;
      for (const place of this.#places.values()) {
        place.isKept = isWhole && (place.isKept || place.isReady);
        place.isReady = false;
      }
    }
  }

  /**
   * Waits for all all-reduces of the step. Resolves with the averaged gradients by name: new tensors of a library, which the
   * caller disposes of, or parts of the buckets, valid until the next ready().
   *
   * @throws InvalidUsageError `CLOSED`, or `UNSUPPORTED` when gradients are missing, unless `allowUnused`; InvalidArgumentError
   *   `ARGUMENT_RANGE`, `UNKNOWN_NAME`; errors of the all-reduces
   */
  finish(options: FinishOptions = {}): Promise<Gradients> {
    // Nothing awaits an all-reduce while gradients are handed over, so its error has no line of the program.
    return withCallerFrames(this.#finish(options));
  }

  async #finish(options: FinishOptions): Promise<Gradients> {
    this.#checkOpen('finish');
    checkOptionNames('finish', options, finishOptionNames, '{ maxNorm: 1 }');
    checkMaxNorm(options.maxNorm);
    if (this.#isKeeping)
      throw new InvalidUsageError('UNSUPPORTED', 'finish: a noSync() runs; wait for its end first', { rank: this.comm.rank });
    for (const place of this.#missing('finish')) {
      const { buffer, byteOffset, byteLength } = place.part;
      if (!place.isKept) new Uint8Array(buffer, byteOffset, byteLength).fill(0);
      place.isReady = true;
      this.#settle(place);
    }
    try {
      await this.#readAll().catch((error: unknown) => {
        // Other ranks wait for this gradient, and may write the buckets that are being reduced.
        this.comm.abort(error instanceof Error ? error.message : String(error));
        throw error;
      });
      await Promise.all(this.#begun);
    } finally {
      this.#begun.length = 0;
      for (const bucket of this.#buckets) bucket.missing = bucket.form.parameters.length;
      for (const place of this.#places.values()) place.isReady = place.isKept = false;
    }
    this.#gradientNorm = options.maxNorm === undefined ? undefined : this.#clip(options.maxNorm);
    const own = (this.#tensors as Tensors<unknown>) === plainArrays;
    const made = [...this.#places].map(async ([name, { part, parameter }]): Promise<[string, unknown]> => [
      name,
      own ? part : await this.#tensors.make(part, parameter),
    ]);
    return Object.fromEntries(await Promise.all(made)) as Gradients;
  }

  /**
   * Averages numbers over the ranks, such as losses. Every rank passes the same names.
   *
   * @param weight weight of this rank's numbers, such as the number of its samples; above 0 on one rank at least
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`; InvalidUsageError `CLOSED`, or `CALL_MISMATCH` when ranks
   *   pass different names
   */
  async average<Name extends string>(metrics: Readonly<Record<Name, number>>, weight = 1): Promise<Record<Name, number>> {
    this.#checkOpen('average');
    checkMetrics(metrics, weight);
    const names = (Object.keys(metrics) as Name[]).sort();
    const sums = Float64Array.from([...names.map((name) => metrics[name] * weight), weight, hashOf(names), hashOf(names) ** 2]);
    await this.comm.allReduce(sums);
    const [total = 0, hashes = 0, squares = 0] = sums.subarray(names.length);
    const n = this.comm.nRanks;
    if (hashes * hashes !== squares * n) {
      throw new InvalidUsageError(
        'CALL_MISMATCH',
        `average: rank ${this.comm.rank} passes ${names.join(', ')}, another rank other names; pass the same on all ranks`,
      );
    }
    if (total === 0) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        'average: the weights of all ranks are 0; pass a weight above 0 on one rank at least',
      );
    }
    return Object.fromEntries(names.map((name, i) => [name, (sums[i] ?? 0) / total])) as Record<Name, number>;
  }

  /** Frees the buckets, and with them arrays that finish() gave; the communicator stays open. A second call does nothing. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const free = (): void => {
      for (const { array } of this.#buckets) this.comm.free(array);
    };
    // Copies from a device write the buckets until they end.
    if (this.#reads.length === 0) free();
    // The communicator may be closed by then, and the buckets with it.
    else
      Promise.allSettled(this.#reads)
        .then(free)
        .catch(() => undefined);
  }

  /** Waits until no gradient is copied from a device. */
  async #readAll(): Promise<void> {
    if (this.#reads.length === 0) return;
    const reads = await Promise.allSettled(this.#reads.splice(0));
    for (const read of reads) if (read.status === 'rejected') throw read.reason;
  }

  #checkOpen(call: string): void {
    if (this.#isClosed) throw new InvalidUsageError('CLOSED', `${call}: this dataParallel was closed`);
  }

  /** Places whose gradients the step has not handed over. Throws `UNSUPPORTED` if there are any, unless `allowUnused`. */
  #missing(call: string): Place<unknown>[] {
    const missing = [...this.#places].filter(([, { isReady }]) => !isReady);
    if (missing.length > 0 && !this.#allowUnused) {
      const names = missing.map(([name]) => name).join(', ');
      throw new InvalidUsageError(
        'UNSUPPORTED',
        `${call}: rank ${this.comm.rank} has no gradient of ${names}; hand it to ready(), or give dataParallel { allowUnused: true }`,
        { rank: this.comm.rank },
      );
    }
    return missing.map(([, place]) => place);
  }

  /**
   * Scales the averaged gradients in the buckets down to a norm, and returns their norm before. All ranks have the same bits in
   * the same order, so their results are equal. A norm that overflowed says nothing about the step: the gradients stay.
   */
  #clip(maxNorm: number): number {
    let sum = 0;
    for (const { array, type } of this.#buckets) sum += sumOfSquares(array, type);
    const norm = Math.sqrt(sum);
    if (Number.isFinite(norm) && norm > maxNorm) for (const { array, type } of this.#buckets) scale(array, maxNorm / norm, type);
    return norm;
  }

  /** Counts a gradient, and begins the all-reduces that may begin. */
  #settle(place: Place<unknown>): void {
    place.bucket.missing--;
    for (let next = this.#begun.length; next < this.#buckets.length; next++) {
      const bucket = this.#buckets[next];
      if (bucket === undefined || bucket.missing > 0) return;
      const reduced = this.comm.allReduce(bucket.array, bucket.array, 'avg', { type: bucket.form.parameters[0]?.type });
      // finish() reports it.
      reduced.catch(() => undefined);
      this.#begun.push(reduced);
    }
  }
}

/** A hash of at most 20 bits, so that sums of squares stay exact. */
function hashOf(names: readonly string[]): number {
  let hash = 0;
  for (const char of names.join('\n')) hash = (Math.imul(hash, 31) + (char.codePointAt(0) ?? 0)) & 0xfffff;
  return hash;
}
