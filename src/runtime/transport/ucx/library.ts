import { firstLineOf, SystemError } from '../../../errors.js';
import { ownRequire } from '../../../own-module.js';

/**
 * The calls of UCX that the transport needs. Contexts, workers, endpoints, requests and places in memory are addresses; no call
 * blocks. Functions that begin an operation return the address of its request, 0 if it is complete already, or a negative status.
 */
export interface Ucx {
  /** Version of the library, such as `1.13.1`. */
  readonly version: string;
  /** @throws SystemError `NETWORK` */
  openContext(): number;
  closeContext(context: number): void;
  /** @throws SystemError `NETWORK` */
  openWorker(context: number): number;
  closeWorker(worker: number): void;
  /** Address of a worker, which endpoints elsewhere connect to. */
  addressOf(worker: number): Uint8Array;
  /** Descriptor that becomes readable when there is something to progress, once the worker is armed. */
  descriptorOf(worker: number): number;
  /** Prepares the descriptor. Returns a status: BUSY while there is something to progress. */
  arm(worker: number): number;
  /** Moves data. Returns 0 if nothing happened. */
  progress(worker: number): number;
  /** Connects with the worker that has this address. `id` comes back in `failures`. */
  openEndpoint(worker: number, address: Uint8Array, id: number): number;
  /** Ends an endpoint and everything in flight on it. */
  closeEndpoint(endpoint: number): number;
  send(endpoint: number, address: number, bytes: number, tag: bigint): number;
  /** Never completes within the call. */
  receive(worker: number, address: number, bytes: number, tag: bigint): number;
  /** Status of a request. */
  statusOf(request: number): number;
  /** Status of a request to receive; sets `receivedBytes` when that is OK. */
  received(request: number): number;
  /** Length of the message that `received` reported. */
  readonly receivedBytes: number;
  cancel(worker: number, request: number): void;
  free(request: number): void;
  /** Registers memory with the network cards. @throws SystemError `NETWORK` */
  map(context: number, address: number, bytes: number): number;
  unmap(context: number, mapping: number): void;
  /** Text for a status. */
  nameOf(status: number): string;
  /** Failed endpoints by id, with the status. */
  readonly failures: Map<number, number>;
}

/** Advice for users in errors of UCX, which names the settings that restrict UCX's choice. */
export function ucxAdvice(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  const set = ['UCX_TLS', 'UCX_NET_DEVICES'].flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [`${name}=${value}`];
  });
  const restricted = set.length === 0 ? '' : `${set.join(' and ')} restrict${set.length === 1 ? 's' : ''} it; `;
  return `${restricted}UCX_LOG_LEVEL=info shows more, TCCL_NET=socket works without UCX`;
}

/** Status codes: ucs/type/status.h. */
export const UCS_OK = 0;
export const UCS_IN_PROGRESS = 1;
export const UCS_BUSY = -15;
export const UCS_CANCELED = -16;

/** The library's oldest version that has all calls. */
const MAJOR = 1;
const MINOR = 10;
const SONAME = 'libucp.so.0';
const REMEDY = `install UCX ${MAJOR}.${MINOR} or newer (Debian: libucx0), or use TCCL_NET=socket`;

let loaded: { readonly ucx: Ucx } | { readonly reason: string } | undefined;

/** UCX, or the reason why it cannot be used here, with a remedy. Loaded once in each thread. */
export function loadUcx(): { readonly ucx: Ucx } | { readonly reason: string } {
  loaded ??= open();
  return loaded;
}

/** @param soname another library with the same interface, for tests */
export function open(soname = SONAME): { readonly ucx: Ucx } | { readonly reason: string } {
  if (process.platform !== 'linux') return { reason: `UCX needs Linux, this is ${process.platform}; use TCCL_NET=socket` };
  let koffi: Koffi;
  try {
    koffi = ownRequire()('koffi') as Koffi;
  } catch (error) {
    return { reason: `UCX needs the library koffi, which cannot be loaded (${firstLineOf(error)}); use TCCL_NET=socket` };
  }
  try {
    const library = load(koffi, soname);
    const version = versionOf(library);
    const [major = 0, minor = 0] = version;
    if (major === MAJOR && minor >= MINOR) return { ucx: bind(koffi, library, version.join('.')) };
    return {
      reason: `UCX ${version.join('.')} (${soname}) is ${major > MAJOR ? 'newer than this tccl knows' : 'too old'}; ${REMEDY}`,
    };
  } catch (error) {
    const why = firstLineOf(error).replace(/^Failed to load shared library: /, '');
    return { reason: `UCX cannot be loaded (${soname}: ${why}); ${REMEDY}` };
  }
}

/*
 * Structures of ucp/api/ucp.h and ucp_def.h on 64-bit Linux. Each begins with a mask of the fields that are given, so later
 * versions, which append fields, read these as well; test/unit/runtime/transport/ucx-layout.test.ts compares the offsets with
 * the headers, where they and a compiler are installed.
 */
export const layouts = {
  /** field_mask u64, features u64 … */
  ucp_params_t: { bytes: 80, field_mask: 0, features: 8 },
  /** field_mask u64, thread_mode, cpu_mask (128 bytes), events, user_data, event_fd, flags u64 … */
  ucp_worker_params_t: { bytes: 200, field_mask: 0, flags: 168 },
  /** field_mask u64, address, err_mode, err_handler (function, argument) … */
  ucp_ep_params_t: { bytes: 104, field_mask: 0, address: 8, err_mode: 16, err_handler: 24 },
  /** op_attr_mask u32, flags u32 … memory_type … */
  ucp_request_param_t: { bytes: 72, op_attr_mask: 0, flags: 4, memory_type: 48 },
  /** field_mask u64, address, length … */
  ucp_mem_map_params_t: { bytes: 40, field_mask: 0, address: 8, length: 16 },
  /** sender_tag u64, length u64 */
  ucp_tag_recv_info_t: { bytes: 16, sender_tag: 0, length: 8 },
} as const;

/** Bits and values of the headers. */
export const constants = {
  UCP_PARAM_FIELD_FEATURES: 1,
  UCP_FEATURE_TAG: 1,
  UCP_FEATURE_WAKEUP: 16,
  UCP_WORKER_PARAM_FIELD_FLAGS: 32,
  UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK: 1,
  UCP_EP_PARAM_FIELD_REMOTE_ADDRESS: 1,
  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE: 2,
  UCP_EP_PARAM_FIELD_ERR_HANDLER: 4,
  UCP_ERR_HANDLING_MODE_PEER: 1,
  UCP_OP_ATTR_FIELD_FLAGS: 16,
  UCP_OP_ATTR_FIELD_MEMORY_TYPE: 64,
  UCP_OP_ATTR_FLAG_NO_IMM_CMPL: 65536,
  UCP_EP_CLOSE_FLAG_FORCE: 1,
  UCP_MEM_MAP_PARAM_FIELD_ADDRESS: 1,
  UCP_MEM_MAP_PARAM_FIELD_LENGTH: 2,
  UCS_MEMORY_TYPE_HOST: 0,
  UCS_ERR_BUSY: UCS_BUSY,
  UCS_ERR_CANCELED: UCS_CANCELED,
} as const;

const RTLD_NOW = 2;
const RTLD_NODELETE = 4096;
/** Interval at which UCX tests idle connections, unless UCX_KEEPALIVE_INTERVAL sets another one. */
const KEEPALIVE = '2s';
/** Environment of UCX while it is loaded, where the user sets none. */
const environment: Readonly<Record<string, string>> = {
  // UCX's handler of SIGSEGV would take the place of V8's, which WebAssembly needs.
  UCX_HANDLE_ERRORS: 'none',
  // UCX patches the C library's code while V8's threads run it: 1 process of 30 crashed.
  UCX_MEM_MMAP_HOOK_MODE: 'none',
  UCX_MEM_MALLOC_HOOKS: 'n',
  // Standard output belongs to the program.
  UCX_LOG_FILE: 'stderr',
  // UCX warns about each note that arrives after its connection has ended.
  UCX_LOG_LEVEL: 'error',
};

interface Library {
  func(prototype: string): (...args: unknown[]) => unknown;
}

interface Koffi {
  load(path: string | null): Library;
  address(pointer: unknown): bigint;
  proto(result: string, types: readonly string[]): unknown;
  pointer(type: unknown): unknown;
  register(callback: (...args: never[]) => void, type: unknown): bigint;
}

/** Memory for arguments and results, outside the collector's heap, so that its address stays. */
class Block {
  readonly view: DataView;
  readonly bytes: Uint8Array;
  readonly address: number;

  constructor(bytes: number, addressOf: (view: Uint8Array) => number) {
    const buffer = new ArrayBuffer(Math.max(128, bytes));
    this.view = new DataView(buffer);
    this.bytes = new Uint8Array(buffer);
    this.address = addressOf(this.bytes);
  }

  u32(offset: number, value: number): this {
    this.view.setUint32(offset, value, true);
    return this;
  }

  u64(offset: number, value: number | bigint): this {
    this.view.setBigUint64(offset, BigInt(value), true);
    return this;
  }

  /** An address in it. */
  pointer(offset: number): number {
    return Number(this.view.getBigUint64(offset, true));
  }
}

/** Loads UCX for the rest of the process: it hooks functions of the C library, so it must never be unloaded. */
function load(koffi: Koffi, soname: string): Library {
  const c = koffi.load(null);
  const setenv = c.func('int setenv(const char *name, const char *value, int overwrite)');
  const unsetenv = c.func('int unsetenv(const char *name)');
  const added = Object.keys(environment).filter((name) => process.env[name] === undefined);
  for (const name of added) setenv(name, environment[name], 0);
  try {
    c.func('void *dlopen(const char *path, int flags)')(soname, RTLD_NOW | RTLD_NODELETE);
    return koffi.load(soname);
  } finally {
    for (const name of added) unsetenv(name);
  }
}

/** Major and minor version, and release. */
function versionOf(library: Library): number[] {
  const parts = [0, 1, 2].map(() => new Uint32Array(1));
  library.func('void ucp_get_version(void *major, void *minor, void *release)')(...parts);
  return parts.map(([part = 0]) => part);
}

// eslint-disable-next-line max-lines-per-function -- a list of functions
function bind(koffi: Koffi, library: Library, version: string): Ucx {
  const c = koffi.load(null);
  const func = (prototype: string) => library.func(prototype) as (...args: unknown[]) => number;

  const memmove = c.func('void *memmove(void *destination, void *source, size_t bytes)');
  const copyFrom = c.func('void *memcpy(void *destination, int64_t source, size_t bytes)');
  const addressOf = (view: Uint8Array): number => Number(koffi.address(memmove(view, view, 0)));

  const configRead = func('int8_t ucp_config_read(const char *prefix, const char *file, void *config)');
  const configModify = func('int8_t ucp_config_modify(int64_t config, const char *name, const char *value)');
  const configRelease = func('void ucp_config_release(int64_t config)');
  const initVersion = func('int8_t ucp_init_version(uint major, uint minor, int64_t params, int64_t config, int64_t context)');
  const cleanup = func('void ucp_cleanup(int64_t context)');
  const workerCreate = func('int8_t ucp_worker_create(int64_t context, int64_t params, int64_t worker)');
  const workerDestroy = func('void ucp_worker_destroy(int64_t worker)');
  const getAddress = func('int8_t ucp_worker_get_address(int64_t worker, int64_t address, int64_t bytes)');
  const releaseAddress = func('void ucp_worker_release_address(int64_t worker, int64_t address)');
  const getDescriptor = func('int8_t ucp_worker_get_efd(int64_t worker, int64_t fd)');
  const arm = func('int8_t ucp_worker_arm(int64_t worker)');
  const progress = func('uint ucp_worker_progress(int64_t worker)');
  const endpointCreate = func('int8_t ucp_ep_create(int64_t worker, int64_t params, int64_t endpoint)');
  const endpointClose = func('int64_t ucp_ep_close_nbx(int64_t endpoint, int64_t param)');
  const tagSend = func('int64_t ucp_tag_send_nbx(int64_t ep, int64_t buffer, int64_t bytes, uint64_t tag, int64_t param)');
  const tagReceive = func(
    'int64_t ucp_tag_recv_nbx(int64_t worker, int64_t buffer, int64_t bytes, uint64_t tag, uint64_t mask, int64_t param)',
  );
  const checkStatus = func('int8_t ucp_request_check_status(int64_t request)');
  const receiveTest = func('int8_t ucp_tag_recv_request_test(int64_t request, int64_t info)');
  const cancel = func('void ucp_request_cancel(int64_t worker, int64_t request)');
  const free = func('void ucp_request_free(int64_t request)');
  const map = func('int8_t ucp_mem_map(int64_t context, int64_t params, int64_t mapping)');
  const unmap = func('int8_t ucp_mem_unmap(int64_t context, int64_t mapping)');
  const statusString = func('const char *ucs_status_string(int8_t status)') as unknown as (status: number) => string;

  const { ucp_params_t, ucp_worker_params_t, ucp_ep_params_t, ucp_request_param_t, ucp_mem_map_params_t, ucp_tag_recv_info_t } =
    layouts;
  const block = (bytes: number): Block => new Block(bytes, addressOf);
  const has = constants;
  const result = block(16);
  const contextParams = block(ucp_params_t.bytes)
    .u64(ucp_params_t.field_mask, has.UCP_PARAM_FIELD_FEATURES)
    .u64(ucp_params_t.features, has.UCP_FEATURE_TAG | has.UCP_FEATURE_WAKEUP);
  // The receives of a connection that ends by force are leaked on purpose.
  const workerParams = block(ucp_worker_params_t.bytes)
    .u64(ucp_worker_params_t.field_mask, has.UCP_WORKER_PARAM_FIELD_FLAGS)
    .u64(ucp_worker_params_t.flags, has.UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK);
  const isHostMemory = has.UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  const sendParam = block(ucp_request_param_t.bytes)
    .u32(ucp_request_param_t.op_attr_mask, isHostMemory)
    .u32(ucp_request_param_t.memory_type, has.UCS_MEMORY_TYPE_HOST);
  const receiveParam = block(ucp_request_param_t.bytes)
    .u32(ucp_request_param_t.op_attr_mask, isHostMemory | has.UCP_OP_ATTR_FLAG_NO_IMM_CMPL)
    .u32(ucp_request_param_t.memory_type, has.UCS_MEMORY_TYPE_HOST);
  const closeParam = block(ucp_request_param_t.bytes)
    .u32(ucp_request_param_t.op_attr_mask, has.UCP_OP_ATTR_FIELD_FLAGS)
    .u32(ucp_request_param_t.flags, has.UCP_EP_CLOSE_FLAG_FORCE);
  const mapParams = block(ucp_mem_map_params_t.bytes).u64(
    ucp_mem_map_params_t.field_mask,
    has.UCP_MEM_MAP_PARAM_FIELD_ADDRESS | has.UCP_MEM_MAP_PARAM_FIELD_LENGTH,
  );
  const endpointParams = block(ucp_ep_params_t.bytes)
    .u64(
      ucp_ep_params_t.field_mask,
      has.UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | has.UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | has.UCP_EP_PARAM_FIELD_ERR_HANDLER,
    )
    .u32(ucp_ep_params_t.err_mode, has.UCP_ERR_HANDLING_MODE_PEER);
  const info = block(ucp_tag_recv_info_t.bytes);
  const allBits = 0xffff_ffff_ffff_ffffn;

  // Called within `progress`, on this thread.
  const failures = new Map<number, number>();
  const failed = (id: number, _endpoint: number, status: number): void => void failures.set(id, status);
  const handler = koffi.register(failed, koffi.pointer(koffi.proto('void', ['int64_t', 'int64_t', 'int8_t'])));
  endpointParams.u64(ucp_ep_params_t.err_handler, handler);

  const check = (call: string, status: number): void => {
    if (status !== UCS_OK) throw new SystemError('NETWORK', `${call} of UCX failed: ${statusString(status)}; ${ucxAdvice()}`);
  };

  return {
    version,
    failures,
    nameOf: statusString,
    openContext() {
      check('ucp_config_read', configRead(null, null, result.bytes));
      const config = result.pointer(0);
      // Older versions do not know it.
      if (process.env['UCX_KEEPALIVE_INTERVAL'] === undefined) configModify(config, 'KEEPALIVE_INTERVAL', KEEPALIVE);
      const status = initVersion(MAJOR, MINOR, contextParams.address, config, result.address);
      configRelease(config);
      check('ucp_init', status);
      return result.pointer(0);
    },
    closeContext: (context) => void cleanup(context),
    openWorker(context) {
      check('ucp_worker_create', workerCreate(context, workerParams.address, result.address));
      return result.pointer(0);
    },
    closeWorker: (worker) => void workerDestroy(worker),
    addressOf(worker) {
      check('ucp_worker_get_address', getAddress(worker, result.address, result.address + 8));
      const address = new Uint8Array(result.pointer(8));
      const place = result.pointer(0);
      copyFrom(address, place, address.length);
      releaseAddress(worker, place);
      return address;
    },
    descriptorOf(worker) {
      check('ucp_worker_get_efd', getDescriptor(worker, result.address));
      return result.view.getInt32(0, true);
    },
    arm,
    progress,
    openEndpoint(worker, address, id) {
      const copy = block(address.length);
      copy.bytes.set(address);
      endpointParams.u64(ucp_ep_params_t.address, copy.address).u64(ucp_ep_params_t.err_handler + 8, id);
      check('ucp_ep_create', endpointCreate(worker, endpointParams.address, result.address));
      return result.pointer(0);
    },
    closeEndpoint: (endpoint) => endpointClose(endpoint, closeParam.address),
    send: (endpoint, address, bytes, tag) => tagSend(endpoint, address, bytes, tag, sendParam.address),
    receive: (worker, address, bytes, tag) => tagReceive(worker, address, bytes, tag, allBits, receiveParam.address),
    statusOf: checkStatus,
    received: (request) => receiveTest(request, info.address),
    get receivedBytes() {
      return info.view.getUint32(ucp_tag_recv_info_t.length, true);
    },
    cancel: (worker, request) => void cancel(worker, request),
    free: (request) => void free(request),
    map(context, address, bytes) {
      mapParams.u64(ucp_mem_map_params_t.address, address).u64(ucp_mem_map_params_t.length, bytes);
      check('ucp_mem_map', map(context, mapParams.address, result.address));
      return result.pointer(0);
    },
    unmap: (context, mapping) => void unmap(context, mapping),
  };
}
