import { Operand } from '../algorithms/operand.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { DataType, NumericArray } from '../device/types.js';
import { observed, OPERAND_BYTES, type WindowCommand, type WindowLane } from './p2p-window.js';

/** A change of elements of a window by an operator of the kernels. */
export type Change = { readonly name: 'accumulate'; readonly operator: number; readonly source: NumericArray } | ElementChange;

interface ElementChange {
  readonly name: 'fetchAndOp' | 'compareAndSwap';
  readonly operator: number;
  readonly value: number | bigint;
  /** Element with which a `compareAndSwap` compares. */
  readonly expected: number | bigint;
  /** The element before the change, once it is done. */
  before: number | bigint;
}

/** Bytes of memory for data on their way to the elements that they are combined with. */
export const ROOM_BYTES = 4096;

/** Carries out changes: in memory that this rank shares, or through a lane by the rank that has the memory. */
export class ElementChanges {
  readonly #type: DataType;
  readonly #segment: Segment;
  readonly #room: number;
  /** The beginning of the room, as elements. */
  readonly #operands: NumericArray;
  readonly #operand: Operand;

  /** @param room address of ROOM_BYTES of this rank's own memory */
  constructor(type: DataType, segment: Segment, libc: Libc | undefined, room: number) {
    this.#type = type;
    this.#segment = segment;
    this.#room = room;
    this.#operands = this.#operandsAt(segment.buffer, room);
    this.#operand = new Operand(segment, libc);
  }

  /** Changes the elements from `address` on. */
  here(change: Change, address: number): void {
    const { kernels } = this.#segment;
    const { code, bytes: elementBytes } = this.#type;
    const { operator } = change;
    if (change.name !== 'accumulate') {
      this.#write(this.#operands, change);
      kernels.accumulate(code, operator, address, this.#room, elementBytes, this.#room);
      change.before = this.#type.read(this.#operands, 0);
      return;
    }
    const bytes = change.source.length * elementBytes;
    this.#operand.use(change.source);
    for (let from = 0; from < bytes; from += ROOM_BYTES) {
      const piece = Math.min(ROOM_BYTES, bytes - from);
      kernels.accumulate(code, operator, address + from, this.#operand.read(from, piece, this.#room), piece, 0);
    }
    this.#operand.forget();
  }

  /**
   * Changes the elements from byte `offset` of a lane's target on.
   * @param ended called at the end
   */
  through(lane: WindowLane, change: Change, offset: number, ended: WindowCommand['ended']): WindowCommand {
    const { operator } = change;
    const { bytes } = this.#type;
    if (change.name === 'accumulate')
      return observed(() => lane.accumulate(change.source, change.source.length * bytes, offset, operator), ended);
    const operands = this.#operandsAt(new ArrayBuffer(OPERAND_BYTES), 0);
    this.#write(operands, change);
    return observed(
      () => lane.fetch(operands, bytes, offset, operator),
      (error) => {
        change.before = this.#type.read(operands, 0);
        ended?.(error);
      },
    );
  }

  /** Operands of a fetch: the value, and behind it the element that is expected. */
  #operandsAt(buffer: ArrayBufferLike, address: number): NumericArray {
    return new this.#type.array(buffer, address, OPERAND_BYTES / this.#type.bytes);
  }

  #write(operands: NumericArray, { value, expected }: ElementChange): void {
    this.#type.write(operands, 0, value);
    this.#type.write(operands, operands.length / 2, expected);
  }
}
