// For the compliance tests of devices: wrong inputs for WebGPU, and functions that make buffers and end the device.

const COPY_SRC = 4;
const COPY_DST = 8;
const STORAGE = 128;
const ALL = STORAGE | COPY_SRC | COPY_DST;

/** @param other another GPUDevice */
export function kitOf(gpu, device, other) {
  const made = (of, size = 16, usage = ALL, mappedAtCreation = false) => of.createBuffer({ size, usage, mappedAtCreation });
  const destroyed = gpu.wrap(made(device), Float32Array);
  destroyed.buffer.destroy();
  const mapped = gpu.wrap(made(device, 16, ALL, true), Float32Array);
  const foreign = other && gpu.wrap(made(other), Float32Array);
  return {
    make: (bytes) => made(device, bytes),
    destroy: (buffer) => buffer.destroy(),
    lose: () => device.destroy(),
    refusals: {
      'no usage': () => gpu.wrap(made(device, 16, STORAGE), Float32Array),
      'no COPY_DST': () => gpu.wrap(made(device, 16, STORAGE | COPY_SRC), Float32Array),
      'no buffer': () => gpu.wrap(new Float32Array(4), Float32Array),
      'odd bytes': () => gpu.alloc(Uint8Array, 5),
      'odd buffer': () => gpu.wrap(made(device, 6), Uint8Array),
      'odd slice': async () => (await gpu.alloc(Uint8Array, 8)).slice(1, 3),
      'odd part': async () => gpu.allToAll(await gpu.alloc(Uint8Array, 4)),
      destroyed: () => gpu.allReduce(destroyed),
      mapped: () => gpu.allReduce(mapped),
      foreign: () => gpu.allReduce(foreign),
    },
  };
}

/** Words of each rank where rank 1's device was lost before, and the sum of a call on new devices after it. */
export async function lostBefore(comm, webgpu, newDevice) {
  const device = await newDevice();
  if (comm.rank === 1) device.destroy();
  const said = await webgpu(comm, device).then(
    () => 'nothing',
    ({ code, message }) => `${code}: ${message}`,
  );
  const gpu = await webgpu(comm, await newDevice());
  const x = await gpu.alloc(Int32Array, 1);
  await x.upload(Int32Array.of(comm.rank));
  await gpu.allReduce(x);
  const [sum] = await x.download();
  await gpu.close();
  return [said, sum];
}
