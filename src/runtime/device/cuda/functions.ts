/**
 * Kinds of arguments, with the type that the C declaration of a function has. A `handle` is a context, stream, event, module,
 * function, or an address of a device; `bytes` is memory of the host, which the driver reads or writes.
 */
export const argumentTypes = {
  i32: 'int',
  u32: 'uint32_t',
  byte: 'uint8_t',
  size: 'size_t',
  handle: 'uintptr_t',
  bytes: 'void *',
  name: 'const char *',
  text: '_Out_ const char **',
  ipc: 'CUipcHandle',
} as const;

/** Bytes of `CUipcMemHandle` and `CUipcEventHandle`, by which processes share memory and events. */
export const IPC_BYTES = 64;

/** Such a handle as an argument: functions take the struct itself, not its address. */
export interface IpcHandle {
  readonly reserved: Uint8Array;
}

interface ArgumentValues {
  readonly i32: number;
  readonly u32: number;
  readonly byte: number;
  readonly size: number;
  readonly handle: bigint;
  readonly bytes: ArrayBufferView;
  readonly name: string;
  /** Filled with a text of the driver. */
  readonly text: [string | null];
  readonly ipc: IpcHandle;
}

type Kind = keyof ArgumentValues;

/**
 * The functions of libcuda.so.1 that are called, by the names that the library has: cuda.h hides the suffix `_v2`. One table
 * for koffi, for the types of calls, and for the list of functions that an older driver lacks.
 */
export const functions = {
  cuInit: ['u32'],
  cuDriverGetVersion: ['bytes'],
  cuGetErrorName: ['i32', 'text'],
  cuGetErrorString: ['i32', 'text'],

  cuDeviceGetCount: ['bytes'],
  cuDeviceGet: ['bytes', 'i32'],
  cuDeviceGetName: ['bytes', 'i32', 'i32'],
  cuDeviceGetUuid_v2: ['bytes', 'i32'],
  cuDeviceGetPCIBusId: ['bytes', 'i32', 'i32'],
  cuDeviceGetAttribute: ['bytes', 'i32', 'i32'],
  cuDeviceTotalMem_v2: ['bytes', 'i32'],
  cuDeviceCanAccessPeer: ['bytes', 'i32', 'i32'],

  cuDevicePrimaryCtxRetain: ['bytes', 'i32'],
  cuDevicePrimaryCtxRelease_v2: ['i32'],
  cuCtxPushCurrent_v2: ['handle'],
  cuCtxPopCurrent_v2: ['bytes'],
  cuCtxEnablePeerAccess: ['handle', 'u32'],

  cuMemAlloc_v2: ['bytes', 'size'],
  cuMemFree_v2: ['handle'],
  cuMemsetD8Async: ['handle', 'byte', 'size', 'handle'],
  cuMemHostRegister_v2: ['bytes', 'size', 'u32'],
  cuMemHostUnregister: ['bytes'],
  cuMemHostGetDevicePointer_v2: ['bytes', 'bytes', 'u32'],
  cuPointerGetAttribute: ['bytes', 'i32', 'handle'],
  cuMemcpyHtoDAsync_v2: ['handle', 'bytes', 'size', 'handle'],
  cuMemcpyDtoHAsync_v2: ['bytes', 'handle', 'size', 'handle'],
  cuMemcpyDtoDAsync_v2: ['handle', 'handle', 'size', 'handle'],

  cuMemGetAllocationGranularity: ['bytes', 'bytes', 'i32'],
  cuMemCreate: ['bytes', 'size', 'bytes', 'handle'],
  cuMemExportToShareableHandle: ['bytes', 'handle', 'i32', 'handle'],
  cuMemImportFromShareableHandle: ['bytes', 'handle', 'i32'],
  cuMemAddressReserve: ['bytes', 'size', 'size', 'handle', 'handle'],
  cuMemMap: ['handle', 'size', 'size', 'handle', 'handle'],
  cuMemSetAccess: ['handle', 'size', 'bytes', 'size'],
  cuMemUnmap: ['handle', 'size'],
  cuMemAddressFree: ['handle', 'size'],
  cuMemRelease: ['handle'],
  cuMulticastGetGranularity: ['bytes', 'bytes', 'i32'],
  cuMulticastCreate: ['bytes', 'bytes'],
  cuMulticastAddDevice: ['handle', 'i32'],
  cuMulticastBindMem: ['handle', 'size', 'handle', 'size', 'size', 'handle'],
  cuMulticastUnbind: ['handle', 'i32', 'size', 'size'],

  cuStreamCreate: ['bytes', 'u32'],
  cuStreamDestroy_v2: ['handle'],
  cuStreamSynchronize: ['handle'],
  cuEventCreate: ['bytes', 'u32'],
  cuEventDestroy_v2: ['handle'],
  cuEventRecord: ['handle', 'handle'],
  cuEventQuery: ['handle'],
  cuStreamWaitEvent: ['handle', 'handle', 'u32'],

  cuIpcGetMemHandle: ['bytes', 'handle'],
  cuIpcOpenMemHandle_v2: ['bytes', 'ipc', 'u32'],
  cuIpcCloseMemHandle: ['handle'],
  cuIpcGetEventHandle: ['bytes', 'handle'],
  cuIpcOpenEventHandle: ['bytes', 'ipc'],

  cuModuleLoadDataEx: ['bytes', 'bytes', 'u32', 'bytes', 'bytes'],
  cuModuleUnload: ['handle'],
  cuModuleGetFunction: ['bytes', 'handle', 'name'],
  cuLaunchKernel: ['handle', 'u32', 'u32', 'u32', 'u32', 'u32', 'u32', 'u32', 'handle', 'handle', 'bytes'],
} as const satisfies Readonly<Record<string, readonly Kind[]>>;

export type FunctionName = keyof typeof functions;

type ArgumentsOf<Kinds extends readonly Kind[]> = { readonly [Index in keyof Kinds]: ArgumentValues[Kinds[Index]] };

/** The functions of a driver; each returns a `CUresult`. Results of other kinds are written to arrays of the caller's. */
export type DriverFunctions = { readonly [Name in FunctionName]: (...values: ArgumentsOf<(typeof functions)[Name]>) => number };

/** A driver: that of libcuda.so.1, or another one with the same functions. */
export interface Driver extends DriverFunctions {
  /** Address of host memory, for places in memory that hold addresses. */
  addressOf(view: ArrayBufferView): bigint;
}

/** Bytes of `CUuuid`. */
export const UUID_BYTES = 16;

/** `CUdevice_attribute`. */
export const deviceAttributes = {
  multiprocessors: 16,
  capabilityMajor: 75,
  capabilityMinor: 76,
  virtualMemory: 102,
  fileDescriptors: 103,
  multicast: 132,
} as const;

/** `CUpointer_attribute`, and the values of the first one, `CUmemorytype`. */
export const pointerAttributes = { memoryType: 2, device: 9, rangeStart: 11, rangeSize: 12 } as const;
export const DEVICE_MEMORY = 2;

/** `CU_MEMHOSTREGISTER_DEVICEMAP`: kernels can address the memory. */
export const DEVICE_MAP = 2;

/** `CUmemAllocationProp` and `CUmemAccessDesc`: their bytes, and the places of their fields. */
export const memoryProperties = { bytes: 32, type: 0, handleTypes: 4, locationType: 8, locationId: 12 } as const;
export const memoryAccess = { bytes: 12, locationType: 0, locationId: 4, flags: 8, readAndWrite: 3 } as const;
/** `CU_MEM_ALLOCATION_TYPE_PINNED` and `CU_MEM_LOCATION_TYPE_DEVICE`. */
export const ON_DEVICE = 1;

/** `CUmulticastObjectProp`: its bytes, and the places of the number of GPUs, of the size, and of the kinds of handles. */
export const multicastObject = { bytes: 32, nDevices: 0, size: 8, handleTypes: 16 } as const;
/** `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`. */
export const FILE_DESCRIPTOR = 1;
/** `CU_MULTICAST_GRANULARITY_RECOMMENDED` and `CU_MEM_ALLOC_GRANULARITY_RECOMMENDED`. */
export const RECOMMENDED = 1;

/** `CU_STREAM_NON_BLOCKING`: no implicit order with the stream 0. */
export const NON_BLOCKING_STREAM = 1;
/** `CU_EVENT_DISABLE_TIMING`, and `CU_EVENT_INTERPROCESS` for events that other processes open. */
export const EVENT_WITHOUT_TIMING = 2;
export const EVENT_OF_PROCESSES = 4;
/** `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag. */
export const IPC_PEER_ACCESS = 1;

/** `CUjit_option`: memory for the messages of the compiler of PTX, and its length. */
export const jitOptions = { errorLog: 5, errorLogBytes: 6 } as const;

/** Keys of cuLaunchKernel's last argument: all parameters as one piece of memory, and the address of its length. */
export const launchParameters = { end: 0, address: 1, bytes: 2 } as const;
