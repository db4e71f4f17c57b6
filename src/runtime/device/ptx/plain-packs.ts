import type { Address, Builder, Double, Lane, Predicate, Shape, Word } from './builder.js';
import { assign } from './elements.js';

/** Packs of elements in ordinary memory, which may begin at any element and end before the pack does. */
export class PlainPacks {
  readonly #ptx: Builder;
  readonly #elementBytes: 1 | 2 | 4 | 8;
  readonly #bytes: 8 | 16;
  /** Bits of a register: bytes and halves share words. */
  readonly #bits: 32 | 64;

  constructor(ptx: Builder, elementBytes: 1 | 2 | 4 | 8, bytes: 8 | 16) {
    this.#ptx = ptx;
    this.#elementBytes = elementBytes;
    this.#bytes = bytes;
    this.#bits = elementBytes === 8 ? 64 : 32;
  }

  /** New registers for so many packs. */
  registers(packs: number): Lane[] {
    const kind = this.#bits === 64 ? 'b64' : 'b32';
    return Array.from({ length: (packs * 8 * this.#bytes) / this.#bits }, () => this.#ptx.register(kind));
  }

  /**
   * Loads a pack, whose missing elements are 0.
   * @param left bytes of data from `base` on; without it, the pack is whole and aligned
   */
  load(base: Double, left?: Double): Lane[] {
    const ptx = this.#ptx;
    const shape: Shape = { bits: this.#bits, count: ((8 * this.#bytes) / this.#bits) as 1 | 2 | 4 };
    const address: Address = { space: 'global', base };
    if (left === undefined) return ptx.load(address, shape);
    const lanes = this.registers(1);
    ptx.either(
      this.#isWhole(base, left),
      () => ptx.load(address, shape).forEach((lane, i) => assign(ptx, lanes[i] ?? lane, lane)),
      () => {
        for (const lane of lanes)
          if (lane.kind === 'b64') ptx.into(lane, 'mov.b64', 0);
          else ptx.into(lane, 'mov.b32', 0);
        this.#eachElement(lanes, left, (lane, at, shift) => {
          const [element] = ptx.load({ ...address, offset: at }, this.#elementShape);
          if (element === undefined) return;
          if (shift === 0) assign(ptx, lane, element);
          else ptx.into(lane as Word, 'bfi.b32', element as Word, lane as Word, shift, 8 * this.#elementBytes);
        });
      },
    );
    return lanes;
  }

  /** Stores a pack, or its elements that exist. */
  store(base: Double, lanes: readonly Lane[], left?: Double): void {
    const ptx = this.#ptx;
    const address: Address = { space: 'global', base };
    const storeWhole = (): void => ptx.store(address, this.#bits, lanes);
    if (left === undefined) {
      storeWhole();
      return;
    }
    ptx.either(this.#isWhole(base, left), storeWhole, () => {
      this.#eachElement(lanes, left, (lane, at, shift) => {
        const element = shift === 0 ? lane : ptx.make('shr.u32', lane as Word, shift);
        ptx.store({ ...address, offset: at }, this.#elementShape.bits, [element]);
      });
    });
  }

  get #elementShape(): Shape {
    return { bits: (8 * this.#elementBytes) as Shape['bits'] };
  }

  #isWhole(base: Double, left: Double): Predicate {
    const ptx = this.#ptx;
    const isAligned = ptx.make('setp.eq.u64', ptx.make('and.b64', base, this.#bytes - 1), 0);
    return ptx.make('and.pred', isAligned, ptx.make('setp.ge.u64', left, this.#bytes));
  }

  /** Emits code for each element that exists: its register, the byte in the pack, the bit in the register. */
  #eachElement(lanes: readonly Lane[], left: Double, emit: (lane: Lane, at: number, shift: number) => void): void {
    const ptx = this.#ptx;
    for (let at = 0; at < this.#bytes; at += this.#elementBytes) {
      const lane = lanes[Math.floor((8 * at) / this.#bits)];
      if (lane === undefined) throw new RangeError(`${lanes.length} registers are no pack of ${this.#bytes} bytes`);
      ptx.when(ptx.make('setp.ge.u64', left, at + this.#elementBytes), () => {
        emit(lane, at, (8 * at) % this.#bits);
      });
    }
  }
}
