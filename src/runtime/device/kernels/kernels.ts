import { readFileSync } from 'node:fs';

export { callKinds } from './call-kinds.js';

/** Results of the start functions and of `progress`. */
export const PENDING = 0;
export const DONE = 1;
/** A direct round is over that was cut to a staging chunk, because some rank's arrays are staged: see roundBytes(). */
export const PARTLY = 2;
/** All ranks have posted what meet() was about. */
export const MET = 3;
/** The data of a small operation need more room than setRoom() gave: nothing was begun. */
export const NO_ROOM = 4;
/** Result `MISMATCH - r` (or below): rank r called something else. */
export const MISMATCH = -1;

/** Kernels that need no other rank. Addresses and lengths are bytes in the rank's memory (u32). */
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
  /** The sum of sources, each times its own scalar; `scalars` is a table of what scalar.ts writes. */
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
  /** Exchanges what lies at two places. */
  swap(a: number, b: number, bytes: number): void;
  /** Writes a message whose words carry a flag each; assembly/low-latency.ts. */
  postFlagged(
    line: number,
    flag: number,
    source: number,
    bytes: number,
    headerWords: number,
    headerBytes: number,
    fillWords: number,
  ): void;
  /** Reads one: its length, or -1 while not all of it is there. */
  takeFlagged(line: number, flag: number, destination: number, headerWords: number, headerBytes: number): number;
}

/**
 * The kernels of one rank of a team, compiled from assembly/*.ts. Counts are elements. `spins` bounds how many unset
 * flags a call looks at before it returns PENDING.
 */
export interface Kernels extends Arithmetic {
  attach(blocks: number, rank: number, nRanks: number, stageBytes: number): void;
  allReduce(code: number, send: number, recv: number, count: number, smallBytes: number, staged: number, spins: number): number;
  /** Memory for data of small operations that do not fit into a post (56 bytes): two halves of `bytes` bytes. */
  setRoom(address: number, bytes: number): void;
  /** Any other collective but the V forms, by which all ranks post their data. */
  small(code: number, root: number, send: number, recv: number, count: number, spins: number): number;
  /** Posts a call with four words and a float64, which others find at postAddress() + 8, and waits for all others' posts: MET. */
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
  /** Says that this rank needs nothing more of what was posted; waits until all say so if `waits` is not 0. */
  finish(waits: number, spins: number): number;
  barrier(code: number, spins: number): number;
  progress(spins: number): number;
  roundBytes(): number;
  operationNumber(): number;
  /** Part of the pending operation that waits, from 0 to 3. */
  phaseNumber(): number;
  waitingFor(): number;
  // Addresses come as signed numbers: those from 2 GiB up are negative until `>>> 0`.
  postAddress(rank: number): number;
  calledAddress(rank: number): number;
  /** The same of the operation before, or after, whichever a rank posted last. */
  otherPostAddress(rank: number): number;
  otherCalledAddress(rank: number): number;
  /** Two tables of addresses for reduceTables, sources and destinations, each with room for MAX_LOCAL_RANKS of 4 bytes. */
  tableAddress(): number;
  /** reduceCopy or reduceScaled of the call under way, with one source of each rank. */
  reduceTables(nDestinations: number, from: number, bytes: number): void;
  /** Sets the scalar (scalar.ts) of this rank's premulSums that follow. */
  setScalar(low: number, high: number): void;

  /** Bytes of a rank's control block. */
  readonly BLOCK_BYTES: WebAssembly.Global;
}

let compiled: WebAssembly.Module | undefined;

/**
 * Kernels call this before they sum many float16: it may sum some, from the first byte on, and returns how many bytes
 * (machine-code.ts). Addresses as signed numbers.
 */
export type SumFloat16 = (
  sources: number,
  nSources: number,
  destinations: number,
  nDestinations: number,
  from: number,
  bytes: number,
) => number;

/** An instance of the kernels on `memory`. Each rank of a team has its own: its state is in the instance. */
export function instantiateKernels(memory: WebAssembly.Memory, sumFloat16: SumFloat16 = () => 0): Kernels {
  compiled ??= new WebAssembly.Module(readFileSync(new URL('./kernels.wasm', import.meta.url)));
  return new WebAssembly.Instance(compiled, { env: { memory, sumFloat16 } }).exports as unknown as Kernels;
}
