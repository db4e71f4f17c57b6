/** A general register by its number: those that a function need not preserve and that need no special addressing. */
export const general = { rax: 0, rcx: 1, rdx: 2, rsi: 6, rdi: 7, r8: 8, r9: 9, r10: 10, r11: 11 } as const;
type General = (typeof general)[keyof typeof general];

/** A vector register, 0 to 15: `xmm` is the lower half of `ymm`. Each instruction here except moves has one width. */
export interface Vector {
  readonly vector: number;
}

export function vector(number: number): Vector {
  return { vector: number };
}

/** Memory operand: `displacement` bytes, -128 to 127, after the address in a register. */
export interface Memory {
  readonly base: General;
  readonly displacement: number;
}

/** Fields of a VEX prefix: Intel's manual, volume 2, 2.3. */
interface Vex {
  /** Opcode map: 1 is 0F, 2 is 0F 38, 3 is 0F 3A. */
  readonly map: 1 | 2 | 3;
  /** The older prefix that it replaces: 0 none, 1 is 66, 2 is F3. */
  readonly prefix: 0 | 1 | 2;
  /** True if the vectors have 256 bits. */
  readonly wide: boolean;
  readonly opcode: number;
}

const RET = 0xc3;

/**
 * Writes x86-64 machine code: the few instructions that the kernels in this folder need. A method is an instruction with
 * Intel's name and Intel's order of operands (destination first). Tests compare every encoding with a disassembler's reading
 * (test/unit/device/assembler.test.ts).
 */
export class Assembler {
  readonly #bytes: number[] = [];

  /** The code so far. */
  get code(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  /** Current position, for jumps back to it. */
  here(): number {
    return this.#bytes.length;
  }

  // ── integers and control ──────────────────────────────────────────────────────────────────────────────────────────

  /** 64 bits. */
  mov(to: General, from: General): void {
    this.#between(0x89, to, from);
  }

  /** Loads 32 bits; the upper half becomes 0. */
  movLow(to: General, from: Memory): void {
    if (to >= 8 || from.base >= 8) this.#bytes.push(0x40 | ((to >> 3) << 2) | (from.base >> 3));
    this.#bytes.push(0x8b, ...operands(to, from));
  }

  /** Loads 64 bits. */
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

  /** Jumps back if `cmp` found `a` below `b`, as unsigned numbers. */
  jb(back: number): void {
    this.#bytes.push(0x0f, 0x82, ...int32(back - this.here() - 6));
  }

  /** Repeats the code of `body`, at least once, and adds `step` to `counter` each time, while it is below `end`. */
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

  /** Reads 16 or 32 bytes. */
  vmovdquLoad(to: Vector, from: Memory, wide = false): void {
    this.#vex({ map: 1, prefix: 2, wide, opcode: 0x6f }, to, undefined, from);
  }

  /** Writes 16 or 32 bytes. */
  vmovdquStore(to: Memory, from: Vector, wide = false): void {
    this.#vex({ map: 1, prefix: 2, wide, opcode: 0x7f }, from, undefined, to);
  }

  /** Writes 32 bytes, at a multiple of 32, around the caches. */
  vmovntdq(to: Memory, from: Vector): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0xe7 }, from, undefined, to);
  }

  /** Converts eight float16 to float32. */
  vcvtph2ps(to: Vector, from: Vector | Memory): void {
    this.#vex({ map: 2, prefix: 1, wide: true, opcode: 0x13 }, to, undefined, from);
  }

  /** Converts eight float32 to float16, rounded to nearest even. */
  vcvtps2ph(to: Vector, from: Vector): void {
    this.#vex({ map: 3, prefix: 1, wide: true, opcode: 0x1d }, from, undefined, to, 0);
  }

  /** Adds eight float32. */
  vaddps(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 0, wide: true, opcode: 0x58 }, to, a, b);
  }

  /** Adds four float64. */
  vaddpd(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0x58 }, to, a, b);
  }

  /** Adds 32 integers of 8 bits. */
  vpaddb(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0xfc }, to, a, b);
  }

  /** Adds eight integers of 32 bits. */
  vpaddd(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0xfe }, to, a, b);
  }

  /** Adds four integers of 64 bits. */
  vpaddq(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: 1, prefix: 1, wide: true, opcode: 0xd4 }, to, a, b);
  }

  /** Sets all bits of a lane if `a` or `b` is NaN there, otherwise clears them; eight lanes. */
  vcmpunordps(to: Vector, a: Vector, b: Vector): void {
    this.#vex({ map: 1, prefix: 0, wide: true, opcode: 0xc2 }, to, a, b, 3);
  }

  /** Selects lanes of `b` where the top bit of `mask` is set, of `a` elsewhere; eight lanes. */
  vblendvps(to: Vector, a: Vector, b: Vector, mask: Vector): void {
    this.#vex({ map: 3, prefix: 1, wide: true, opcode: 0x4a }, to, a, b, mask.vector << 4);
  }

  /** Sets all bits of a lane if `a` and `b` are equal there, otherwise clears them; eight lanes. */
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

  /** `register` is ModRM's reg, `second` VEX.vvvv, `rm` ModRM's rm; VEX stores them inverted. */
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

/** ModRM and the bytes that belong to it. */
function operands(register: number, rm: Vector | Memory): number[] {
  const bits = (register & 7) << 3;
  return 'vector' in rm ? [0xc0 | bits | (rm.vector & 7)] : [0x40 | bits | (rm.base & 7), rm.displacement & 255];
}

function int32(value: number): number[] {
  return [value & 255, (value >> 8) & 255, (value >> 16) & 255, (value >> 24) & 255];
}
