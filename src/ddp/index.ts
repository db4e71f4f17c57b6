/**
 * tccl/ddp: data-parallel training, and collectives on the tensors of TensorFlow.js and ONNX Runtime.
 *
 * @module tccl/ddp
 */
export { loadCheckpoint, saveCheckpoint, type LoadOptions, type SaveOptions } from './checkpoint.js';
export { dataParallel, type DataParallel, type DataParallelOptions, type FinishOptions } from './data-parallel.js';
export type { Metadata } from './safetensors.js';
export { distributedSampler, type DistributedSampler, type SamplerOptions } from './sampler.js';
export { tensorCalls, type TensorCalls } from './tensor-calls.js';
export { deviceTensors } from './device-tensors.js';
export { onnxTensors, type Onnx, type OnnxTensor } from './onnx-tensors.js';
export type { Tensors } from './tensors.js';
export { tfjsTensors, whenGradient, type Tfjs, type TfjsTensor } from './tfjs-tensors.js';
