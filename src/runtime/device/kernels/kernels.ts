import { kernelsWasm } from './kernels-wasm.js';

export { callKinds } from './call-kinds.js';

/** Results of the start functions and of `progress`. */
export const PENDING = 0;
export const DONE = 1;
/** A direct round is over that was cut to a staging chunk because a rank's arrays are staged: see roundBytes(). */
export const PARTLY = 2;
/** All ranks have posted their calls of meet(). */
export const MET = 3;
/** The data of a small operation need more room than setRoom() gave; nothing was begun. */
export const NO_ROOM = 4;
/** Result `MISMATCH - r` (or below): rank r made a different call. */
export const MISMATCH = -1;

/** Kernels that need no other rank. Addresses and lengths are in bytes, in the rank's memory (u32). */
export interface Arithmetic {
  reduceCopy(
    type: number,
    operator: number,
    sources: number,
    nSources: number,
    destinations: number,
    nDestinations: number,
    from: number,
    bytes: number,
  ): void;
  /** Sums sources, each times its own scalar; `scalars` is a table of scalars written by scalar.ts. */
  reduceScaled(
    type: number,
    scalars: number,
    sources: number,
    nSources: number,
    destinations: number,
    nDestinations: number,
    from: number,
    bytes: number,
  ): void;
  divide(type: number, address: number, bytes: number, divisor: number): void;
  copy(destination: number, source: number, bytes: number): void;
  /** The same, from the last bytes to the first. */
  copyBackward(destination: number, source: number, bytes: number): void;
  /**
   * Combines elements of a window atomically, and writes what they were to `before` unless that is 0; assembly/accumulate.ts.
   * @param operator also REPLACE or COMPARE
   */
  accumulate(type: number, operator: number, destination: number, source: number, bytes: number, before: number): void;
  /** Exchanges the contents of two ranges. */
  swap(a: number, b: number, bytes: number): void;
  /** Writes a message whose words carry their own flags; assembly/low-latency.ts. */
  postFlagged(
    line: number,
    flag: number,
    source: number,
    bytes: number,
    headerWords: number,
    headerBytes: number,
    fillWords: number,
  ): void;
  /** Reads such a message. Returns its length, or -1 until all of it has arrived. */
  takeFlagged(line: number, flag: number, destination: number, headerWords: number, headerBytes: number): number;
}

/** Pieces of messages in mailboxes (messages/p2p-mailbox.ts), which need no state. */
interface MailboxKernels {
  /**
   * Posts a piece of `bytes` bytes: copied from `source`, unless that is 0, to `address`, or into the post if that is 0.
   * @param type of the message, and its tag
   */
  postPiece(
    mailbox: number,
    number: number,
    type: number,
    count: number,
    address: number,
    bytes: number,
    place: number,
    source: number,
  ): void;
  /** Takes a message that is one piece: DONE, PENDING while it is not there, or another number for another message. */
  takeMessage(
    mailbox: number,
    number: number,
    mask: number,
    type: number,
    count: number,
    destination: number,
    bytes: number,
    spins: number,
  ): number;
}

/**
 * The kernels of one rank of a team, compiled from assembly/*.ts. Counts are in elements. `spins` limits the number of unset
 * flags that a call polls before it returns PENDING.
 */
export interface Kernels extends Arithmetic, MailboxKernels {
  attach(blocks: number, rank: number, nRanks: number, stageBytes: number): void;
  allReduce(code: number, send: number, recv: number, count: number, smallBytes: number, staged: number, spins: number): number;
  /** Sets the memory for data of small operations that do not fit into a post (56 bytes): two halves of `bytes` bytes. */
  setRoom(address: number, bytes: number): void;
  /** Any other collective except the V forms, in which all ranks post their data. */
  small(code: number, root: number, send: number, recv: number, count: number, spins: number): number;
  /** Posts a call with four words and a float64, which others find at postAddress() + 8, and waits for all other posts: MET. */
  meet(
    code: number,
    root: number,
    count: number,
    word0: number,
    word1: number,
    word2: number,
    word3: number,
    place: number,
    spins: number,
  ): number;
  /** Declares that this rank needs the others' posts no longer; if `waits` is not 0, waits until all have declared that. */
  finish(waits: number, spins: number): number;
  barrier(code: number, root: number, spins: number): number;
  progress(spins: number): number;
  roundBytes(): number;
  operationNumber(): number;
  /** Waiting part of the pending operation, from 0 to 3. */
  phaseNumber(): number;
  waitingFor(): number;
  // Addresses are returned as signed numbers: those from 2 GiB up are negative until `>>> 0`.
  postAddress(rank: number): number;
  calledAddress(rank: number): number;
  /** Post of the operation before, or after, whichever a rank posted last. */
  otherPostAddress(rank: number): number;
  otherCalledAddress(rank: number): number;
  /** Two tables of addresses for reduceTables, sources and destinations, each with MAX_LOCAL_RANKS entries of 4 bytes. */
  tableAddress(): number;
  /** reduceCopy or reduceScaled of the running call, with one source from each rank. */
  reduceTables(nDestinations: number, from: number, bytes: number): void;
  /** Sets the scalar (scalar.ts) of this rank's following premulSums. */
  setScalar(low: number, high: number): void;

  /** Size of a rank's control block. */
  readonly BLOCK_BYTES: WebAssembly.Global;
}

let compiled: WebAssembly.Module | undefined;

/**
 * Kernels call this before they sum many float16: it may sum some, from the first byte on, and returns the number of bytes
 * (machine-code.ts). Addresses are signed numbers.
 */
export type SumFloat16 = (
  sources: number,
  nSources: number,
  destinations: number,
  nDestinations: number,
  from: number,
  bytes: number,
) => number;

/** Makes an instance of the kernels on `memory`. Each rank of a team has its own, which contains its state. */
export function instantiateKernels(memory: WebAssembly.Memory, sumFloat16: SumFloat16 = () => 0): Kernels {
  compiled ??= new WebAssembly.Module(kernelsWasm());
  return new WebAssembly.Instance(compiled, { env: { memory, sumFloat16 } }).exports as unknown as Kernels;
}
