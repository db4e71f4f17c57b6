// Trains a network of two inputs, 16 hidden units and one output with kernels of WebGPU. Each rank has its part of the points;
// weights and gradients stay in GPUBuffers.
import { create, globals } from 'webgpu';
import { init } from 'tccl';
import { webgpu } from 'tccl/webgpu';

Object.assign(globalThis, globals);
// Keep what create() gives: the process ends when it is collected.
globalThis.gpu = create([]);
const adapter = await globalThis.gpu.requestAdapter();
if (adapter === null) {
  console.error('no adapter: install a driver of the GPU, or a software one such as SwiftShader');
  process.exit(1);
}
const device = await adapter.requestDevice();

const N_POINTS = 400;
const N_HIDDEN = 16;
const N_WEIGHTS = 4 * N_HIDDEN + 1;
const N_EPOCHS = 100;

const comm = await init();
const gpu = await webgpu(comm, device);

/** Two interleaved half-circles: x, y, and 1 for points of the second. */
const all = Array.from({ length: N_POINTS }, (_, i) => {
  const angle = (Math.PI * (i >> 1)) / (N_POINTS / 2 - 1);
  return i % 2 === 0 ? [Math.cos(angle), Math.sin(angle), 0, 0] : [1 - Math.cos(angle), 0.5 - Math.sin(angle), 1, 0];
});
const own = all.filter((_, i) => i % comm.nRanks === comm.rank).flat();
const points = await gpu.alloc(Float32Array, own.length);
await points.upload(Float32Array.from(own));
/** Of each hidden unit: weights of x and y, its bias, and its weight in the output; then the output's bias. */
const weights = await gpu.alloc(Float32Array, N_WEIGHTS);
await weights.upload(Float32Array.from({ length: N_WEIGHTS }, (_, i) => Math.sin(12.9898 * (i + 1))));
/** Gradients of the weights, then the loss: one all-reduce adds both. */
const gradients = await gpu.alloc(Float32Array, N_WEIGHTS + 1);

const code = /* wgsl */ `
  @group(0) @binding(0) var<storage, read_write> weights: array<f32>;
  @group(0) @binding(1) var<storage, read_write> gradients: array<f32>;
  @group(0) @binding(2) var<storage, read_write> points: array<vec4f>;

  fn hidden(unit: u32, at: vec4f) -> f32 {
    return tanh(weights[4 * unit] * at.x + weights[4 * unit + 1] * at.y + weights[4 * unit + 2]);
  }

  // An invocation adds the gradients of one weight over all points.
  @compute @workgroup_size(64) fn backward(@builtin(global_invocation_id) id: vec3u) {
    let weight = id.x;
    if (weight > ${N_WEIGHTS}) { return; }
    var sum = 0f;
    for (var i = 0u; i < arrayLength(&points); i++) {
      let at = points[i];
      var output = weights[${N_WEIGHTS - 1}];
      for (var unit = 0u; unit < ${N_HIDDEN}; unit++) { output += weights[4 * unit + 3] * hidden(unit, at); }
      let probability = 1 / (1 + exp(-output));
      let error = probability - at.z;
      if (weight == ${N_WEIGHTS}) {
        sum -= log(select(1 - probability, probability, at.z == 1));
      } else if (weight == ${N_WEIGHTS - 1}) {
        sum += error;
      } else {
        let value = hidden(weight / 4, at);
        let back = error * weights[(weight / 4) * 4 + 3] * (1 - value * value);
        sum += array(back * at.x, back * at.y, back, error * value)[weight % 4];
      }
    }
    gradients[weight] = sum;
  }

  @compute @workgroup_size(64) fn step(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < ${N_WEIGHTS}) { weights[id.x] -= 0.5 * gradients[id.x] / ${N_POINTS}; }
  }`;
const module = device.createShaderModule({ code });
const entries = [0, 1, 2].map((binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: 'storage' } }));
const bindings = device.createBindGroupLayout({ entries });
const layout = device.createPipelineLayout({ bindGroupLayouts: [bindings] });
const pipelineOf = (entryPoint) => device.createComputePipeline({ layout, compute: { module, entryPoint } });
const [backward, step] = [pipelineOf('backward'), pipelineOf('step')];
const arrays = device.createBindGroup({
  layout: bindings,
  entries: [weights, gradients, points].map(({ buffer }, binding) => ({ binding, resource: { buffer } })),
});

function run(pipeline) {
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, arrays);
  pass.dispatchWorkgroups(Math.ceil((N_WEIGHTS + 1) / 64));
  pass.end();
  device.queue.submit([encoder.finish()]);
}

for (let epoch = 1; epoch <= N_EPOCHS; epoch++) {
  run(backward);
  await gpu.allReduce(gradients); // reads what backward wrote
  run(step); // reads what the all-reduce wrote
  if (comm.rank === 0 && epoch % 20 === 0) {
    const loss = (await gradients.slice(N_WEIGHTS).download())[0] / N_POINTS;
    console.log(`epoch ${epoch}: loss ${loss.toFixed(4)}`);
  }
}
await gpu.close();
await comm.close();
