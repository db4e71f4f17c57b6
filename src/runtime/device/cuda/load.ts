import { firstLineOf, InvalidUsageError } from '../../../errors.js';
import { ownRequire } from '../../../own-module.js';
import { argumentTypes, functions, IPC_BYTES, type Driver, type DriverFunctions, type FunctionName } from './functions.js';
import { defined } from '../../../defined.js';

/** The first version of the driver that has all functions, as users know it. */
const REMEDY = 'install an NVIDIA driver of CUDA 12.2 or newer (R535)';

interface Library {
  func(prototype: string): (...values: unknown[]) => unknown;
  func(name: string, result: string, types: readonly unknown[]): (...values: unknown[]) => unknown;
}

interface Koffi {
  load(path: string | null): Library;
  struct(fields: Record<string, unknown>): unknown;
  array(type: string, length: number): unknown;
}

let loaded: Driver | undefined;

/** NVIDIA's driver. Loaded once in each thread, when a program asks for it. @throws InvalidUsageError `UNSUPPORTED` */
export function loadDriver(): Driver {
  loaded ??= open();
  return loaded;
}

/** @param soname another library with the same interface, for tests */
export function open(soname = 'libcuda.so.1'): Driver {
  let koffi: Koffi;
  try {
    koffi = ownRequire()('koffi') as Koffi;
  } catch (error) {
    throw unsupported(`the library koffi cannot be loaded (${firstLineOf(error)}): npm install koffi`, error);
  }
  let library: Library;
  try {
    library = koffi.load(soname);
  } catch (error) {
    const why = firstLineOf(error).replace(/^Failed to load shared library: /, '');
    throw unsupported(`the driver cannot be loaded (${soname}: ${why}): ${REMEDY}; a container needs \`--gpus all\``, error);
  }
  return bind(koffi, library, soname);
}

function bind(koffi: Koffi, library: Library, soname: string): Driver {
  const missing: string[] = [];
  const ipc = koffi.struct({ reserved: koffi.array('uint8_t', IPC_BYTES) });
  const bound = Object.entries(functions).flatMap(([name, kinds]) => {
    const types = kinds.map((kind) => (kind === 'ipc' ? ipc : argumentTypes[kind]));
    try {
      // The table gives the types of arguments.
      return [[name, library.func(name, 'int', types)]];
    } catch {
      missing.push(name);
      return [];
    }
  });
  const driver = Object.fromEntries(bound) as Partial<DriverFunctions>;
  if (missing.length > 0) {
    const named = missing.length > 6 ? `${missing.slice(0, 6).join(', ')} and ${missing.length - 6} more` : missing.join(', ');
    throw unsupported(`${soname}${versionOf(driver)} lacks ${named}: ${REMEDY}`);
  }
  const move = koffi.load(null).func('uintptr_t memmove(void *destination, void *source, size_t bytes)');
  const addressOf = (view: ArrayBufferView): bigint => BigInt(move(view, view, 0) as bigint | number);
  return Object.assign(driver as Record<FunctionName, never>, { addressOf });
}

/** ` of CUDA 11.4`, if the driver says so. */
function versionOf(driver: Partial<DriverFunctions>): string {
  const version = new Int32Array(1);
  return driver.cuDriverGetVersion?.(version) === 0 ? ` of CUDA ${versionText(defined(version[0]))}` : '';
}

/** A version as the driver counts it: 12020 is 12.2. */
export function versionText(version: number): string {
  return `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
}

function unsupported(why: string, cause?: unknown): InvalidUsageError {
  return new InvalidUsageError('UNSUPPORTED', `cuda: ${why}`, cause === undefined ? {} : { cause });
}
