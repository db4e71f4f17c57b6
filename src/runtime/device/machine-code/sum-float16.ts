import { Assembler, general, vector } from './assembler.js';

/** Size of a block; the code processes whole blocks. */
export const BLOCK_BYTES = 128;

/**
 * Arguments of the code: all numbers; tables are u32 offsets from `base`. At least one block, one destination and two sources.
 */
export type SumFloat16Function = (
  base: number,
  sources: number,
  sourcesEnd: number,
  destinations: number,
  destinationsEnd: number,
  bytes: number,
) => void;
export const SUM_FLOAT16_ARGUMENTS = 6;

const { rax, rcx, rdx, rsi, rdi, r8, r9, r10 } = general;
const VECTOR_BYTES = 16;
/** Size of a table's entry. */
const PLACE_BYTES = 4;

/**
 * Sums float16 like assembly/words.ts: sources are added in order, each sum is rounded to nearest even, NaNs become 0x7fff.
 *
 * The intermediate rounding to float32 changes nothing, because float32 has more than twice the bits (24 and 11). The processor's
 * conversions handle subnormal numbers and round to nearest even, regardless of the settings for other arithmetic.
 */
export function sumFloat16Code(): Uint8Array {
  const code = new Assembler();
  const vectors = Array.from({ length: BLOCK_BYTES / VECTOR_BYTES }, (_, k) => ({
    sum: vector(k),
    displacement: k * VECTOR_BYTES,
  }));
  const [a, b, nan] = [vector(13), vector(14), vector(15)];
  // A NaN that becomes the one NaN when it is converted to float16.
  code.vpcmpeqd(nan, nan, nan);
  code.vpsrld(nan, nan, 1);
  code.add(r9, rdi);

  code.countUp(rdi, r9, BLOCK_BYTES, () => {
    code.movLow(rax, { base: rsi, displacement: 0 });
    code.add(rax, rdi);
    for (const { sum, displacement } of vectors) code.vmovdquLoad(sum, { base: rax, displacement });

    code.mov(r10, rsi);
    code.addNumber(r10, PLACE_BYTES);
    code.countUp(r10, rdx, PLACE_BYTES, () => {
      code.movLow(rax, { base: r10, displacement: 0 });
      code.add(rax, rdi);
      for (const { sum, displacement } of vectors) {
        code.vcvtph2ps(a, sum);
        code.vcvtph2ps(b, { base: rax, displacement });
        code.vaddps(a, a, b);
        code.vcmpunordps(b, a, a);
        code.vblendvps(a, a, nan, b);
        code.vcvtps2ph(sum, a);
      }
    });

    code.mov(r10, rcx);
    code.countUp(r10, r8, PLACE_BYTES, () => {
      code.movLow(rax, { base: r10, displacement: 0 });
      code.add(rax, rdi);
      for (const { sum, displacement } of vectors) code.vmovdquStore({ base: rax, displacement }, sum);
    });
  });
  code.vzeroupper();
  code.ret();
  return code.code;
}
