/**
 * Collectives and messages on arrays in the memory of NVIDIA GPUs, in Node.js on Linux.
 *
 * @module tccl/cuda
 */
export type { DeviceCallOptions } from '../devices/collectives.js';
export type { Device, DeviceMessageOptions } from '../devices/device.js';
export type { DeviceArray } from '../devices/device-array.js';
export type { CudaTransport } from './connect-peers.js';
export type { CudaBuffer } from './cuda-buffer.js';
export type { DlpackTensor } from './dlpack.js';
export type { CudaDevice, CudaOptions } from './open.js';
export { cuda } from './open.js';
