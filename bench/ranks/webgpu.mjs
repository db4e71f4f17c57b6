/**
 * All-reduces of GPUBuffers of two ranks through tccl/webgpu, beside its parts measured apart in the same rounds: readback of the
 * whole buffer, all-reduce of the host's array, upload.
 *     node webgpu.mjs WEBGPU BYTES ROUNDS
 * WEBGPU is the path of npm's webgpu. Each rank prints a line of JSON a size, with the least and the median milliseconds.
 *
 * @module
 */
import { init } from '../../dist/index.js';
import { webgpu } from '../../dist/webgpu/index.js';

const [library = '', size = '', count = ''] = process.argv.slice(2);
/** @type {any} */
const dawn = await import(library);
Object.assign(globalThis, dawn.globals);
const gpu = Object.assign(globalThis, { keptGpu: dawn.create([]) }).keptGpu;
const adapter = await gpu.requestAdapter();
const device = await adapter.requestDevice();

const comm = await init();
const opened = await webgpu(comm, device);
const bytes = Number(size);
const elements = bytes / 4;
const [x, y] = [await opened.alloc(Float32Array, elements), await opened.alloc(Float32Array, elements)];
await x.upload(new Float32Array(elements).map((_, i) => (i % 97) + comm.rank));

const host = comm.alloc(Float32Array, elements);
const reading = device.createBuffer({ size: bytes, usage: 1 | 8 });
const writing = device.createBuffer({ size: bytes, usage: 2 | 4, mappedAtCreation: true });

const parts = {
  readback: async () => {
    copy(x.buffer, reading);
    await reading.mapAsync(1);
    host.set(new Float32Array(reading.getMappedRange()));
    reading.unmap();
  },
  allReduce: () => comm.allReduce(host),
  upload: async () => {
    new Float32Array(writing.getMappedRange()).set(host);
    writing.unmap();
    copy(writing, y.buffer);
    await device.queue.onSubmittedWorkDone();
    await writing.mapAsync(2);
  },
  together: async () => {
    await opened.allReduce(x, y);
    await device.queue.onSubmittedWorkDone();
  },
};

/** @type {Record<string, number[]>} */
const times = {};
for (let round = -3; round < Number(count); round++) {
  for (const [name, run] of Object.entries(parts)) {
    await comm.barrier();
    const start = performance.now();
    await run();
    if (round >= 0) (times[name] ??= []).push(performance.now() - start);
  }
}
const result = await y.download();
const wrong = result.filter((value, i) => value !== 2 * (i % 97) + 1).length;
const stats = Object.entries(times).flatMap(([name, values]) => {
  const sorted = values.sort((a, b) => a - b);
  return [
    [`${name}LeastMs`, sorted[0]],
    [`${name}MedianMs`, sorted[sorted.length >> 1]],
  ];
});
const line = { rank: comm.rank, adapter: adapter.info.description, bytes, wrong, ...Object.fromEntries(stats) };
if (comm.rank === 0) console.log(JSON.stringify(line));
await opened.close();
await comm.close();

function copy(/** @type {any} */ from, /** @type {any} */ to) {
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(from, 0, to, 0, bytes);
  device.queue.submit([encoder.finish()]);
}
