import { describeValue } from '../describe-value.js';
import { InvalidArgumentError, TcclError } from '../errors.js';
import { checkComm } from '../check-comm.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { dataTypeOf, type NumericArray } from '../runtime/device/types.js';
import { formOf, type ParameterForm } from './buckets.js';
import type { Tensors } from './tensors.js';

/**
 * The parameters by name. Throws `ARGUMENT_TYPE` unless there are a communicator and at least one parameter, `CLOSED` or its
 * failure where the communicator has ended.
 */
export function entriesOf<Tensor>(
  call: string,
  example: string,
  comm: Communicator,
  parameters: Readonly<Record<string, Tensor>>,
): [string, Tensor][] {
  checkComm(call, comm, example);
  comm.checkUsable(call);
  const isList = Array.isArray(parameters) || ArrayBuffer.isView(parameters);
  const entries = typeof parameters === 'object' && !isList ? Object.entries((parameters as object | null) ?? {}) : [];
  if (entries.length > 0) return entries as [string, Tensor][];
  const isEmpty = (parameters as unknown)?.constructor === Object;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: pass a communicator and its parameters by name, as in ${example}, not ${isEmpty ? '{}' : describeValue(parameters)} as parameters`,
  );
}

export function checkFlag(call: string, flag: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(flag)) {
    if (typeof value !== 'boolean')
      throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: ${name} is true or false, not ${describeValue(value)}`);
  }
}

export function checkFunction(call: string, given: unknown, example: string): void {
  if (typeof given === 'function') return;
  throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: pass a function, as in ${example}, not ${describeValue(given)}`);
}

export function checkMaxNorm(maxNorm: number | undefined): void {
  if (maxNorm === undefined || (Number.isFinite(maxNorm) && maxNorm > 0)) return;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `finish: maxNorm is a finite number above 0, not ${describeValue(maxNorm)}`);
}

const tensorFunctions = Object.keys({ read: true, typeOf: true, make: true, write: true, shapeOf: true } satisfies Record<
  keyof Tensors<unknown>,
  true
>);

export function checkTensors<Tensor>(call: string, tensors: Tensors<Tensor>): void {
  const given = tensors as unknown as Readonly<Record<string, unknown>> | undefined | null;
  const missing = tensorFunctions.filter((name) => typeof given?.[name] !== 'function');
  if (missing.length === 0) return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: tensors is tfjsTensors(tf), onnxTensors(ort), deviceTensors(gpu) or an object with functions of these names, not ${describeValue(tensors)}, which has no ${missing.join(', ')}`,
  );
}

/** The elements of a parameter or gradient, as `tensors.read` gives them; `what` begins the message of an error. */
export function elementsOf<Tensor>(
  tensors: Tensors<Tensor>,
  tensor: Tensor,
  what: string,
  into?: NumericArray,
): NumericArray | Promise<NumericArray> {
  const unreadable = (cause: unknown): TcclError => {
    if (cause instanceof TcclError) return cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    return new InvalidArgumentError('ARGUMENT_TYPE', `${what} is ${describeValue(tensor)}, no tensor to read: ${why}`, { cause });
  };
  let array: NumericArray | Promise<NumericArray>;
  try {
    array = tensors.read(tensor, into);
  } catch (cause) {
    throw unreadable(cause);
  }
  if (!(array instanceof Promise)) return checkElements(array, what);
  return array.then(
    (elements) => checkElements(elements, what),
    (cause: unknown) => {
      const error = unreadable(cause);
      // Thrown by a call of the device, which does not name the tensor.
      if (error === cause) error.message = `${what}: ${error.message}`;
      throw error;
    },
  );
}

function checkElements(array: unknown, what: string): NumericArray {
  if (ArrayBuffer.isView(array)) return array as NumericArray;
  const advice = Array.isArray(array) ? ': Float32Array.from(x)' : '';
  throw new InvalidArgumentError('ARGUMENT_TYPE', `${what} is ${describeValue(array)}; pass a typed array${advice}`);
}

/** A parameter with its elements, which may be the tensor's own. */
export interface ReadParameter<Tensor> {
  readonly form: ParameterForm;
  readonly tensor: Tensor;
  readonly array: NumericArray;
}

/** Reads parameters. Throws `ARGUMENT_TYPE` for those that have no floating-point numbers, or have two names. */
export async function readParameters<Tensor>(
  entries: readonly [string, Tensor][],
  tensors: Tensors<Tensor>,
): Promise<ReadParameter<Tensor>[]> {
  const names = new Map<Tensor, string>();
  const reads: ReadParameter<Tensor>[] = [];
  for (const [name, tensor] of entries) {
    const what = `dataParallel: parameter ${name}`;
    const refuse = (why: string): InvalidArgumentError => new InvalidArgumentError('ARGUMENT_TYPE', `${what} ${why}`);
    const array = await elementsOf(tensors, tensor, what);
    const twin = names.get(tensor);
    if (twin !== undefined) throw refuse(`is the same array as ${twin}; pass it once, and add up its gradients`);
    names.set(tensor, name);
    const type = dataTypeOf(array, tensors.typeOf(tensor), what);
    if (!type.isFloat)
      throw refuse(`is of ${type.name}, whose averages would be cut to whole numbers; pass it to comm.broadcast instead`);
    reads.push({ form: formOf(name, array, tensors.typeOf(tensor)), tensor, array });
  }
  return reads;
}

export function checkMetrics(metrics: Readonly<Record<string, number>>, weight: number): void {
  if (typeof metrics !== 'object' || (metrics as unknown) === null) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `average: pass numbers by name, as in average({ loss }), not ${describeValue(metrics)}`,
    );
  }
  for (const [name, value] of Object.entries(metrics)) {
    if (typeof value !== 'number')
      throw new InvalidArgumentError('ARGUMENT_TYPE', `average: ${name} is a number, not ${describeValue(value)}`);
  }
  if (!(Number.isFinite(weight) && weight >= 0))
    throw new InvalidArgumentError('ARGUMENT_RANGE', `average: the weight is a number from 0, not ${describeValue(weight)}`);
}
