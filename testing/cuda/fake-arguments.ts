import {
  argumentTypes,
  functions,
  IPC_BYTES,
  type FunctionName,
  type IpcHandle,
} from '../../src/runtime/device/cuda/functions.js';
import { bytesIn } from './fake-host.js';

/** Throws for arguments that koffi would refuse or read wrongly. */
export function checkValues(name: FunctionName, values: readonly unknown[]): void {
  const kinds = functions[name];
  if (values.length !== kinds.length) throw new Error(`${name} takes ${kinds.length} arguments, not ${values.length}`);
  for (const [i, kind] of kinds.entries()) {
    const value = values[i];
    const fits = {
      i32: Number.isInteger(value),
      u32: Number.isInteger(value) && (value as number) >= 0,
      byte: Number.isInteger(value) && (value as number) >= 0 && (value as number) < 256,
      size: Number.isSafeInteger(value) && (value as number) >= 0,
      handle: typeof value === 'bigint',
      bytes: ArrayBuffer.isView(value),
      name: typeof value === 'string',
      text: Array.isArray(value),
      ipc: (value as Partial<IpcHandle> | null)?.reserved?.length === IPC_BYTES,
    }[kind];
    if (!fits) throw new Error(`argument ${i} of ${name} is a ${argumentTypes[kind]}, not ${String(value)}`);
  }
}

export function put(out: ArrayBufferView, value: number): 0 {
  const bytes = bytesIn(out, 4);
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(0, value, true);
  return 0;
}

export function putLong(out: ArrayBufferView, value: number | bigint): 0 {
  const bytes = bytesIn(out, 8);
  new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(0, BigInt(value), true);
  return 0;
}
