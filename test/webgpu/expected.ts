import { refusalsOf } from '../devices/expected.js';

/** Errors that all ranks of `refusals` get of a WebGPU device; each leaves it usable. */
export function webgpuRefusalsOf(nRanks: number): Readonly<Record<string, string>> {
  const usage = 'make it with GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST';
  return {
    ...refusalsOf(nRanks),
    'no usage': `ARGUMENT_TYPE: wrap: the GPUBuffer was made without the usages COPY_SRC and COPY_DST; ${usage}`,
    'no COPY_DST': `ARGUMENT_TYPE: wrap: the GPUBuffer was made without the usage COPY_DST; ${usage}`,
    'no buffer': 'ARGUMENT_TYPE: wrap: pass a GPUBuffer, not an object of class Float32Array',
    'odd bytes': 'ARGUMENT_RANGE: alloc: 5 elements of Uint8Array are 5 bytes, and WebGPU copies multiples of 4; make it 8 bytes',
    'odd buffer': 'ARGUMENT_RANGE: wrap: the buffer has 6 bytes, and WebGPU copies multiples of 4; make it 8 bytes',
    'odd slice':
      'ARGUMENT_RANGE: slice: elements 1 to 3 of a Uint8Array do not begin and end at multiples of 4 bytes, which is what the device copies',
    'odd part': `BUFFER_SIZE: allToAll: a part of ${4 / nRanks} elements has ${4 / nRanks} bytes; the device copies multiples of 4 bytes, so pass a multiple of 4 elements for each rank`,
    destroyed: 'BUFFER_DETACHED: allReduce: the GPUBuffer was destroyed; pass one that is in use',
    mapped: 'ARGUMENT_TYPE: allReduce: the GPUBuffer is mapped; call its unmap() before',
    foreign:
      'ARGUMENT_TYPE: allReduce: the GPUBuffer is of another GPUDevice than that of webgpu(); pass a buffer that this device made',
  };
}
