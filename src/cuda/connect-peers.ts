import { peerPoints, type PeerPoint } from '../devices/memory.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { CudaContext } from '../runtime/device/cuda/context.js';
import { EVENT_OF_PROCESSES, EVENT_WITHOUT_TIMING, IPC_BYTES, type Driver } from '../runtime/device/cuda/functions.js';
import { results } from '../runtime/device/cuda/results.js';
import { MAX_ARRAYS } from '../runtime/device/ptx/step-record.js';
import { linkOf } from '../runtime/proc.js';
import type { GpuFacts, GpuPlan } from './gpu-plan.js';
import { workOn } from './gpu-work.js';
import { CudaPeers, makeEvent, memoryHandle, openMemory, type CudaPeer, type PeerEvents } from './cuda-peers.js';

/** The way of collectives between the GPUs of a communicator's ranks. */
export interface CudaTransport {
  /**
   * `peers`: kernels and copies of each rank reach the memory of all; `nvls`: the same, and an NVSwitch combines and multiplies
   * what it can; `host`: data go through memory of the host.
   */
  readonly name: 'peers' | 'nvls' | 'host';
  readonly reason: string;
  /** By rank × rank: type of the path between their GPUs, by NCCL's names (`NVL`, `PIX`, `SYS`); missing where it is unknown. */
  readonly paths?: readonly (readonly string[])[];
}

/** Things of a rank that others open. */
interface Offer {
  /** Tells processes of a host apart. */
  readonly process: string;
  /** Of its GPU. */
  readonly ordinal: number;
  readonly events: PeerEvents;
  readonly eventHandles: Readonly<Record<PeerPoint, Uint8Array>>;
  /** Memory to try with. */
  readonly memoryHandle: Uint8Array;
}

const TRIAL_BYTES = 256;

/** The plan of rank 0, for the ranks of one host; undefined for other ranks, whose data go through the host. */
export async function agreedPlan(comm: Communicator, gpus: readonly GpuFacts[]): Promise<GpuPlan | undefined> {
  if (comm.nNodes > 1 || comm.nRanks > MAX_ARRAYS) return undefined;
  const own = comm.rank === 0 ? (await import('./gpu-plan.js')).planGpus(gpus) : null;
  return (await comm.broadcastObject<GpuPlan | null>(own, 0)) ?? undefined;
}

/**
 * Connects the GPUs of all ranks where the plan says so, if they reach each other's memory. Every rank calls it.
 *
 * @param isAllowed false on a rank that wants data to go through the host
 * @param free frees memory that the peers have kept
 */
export async function connectPeers(
  comm: Communicator,
  context: CudaContext,
  program: bigint,
  isAllowed: boolean,
  plan: GpuPlan | undefined,
  free: (pointer: bigint) => void,
): Promise<{ readonly peers: CudaPeers | undefined; readonly transport: CudaTransport }> {
  const paths = plan?.paths && { paths: plan.paths };
  const viaHost = (reason: string) => ({ peers: undefined, transport: { name: 'host', reason, ...paths } as const });
  const { nRanks, rank, nNodes } = comm;
  if (nNodes > 1) return viaHost(`the ranks are on ${nNodes} hosts`);
  if (plan === undefined) return viaHost(`there are ${nRanks} ranks, and kernels combine the data of ${MAX_ARRAYS}`);
  if (plan.refusal !== undefined) return viaHost(plan.refusal);
  const trial = new Trial(context);
  if (!isAllowed) trial.refusal = 'TCCL_P2P_DISABLE=1';
  const offers = await comm.allGatherObject(trial.attempt(() => trial.offer()));
  const peers = offers.includes(undefined)
    ? undefined
    : trial.attempt(() => trial.connect(offers as Offer[], rank, program, free));
  // Now no rank has the other ranks' memory open any more.
  const refusals = await comm.allGatherObject(trial.refusal);
  const first = refusals.findIndex((refusal) => refusal !== undefined);
  trial.end(first < 0);
  if (first >= 0) {
    if (peers !== undefined) workOn(context).delete(peers);
    return viaHost(`rank ${first}: ${refusals[first]}`);
  }
  const reason = `the ranks are on one host, and their GPUs reach each other's memory${nRanks === 1 ? '' : ` ${plan.how}`}`;
  return { peers, transport: { name: 'peers', reason, ...paths } };
}

/** Memory and events that a rank offers to others and opens of theirs, until all know if everything worked. */
class Trial {
  /** The first thing that did not work on this rank. */
  refusal: string | undefined;
  readonly #context: CudaContext;
  readonly #events: bigint[] = [];
  #own: PeerEvents | undefined;
  #memory: bigint | undefined;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  attempt<Result>(run: () => Result): Result | undefined {
    if (this.refusal !== undefined) return undefined;
    try {
      return run();
    } catch (error) {
      this.refusal = (error as Error).message;
      return undefined;
    }
  }

  /** Makes memory and events of this rank's. */
  offer(): Offer {
    const context = this.#context;
    const events = (this.#own = eachPoint(() => this.#makeEvent(EVENT_WITHOUT_TIMING | EVENT_OF_PROCESSES)));
    const out = new BigUint64Array(1);
    this.#call('cuMemAlloc', (driver) => driver.cuMemAlloc_v2(out, TRIAL_BYTES));
    const memory = (this.#memory = out[0] ?? 0n);
    const handleOf = (event: bigint): Uint8Array => {
      const handle = new Uint8Array(IPC_BYTES);
      this.#call('cuIpcGetEventHandle', (driver) => driver.cuIpcGetEventHandle(handle, event));
      return handle;
    };
    return {
      process: thisProcess(),
      ordinal: context.ordinal,
      events,
      eventHandles: eachPoint((point) => handleOf(events[point])),
      memoryHandle: memoryHandle(context, memory),
    };
  }

  /** Opens what all ranks offer, and makes the rest of what their calls need. */
  connect(offers: readonly Offer[], rank: number, program: bigint, free: (pointer: bigint) => void): CudaPeers {
    const context = this.#context;
    const peers = offers.map((offer, each) => (each === rank ? undefined : this.#open(offer)));
    const own = { ...(this.#own as PeerEvents), betweenStreams: this.#makeEvent(), end: this.#makeEvent() };
    return new CudaPeers(context, program, own, peers, free);
  }

  /** Opens another rank's events, and memory to see that it works. */
  #open({ process, ordinal, events, eventHandles, memoryHandle }: Offer): CudaPeer {
    const context = this.#context;
    if (process === thisProcess()) {
      if (ordinal !== context.ordinal) this.#enable(ordinal);
      return { isThread: true, events };
    }
    const memory = openMemory(context, memoryHandle);
    this.#call('cuIpcCloseMemHandle', (driver) => driver.cuIpcCloseMemHandle(memory));
    const openEvent = (reserved: Uint8Array): bigint => {
      const out = new BigUint64Array(1);
      this.#call('cuIpcOpenEventHandle', (driver) => driver.cuIpcOpenEventHandle(out, { reserved }));
      this.#events.push(out[0] ?? 0n);
      return out[0] ?? 0n;
    };
    return { isThread: false, events: eachPoint((point) => openEvent(eventHandles[point])) };
  }

  /** Frees the memory, and all events where not all ranks could connect. */
  end(isConnected: boolean): void {
    const memory = this.#memory;
    this.#context.inAnyCase((driver) => {
      if (memory !== undefined) driver.cuMemFree_v2(memory);
      if (!isConnected) for (const event of this.#events) driver.cuEventDestroy_v2(event);
    });
  }

  /** Lets kernels here use memory of another GPU of this process. */
  #enable(ordinal: number): void {
    const can = new Int32Array(1);
    this.#call('cuDeviceCanAccessPeer', (driver) => driver.cuDeviceCanAccessPeer(can, this.#context.ordinal, ordinal));
    if (can[0] !== 1) throw new Error(`GPU ${this.#context.ordinal} does not reach the memory of GPU ${ordinal}`);
    // The other rank keeps the context.
    const other = new CudaContext(this.#context.driver, ordinal);
    try {
      this.#call('cuCtxEnablePeerAccess', (driver) => {
        const enabled = driver.cuCtxEnablePeerAccess(other.handle, 0);
        return enabled === results.PEER_ACCESS_ALREADY_ENABLED ? results.SUCCESS : enabled;
      });
    } finally {
      other.close();
    }
  }

  #makeEvent(flags?: number): bigint {
    const event = makeEvent(this.#context, flags);
    this.#events.push(event);
    return event;
  }

  #call(name: string, call: (driver: Driver) => number): void {
    this.#context.run((driver) => {
      this.#context.check(name, call(driver));
    });
  }
}

function eachPoint<T>(of: (point: PeerPoint) => T): Readonly<Record<PeerPoint, T>> {
  return Object.fromEntries(peerPoints.map((point) => [point, of(point)])) as Record<PeerPoint, T>;
}

function thisProcess(): string {
  return `${process.pid} ${linkOf('/proc/self/ns/pid') ?? ''}`;
}
