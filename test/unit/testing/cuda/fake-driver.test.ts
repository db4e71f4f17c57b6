import { describe, expect, it } from 'vitest';
import { CudaContext } from '../../../../src/runtime/device/cuda/context.js';
import { FakeDriver } from '../../../../testing/cuda/fake-driver.js';
import { Gpu } from '../../../../testing/cuda/gpu.js';

function open(seed = 1): { driver: FakeDriver; gpu: Gpu } {
  const driver = new FakeDriver({ devices: 2, seed });
  driver.cuInit(0);
  return { driver, gpu: new Gpu(driver, 0) };
}

const kernel = (body: string): string =>
  `.version 8.2\n.target sm_75\n.address_size 64\n.visible .entry k(.param .b64 target)\n{\n  .reg .b64 %d<2>;\n  .reg .b32 %r<1>;
  mov.b64 %d1, target;\n  ld.param.b64 %d0, [%d1];\n${body}  ret;\n}\n`;
const store = (offset: number): string => kernel(`  mov.b32 %r0, 7;\n  st.global.b32 [%d0+${offset}], %r0;\n`);

describe('the fake driver', () => {
  it('copies page-locked memory when the stream is there, other memory within the call', () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 20; seed++) {
      const { driver, gpu } = open(seed);
      const pointer = gpu.allocate(4);
      const [locked, other] = [new Uint8Array(4).fill(1), new Uint8Array(4).fill(1)];
      gpu.context.run(() => driver.cuMemHostRegister_v2(locked, 4, 0));
      gpu.queueUpload(pointer, locked);
      locked.fill(2);
      gpu.synchronize();
      seen.add(`locked ${driver.bytesAt(pointer, 1)[0]}`);
      gpu.queueUpload(pointer, other);
      other.fill(2);
      gpu.synchronize();
      seen.add(`other ${driver.bytesAt(pointer, 1)[0]}`);
      gpu.queueDownload(pointer, other);
      seen.add(`down ${other[0]}`);
    }
    expect([...seen].sort()).toEqual(['down 1', 'locked 2', 'other 1']);
  });

  it('refuses ranges and pages of which a part is locked', () => {
    const { driver, gpu } = open();
    const pointer = gpu.allocate(4096);
    const host = new Uint8Array(8192);
    gpu.context.run(() => {
      expect(driver.cuMemHostRegister_v2(host.subarray(0, 100), 100, 0)).toBe(0);
      expect(driver.cuMemHostRegister_v2(host.subarray(200, 300), 100, 0)).toBe(712);
      expect(driver.cuMemHostRegister_v2(host.subarray(4096), 4096, 0)).toBe(0);
      expect(driver.cuMemcpyHtoDAsync_v2(pointer, host.subarray(50, 150), 100, 0n)).toBe(1);
      expect(driver.cuMemHostUnregister(host.subarray(200))).toBe(713);
    });
  });

  it('an event is reached late, in an order that the seed chooses', async () => {
    const polls = new Set<number>();
    for (let seed = 1; seed <= 10; seed++) {
      const { driver, gpu } = open(seed);
      const pointer = gpu.allocate(64);
      for (let i = 0; i < 5; i++) gpu.queueCopy(pointer, pointer, 64);
      await gpu.context.reached(gpu.stream);
      polls.add(driver.calls.get('cuEventQuery') ?? 0);
    }
    expect(polls.size).toBeGreaterThan(2);
  });

  it('the stream 0 waits for blocking streams, and they for it', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { driver, gpu } = open(seed);
      const [a, b] = [gpu.allocate(4), gpu.allocate(4)];
      gpu.upload(a, new Uint8Array(4).fill(1));
      const blocking = new BigUint64Array(1);
      gpu.context.run(() => {
        driver.cuStreamCreate(blocking, 0);
        const [stream = 0n] = blocking;
        driver.cuMemsetD8Async(a, 2, 4, stream);
        driver.cuMemcpyDtoDAsync_v2(b, a, 4, 0n);
        driver.cuMemsetD8Async(a, 3, 4, stream);
        driver.cuStreamSynchronize(0n);
        expect(driver.bytesAt(b, 1)[0]).toBe(2);
        driver.cuStreamSynchronize(stream);
        expect(driver.bytesAt(a, 1)[0]).toBe(3);
      });
    }
  });

  it('the streams 0 of two GPUs do not wait for each other', () => {
    const seen = new Set<number | undefined>();
    for (let seed = 1; seed <= 20; seed++) {
      const { driver, gpu } = open(seed);
      const other = new CudaContext(driver, 1);
      const [out, here] = [new BigUint64Array(1), gpu.allocate(4)];
      other.run(() => driver.cuMemAlloc_v2(out, 4));
      const [there = 0n] = out;
      driver.bytesAt(there, 4).fill(0);
      other.run(() => driver.cuMemsetD8Async(there, 7, 4, 0n));
      gpu.context.run(() => {
        driver.cuMemsetD8Async(here, 7, 4, 0n);
        driver.cuStreamSynchronize(0n);
      });
      expect(driver.bytesAt(here, 1)[0]).toBe(7);
      seen.add(driver.bytesAt(there, 1)[0]);
    }
    expect([...seen].sort()).toEqual([0, 7]);
  });

  it('a kernel that faults ends the context for good, after it was launched', () => {
    for (const [offset, name] of [
      [4096, 'ILLEGAL_ADDRESS'],
      [2, 'MISALIGNED_ADDRESS'],
    ] as const) {
      const { gpu } = open();
      const pointer = gpu.allocate(16);
      const launch = (text: string): void => {
        gpu.launcher(gpu.functionOf(gpu.load(text), 'k'), 1, 1, new Uint8Array(BigUint64Array.of(pointer).buffer))();
      };
      launch(store(0));
      gpu.synchronize();
      launch(store(offset));
      expect(() => gpu.synchronize()).toThrow(`cuStreamSynchronize: CUDA_ERROR_${name}`);
      expect(() => gpu.allocate(1)).toThrow(`cuMemAlloc: CUDA_ERROR_${name}`);
    }
  });

  it('gives the messages of the compiler', () => {
    const { gpu } = open();
    expect(() => gpu.load(kernel('  frobnicate 1;\n').replace('.entry', '.entrance'))).toThrow(/^ptxas: not understood: /);
  });

  it('refuses calls without a context, and arguments of other kinds', () => {
    const { driver, gpu } = open();
    expect(driver.cuMemAlloc_v2(new BigUint64Array(1), 4)).toBe(201);
    expect(() => driver.cuMemFree_v2(4096 as never)).toThrow('argument 0 of cuMemFree_v2 is a uintptr_t, not 4096');
    expect(() => driver.cuDeviceGetCount(new Uint8Array(2))).toThrow('a driver would write 4 bytes to an array of 2');
    gpu.context.run(() => expect(driver.cuStreamSynchronize(77n)).toBe(400));
  });

  it('contexts are given back as often as they were taken', () => {
    const { driver, gpu } = open();
    const other = new CudaContext(driver, 1);
    expect(driver.left).toMatchObject({ contexts: 2, handles: 1 });
    other.close();
    gpu.close();
    expect(driver.left).toEqual({ allocations: 0, virtual: 0, opened: 0, locked: 0, handles: 0, contexts: 0, current: 0 });
    expect(() => gpu.allocate(4)).toThrow('cuCtxPushCurrent: CUDA_ERROR_INVALID_CONTEXT (invalid device context)');
  });
});
