import type { Communicator } from '../runtime/communicator/communicator.js';
import type { CudaContext } from '../runtime/device/cuda/context.js';
import { deviceAttributes } from '../runtime/device/cuda/functions.js';
import { closeDescriptor, DescriptorMailbox, sendDescriptor, TOKEN_BYTES } from '../runtime/device/pass-descriptor.js';
import { kernelFor, levelsOf } from '../runtime/device/ptx/kernels.js';
import { randomBytes } from '../runtime/platform/platform.js';
import type { CudaTransport } from './connect-peers.js';
import type { CudaPeers } from './cuda-peers.js';
import { CudaSwitch } from './cuda-switch.js';
import type { GpuFacts } from './gpu-plan.js';
import { SwitchMemory } from './switch-memory.js';
import { switchBytes } from './switch-steps.js';

/** Facts of a rank that decide if its GPU can be on a switch with the others. */
interface Facts {
  /** Reason of a rank that cannot. */
  readonly refusal: string | undefined;
  readonly multiprocessors: number;
  /** Address at which the rank receives the object. */
  readonly mailbox: Uint8Array | undefined;
}

/** The object of rank 0: its bytes, and the token of the message that has a file descriptor. */
interface Offer {
  readonly bytes: number;
  readonly token: Uint8Array;
}

/**
 * Makes a multicast object of the memory of all ranks' GPUs, if each has one of its own on an NVSwitch. Every rank calls it.
 *
 *     rank 0   create · send ─┐        add        bind        map
 *     others                  └ import add        bind        map
 *
 * Between two steps all ranks hear if one could not make the first: the driver's call for the next step would wait for that rank
 * forever.
 *
 * @param peers that get the switch
 * @param gpus of all ranks
 * @param nChannels most blocks, the same on all ranks; 0 on a rank that wants no switch
 * @param without the way of ranks without a switch
 */
export async function connectSwitch(
  comm: Communicator,
  context: CudaContext,
  peers: CudaPeers,
  gpus: readonly GpuFacts[],
  nChannels: number | undefined,
  without: CudaTransport,
): Promise<CudaTransport> {
  const found = await findSwitch(comm, context, peers, gpus, nChannels ?? 0);
  if (typeof found === 'string') return { ...without, reason: `${without.reason}; no NVLS: ${found}` };
  peers.switch = found;
  return { ...without, name: 'nvls', reason: 'each rank has a GPU of its own, and an NVSwitch combines the memory of all' };
}

/** The switch, or the reason why there is none. */
async function findSwitch(
  comm: Communicator,
  context: CudaContext,
  peers: CudaPeers,
  gpus: readonly GpuFacts[],
  nChannels: number,
): Promise<CudaSwitch | string> {
  const { rank, nRanks } = comm;
  if (nRanks < 2) return 'there is one rank';
  const making = new Making(context);
  try {
    const facts = await comm.allGatherObject<Facts>(making.facts(nChannels > 0));
    const why = refusalOf(facts, gpus);
    if (why !== undefined) return why;
    // All blocks run at the same time, as they wait for each other.
    const nBlocks = Math.min(nChannels, ...facts.map(({ multiprocessors }) => multiprocessors));
    const send = (): Offer => making.create(nRanks, switchBytes(nBlocks), facts.slice(1));
    const own = rank === 0 ? await making.attempt(send) : undefined;
    const offer = await comm.broadcastObject<Offer | null>(own ?? null, 0);
    const steps = [
      () => {
        if (offer !== null) making.add(rank === 0 ? undefined : offer);
      },
      () => making.bind(peers.stream),
      () => making.map(),
      () => making.finish(peers, { rank, nRanks, nBlocks }),
    ];
    for (const step of steps) {
      await making.attempt(step);
      const refused = firstOf(await comm.allGatherObject(making.refusal));
      if (refused !== undefined) return refused;
    }
    return making.take();
  } finally {
    making.close();
  }
}

/** Things of a rank on the way to a switch, which it ends unless all ranks have come to the end. */
class Making {
  /** The first thing that did not work on this rank. */
  refusal: string | undefined;
  readonly #context: CudaContext;
  #mailbox: DescriptorMailbox | undefined;
  #memory: SwitchMemory | undefined;
  #made: CudaSwitch | undefined;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  async attempt<Result>(run: () => Result | Promise<Result>): Promise<Result | undefined> {
    if (this.refusal !== undefined) return undefined;
    try {
      return await run();
    } catch (error) {
      this.refusal = (error as Error).message;
      return undefined;
    }
  }

  facts(isAllowed: boolean): Facts {
    const context = this.#context;
    const facts = { multiprocessors: context.attribute(deviceAttributes.multiprocessors) };
    const refusal = isAllowed ? missingIn(context) : 'TCCL_NVLS_ENABLE=0';
    if (refusal !== undefined) return { ...facts, refusal, mailbox: undefined };
    try {
      this.#mailbox = new DescriptorMailbox();
      return { ...facts, refusal, mailbox: this.#mailbox.address };
    } catch (error) {
      return { ...facts, refusal: (error as Error).message, mailbox: undefined };
    }
  }

  /** Makes the object, and sends it to the other ranks. Threads of this process get handles of their own, too. */
  create(nRanks: number, least: number, others: readonly Facts[]): Offer {
    const memory = (this.#memory = SwitchMemory.create(this.#context, nRanks, least));
    const token = new Uint8Array(randomBytes(TOKEN_BYTES));
    const fd = memory.export();
    try {
      for (const { mailbox } of others) if (mailbox !== undefined) sendDescriptor(fd, mailbox, token);
    } finally {
      closeDescriptor(fd);
    }
    return { bytes: memory.bytes, token };
  }

  /** @param offer of the rank that has made the object, on the others */
  add(offer: Offer | undefined): void {
    const mailbox = this.#mailbox;
    if (offer !== undefined && mailbox !== undefined) {
      const fd = mailbox.receive(offer.token);
      try {
        this.#memory = SwitchMemory.import(this.#context, fd, offer.bytes);
      } finally {
        closeDescriptor(fd);
      }
    }
    this.#memory?.add();
  }

  async bind(stream: bigint): Promise<void> {
    this.#memory?.bind(stream);
    // Other ranks add to counters that must be 0.
    await this.#context.reached(stream);
  }

  map(): void {
    this.#memory?.map();
  }

  async finish({ modules, stream }: CudaPeers, ranks: { rank: number; nRanks: number; nBlocks: number }): Promise<void> {
    if (this.#memory !== undefined) this.#made = new CudaSwitch(this.#context, modules, stream, this.#memory, ranks);
    // The word that ends kernels becomes 0 on this stream, and 1 on another.
    await this.#context.reached(stream);
  }

  /** The switch, which is the caller's now. */
  take(): CudaSwitch | string {
    const made = this.#made ?? 'no memory';
    this.#made = this.#memory = undefined;
    return made;
  }

  close(): void {
    this.#mailbox?.close();
    if (this.#made !== undefined) this.#made.close();
    else this.#memory?.close();
  }
}

function firstOf(refusals: readonly (string | undefined)[]): string | undefined {
  const first = refusals.findIndex((refusal) => refusal !== undefined);
  return first < 0 ? undefined : `rank ${first}: ${refusals[first]}`;
}

/** A thing that a GPU lacks. */
function missingIn(context: CudaContext): string | undefined {
  const { multicast, virtualMemory, fileDescriptors } = deviceAttributes;
  const { sm: level } = context;
  const [least = 0] = levelsOf(kernelFor('multicast', { bytes: 4 }));
  if (level < least) return `GPU ${context.ordinal} is sm_${level}, and multicast memory begins with sm_${least}`;
  const lacking = Object.entries({ multicast, virtualMemory, fileDescriptors }).find(([, one]) => context.attribute(one) === 0);
  const words = { multicast: 'multicast memory', virtualMemory: 'virtual memory', fileDescriptors: 'memory as file descriptors' };
  if (lacking === undefined) return undefined;
  return `GPU ${context.ordinal} has no ${words[lacking[0] as keyof typeof words]} (attribute ${lacking[1]} is 0)`;
}

/** A reason for which GPUs cannot be on one switch, which all ranks find alike. */
function refusalOf(facts: readonly Facts[], gpus: readonly GpuFacts[]): string | undefined {
  const refused = firstOf(facts.map(({ refusal }) => refusal));
  if (refused !== undefined) return refused;
  const uuids = gpus.map(({ uuid }) => uuid);
  const second = uuids.findIndex((uuid, rank) => uuids.indexOf(uuid) < rank);
  return second < 0 ? undefined : `ranks ${uuids.indexOf(uuids[second] ?? '')} and ${second} share a GPU`;
}
