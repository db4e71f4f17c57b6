import { Assembler, general, vector } from './assembler.js';

/** The code works on whole blocks of so many bytes. */
export const BLOCK_BYTES = 128;

/**
 * Arguments of the code: all numbers; tables are of u32, with offsets from `base`. At least one block,
 * one destination and two sources.
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
/** Of an entry of a table. */
const PLACE_BYTES = 4;

/**
 * Sums of float16, as assembly/words.ts does them: sources are added in their order, each sum is rounded to nearest even,
 * NaNs become 0x7fff.
 *
 * Rounding to float32 before changes nothing, since that has twice the bits and two (24 of 11). The processor's conversions
 * know subnormal numbers, and round to nearest even, whatever is set for its other arithmetic.
 */
export function sumFloat16Code(): Uint8Array {
  const code = new Assembler();
  const vectors = Array.from({ length: BLOCK_BYTES / VECTOR_BYTES }, (_, k) => ({
    sum: vector(k),
    displacement: k * VECTOR_BYTES,
  }));
  const [a, b, nan] = [vector(13), vector(14), vector(15)];
  // A NaN that has the bits of the one NaN when it is cut to float16.
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
