import { InvalidUsageError, SystemError, type TcclError } from '../../../errors.js';
import type { Driver } from './functions.js';

/** The values of `CUresult` that code here distinguishes. */
export const results = {
  SUCCESS: 0,
  INVALID_VALUE: 1,
  OUT_OF_MEMORY: 2,
  NO_DEVICE: 100,
  INVALID_PTX: 218,
  UNSUPPORTED_PTX_VERSION: 222,
  NOT_READY: 600,
  PEER_ACCESS_ALREADY_ENABLED: 704,
} as const;

/** Results after which every call on the context gives the same result: its memory is lost, until the process ends. */
const faults: ReadonlyMap<number, string> = new Map([
  [4, 'the driver is shutting down: close the device before the process ends'],
  [214, 'the memory of the GPU has an uncorrectable error: `nvidia-smi -q -d ECC` shows it, and a reset of the GPU may help'],
  [220, 'an NVLink has an uncorrectable error: `nvidia-smi nvlink -e` shows it'],
  [226, 'a fault of the GPU was contained: start the process again'],
  ...[700, 714, 715, 716, 717, 718, 719, 721].map((result): [number, string] => [
    result,
    'a kernel that the program started faulted; compute-sanitizer names it',
  ]),
  [702, 'a kernel ran longer than the display driver allows: use a GPU without a display'],
  [709, 'the context was destroyed: do not reset the device while tccl uses it'],
  [710, 'an assertion of a kernel failed, which it has printed'],
  [810, 'another process of MPS faulted, or the server ended: start the ranks again'],
]);

/** Results that a user can do something about. */
const remedies: ReadonlyMap<number, string> = new Map([
  [2, 'free arrays, or use smaller ones; `nvidia-smi` shows which processes have the memory'],
  [3, 'do not fork a process after it has used CUDA'],
  [34, 'it is the stub of the CUDA toolkit, which cannot run: take its folder out of LD_LIBRARY_PATH'],
  [36, 'install a newer NVIDIA driver'],
  [46, 'another process uses the GPU alone: `nvidia-smi -q -d COMPUTE` shows the mode, `nvidia-smi -c 0` changes it'],
  [100, '`nvidia-smi -L` lists GPUs; CUDA_VISIBLE_DEVICES hides them, and a container needs `--gpus all`'],
  [101, '`nvidia-smi -L` lists GPUs'],
  [222, 'install a newer NVIDIA driver, which knows this version of PTX'],
  [304, 'the kernel refused: `dmesg` has the reason; the module nvidia_uvm and the devices /dev/nvidia* must be there'],
  [802, 'start the service nvidia-fabricmanager, which NVSwitches need'],
  [803, 'the kernel module and libcuda.so.1 are of different versions: restart the host after an update of the driver'],
  [804, 'the package cuda-compat does not support this GPU: take it out of LD_LIBRARY_PATH'],
  [805, 'start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY'],
  [999, 'restart the host, or load the module nvidia_uvm again'],
  ...faults,
]);

export function isFault(result: number): boolean {
  return faults.has(result);
}

/** `CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)`, in the words of the driver. */
export function describeResult(driver: Driver, result: number): string {
  const text = (call: 'cuGetErrorName' | 'cuGetErrorString'): string | undefined => {
    const out: [string | null] = [null];
    return driver[call](result, out) === results.SUCCESS ? (out[0] ?? undefined) : undefined;
  };
  const name = text('cuGetErrorName');
  return name === undefined ? `the unknown CUresult ${result}` : `${name} (${text('cuGetErrorString') ?? 'no text'})`;
}

/** The reason of a failed call: `cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory): free arrays …`. */
export function reasonOf(driver: Driver, call: string, result: number): string {
  const remedy = remedies.get(result);
  return `${call.replace(/_v2$/, '')}: ${describeResult(driver, result)}${remedy === undefined ? '' : `: ${remedy}`}`;
}

/** The error of a call that failed while a device is opened. */
export function openingError(driver: Driver, call: string, result: number): TcclError {
  const reason = reasonOf(driver, call, result);
  return result === results.OUT_OF_MEMORY
    ? new SystemError('OUT_OF_MEMORY', `cuda: ${reason}`)
    : new InvalidUsageError('UNSUPPORTED', `cuda: ${reason}`);
}
