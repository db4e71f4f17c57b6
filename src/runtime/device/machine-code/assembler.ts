/**
 * A general register by its number: those whose values a function need not give back, but for what addressing wants
 * otherwise.
 */
export const general = { rax: 0, rcx: 1, rdx: 2, rsi: 6, rdi: 7, r8: 8, r9: 9, r10: 10, r11: 11 } as const;
export type General = (typeof general)[keyof typeof general];

/** A vector register, 0 to 15: `xmm` is the lower half of `ymm`. Each instruction here but moves has one width. */
export interface Vector {
  readonly vector: number;
}

export function vector(number: number): Vector {
  return { vector: number };
}

/** Memory operand `displacement` bytes, -128 to 127, after the address in a register. */
export interface Memory {
  readonly base: General;
  readonly displacement: number;
}

/** Fields of a VEX prefix: Intel's manual, volume 2, 2.3. */
interface Vex {
  /** Opcode map: 1 is 0F, 2 is 0F 38, 3 is 0F 3A. */
  readonly map: 1 | 2 | 3;
  /** The older prefix that it stands for: 0 none, 1 is 66, 2 is F3. */
  readonly prefix: 0 | 1 | 2;
  /** True if the vectors have 256 bits. */
  readonly wide: boolean;
  readonly opcode: number;
}

const RET = 0xc3;

/**
 * Writes x86-64 machine code: the few instructions that the kernels of this folder consist of. A method is an instruction,
 * named as Intel does, with the operands in Intel's order (destination first). Every encoding is compared with what
 * a disassembler reads (test/unit/device/assembler.test.ts).
 */
export class Assembler {
  readonly #bytes: number[] = [];

  /** The code so far. */
  get code(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  /** This place, for jumps back to it. */
  here(): number {
    return this.#bytes.length;
  }

  // ── integers and control ──────────────────────────────────────────────────────────────────────────────────────────

  /** 64 bits. */
  mov(to: General, from: General): void {
    this.#between(0x89, to, from);
  }

  /** 32 bits of memory; the upper half becomes 0. */
  movLow(to: General, from: Memory): void {
    if (to >= 8 || from.base >= 8) this.#bytes.push(0x40 | ((to >> 3) << 2) | (from.base >> 3));
    this.#bytes.push(0x8b, ...operands(to, from));
  }

  /** 64 bits. */
  movLoad(to: General, from: Memory): void {
    this.#bytes.push(0x48 | ((to >> 3) << 2) | (from.base >> 3), 0x8b, ...operands(to, from));
  }

  add(to: General, by: General): void {
    this.#between(0x01, to, by);
  }

  addNumber(to: General, by: number): void {
    this.#bytes.push(0x48 | (to >> 3), 0x81, 0xc0 | (to & 7), ...int32(by));
  }

  cmp(a: General, b: General): void {
    this.#between(0x39, a, b);
  }

  /** Jumps back if `cmp` found `a` below `b`, without signs. */
  jb(back: number): void {
    this.#bytes.push(0x0f, 0x82, ...int32(back - this.here() - 6));
  }

  /** Does what `body` writes, once at least, and adds `step` to `counter` each time, as long as that is below `end`. */
  countUp(counter: General, end: General, step: number, body: () => void): void {
    const start = this.here();
    body();
    this.addNumber(counter, step);
    this.cmp(counter, end);
    this.jb(start);
  }

  ret(): void {
    this.#bytes.push(RET);
  }

  // ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Reads 16 bytes, or 32. */
  vmovdquLoad(to: Vector, from: Memory, wide = false): void {
    this.#vex({ map: 1, prefix: 2, wide, opcode: 0x6f }, to, undefined, from);
  }

  /** Writes 16 bytes, or 32. */
  vmovdquStore(to: Memory, from: Vector, wide = false): void {
    this.#vex({ map: 1, prefix: 2, wide, opcode: 0x7f }, from, undefined, to);
  }

  /** Writes 32 bytes at a multiple of 32 around the caches. */
  vmovntdq(to: Memory, from: Vector): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0xe7 }, from, undefined, to);
  }

  /** Eight float16 become float32. */
  vcvtph2ps(to: Vector, from: Vector | Memory): void {
    this.#vex({ map: 2, prefix: 1, wide: true, opcode: 0x13 }, to, undefined, from);
  }

  /** Eight float32 become float16, rounded to nearest even. */
  vcvtps2ph(to: Vector, from: Vector): void {
    this.#vex({ map: 3, prefix: 1, wide: true, opcode: 0x1d }, from, undefined, to, 0);
  }

  /** Eight float32. */
  vaddps(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 0, wide: true, opcode: 0x58 }, to, a, b);
  }

  /** Four float64. */
  vaddpd(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0x58 }, to, a, b);
  }

  /** 32 integers of 8 bits. */
  vpaddb(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0xfc }, to, a, b);
  }

  /** Eight integers of 32 bits. */
  vpaddd(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0xfe }, to, a, b);
  }

  /** Four integers of 64 bits. */
  vpaddq(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0xd4 }, to, a, b);
  }

  /** All bits of a lane become 1 if `a` or `b` is NaN there, else 0; eight lanes. */
  vcmpunordps(to: Vector, a: Vector, b: Vector): void {
    this.#vex({ map: 1, prefix: 0, wide: true, opcode: 0xc2 }, to, a, b, 3);
  }

  /** Lanes of `b` where the top bit of `mask` is set, of `a` elsewhere; eight lanes. */
  vblendvps(to: Vector, a: Vector, b: Vector, mask: Vector): void {
    this.#vex({ map: 3, prefix: 1, wide: true, opcode: 0x4a }, to, a, b, mask.vector << 4);
  }

  /** All bits of a lane become 1 if `a` and `b` are equal there, else 0; eight lanes. */
  vpcmpeqd(to: Vector, a: Vector, b: Vector): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0x76 }, to, a, b);
  }

  /** Shifts eight lanes right, zeros from the left. */
  vpsrld(to: Vector, from: Vector, bits: number): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0x72 }, vector(2), to, from, bits);
  }

  /** SFENCE: orders stores around the caches before all later stores. */
  sfence(): void {
    this.#bytes.push(0x0f, 0xae, 0xf8);
  }

  /** VZEROUPPER, required after 256-bit instructions: without it, 128-bit code is slow. */
  vzeroupper(): void {
    this.#bytes.push(0xc5, 0xf8, 0x77);
  }

  // ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** An instruction on two general registers, 64 bits. */
  #between(opcode: number, to: General, from: General): void {
    this.#bytes.push(0x48 | ((from >> 3) << 2) | (to >> 3), opcode, 0xc0 | ((from & 7) << 3) | (to & 7));
  }

  /** `register` is ModRM's reg, `second` VEX.vvvv, `rm` ModRM's rm; all of these are stored inverted but ModRM's. */
  #vex(
    { map, prefix, wide, opcode }: Vex,
    register: Vector,
    second: Vector | undefined,
    rm: Vector | Memory,
    immediate?: number,
  ): void {
    const rmNumber = 'vector' in rm ? rm.vector : rm.base;
    this.#bytes.push(
      0xc4,
      (((register.vector >> 3) ^ 1) << 7) | 0x40 | (((rmNumber >> 3) ^ 1) << 5) | map,
      (((second?.vector ?? 0) ^ 15) << 3) | (wide ? 4 : 0) | prefix,
      opcode,
      ...operands(register.vector, rm),
    );
    if (immediate !== undefined) this.#bytes.push(immediate);
  }
}

/** ModRM and what belongs to it. */
function operands(register: number, rm: Vector | Memory): number[] {
  const bits = (register & 7) << 3;
  return 'vector' in rm ? [0xc0 | bits | (rm.vector & 7)] : [0x40 | bits | (rm.base & 7), rm.displacement & 255];
}

function int32(value: number): number[] {
  return [value & 255, (value >> 8) & 255, (value >> 16) & 255, (value >> 24) & 255];
}
