import { kernelFor, kernelName, moduleText } from '../../src/runtime/device/ptx/kernels.js';
import { RECORD_BYTES, writeStep } from '../../src/runtime/device/ptx/step-record.js';
import type { Gpu } from './gpu.js';
import { withGpu, type Seen, type Setting } from './part.js';

/** Two chains of kernels of one block, on one stream and on two. */
export function* streams(setting: Setting): Generator<Seen> {
  yield* withGpu(setting, (gpu) => [checkStreams(gpu, setting.isFake)]);
}

function checkStreams(gpu: Gpu, isFake: boolean): Seen {
  const [count, length] = isFake ? [64, 3] : [1 << 18, 20];
  const kernel = kernelFor('stream', { type: 'float32', operator: 'sum' });
  const entry = gpu.kernel(moduleText([kernel], 75), kernelName(kernel));
  const other = gpu.context.makeStream();
  const ones = new Uint8Array(new Float32Array(count).fill(1).buffer);
  const added = gpu.allocate(ones.length);
  gpu.upload(added, ones);
  const sums = [gpu.allocate(ones.length), gpu.allocate(ones.length)];
  const launches = sums.map((sum) => {
    gpu.upload(sum, ones);
    const record = new Uint8Array(RECORD_BYTES);
    writeStep(new DataView(record.buffer), 0, { bytes: ones.length, sources: [sum, added], destinations: [sum] });
    return [gpu.stream, other].map((stream) => gpu.launcher(entry, 1, 128, record, stream));
  });
  // Launches of both chains by turns; `onTwo` gives each its stream.
  const run = (onTwo: boolean): number => {
    const startMs = performance.now();
    for (let i = 0; i < length; i++) launches.forEach((launch, chain) => launch[onTwo ? chain : 0]?.());
    for (const stream of [gpu.stream, other]) gpu.synchronize(stream);
    return performance.now() - startMs;
  };
  run(true);
  const [oneMs, twoMs] = [run(false), run(true)];
  const values = new Float32Array(count);
  const wrong = sums.filter((sum) => {
    gpu.download(sum, new Uint8Array(values.buffer));
    return values.some((value) => value !== 1 + 3 * length);
  });
  return {
    name: 'two streams',
    text:
      `2 × ${length} kernels of one block: ${oneMs.toFixed(2)} ms on one stream, ${twoMs.toFixed(2)} ms on two; ` +
      (wrong.length === 0 ? 'the sums are right' : `${wrong.length} of 2 sums are wrong`),
    verdict: wrong.length === 0 ? 'right' : 'wrong',
    figures: { oneMs, twoMs },
  };
}
