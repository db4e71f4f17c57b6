import type { Communicator } from '../runtime/communicator/communicator.js';
import { CudaContext } from '../runtime/device/cuda/context.js';
import { IPC_BYTES, type Driver } from '../runtime/device/cuda/functions.js';
import { results } from '../runtime/device/cuda/results.js';
import { MAX_OPERANDS } from '../runtime/device/ptx/step-record.js';
import { linkOf } from '../runtime/proc.js';
import { CudaPeers, makeSharedEvent, memoryHandle, openMemory, type CudaPeer, type PeerEvents } from './cuda-peers.js';

/** The way of collectives between the GPUs of a communicator's ranks. */
export interface CudaTransport {
  /** `peers`: kernels and copies of each rank reach the memory of all; `host`: data go through memory of the host. */
  readonly name: 'peers' | 'host';
  readonly reason: string;
}

/** A rank's record, in bytes: its state, GPU, events, and memory to try with, as text its process. */
const fields = {
  isAble: 0,
  ordinal: 4,
  ready: 8,
  done: 16,
  readyHandle: 24,
  doneHandle: 24 + IPC_BYTES,
  memory: 24 + 2 * IPC_BYTES,
  process: 24 + 3 * IPC_BYTES,
  end: 24 + 4 * IPC_BYTES,
} as const;

const TRIAL_BYTES = 256;

/**
 * Finds out if the GPUs of all ranks reach each other's memory, and connects them. Every rank calls it.
 *
 * @param isAllowed false on a rank that wants data to go through the host
 * @param free frees memory that the peers have kept
 */
export async function connectPeers(
  comm: Communicator,
  context: CudaContext,
  program: bigint,
  isAllowed: boolean,
  free: (pointer: bigint) => void,
): Promise<{ readonly peers: CudaPeers | undefined; readonly transport: CudaTransport }> {
  const viaHost = (reason: string) => ({ peers: undefined, transport: { name: 'host', reason } as const });
  const { nRanks, rank, nNodes } = comm;
  if (nNodes > 1) return viaHost(`the ranks are on ${nNodes} hosts`);
  if (nRanks > MAX_OPERANDS) return viaHost(`there are ${nRanks} ranks, and kernels combine the data of ${MAX_OPERANDS}`);
  const trial = new Trial(context);
  if (!isAllowed) trial.refusal = 'TCCL_P2P_DISABLE=1';
  const own = new DataView(new ArrayBuffer(fields.end));
  trial.attempt(() => trial.offer(own));
  own.setUint32(fields.isAble, Number(trial.refusal === undefined), true);
  const all = new Uint8Array(fields.end * nRanks);
  await comm.allGather(new Uint8Array(own.buffer), all);
  const views = Array.from({ length: nRanks }, (_, each) => new DataView(all.buffer, each * fields.end, fields.end));
  const peers: (CudaPeer | undefined)[] = new Array<undefined>(nRanks).fill(undefined);
  if (views.every((view) => view.getUint32(fields.isAble, true) === 1))
    for (const [each, view] of views.entries()) if (each !== rank) peers[each] = trial.attempt(() => trial.open(view, own));
  // Now no rank has the other ranks' memory open any more.
  const first = await comm.allReduce(trial.refusal === undefined ? nRanks : rank, 'min');
  const events = trial.end(first === nRanks);
  if (events !== undefined) {
    const reason = "the ranks are on one host, and their GPUs reach each other's memory";
    return { peers: new CudaPeers(context, program, events, peers, free), transport: { name: 'peers', reason } };
  }
  return viaHost(`rank ${first}: ${await comm.broadcastObject(trial.refusal ?? '', first)}`);
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

  /** Writes a record with memory and events of this rank's. */
  offer(record: DataView): void {
    const context = this.#context;
    const bytes = new Uint8Array(record.buffer);
    const [ready, done] = [this.#makeEvent(), this.#makeEvent()];
    this.#own = { ready, done };
    const out = new BigUint64Array(1);
    this.#call('cuMemAlloc', (driver) => driver.cuMemAlloc_v2(out, TRIAL_BYTES));
    const memory = (this.#memory = out[0] ?? 0n);
    record.setUint32(fields.ordinal, context.ordinal, true);
    record.setBigUint64(fields.ready, ready, true);
    record.setBigUint64(fields.done, done, true);
    for (const [event, at] of [
      [ready, fields.readyHandle],
      [done, fields.doneHandle],
    ] as const)
      this.#call('cuIpcGetEventHandle', (driver) => driver.cuIpcGetEventHandle(bytes.subarray(at, at + IPC_BYTES), event));
    bytes.set(memoryHandle(context, memory), fields.memory);
    new TextEncoder().encodeInto(`${process.pid} ${linkOf('/proc/self/ns/pid') ?? ''}`, bytes.subarray(fields.process));
  }

  /** Opens another rank's events, and memory to see that it works. */
  open(record: DataView, own: DataView): CudaPeer {
    const context = this.#context;
    if (textIn(record) === textIn(own)) {
      const ordinal = record.getUint32(fields.ordinal, true);
      if (ordinal !== context.ordinal) this.#enable(ordinal);
      const events = { ready: record.getBigUint64(fields.ready, true), done: record.getBigUint64(fields.done, true) };
      return { isThread: true, events };
    }
    const handleAt = (at: number): Uint8Array => new Uint8Array(record.buffer, record.byteOffset + at, IPC_BYTES).slice();
    const memory = openMemory(context, handleAt(fields.memory));
    this.#call('cuIpcCloseMemHandle', (driver) => driver.cuIpcCloseMemHandle(memory));
    const out = new BigUint64Array(1);
    const openEvent = (at: number): bigint => {
      this.#call('cuIpcOpenEventHandle', (driver) => driver.cuIpcOpenEventHandle(out, { reserved: handleAt(at) }));
      this.#events.push(out[0] ?? 0n);
      return out[0] ?? 0n;
    };
    return { isThread: false, events: { ready: openEvent(fields.readyHandle), done: openEvent(fields.doneHandle) } };
  }

  /** Frees the memory, and all events where not all ranks could connect. Returns this rank's events where they could. */
  end(isConnected: boolean): PeerEvents | undefined {
    const memory = this.#memory;
    this.#context.inAnyCase((driver) => {
      if (memory !== undefined) driver.cuMemFree_v2(memory);
      if (!isConnected) for (const event of this.#events) driver.cuEventDestroy_v2(event);
    });
    return isConnected ? this.#own : undefined;
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

  #makeEvent(): bigint {
    const event = makeSharedEvent(this.#context);
    this.#events.push(event);
    return event;
  }

  #call(name: string, call: (driver: Driver) => number): void {
    this.#context.run((driver) => {
      this.#context.check(name, call(driver));
    });
  }
}

function textIn(record: DataView): string {
  return new TextDecoder().decode(new Uint8Array(record.buffer, record.byteOffset + fields.process, IPC_BYTES));
}
