import { closeSync } from 'node:fs';
import { expect, it } from 'vitest';
import { KernelModules } from '../../../src/cuda/cuda-kernels.js';
import { CudaSwitch } from '../../../src/cuda/cuda-switch.js';
import { SwitchMemory } from '../../../src/cuda/switch-memory.js';
import { switchBytes } from '../../../src/cuda/switch-steps.js';
import { CudaContext } from '../../../src/runtime/device/cuda/context.js';
import { FakeDriver } from '../../../testing/cuda/fake-driver.js';

/** Two GPUs of one process on a switch. */
function twoGpus() {
  const driver = new FakeDriver({ devices: 2, hasMulticast: true });
  driver.cuInit(0);
  const contexts = [new CudaContext(driver, 0), new CudaContext(driver, 1)] as const;
  const streams = contexts.map((context) => context.makeStream());
  const own = SwitchMemory.create(contexts[0], 2, switchBytes(1));
  const fd = own.export();
  const memories = [own, SwitchMemory.import(contexts[1], fd, own.bytes)];
  closeSync(fd);
  for (const memory of memories) memory.add();
  memories.forEach((memory, rank) => memory.bind(streams[rank] ?? 0n));
  contexts[0].run((calls) => streams.forEach((stream) => calls.cuStreamSynchronize(stream)));
  for (const memory of memories) memory.map();
  const ranks = contexts.map((context, rank) => {
    const [memory, stream = 0n] = [memories[rank], streams[rank]];
    if (memory === undefined) throw new Error('no memory');
    return {
      context,
      stream,
      onSwitch: new CudaSwitch(context, new KernelModules(context), stream, memory, { rank, nRanks: 2, nBlocks: 1 }),
    };
  });
  contexts[0].run((calls) => streams.forEach((stream) => calls.cuStreamSynchronize(stream)));
  const make = (context: CudaContext, values: Int32Array): bigint => {
    const out = new BigUint64Array(1);
    context.run((calls) => calls.cuMemAlloc_v2(out, values.byteLength));
    driver.bytesAt(out[0] ?? 0n, values.byteLength).set(new Uint8Array(values.buffer));
    return out[0] ?? 0n;
  };
  return { driver, ranks, make };
}

const COUNT = 5;
const sum = { type: 'int32', operator: 'sum' } as const;

it('calls that are queued keep the records of those that have not begun', async () => {
  const { driver, ranks, make } = twoGpus();
  const calls = Array.from({ length: 7 }, (_, call) =>
    ranks.map(({ context }, rank) => make(context, new Int32Array(COUNT).fill(10 * call + rank))),
  );
  // No stream does anything until somebody asks for it.
  await Promise.all(
    ranks.map(async ({ onSwitch }, rank) => {
      for (const arrays of calls) {
        const part = { buffer: { pointer: arrays[rank] ?? 0n, bytes: 4 * COUNT }, offset: 0, bytes: 4 * COUNT };
        const call = { name: 'allReduce', root: 0, count: COUNT, elementBytes: 4, combining: sum, input: part, output: part };
        expect(onSwitch.takes(call)).toBe(true);
        await onSwitch.queue(call);
      }
    }),
  );
  for (const { context, stream } of ranks) await context.reached(stream);
  const results = calls.map((arrays) => arrays.map((array) => new Int32Array(driver.bytesAt(array, 4 * COUNT).slice().buffer)));
  expect(results).toEqual(calls.map((_, call) => [0, 1].map(() => new Int32Array(COUNT).fill(20 * call + 1))));
});

it('a kernel gives up when the ranks have failed, and no call is taken afterwards', async () => {
  const { driver, ranks, make } = twoGpus();
  const [{ context, stream, onSwitch }] = ranks as [(typeof ranks)[0]];
  const array = make(context, new Int32Array(COUNT).fill(3));
  const part = { buffer: { pointer: array, bytes: 4 * COUNT }, offset: 0, bytes: 4 * COUNT };
  const call = { name: 'allReduce', root: 0, count: COUNT, elementBytes: 4, combining: sum, input: part, output: part };
  await onSwitch.queue(call);
  expect([onSwitch.isPending, driver.calls.get('cuLaunchKernel')]).toEqual([true, 1]);
  onSwitch.abandon();
  await context.reached(stream);
  expect([...new Int32Array(driver.bytesAt(array, 4 * COUNT).slice().buffer)]).toEqual([3, 3, 3, 3, 3]);
  expect(onSwitch.takes(call)).toBe(false);
});
