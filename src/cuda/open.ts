import { Device } from '../devices/device.js';
import type { DeviceArray } from '../devices/device-array.js';
import { openOnAllRanks } from '../devices/open.js';
import { describeValue } from '../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, SystemError } from '../errors.js';
import { checkOptionNames } from '../option-names.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { chooseDevice, CudaContext, countDevices } from '../runtime/device/cuda/context.js';
import type { Driver } from '../runtime/device/cuda/functions.js';
import { loadDriver } from '../runtime/device/cuda/load.js';
import type { TypedArray } from '../runtime/device/types.js';
import { PathType, pathTypeNames } from '../planner/topology/types.js';
import { flag, malformed, value, type Environment } from '../runtime/launch/environment.js';
import { agreedPlan, connectPeers, type CudaTransport } from './connect-peers.js';
import { connectSwitch } from './connect-switch.js';
import type { CudaBuffer } from './cuda-buffer.js';
import { CudaMemory } from './cuda-memory.js';
import { placeOf, type DlpackTensor } from './dlpack.js';
import type { GpuFacts } from './gpu-plan.js';
import { checkNotStuck } from './gpu-work.js';

/** Options of {@link cuda}. */
export interface CudaOptions {
  /** Number of the GPU among those of the process. Without it, rank r of a host takes GPU r modulo their number. */
  readonly device?: number;
  /** Stream that the program queues its work on, a `CUstream`. Without it, the legacy default stream. */
  readonly stream?: bigint;
  /** Refuses two ranks on one GPU, as NCCL does. */
  readonly exclusive?: boolean;
}

/** A GPU of CUDA, and calls on arrays in its memory. */
export class CudaDevice extends Device<CudaBuffer> {
  /** The way of collectives between the ranks, and the reason. The same on all ranks. */
  readonly transport: CudaTransport;
  readonly #ordinal: number;

  /** @internal */
  constructor(
    parent: Communicator,
    comm: Communicator,
    memory: CudaMemory,
    transport: CudaTransport,
    answers: Communicator | undefined,
  ) {
    super(parent, comm, memory, answers);
    this.#ordinal = memory.context.ordinal;
    this.transport = transport;
  }

  /**
   * The elements of a tensor of another library, which keeps it while calls use it. float16 and bfloat16 become a
   * `Uint16Array`, float8 a `Uint8Array`: calls that combine them take the option `type`.
   *
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `BUFFER_DETACHED`
   */
  fromPointer(tensor: DlpackTensor): DeviceArray<TypedArray, CudaBuffer> {
    const { type, ...buffer } = placeOf(tensor, this.#ordinal);
    return this.wrapFor('fromPointer', buffer, type);
  }
}

/**
 * Opens a GPU for calls of the ranks of `comm` on arrays in its memory. Every rank calls it; ranks may share a GPU.
 *
 * @throws InvalidArgumentError `ARGUMENT_TYPE`, `UNKNOWN_NAME`; InvalidUsageError `UNSUPPORTED` without a driver, with one that
 *   is too old, or without the GPU, `DEVICE_DUPLICATE`; RemoteError `ABORTED` where another rank has no GPU; `comm` stays usable
 *
 * @example
 * const comm = await init();
 * const gpu = await cuda(comm);
 * const x = await gpu.alloc(Float32Array, 1024);
 * await x.upload(new Float32Array(1024).fill(comm.rank));
 * await gpu.allReduce(x);
 * await gpu.close();
 */
export function cuda(comm: Communicator, options: CudaOptions = {}): Promise<CudaDevice> {
  return openCuda(comm, options, loadDriver);
}

/** @internal The same with the driver that `load` gives. */
export async function openCuda(comm: Communicator, options: CudaOptions, load: () => Driver): Promise<CudaDevice> {
  const open = async () => {
    checkOptions(options);
    const isAllowed = !flag(process.env, 'TCCL_P2P_DISABLE');
    const p2pLevel = levelIn(process.env);
    const isOnSwitch = flag(process.env, 'TCCL_NVLS_ENABLE', true);
    const driver = load();
    const count = countDevices(driver);
    const context = new CudaContext(driver, chooseDevice(count, comm.localRank, options.device));
    const { stream = 0n } = options;
    try {
      checkNotStuck(context);
      await context.reached(stream);
      return { memory: new CudaMemory(context, stream), isAllowed, p2pLevel, isOnSwitch };
    } catch (error) {
      context.close();
      throw stream === 0n ? error : noStream(stream, error);
    }
  };
  const { opened, calls } = await openOnAllRanks(comm, 'cuda', 'CUDA', open, (opened) => opened.memory.close());
  const { memory, isAllowed, p2pLevel, isOnSwitch } = opened;
  try {
    const { context } = memory;
    const { uuid, busId, sm } = context;
    const own: GpuFacts = { uuid: uuid.join(), busId, sm, isExclusive: options.exclusive === true, p2pLevel };
    const gpus = await calls.allGatherObject(own);
    checkShared(calls, gpus);
    const plan = await agreedPlan(calls, gpus);
    const free = (pointer: bigint): void => memory.free(pointer);
    const { peers, transport: without } = await connectPeers(calls, context, options.stream ?? 0n, isAllowed, plan, free);
    memory.peers = peers;
    const transport =
      peers === undefined
        ? without
        : await connectSwitch(calls, context, peers, gpus, isOnSwitch ? plan?.nvlsChannels : 0, without);
    const paths = transport.paths?.[calls.rank]?.join(' ') ?? 'unknown';
    calls.note(`GPU ${busId} : ${transport.name}, ${transport.reason}; paths to ranks 0 to ${calls.nRanks - 1} : ${paths}`);
    // Kernels of a switch wait for each other: no message may be behind one.
    const answers = transport.name === 'peers' ? await calls.stream({ name: 'cuda' }) : undefined;
    return new CudaDevice(comm, calls, memory, transport, answers);
  } catch (error) {
    // The other ranks wait for this one.
    if (error instanceof SystemError) calls.abort(`it could not open its CUDA device: ${error.message}`);
    memory.close();
    await calls.close();
    throw error;
  }
}

function checkOptions(options: CudaOptions): void {
  checkOptionNames('cuda', options, ['device', 'stream', 'exclusive'], 'cuda(comm, { device: 0 })');
  const { device, exclusive } = options as { readonly device?: unknown; readonly exclusive?: unknown };
  if (device !== undefined && !Number.isInteger(device)) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `cuda: device is the number of a GPU, such as 0, not ${describeValue(device)}`,
    );
  }
  if (exclusive !== undefined && typeof exclusive !== 'boolean') {
    throw new InvalidArgumentError('ARGUMENT_TYPE', `cuda: exclusive is true or false, not ${describeValue(exclusive)}`);
  }
  if (options.stream !== undefined && typeof options.stream !== 'bigint') {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `cuda: stream is the handle of a CUstream as a bigint, not ${describeValue(options.stream)}`,
    );
  }
}

function noStream(stream: bigint, cause: unknown): InvalidArgumentError {
  const why = (cause as Error).message;
  return new InvalidArgumentError('ARGUMENT_TYPE', `cuda: 0x${stream.toString(16)} is no stream of the GPU: ${why}`, { cause });
}

/** TCCL_P2P_LEVEL. */
function levelIn(env: Environment): PathType | undefined {
  const text = value(env, 'TCCL_P2P_LEVEL');
  if (text === undefined) return undefined;
  const names = pathTypeNames.slice(0, PathType.SYS + 1);
  const level = names.findIndex((name) => name === text);
  if (level < 0) throw malformed(env, 'TCCL_P2P_LEVEL', `one of ${names.join(' ')}`);
  return level as PathType;
}

/** Throws on all ranks if two have one GPU, and a rank forbade that. */
function checkShared(comm: Communicator, all: readonly GpuFacts[]): void {
  if (!all.some((rank) => rank.isExclusive)) return;
  const seen = new Map<string, number>();
  for (const [rank, { uuid }] of all.entries()) {
    const other = seen.get(uuid);
    if (other !== undefined) {
      throw new InvalidUsageError(
        'DEVICE_DUPLICATE',
        `cuda: ranks ${other} and ${rank} have the same GPU of ${comm.hosts[rank]}, and a rank asked for { exclusive: true }; ` +
          'give each rank a GPU by { device }, or start fewer ranks',
        { ranks: [other, rank] },
      );
    }
    seen.set(uuid, rank);
  }
}
