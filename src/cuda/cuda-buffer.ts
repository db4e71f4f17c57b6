/** Memory of an NVIDIA GPU. */
export interface CudaBuffer {
  /** Address of the first byte, a `CUdeviceptr`. */
  readonly pointer: bigint;
  readonly bytes: number;
}
