import type { DataTypeName } from '../types.js';
import { Assembler, general, vector, type Memory, type Vector } from './assembler.js';

/** Size of a block; the code processes whole blocks. */
export const SUM_BLOCK_BYTES = 256;

/**
 * Arguments of the code: a table of 64-bit addresses of at least two sources, its end, the address of the sums, and the range
 * of bytes in all of these, at least a block. Addresses are those of the process, without alignment.
 */
export type SumFunction = (sources: number, sourcesEnd: number, destination: number, end: number, from: number) => void;
export const SUM_ARGUMENTS = 5;

export type Adding = 'vaddps' | 'vaddpd' | 'vpaddb' | 'vpaddd' | 'vpaddq';

/** Add instructions by type. */
export const addingOf: Partial<Record<DataTypeName, Adding>> = {
  float32: 'vaddps',
  float64: 'vaddpd',
  int8: 'vpaddb',
  uint8: 'vpaddb',
  int32: 'vpaddd',
  uint32: 'vpaddd',
  int64: 'vpaddq',
  uint64: 'vpaddq',
};

const { rax, rcx, rdx, rsi, rdi, r8, r9 } = general;
const VECTOR_BYTES = 32;
const ADDRESS_BYTES = 8;
/** Blocks are addressed by their middle, from which a whole block is within reach of short displacements. */
const MIDDLE = SUM_BLOCK_BYTES / 2;

/** Sums source by source in order, like assembly/reduce.ts. */
export function sumCode(adds: Adding): Uint8Array {
  const code = new Assembler();
  const vectors: { sum: Vector; place: Memory }[] = Array.from({ length: SUM_BLOCK_BYTES / VECTOR_BYTES }, (_, k) => ({
    sum: vector(k),
    place: { base: rax, displacement: k * VECTOR_BYTES - MIDDLE },
  }));
  code.addNumber(r8, MIDDLE);
  code.addNumber(rcx, MIDDLE);

  code.countUp(r8, rcx, SUM_BLOCK_BYTES, () => {
    code.movLoad(rax, { base: rdi, displacement: 0 });
    code.add(rax, r8);
    for (const { sum, place } of vectors) code.vmovdquLoad(sum, place, true);

    code.mov(r9, rdi);
    code.addNumber(r9, ADDRESS_BYTES);
    code.countUp(r9, rsi, ADDRESS_BYTES, () => {
      code.movLoad(rax, { base: r9, displacement: 0 });
      code.add(rax, r8);
      for (const { sum, place } of vectors) code[adds](sum, sum, place);
    });

    code.mov(rax, rdx);
    code.add(rax, r8);
    for (const { sum, place } of vectors) code.vmovdquStore(place, sum, true);
  });
  code.vzeroupper();
  code.ret();
  return code.code;
}
