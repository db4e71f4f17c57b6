import { expect, it } from 'vitest';
import { openDevice } from '../../../src/devices/device.js';
import type { DeviceMemory, Part } from '../../../src/devices/memory.js';
import { init } from '../../../src/index.js';

type Copy = 'read' | 'write';

/** A device in the host's memory, whose copies end when the test says so. */
class Memory implements DeviceMemory<Uint8Array> {
  readonly name = 'test';
  readonly alignment = 1;
  readonly lost: Promise<string>;
  lose: (why: string) => void = () => undefined;
  /** Called before each copy, with the number of copies of its kind before it. */
  before: (kind: Copy, index: number) => Promise<void> | void = () => undefined;
  readonly copies = { read: 0, write: 0 };
  closed = 0;
  /** Places of host memory that is pinned. */
  readonly pinned = new Set<Uint8Array>();

  constructor() {
    this.lost = new Promise((resolve) => (this.lose = resolve));
  }
  allocate(bytes: number): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(bytes));
  }
  release(): void {
    // Nothing to do.
  }
  pin(host: Uint8Array): () => void {
    this.pinned.add(host);
    return () => void this.pinned.delete(host);
  }
  sizeOf(buffer: Uint8Array): number {
    return buffer.length;
  }
  check(): Promise<void> {
    return Promise.resolve();
  }
  async read(parts: readonly Part<Uint8Array>[], to: Uint8Array): Promise<void> {
    await this.before('read', this.copies.read++);
    let at = 0;
    for (const { buffer, offset, bytes } of parts) {
      to.set(buffer.subarray(offset, offset + bytes), at);
      at += bytes;
    }
  }
  async write(parts: readonly Part<Uint8Array>[], from: Uint8Array): Promise<void> {
    await this.before('write', this.copies.write++);
    let at = 0;
    for (const { buffer, offset, bytes } of parts) {
      buffer.set(from.subarray(at, at + bytes), offset);
      at += bytes;
    }
  }
  close(): void {
    this.closed++;
  }
}

async function open() {
  const comm = await init({ rank: 0, nRanks: 1 });
  const memory = new Memory();
  const device = openDevice(comm, await comm.stream(), memory);
  const close = async (): Promise<void> => {
    await device.close();
    await comm.close();
  };
  return { comm, memory, device, close };
}

/** Elements of six steps. */
const length = 6 * 2 ** 20;

it('a call reads up to four steps ahead, and copies of steps that end out of order give the same result', async () => {
  const { memory, device, close } = await open();
  const x = await device.alloc(Float32Array, length);
  const values = Float32Array.from({ length }, (_, i) => i % 1013);
  await x.upload(values);
  const y = await device.alloc(Float32Array, length);
  memory.copies.read = memory.copies.write = 0;
  const waiting: (() => void)[] = [];
  memory.before = (kind, index) => {
    // The first four reads end in the opposite order.
    if (kind !== 'read' || index > 3) return undefined;
    const held = new Promise<void>((resolve) => waiting.push(resolve));
    if (waiting.length === 4) for (const end of waiting.reverse()) end();
    return held;
  };
  await device.allReduce(x, y);
  expect(memory.copies).toEqual({ read: 6, write: 6 });
  const result = await y.download();
  expect(values.findIndex((value, i) => value !== result[i])).toBe(-1);
  await close();
});

it('a read that fails ends both communicators, and no copy is under way when the call rejects', async () => {
  const { comm, memory, device, close } = await open();
  const x = await device.alloc(Float32Array, length);
  let underWay = 0;
  memory.before = async (kind, index) => {
    underWay++;
    await Promise.resolve();
    underWay--;
    if (kind === 'read' && index === 4) {
      memory.lose('somebody pulled the plug');
      throw new Error('the copy was cancelled');
    }
  };
  const why = 'somebody pulled the plug';
  await expect(device.allReduce(x)).rejects.toMatchObject({
    code: 'DEVICE_LOST',
    rank: 0,
    message: `rank 0 lost its test device: ${why}`,
  });
  expect(underWay).toBe(0);
  expect((await comm.failed).message).toBe(`rank 0 aborted the communicator: its test device was lost: ${why}`);
  await expect(x.download()).rejects.toMatchObject({ code: 'DEVICE_LOST' });
  expect(() => device.wrap(new Uint8Array(4), Float32Array)).toThrow(why);
  await close();
  expect(memory.closed).toBe(1);
});

it('a first step that the host refuses leaves the device usable', async () => {
  const { memory, device, close } = await open();
  const x = await device.alloc(Float32Array, length);
  await expect(device.allReduce(x, x, { premulSum: 'two' as never })).rejects.toMatchObject({ code: 'ARGUMENT_TYPE' });
  expect(memory.copies.write).toBe(0);
  await device.allReduce(x);
  await close();
});

it('elements that belong together are in one step', async () => {
  const { device, close } = await open();
  const x = await device.alloc(Int32Array, 3 * 2 ** 20);
  await device.allReduce(x, x, { combine: () => undefined, unit: 3 });
  await close();
});

it('parts of bytes that the device cannot address are refused only where it has a limit', async () => {
  const { device, close } = await open();
  const x = await device.alloc(Uint8Array, 7);
  await x.slice(1, 3).upload(Uint8Array.of(5, 6));
  expect(await x.download()).toEqual(Uint8Array.of(0, 5, 6, 0, 0, 0, 0));
  await close();
});

it('closing waits for calls; later ones are refused, and a device that is lost then does not end the communicator', async () => {
  const { comm, memory, device, close } = await open();
  const x = await device.alloc(Float32Array, 8);
  const calls = [device.allReduce(x), x.download()];
  const closing = device.close();
  await Promise.all([...calls, closing]);
  await expect(device.allReduce(x)).rejects.toMatchObject({ code: 'CLOSED' });
  memory.lose('too late');
  await Promise.resolve();
  expect(await comm.allReduce(1)).toBe(1);
  await close();
});

it('memory that steps use again is pinned in pages of its own, until the device is closed', async () => {
  const { comm, memory, device, close } = await open();
  const other = comm.alloc(Uint8Array, 100);
  const x = await device.alloc(Float32Array, length);
  await device.allReduce(x);
  expect(memory.pinned.size).toBe(4);
  for (const { byteOffset, byteLength } of memory.pinned) expect([byteOffset % 65_536, byteLength % 65_536]).toEqual([0, 0]);
  comm.free(other);
  await close();
  expect(memory.pinned.size).toBe(0);
});

it('a group that fails and is not awaited gives one unhandled rejection', async () => {
  const { memory, device, close } = await open();
  const x = await device.alloc(Float32Array, 4);
  const unhandled: unknown[] = [];
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (reason) => unhandled.push(reason));
  try {
    // The promises of operations may be ignored.
    void device.group(() => {
      void device.allReduce(x);
      throw new Error('the body threw');
    });
    memory.before = () => {
      throw new Error('the copy failed');
    };
    void device.group(() => void device.allReduce(x));
    await close();
    await new Promise(setImmediate);
  } finally {
    process.removeAllListeners('unhandledRejection');
    for (const listener of others) process.on('unhandledRejection', listener);
  }
  expect(unhandled.map((reason) => (reason as Error).message)).toEqual([
    'the body threw',
    'group: a copy of the test device failed: the copy failed',
  ]);
});

it('an array of a device as the output of a host call is not taken for options', async () => {
  const { comm, device, close } = await open();
  const x = await device.alloc(Float32Array, 4);
  const said = await comm.allReduce(new Float32Array(4), x as never).catch((error: unknown) => error);
  expect(said).toMatchObject({ code: 'ARGUMENT_TYPE', message: expect.not.stringContaining('options') as string });
  await close();
});
