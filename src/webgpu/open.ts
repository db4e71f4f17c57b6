import { openDevice, type Device } from '../devices/device.js';
import { openOnAllRanks } from '../devices/open.js';
import { describeValue } from '../describe-value.js';
import { InvalidArgumentError, InvalidUsageError } from '../errors.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import type { Gpu, GpuBuffer, GpuDevice, PlatformGpuBuffer } from './gpu.js';
import { GpuMemory } from './gpu-memory.js';

/**
 * Opens a WebGPU device for calls of the ranks of `comm` on its buffers. Every rank calls it, each with a device of its own or,
 * as ranks of one thread may, with one that they share.
 *
 * @param device a `GPUDevice`; without one, the platform's default adapter makes it, with all its limits and `shader-f16`
 * @throws InvalidArgumentError `ARGUMENT_TYPE`; InvalidUsageError `UNSUPPORTED` without WebGPU or an adapter; SystemError
 *   `DEVICE_LOST` for a device that was lost before; RemoteError `ABORTED` where another rank has no device; `comm` stays usable
 *
 * @example
 * const comm = await init();
 * const gpu = await webgpu(comm);
 * const x = await gpu.alloc(Float32Array, 1024);
 * await x.upload(new Float32Array(1024).fill(comm.rank));
 * await gpu.allReduce(x);
 * await gpu.close();
 */
export async function webgpu(comm: Communicator, device?: GpuDevice): Promise<Device<PlatformGpuBuffer>> {
  const open = async (): Promise<GpuMemory> => {
    const memory = new GpuMemory(await deviceOf(device));
    await memory.checkLives('webgpu');
    return memory;
  };
  const { opened, calls } = await openOnAllRanks(comm, 'webgpu', 'WebGPU', open, (memory) => memory.close());
  return openDevice<GpuBuffer>(comm, calls, opened);
}

async function deviceOf(device: GpuDevice | undefined): Promise<GpuDevice> {
  if (device === undefined) return defaultDevice();
  const given = device as Partial<GpuDevice & { requestDevice: unknown; requestAdapter: unknown }> | null;
  const example = 'const adapter = await navigator.gpu.requestAdapter(); webgpu(comm, await adapter.requestDevice())';
  if (typeof given?.createBuffer !== 'function' || typeof given.pushErrorScope !== 'function') {
    const kinds = { requestDevice: 'a GPUAdapter', requestAdapter: 'a GPU' } as const;
    const kind = Object.entries(kinds).find(([method]) => typeof given?.[method as keyof typeof kinds] === 'function');
    const what = kind?.[1] ?? describeValue(device);
    throw new InvalidArgumentError('ARGUMENT_TYPE', `webgpu: pass a GPUDevice, not ${what}: ${example}`);
  }
  return device;
}

async function defaultDevice(): Promise<GpuDevice> {
  const { navigator } = globalThis as { navigator?: { readonly gpu?: Gpu } };
  const gpu = navigator?.gpu;
  if (gpu === undefined) {
    throw new InvalidUsageError(
      'UNSUPPORTED',
      'webgpu: there is no navigator.gpu here: browsers with WebGPU have it in pages of https or localhost, older Denos with ' +
        "--unstable-webgpu; in Node.js, pass a device of npm's webgpu; without WebGPU, pass arrays of the host to calls of comm",
    );
  }
  const adapter = await gpu.requestAdapter();
  if (adapter === null) {
    throw new InvalidUsageError(
      'UNSUPPORTED',
      'webgpu: WebGPU finds no adapter: install a driver of the GPU, or allow a software one (lavapipe, SwiftShader); ' +
        'Chromium on Linux needs --enable-unsafe-webgpu',
    );
  }
  try {
    const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
    return await adapter.requestDevice({
      requiredLimits: { maxBufferSize, maxStorageBufferBindingSize },
      requiredFeatures: adapter.features.has('shader-f16') ? ['shader-f16'] : [],
    });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidUsageError('UNSUPPORTED', `webgpu: the adapter gives no device: ${why}`, { cause });
  }
}
