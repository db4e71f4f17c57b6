/** The members of `GPUBuffer` that are used here. */
export interface GpuBuffer {
  readonly size: number;
  readonly usage: number;
  readonly mapState: string;
  mapAsync(mode: number, offset?: number, size?: number): Promise<unknown>;
  getMappedRange(offset?: number, size?: number): ArrayBuffer;
  unmap(): unknown;
  destroy(): unknown;
}

interface GpuEncoder {
  copyBufferToBuffer(from: GpuBuffer, fromOffset: number, to: GpuBuffer, toOffset: number, bytes: number): unknown;
  finish(): unknown;
}

/** The members of `GPUDevice` that are used here. */
export interface GpuDevice {
  readonly lost: Promise<{ readonly reason?: string; readonly message: string }>;
  readonly queue: { submit(commands: Iterable<never>): unknown };
  createBuffer(descriptor: { size: number; usage: number; mappedAtCreation?: boolean; label?: string }): GpuBuffer;
  createCommandEncoder(): GpuEncoder;
  pushErrorScope(filter: 'validation' | 'out-of-memory'): unknown;
  popErrorScope(): Promise<{ readonly message: string } | null>;
}

interface GpuAdapter {
  readonly features: Iterable<string> & { has(name: string): boolean };
  readonly limits: Readonly<Record<string, number>>;
  requestDevice(descriptor: object): Promise<GpuDevice>;
}

/** The value of `navigator.gpu`. */
export interface Gpu {
  requestAdapter(): Promise<GpuAdapter | null>;
}

/** The platform's own type of a buffer, where the program compiles with WebGPU's types. */
export type PlatformGpuBuffer = typeof globalThis extends { GPUBuffer: { prototype: infer Own extends GpuBuffer } }
  ? Own
  : GpuBuffer;

/** `GPUBufferUsage` and `GPUMapMode` of the specification: npm's webgpu has no globals. */
export const usages = { mapRead: 1, mapWrite: 2, copySrc: 4, copyDst: 8, storage: 128 } as const;
export const MAP_READ = 1;
export const MAP_WRITE = 2;
