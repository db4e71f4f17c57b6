import type { EngineCall } from '../queued-call.js';
import { callKinds } from '../../device/kernels/kernels.js';
import type { NumericArray } from '../../device/types.js';
import { Blocks } from './blocks.js';
import { derivedOf, kindOf, type CallDetails } from '../call.js';
import { defined } from '../../../defined.js';

const nothing = new Int32Array(0);

/** The running call as an algorithm over connections reads it. One object serves all calls of an engine. */
export class NetworkCall {
  /** Code of `callKinds`. */
  kind = 0;
  /** Length in bytes of the call's count: of the array, or of one rank's block if there are blocks. */
  bytes = 0;
  root = 0;
  /** The program's call, if a call of this kind carries it out. */
  derived: ReturnType<typeof derivedOf>;
  #bytesPerElement = 0;
  #send: NumericArray = nothing;
  #recv: NumericArray = nothing;
  #details: CallDetails | undefined;
  readonly #rank: number;
  readonly #blocks: Blocks;
  readonly #receivedBlocks: Blocks;

  constructor(rank: number, nRanks: number) {
    this.#rank = rank;
    this.#blocks = new Blocks(nRanks);
    this.#receivedBlocks = new Blocks(nRanks);
  }

  begin({ code, type, root, send, recv, count, details }: EngineCall): void {
    this.kind = kindOf(code);
    this.derived = derivedOf(code);
    this.bytes = count * type.bytes;
    this.root = root;
    this.#bytesPerElement = type.bytes;
    this.#send = send;
    this.#recv = recv;
    this.#details = details;
  }

  /** Drops the references to the arrays of a finished call. */
  forget(): void {
    this.#send = nothing;
    this.#recv = nothing;
    this.#details = undefined;
  }

  /** Each rank's block in the longer array; for allToAll and allToAllV, in the input. */
  blocks(): Blocks {
    const details = this.#details;
    if (details?.counts === undefined) return this.#blocks.even(this.bytes);
    return this.#blocks.uneven(details.counts, details.displacements ?? [], this.#bytesPerElement);
  }

  /** Each rank's block in the output of allToAll and allToAllV. */
  receivedBlocks(): Blocks {
    const details = this.#details;
    if (details?.recvCounts === undefined) return this.#receivedBlocks.even(this.bytes);
    return this.#receivedBlocks.uneven(details.recvCounts, defined(details.recvDisplacements), this.#bytesPerElement);
  }

  /**
   * True if this rank's input is already in the place of its output; for an all-gather, in its block of the output. An
   * allToAllV never works in place.
   */
  get isInPlace(): boolean {
    switch (this.kind) {
      case callKinds.allGather:
      case callKinds.allGatherV:
        return this.#startsAt(defined(this.blocks().from[this.#rank]));
      case callKinds.allToAllV:
        return false;
      default:
        return this.#startsAt(0);
    }
  }

  #startsAt(outputOffset: number): boolean {
    return this.#send.buffer === this.#recv.buffer && this.#recv.byteOffset + outputOffset === this.#send.byteOffset;
  }
}
