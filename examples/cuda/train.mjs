// Trains a network of two inputs, 8 hidden units and one output with kernels of CUDA. Each rank has its part of the points;
// weights and gradients stay in the memory of its GPU. Ranks may share one.
import { readFileSync } from 'node:fs';
import koffi from 'koffi';
import { init } from 'tccl';
import { cuda } from 'tccl/cuda';

const N_POINTS = Number(process.env.POINTS ?? 400);
const N_EPOCHS = Number(process.env.EPOCHS ?? 200);
const N_WEIGHTS = 4 * 8 + 1;
const RATE = 0.1;

/** A function of NVIDIA's driver, which must succeed. */
const library = koffi.load('libcuda.so.1');
function functionOf(prototype) {
  const call = library.func(prototype);
  return (...values) => {
    const result = call(...values);
    if (result !== 0) throw new Error(`CUresult ${result} of ${prototype}`);
  };
}
/** The same for one that writes a handle. */
function makerOf(prototype) {
  const call = functionOf(prototype);
  return (...values) => {
    const out = new BigUint64Array(1);
    call(out, ...values);
    return out[0];
  };
}

const comm = await init();
functionOf('int cuInit(uint32_t flags)')(0);
const [nDevices, device] = [new Int32Array(1), new Int32Array(1)];
functionOf('int cuDeviceGetCount(void *count)')(nDevices);
functionOf('int cuDeviceGet(void *device, int ordinal)')(device, comm.localRank % nDevices[0]);

// The primary context of the GPU is that of other libraries, and of tccl, too: the program's kernels take tccl's arrays.
const context = makerOf('int cuDevicePrimaryCtxRetain(void *context, int device)')(device[0]);
functionOf('int cuCtxPushCurrent_v2(uintptr_t context)')(context);
const gpu = await cuda(comm, { device: comm.localRank % nDevices[0] });

const text = Buffer.from(`${readFileSync(new URL('kernels.ptx', import.meta.url), 'utf8')}\0`);
const load = makerOf('int cuModuleLoadDataEx(void *module, void *text, uint32_t nOptions, void *options, void *values)');
const module = load(text, 0, null, null);
const kernelOf = makerOf('int cuModuleGetFunction(void *kernel, uintptr_t module, const char *name)');
const [backward, step] = ['backward', 'step'].map((name) => kernelOf(module, name));
const launch = functionOf(
  'int cuLaunchKernel(uintptr_t kernel, uint32_t x, uint32_t y, uint32_t z, uint32_t threads, uint32_t threadsY, uint32_t threadsZ, ' +
    'uint32_t shared, uintptr_t stream, void **parameters, void **extra)',
);
/** Queues one block of a kernel on the legacy default stream, whose order tccl keeps. */
function run(kernel, ...parameters) {
  launch(kernel, 1, 1, 1, N_WEIGHTS + 1, 1, 1, 0, 0n, parameters, null);
}
const pointerOf = ({ buffer }) => BigUint64Array.of(buffer.pointer);

/** Two interleaved half-circles: x, y, and 1 for points of the second. */
const all = Array.from({ length: N_POINTS }, (_, i) => {
  const angle = (Math.PI * (i >> 1)) / (N_POINTS / 2 - 1);
  return i % 2 === 0 ? [Math.cos(angle), Math.sin(angle), 0] : [1 - Math.cos(angle), 0.5 - Math.sin(angle), 1];
});
const own = all.filter((_, i) => i % comm.nRanks === comm.rank).flat();
const points = await gpu.alloc(Float32Array, own.length);
await points.upload(Float32Array.from(own));
/** Of each hidden unit: weights of x and y, its bias, and its weight in the output; then the output's bias. */
const weights = await gpu.alloc(Float32Array, N_WEIGHTS);
await weights.upload(Float32Array.from({ length: N_WEIGHTS }, (_, i) => Math.sin(12.9898 * (i + 1))));
/** Gradients of the weights, then the loss: one all-reduce adds both. */
const gradients = await gpu.alloc(Float32Array, N_WEIGHTS + 1);

for (let epoch = 1; epoch <= N_EPOCHS; epoch++) {
  run(backward, pointerOf(weights), pointerOf(gradients), pointerOf(points), Uint32Array.of(own.length / 3));
  await gpu.allReduce(gradients); // reads what backward wrote
  run(step, pointerOf(weights), pointerOf(gradients), Float32Array.of(RATE / N_POINTS)); // reads what the all-reduce wrote
  if (comm.rank === 0 && epoch % (N_EPOCHS / 5) === 0) {
    const loss = (await gradients.slice(N_WEIGHTS).download())[0] / N_POINTS;
    console.log(`epoch ${epoch}: loss ${loss.toFixed(4)}`);
  }
}
await gpu.close();
await comm.close();
