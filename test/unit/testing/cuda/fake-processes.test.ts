import { describe, expect, it } from 'vitest';
import { CudaContext } from '../../../../src/runtime/device/cuda/context.js';
import { IPC_BYTES } from '../../../../src/runtime/device/cuda/functions.js';
import { FakeDriver, FakeMachine } from '../../../../testing/cuda/fake-driver.js';

const SHARED = 2;
const WITHOUT_TIMING_OF_PROCESSES = 6;

/** Two processes on one machine: this one, and the first of the system, which runs, too. */
function twoProcesses(options: { seed?: number; isPeer?: (from: number, to: number) => boolean } = {}) {
  const memory = new Uint8Array(new SharedArrayBuffer(1 << 24));
  const open = (pid: number): Process => {
    const driver = new FakeDriver({ devices: SHARED, machine: new FakeMachine(memory, pid), ...options });
    driver.cuInit(0);
    const contexts = [0, 1].map((ordinal) => new CudaContext(driver, ordinal));
    const out = new BigUint64Array(1);
    const handle = new Uint8Array(IPC_BYTES);
    const on =
      (device: number) =>
      (name: string, ...values: unknown[]): number =>
        contexts[device]?.run((functions) =>
          (functions as unknown as Record<string, (...values: unknown[]) => number>)[name]?.(...values),
        ) ?? -1;
    const made = (result: number): bigint => {
      expect(result).toBe(0);
      return out[0] ?? 0n;
    };
    return { driver, call: on(0), callOn: on, out, handle, made };
  };
  return [open(process.pid), open(1)] as const;
}

interface Process {
  readonly driver: FakeDriver;
  call(name: string, ...values: unknown[]): number;
  callOn(device: number): (name: string, ...values: unknown[]) => number;
  readonly out: BigUint64Array;
  readonly handle: Uint8Array;
  made(result: number): bigint;
}

/** Memory of one process, and its address in the other. */
function sharedMemory(owner: Process, other: Process, bytes = 64) {
  const pointer = owner.made(owner.call('cuMemAlloc_v2', owner.out, bytes));
  expect(owner.call('cuIpcGetMemHandle', owner.handle, pointer + 8n)).toBe(0);
  const open = (): number => other.call('cuIpcOpenMemHandle_v2', other.out, { reserved: owner.handle }, 1);
  return { pointer, opened: other.made(open()), open };
}

describe('processes with fake drivers', () => {
  it('share memory, each under addresses of its own', () => {
    const [a, b] = twoProcesses();
    const { pointer, opened, open } = sharedMemory(a, b);
    expect(opened).not.toBe(pointer);
    expect(b.made(open())).toBe(opened);
    b.call('cuMemsetD8Async', opened + 4n, 9, 4, 0n);
    b.call('cuStreamSynchronize', 0n);
    expect([...a.driver.bytesAt(pointer, 8)].slice(4)).toEqual([9, 9, 9, 9]);
    expect(b.call('cuMemsetD8Async', pointer, 9, 4, 0n)).toBe(1);
    expect(b.call('cuMemFree_v2', opened)).toBe(1);
    expect([b.call('cuIpcCloseMemHandle', opened), b.driver.left.opened]).toEqual([0, 1]);
    expect([b.call('cuIpcCloseMemHandle', opened), b.driver.left.opened]).toEqual([0, 0]);
    expect(b.call('cuIpcCloseMemHandle', opened)).toBe(1);
    expect(b.call('cuMemsetD8Async', opened, 9, 4, 0n)).toBe(1);
    expect(a.call('cuMemFree_v2', pointer)).toBe(0);
    expect(open()).toBe(400);
  });

  it('cannot open their own memory and events, or what is none', () => {
    const [a, b] = twoProcesses();
    sharedMemory(a, b);
    expect(a.call('cuIpcOpenMemHandle_v2', a.out, { reserved: a.handle }, 1)).toBe(201);
    expect(b.call('cuIpcOpenMemHandle_v2', b.out, { reserved: a.handle }, 0)).toBe(1);
    expect(b.call('cuIpcOpenEventHandle', b.out, { reserved: a.handle })).toBe(400);
    const event = a.made(a.call('cuEventCreate', a.out, WITHOUT_TIMING_OF_PROCESSES));
    expect(a.call('cuIpcGetEventHandle', a.handle, event)).toBe(0);
    expect(a.call('cuIpcOpenEventHandle', a.out, { reserved: a.handle })).toBe(201);
    expect(b.call('cuIpcOpenMemHandle_v2', b.out, { reserved: a.handle }, 1)).toBe(400);
    const own = a.made(a.call('cuEventCreate', a.out, 2));
    expect(a.call('cuIpcGetEventHandle', a.handle, own)).toBe(400);
    expect(a.call('cuEventCreate', a.out, 4)).toBe(1);
  });

  it('must not free memory that another one has open', () => {
    const [a, b] = twoProcesses();
    const { pointer, opened } = sharedMemory(a, b);
    expect(() => a.call('cuMemFree_v2', pointer)).toThrow(/^processes 1 have memory open that is freed/);
    b.call('cuIpcCloseMemHandle', opened);
    expect(a.call('cuMemFree_v2', pointer)).toBe(0);
  });

  it('wait for what another one had recorded, however late it is done', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const [a, b] = twoProcesses({ seed });
      const { pointer, opened } = sharedMemory(a, b);
      const event = a.made(a.call('cuEventCreate', a.out, WITHOUT_TIMING_OF_PROCESSES));
      a.call('cuIpcGetEventHandle', a.handle, event);
      const foreign = b.made(b.call('cuIpcOpenEventHandle', b.out, { reserved: a.handle }));
      // Not recorded yet: nothing to wait for.
      b.call('cuStreamWaitEvent', 0n, foreign, 0);
      expect(b.call('cuStreamSynchronize', 0n)).toBe(0);
      a.call('cuMemsetD8Async', pointer, 5, 4, 0n);
      a.call('cuEventRecord', event, 0n);
      b.call('cuStreamWaitEvent', 0n, foreign, 0);
      b.call('cuMemcpyDtoDAsync_v2', opened + 8n, opened, 4, 0n);
      const done = b.made(b.call('cuEventCreate', b.out, 2));
      b.call('cuEventRecord', done, 0n);
      for (let i = 0; i < 20; i++) expect(b.call('cuEventQuery', done)).toBe(600);
      a.call('cuStreamSynchronize', 0n);
      b.call('cuStreamSynchronize', 0n);
      expect([...a.driver.bytesAt(pointer + 8n, 4)]).toEqual([5, 5, 5, 5]);
    }
  });

  it('kernels and handles reach memory of another GPU where it was allowed', () => {
    const [a, b] = twoProcesses({ isPeer: (from) => from === 0 });
    const can = new Int32Array(1);
    a.driver.cuDeviceCanAccessPeer(can, 0, 1);
    expect(can[0]).toBe(1);
    a.driver.cuDeviceCanAccessPeer(can, 1, 0);
    expect(can[0]).toBe(0);
    const other = new CudaContext(a.driver, 1);
    expect(a.call('cuCtxEnablePeerAccess', other.handle, 0)).toBe(0);
    expect(a.call('cuCtxEnablePeerAccess', other.handle, 0)).toBe(704);
    expect(a.callOn(1)('cuCtxEnablePeerAccess', new CudaContext(a.driver, 0).handle, 0)).toBe(217);
    sharedMemory(a, b);
    expect(b.callOn(1)('cuIpcOpenMemHandle_v2', b.out, { reserved: a.handle }, 1)).toBe(217);
  });
});
