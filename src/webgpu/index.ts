/**
 * Collectives and messages on buffers of WebGPU, in Node.js, Deno and pages.
 *
 * @module tccl/webgpu
 */
export type { DeviceCallOptions } from '../devices/collectives.js';
export type { Device, DeviceMessageOptions } from '../devices/device.js';
export type { DeviceArray } from '../devices/device-array.js';
export type { GpuBuffer, GpuDevice, PlatformGpuBuffer } from './gpu.js';
export { webgpu } from './open.js';
