/** Results that the fake gives, with the driver's names and texts. */
export const texts = {
  0: ['CUDA_SUCCESS', 'no error'],
  1: ['CUDA_ERROR_INVALID_VALUE', 'invalid argument'],
  2: ['CUDA_ERROR_OUT_OF_MEMORY', 'out of memory'],
  3: ['CUDA_ERROR_NOT_INITIALIZED', 'initialization error'],
  100: ['CUDA_ERROR_NO_DEVICE', 'no CUDA-capable device is detected'],
  101: ['CUDA_ERROR_INVALID_DEVICE', 'invalid device ordinal'],
  201: ['CUDA_ERROR_INVALID_CONTEXT', 'invalid device context'],
  205: ['CUDA_ERROR_MAP_FAILED', 'mapping of buffer object failed'],
  209: ['CUDA_ERROR_NO_BINARY_FOR_GPU', 'no kernel image is available for execution on the device'],
  214: ['CUDA_ERROR_ECC_UNCORRECTABLE', 'uncorrectable ECC error encountered'],
  217: ['CUDA_ERROR_PEER_ACCESS_UNSUPPORTED', 'peer access is not supported between these two devices'],
  218: ['CUDA_ERROR_INVALID_PTX', 'a PTX JIT compilation failed'],
  400: ['CUDA_ERROR_INVALID_HANDLE', 'invalid resource handle'],
  500: ['CUDA_ERROR_NOT_FOUND', 'named symbol not found'],
  600: ['CUDA_ERROR_NOT_READY', 'device not ready'],
  700: ['CUDA_ERROR_ILLEGAL_ADDRESS', 'an illegal memory access was encountered'],
  704: ['CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED', 'peer access is already enabled'],
  712: ['CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED', 'part or all of the requested memory range is already mapped'],
  713: ['CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED', 'pointer does not correspond to a registered memory region'],
  716: ['CUDA_ERROR_MISALIGNED_ADDRESS', 'misaligned address'],
  719: ['CUDA_ERROR_LAUNCH_FAILED', 'unspecified launch failure'],
  800: ['CUDA_ERROR_NOT_PERMITTED', 'operation not permitted'],
  801: ['CUDA_ERROR_NOT_SUPPORTED', 'operation not supported'],
  802: ['CUDA_ERROR_SYSTEM_NOT_READY', 'system not yet initialized'],
} as const;

export type FakeResult = keyof typeof texts;
