import { promises } from '#platform/files';
import { describeValue } from '../describe-value.js';
import { InputError, InvalidArgumentError, SystemError, TcclError } from '../errors.js';
import { checkOptionNames } from '../option-names.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { bytesOf, movedTypeOf, type DataTypeName, type NumericArray } from '../runtime/device/types.js';
import { agree } from './agree.js';
import { checkFlag, checkTensors, elementsOf, entriesOf } from './arguments.js';
import { headerLengthOf, headerOf, LENGTH_BYTES, parseHeader, type Metadata, type StoredTensor } from './safetensors.js';
import { emptyOf, lengthOf, plainArrays, type Tensors } from './tensors.js';

/** Options of saveCheckpoint(). */
export interface SaveOptions<Tensor> {
  /**
   * Access to the tensors of a library or a device: `tfjsTensors(tf)`, `onnxTensors(ort)`, `deviceTensors(gpu)`. Default:
   * parameters are typed arrays.
   */
  readonly tensors?: Tensors<Tensor> | undefined;
  /** Texts by name, which loadCheckpoint() gives back, such as the number of the step. Rank 0's are saved. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** Options of loadCheckpoint(). */
export interface LoadOptions<Tensor> {
  /**
   * Access to the tensors of a library or a device: `tfjsTensors(tf)`, `onnxTensors(ort)`, `deviceTensors(gpu)`. Default:
   * parameters are typed arrays.
   */
  readonly tensors?: Tensors<Tensor> | undefined;
  /** Leaves the parameters as they are where there is no file; otherwise it is an error. Default false. */
  readonly optional?: boolean | undefined;
}

const saveOptionNames = Object.keys({ tensors: true, metadata: true } satisfies Record<keyof SaveOptions<unknown>, true>);
const loadOptionNames = Object.keys({ tensors: true, optional: true } satisfies Record<keyof LoadOptions<unknown>, true>);

/** A parameter as it is saved. */
interface Form {
  readonly name: string;
  readonly array: NumericArray;
  readonly type: DataTypeName;
  readonly shape: readonly number[];
}

/**
 * Saves rank 0's parameters as a safetensors file. Every rank calls it; it ends on all when the file is there. The file is
 * written beside its place as `FILE.tmp`, and replaces the old one when it is whole: a rank that is killed leaves the old one.
 *
 * @param file path on rank 0's host
 * @param parameters by name; arrays, or tensors of a library
 * @throws the same on all ranks: SystemError `FILE`; InvalidArgumentError `ARGUMENT_TYPE`
 *
 * @example
 * await saveCheckpoint(comm, 'model.safetensors', { kernel, bias }, { metadata: { step: '1000' } });
 */
export async function saveCheckpoint<Tensor = NumericArray>(
  comm: Communicator,
  file: string,
  parameters: Readonly<Record<string, Tensor>>,
  options: SaveOptions<Tensor> = {},
): Promise<void> {
  const call = 'saveCheckpoint';
  const entries = checked(call, comm, file, parameters);
  checkOptionNames(call, options, saveOptionNames, "{ metadata: { step: '1000' } }");
  const { metadata = {} } = options;
  checkMetadata(call, metadata);
  const tensors = tensorsOf(call, options.tensors);
  await onRank0(comm, `${call}: ${file} cannot be written`, file, async () => {
    // Types of larger elements first: each begins at a multiple of its size.
    const forms = (await formsOf(call, entries, tensors)).sort((a, b) => b.array.BYTES_PER_ELEMENT - a.array.BYTES_PER_ELEMENT);
    const header = headerOf(
      forms.map((form) => ({ ...form, bytes: form.array.byteLength })),
      metadata,
    );
    return replace(file, [header, ...forms.map(({ array }) => bytesOf(array))]);
  });
}

/**
 * Reads a safetensors file on rank 0, and gives all ranks its parameters, in place. Every rank calls it with parameters of the
 * same names, lengths and types, in the same order; the file has exactly these. Nothing changes unless all fit.
 *
 * @param file path on rank 0's host
 * @param parameters by name; arrays, or variables of a library, which are overwritten
 * @returns the metadata that were saved; none if `optional` and there is no file
 * @throws the same on all ranks: SystemError `FILE`; InputError `SYNTAX`, `CONTENT`; InvalidUsageError `CALL_MISMATCH` when
 *   parameters differ
 *
 * @example
 * const { step = '0' } = await loadCheckpoint(comm, 'model.safetensors', { kernel, bias }, { optional: true });
 */
export async function loadCheckpoint<Tensor = NumericArray>(
  comm: Communicator,
  file: string,
  parameters: Readonly<Record<string, Tensor>>,
  options: LoadOptions<Tensor> = {},
): Promise<Metadata> {
  const call = 'loadCheckpoint';
  const entries = checked(call, comm, file, parameters);
  checkOptionNames(call, options, loadOptionNames, '{ optional: true }');
  const { optional = false } = options;
  checkFlag(call, { optional });
  const tensors = tensorsOf(call, options.tensors);
  const forms = await formsOf(call, entries, tensors);
  await agree(
    call,
    comm,
    forms.map(({ name, array, type }) => ({ name, length: array.length, array: type, type })),
  );
  const arrays = forms.map(({ array }) => emptyOf(array, array.length));
  const metadata = await onRank0(comm, `${call}: ${file} cannot be read`, file, () =>
    readAll(file, forms, arrays, { optional, hasShapes: (tensors as Tensors<unknown>) !== plainArrays }),
  );
  if (metadata === undefined) return {};
  for (const [i, array] of arrays.entries()) await comm.broadcast(array, array, 0, { type: forms[i]?.type });
  for (const [i, [, parameter]] of entries.entries()) await tensors.write(parameter, arrays[i] as NumericArray);
  return metadata;
}

function checked<Tensor>(
  call: string,
  comm: Communicator,
  file: string,
  parameters: Readonly<Record<string, Tensor>>,
): [string, Tensor][] {
  const example = `${call}(comm, 'model.safetensors', { weights })`;
  const entries = entriesOf(call, example, comm, parameters);
  if (typeof file === 'string' && file !== '') return entries;
  throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: pass a file, as in ${example}, not ${describeValue(file)}`);
}

function checkMetadata(call: string, metadata: Readonly<Record<string, string>>): void {
  const wrong = Object.entries(metadata).find(([, value]) => typeof value !== 'string');
  if (wrong === undefined) return;
  const [name, value] = wrong;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: metadata ${name} is a text, not ${describeValue(value)}; pass String(x)`,
  );
}

function tensorsOf<Tensor>(call: string, tensors: Tensors<Tensor> | undefined): Tensors<Tensor> {
  if (tensors === undefined) return plainArrays as unknown as Tensors<Tensor>;
  checkTensors(call, tensors);
  return tensors;
}

async function formsOf<Tensor>(call: string, entries: readonly [string, Tensor][], tensors: Tensors<Tensor>): Promise<Form[]> {
  const forms: Form[] = [];
  for (const [name, parameter] of entries) {
    const what = `${call}: parameter ${name}`;
    if (name === '__metadata__')
      throw new InvalidArgumentError('UNKNOWN_NAME', `${what}: the file format keeps this name to itself`);
    const array = await elementsOf(tensors, parameter, what);
    const type = movedTypeOf(array, tensors.typeOf(parameter), what).name;
    forms.push({ name, array, type, shape: tensors.shapeOf(parameter) });
  }
  return forms;
}

const errorClasses: Readonly<Record<string, typeof InputError | typeof SystemError | typeof InvalidArgumentError>> = {
  InvalidArgumentError,
  InputError,
  SystemError,
};

/** An action's result, or its error as far as ranks share it. */
interface Outcome<Result> {
  readonly result?: Result;
  readonly error?: Pick<TcclError, 'name' | 'code' | 'message'> & { readonly file?: string };
}

/** Runs `action` on rank 0. All ranks get its result, or throw its error; `failed` begins the message of the system's. */
async function onRank0<Result>(comm: Communicator, failed: string, file: string, action: () => Promise<Result>): Promise<Result> {
  let outcome: Outcome<Result> | undefined;
  let own: TcclError | undefined;
  if (comm.rank === 0) {
    try {
      outcome = { result: await action() };
    } catch (cause) {
      own = errorOf(cause, failed, file);
      const { name, code, message, file: place } = own;
      outcome = { error: { name, code, message, ...(place === undefined ? {} : { file: place }) } };
    }
  }
  const { result, error } = await comm.broadcastObject(outcome, 0);
  if (error === undefined) return result as Result;
  const { code, message, file: place } = error;
  const Class = errorClasses[error.name] ?? SystemError;
  throw own ?? new Class(code, message, place === undefined ? {} : { file: place });
}

function errorOf(cause: unknown, failed: string, file: string): TcclError {
  if (cause instanceof InputError) return new InputError(cause.code, `${failed}: ${cause.message}`, { file, cause });
  if (cause instanceof InvalidArgumentError) return cause;
  return new SystemError('FILE', `${failed}: ${cause instanceof Error ? cause.message : String(cause)}`, { file, cause });
}

/** Writes a file beside `file` and puts it in its place. */
async function replace(file: string, parts: readonly Uint8Array[]): Promise<void> {
  const temporary = `${file}.tmp`;
  try {
    const handle = await promises.open(temporary, 'w');
    try {
      for (const part of parts) await handle.writeFile(part);
      // Otherwise a host that loses power may have the new name before the new contents.
      await handle.sync();
    } finally {
      await handle.close();
    }
    await promises.rename(temporary, file);
  } catch (error) {
    await promises.rm(temporary, { force: true });
    throw error;
  }
}

/** Reads the file's parameters into `arrays`. Resolves with its metadata, or undefined if there is no file. */
async function readAll(
  file: string,
  forms: readonly Form[],
  arrays: readonly NumericArray[],
  { optional, hasShapes }: { readonly optional: boolean; readonly hasShapes: boolean },
): Promise<Metadata | undefined> {
  const handle = await promises.open(file, 'r').catch((error: unknown) => {
    if (optional && (error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  try {
    const read = async (bytes: Uint8Array, position: number): Promise<Uint8Array> => {
      for (let done = 0; done < bytes.length;) {
        const { bytesRead } = await handle.read(bytes, done, Math.min(bytes.length - done, MAX_READ_BYTES), position + done);
        if (bytesRead === 0) throw new InputError('CONTENT', `it is cut off after ${position + done} bytes`);
        done += bytesRead;
      }
      return bytes;
    };
    const { size } = await handle.stat();
    const length = headerLengthOf(await read(new Uint8Array(LENGTH_BYTES), 0), size);
    const data = LENGTH_BYTES + length;
    const { tensors, metadata } = parseHeader(await read(new Uint8Array(length), LENGTH_BYTES), size - data);
    compare(forms, tensors, hasShapes);
    for (const [i, { name }] of forms.entries())
      await read(bytesOf(arrays[i] as NumericArray), data + (tensors.get(name)?.begin ?? 0));
    return metadata;
  } finally {
    await handle.close();
  }
}

/** Systems read at most 2 GiB at a time. */
const MAX_READ_BYTES = 2 ** 30;

/** Differences that a message names. */
const MAX_DIFFERENCES = 5;

/** Throws `CONTENT` unless the file has exactly these parameters. Typed arrays have no shape but their length. */
function compare(forms: readonly Form[], tensors: ReadonlyMap<string, StoredTensor>, hasShapes: boolean): void {
  const names = new Set(forms.map(({ name }) => name));
  const differences = [
    ...forms.flatMap(({ name, array, type, shape }) => {
      const stored = tensors.get(name);
      if (stored === undefined) return [`it has no ${name}`];
      const isOfShape = !hasShapes || stored.shape.join() === shape.join();
      const isOfSize = lengthOf(stored.shape) === array.length;
      const isWhole = stored.end - stored.begin === array.byteLength;
      if (stored.type === type && isOfShape && isOfSize && isWhole) return [];
      return [`${name} is ${stored.type} [${stored.shape.join()}] there, ${type} [${shape.join()}] here`];
    }),
    ...[...tensors.keys()].filter((name) => !names.has(name)).map((name) => `its ${name} is no parameter`),
  ];
  if (differences.length === 0) return;
  const further = differences.length - MAX_DIFFERENCES;
  const named = differences.slice(0, MAX_DIFFERENCES).join('; ');
  throw new InputError('CONTENT', `${named}${further > 0 ? `; and ${further} more` : ''}`);
}
