import { Assembler, general, vector } from './assembler.js';

/** Size of a block; the code processes whole blocks. */
export const COPY_BLOCK_BYTES = 128;

/**
 * Copies the bytes from `source` to `end`, at least a block, to two destinations: `cached` as usual, and `streamed`, a
 * multiple of VECTOR_BYTES, around the caches. Addresses are those of the process.
 */
export type CopyTwiceFunction = (source: number, end: number, cached: number, streamed: number) => void;
export const COPY_TWICE_ARGUMENTS = 4;

const { rcx, rdx, rsi, rdi } = general;
const VECTOR_BYTES = 32;

export function copyTwiceCode(): Uint8Array {
  const code = new Assembler();
  const vectors = Array.from({ length: COPY_BLOCK_BYTES / VECTOR_BYTES }, (_, k) => ({
    data: vector(k),
    displacement: k * VECTOR_BYTES,
  }));
  code.countUp(rdi, rsi, COPY_BLOCK_BYTES, () => {
    for (const { data, displacement } of vectors) code.vmovdquLoad(data, { base: rdi, displacement }, true);
    for (const { data, displacement } of vectors) code.vmovdquStore({ base: rdx, displacement }, data, true);
    for (const { data, displacement } of vectors) code.vmovntdq({ base: rcx, displacement }, data);
    code.addNumber(rdx, COPY_BLOCK_BYTES);
    code.addNumber(rcx, COPY_BLOCK_BYTES);
  });
  code.sfence();
  code.vzeroupper();
  code.ret();
  return code.code;
}
