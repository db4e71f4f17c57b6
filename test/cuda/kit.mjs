// For the compliance tests of devices: wrong inputs for CUDA, and functions that make memory and end the device.

/** PTX of a kernel with one parameter, an address, which is in %d0. */
export function kernelOf(name, ...lines) {
  return `.version 8.2
.target sm_75
.address_size 64
.visible .entry ${name}(.param .b64 target)
{
  .reg .b64 %d<2>;
  .reg .b32 %r<1>;
  mov.b64 %d1, target;
  ld.param.b64 %d0, [%d1];
  ${lines.join('\n  ')}
  ret;
}
`;
}

/** A kernel that stores where no memory is. */
const faulty = kernelOf('faulty', 'mov.b32 %r0, 1;', 'st.global.b32 [%d0], %r0;');

/** @param context of the program's own, on the device that `gpu` has */
export function kitOf(gpu, driver, context, other) {
  const inContext = (of, run) => of.run((calls) => run(calls));
  const make = (bytes, of = context) =>
    inContext(of, (calls) => {
      const out = new BigUint64Array(1);
      of.check('cuMemAlloc', calls.cuMemAlloc_v2(out, bytes));
      return { pointer: out[0], bytes };
    });
  // As of a GPUBuffer, further times have no effect.
  const destroyed = new Set();
  const destroy = ({ pointer }) => {
    if (!destroyed.has(pointer)) inContext(context, (calls) => context.check('cuMemFree', calls.cuMemFree_v2(pointer)));
    destroyed.add(pointer);
  };
  const freed = gpu.wrap(make(16), Float32Array);
  destroy(freed.buffer);
  const tensor = { data: make(64).pointer, device: [2, 0], dtype: { code: 2, bits: 32, lanes: 1 }, shape: [4, 4] };
  const wrong = (fields) => () => gpu.fromPointer({ ...tensor, ...fields });
  return {
    make,
    destroy,
    lose: () => launch(driver, context, faulty, 'faulty', BigUint64Array.of(0xdead_0000n)),
    refusals: {
      'no memory': () => gpu.wrap(new Float32Array(4), Float32Array),
      'no address': () => gpu.wrap({ pointer: 4096, bytes: 16 }, Float32Array),
      unknown: () => gpu.wrap({ pointer: 0x123000n, bytes: 16 }, Float32Array),
      'too long': () => gpu.wrap({ ...make(16), bytes: 32 }, Float32Array),
      'fewer than none': () => gpu.wrap({ ...make(16), bytes: -4 }, Float32Array),
      unaligned: () => gpu.wrap({ pointer: make(16).pointer + 1n, bytes: 8 }, Float32Array),
      foreign: () => gpu.wrap(make(16, other), Float32Array),
      'freed by the program': () => gpu.allReduce(freed),
      'out of memory': () => gpu.alloc(Float32Array, 2 ** 40),
      'no tensor': () => gpu.fromPointer(tensor.data),
      'no data': wrong({ data: '0x1000' }),
      'negative data': wrong({ data: -4n }),
      'no device': wrong({ device: 2 }),
      'device of bigints': wrong({ device: [2n, 0n] }),
      'strides of bigints': wrong({ strides: [1n, 4n] }),
      'too many': wrong({ shape: [2 ** 40, 2 ** 40] }),
      'of no elements': () => gpu.fromPointer({ ...tensor, data: 0, shape: [0] }).download(),
      'of the host': wrong({ device: [1, 0] }),
      'of another GPU': wrong({ device: [2, 1] }),
      complex: wrong({ dtype: { code: 5, bits: 64, lanes: 1 } }),
      vectors: wrong({ dtype: { code: 2, bits: 32, lanes: 4 } }),
      shape: wrong({ shape: [4, -1] }),
      transposed: wrong({ strides: [1, 4] }),
      beyond: wrong({ byteOffset: 4 }),
    },
  };
}

/** Queues a kernel of the program's on the stream 0. */
export function launch(driver, context, text, name, parameters) {
  context.run((calls) => {
    const out = new BigUint64Array(1);
    const image = new TextEncoder().encode(`${text}\0`);
    context.check('cuModuleLoadDataEx', calls.cuModuleLoadDataEx(out, image, 0, new Uint32Array(1), new BigUint64Array(1)));
    context.check('cuModuleGetFunction', calls.cuModuleGetFunction(out, out[0], name));
    const bytes = BigUint64Array.of(BigInt(parameters.byteLength));
    const extra = BigUint64Array.of(1n, driver.addressOf(parameters), 2n, driver.addressOf(bytes), 0n);
    context.check('cuLaunchKernel', calls.cuLaunchKernel(out[0], 1, 1, 1, 1, 1, 1, 0, 0n, 0n, extra));
  });
}
