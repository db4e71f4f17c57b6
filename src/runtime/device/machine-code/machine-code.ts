import { closeSync, openSync, readSync } from '#platform/files';
import type { Libc } from '../libc.js';
import type { DataTypeName } from '../types.js';
import { COPY_BLOCK_BYTES, COPY_TWICE_ARGUMENTS, copyTwiceCode, type CopyTwiceFunction } from './copy-twice.js';
import { BLOCK_BYTES, SUM_FLOAT16_ARGUMENTS, sumFloat16Code, type SumFloat16Function } from './sum-float16.js';
import { addingOf, SUM_ARGUMENTS, sumCode, type Adding, type SumFunction } from './sum.js';

/** Bytes to read of /proc/cpuinfo: more than the first core's entry. Reading all takes milliseconds with hundreds of cores. */
const CPU_INFO_BYTES = 4096;

interface Functions {
  readonly sumFloat16: SumFloat16Function;
  /** Sum functions, each made at first use. */
  readonly sums: Map<Adding, SumFunction>;
  copyTwice?: CopyTwiceFunction;
}

/** Made at first use, once in each thread, and kept: a page of memory. */
let made: Functions | { readonly reason: string } | undefined;

/**
 * Operations that WebAssembly lacks, as processor instructions: conversions of float16, stores around the caches, and sums of
 * arrays outside the memory. The kernels hand over data that are worth a call (0.3 µs), and process the rest themselves with the
 * same bits as result.
 */
export class MachineCode {
  readonly #libc: Libc;
  readonly #words: Uint32Array;
  /** Address of the memory in this process; it never moves. */
  readonly #base: number;

  constructor(memory: WebAssembly.Memory, libc: Libc) {
    this.#libc = libc;
    this.#words = new Uint32Array(memory.buffer);
    this.#base = Number(libc.addressOf(new Uint8Array(memory.buffer)));
  }

  /** Reason why there is no machine code, or undefined. */
  get refusal(): string | undefined {
    const functions = this.#functions();
    return 'reason' in functions ? functions.reason : undefined;
  }

  /** Function that sums arrays of a type anywhere in this process, or undefined. */
  sumOf(type: DataTypeName): SumFunction | undefined {
    const adding = addingOf[type];
    const functions = this.#functions();
    if (adding === undefined || 'reason' in functions) return undefined;
    let sum = functions.sums.get(adding);
    if (sum === undefined) functions.sums.set(adding, (sum = this.#libc.makeFunction(sumCode(adding), SUM_ARGUMENTS)));
    return sum;
  }

  /**
   * Copies as much as it can of the `bytes` bytes at `source` in the memory to two other ranges: to `cached` as usual, to
   * `streamed`, a multiple of COPY_BLOCK_BYTES, around the caches. Returns the number of bytes copied, from the first on.
   */
  copyTwice(source: number, cached: number, streamed: number, bytes: number): number {
    const functions = this.#functions();
    const length = bytes - (bytes % COPY_BLOCK_BYTES);
    if ('reason' in functions || length === 0) return 0;
    functions.copyTwice ??= this.#libc.makeFunction(copyTwiceCode(), COPY_TWICE_ARGUMENTS);
    functions.copyTwice(this.#base + source, this.#base + source + length, this.#base + cached, this.#base + streamed);
    return length;
  }

  /** Address of an array outside the memory, valid until it is detached. */
  addressOfOutside(array: Uint8Array | Uint32Array | BigUint64Array): number {
    return Number(this.#libc.addressOf(new Uint8Array(array.buffer, array.byteOffset, array.byteLength)));
  }

  /** Address in this process of an offset in the memory. */
  addressOf(place: number): number {
    return this.#base + place;
  }

  /**
   * Sums as much as it can of the `bytes` bytes at `from` of all sources into all destinations: like reduceCopy, but for at
   * least two sources. Returns the number of bytes done, from the first on. Called by kernels, whose addresses from 2 GiB up
   * are negative.
   */
  sumFloat16(
    sources: number,
    nSources: number,
    destinations: number,
    nDestinations: number,
    from: number,
    bytes: number,
  ): number {
    const functions = this.#functions();
    if ('reason' in functions) return 0;
    const first = from >>> 0;
    const length = (bytes >>> 0) - ((bytes >>> 0) % BLOCK_BYTES);
    // Otherwise, let WebAssembly trap.
    if (!this.#areWithin(sources, nSources, first + length) || !this.#areWithin(destinations, nDestinations, first + length))
      return 0;
    const sourceTable = this.#base + (sources >>> 0);
    const destinationTable = this.#base + (destinations >>> 0);
    functions.sumFloat16(
      this.#base + first,
      sourceTable,
      sourceTable + 4 * nSources,
      destinationTable,
      destinationTable + 4 * nDestinations,
      length,
    );
    return length;
  }

  /** True if the first `end` bytes at each of the addresses in a table are within the memory. */
  #areWithin(table: number, count: number, end: number): boolean {
    const words = this.#words;
    const at = (table >>> 0) / 4;
    for (let i = 0; i < count; i++) if ((words[at + i] ?? Infinity) + end > words.byteLength) return false;
    return true;
  }

  #functions(): Functions | { readonly reason: string } {
    return (made ??= make(this.#libc));
  }
}

function make(libc: Libc): Functions | { readonly reason: string } {
  if (process.arch !== 'x64') return { reason: `this is ${process.arch}` };
  try {
    if (!hasFeatures()) return { reason: 'the processor has no F16C or no AVX2' };
    return { sumFloat16: libc.makeFunction(sumFloat16Code(), SUM_FLOAT16_ARGUMENTS), sums: new Map() };
  } catch (error) {
    return { reason: (error as Error).message };
  }
}

/** The kernel lists only features that programs may use. */
function hasFeatures(): boolean {
  const text = Buffer.alloc(CPU_INFO_BYTES);
  const file = openSync('/proc/cpuinfo', 'r');
  try {
    readSync(file, text);
  } finally {
    closeSync(file);
  }
  const flags = /^flags\s*:(.*)$/m.exec(text.toString('latin1'))?.[1]?.split(' ') ?? [];
  return flags.includes('f16c') && flags.includes('avx2');
}
