/** Most cores of glibc's CPU sets, and so of NCCL's. */
const MAX_CPUS = 1024;
const BITS_PER_PART = 32;

/**
 * The cores in a mask in Linux's form, ascending: hexadecimal numbers of 32 bits, the highest first, separated by commas
 * (`ffffffff,00000000` is cores 32 to 63).
 */
export function cpusOfMask(mask: string): number[] {
  const parts = mask
    .split(',')
    .filter((part) => part !== '')
    .slice(0, MAX_CPUS / BITS_PER_PART);
  const cpus: number[] = [];
  parts.reverse().forEach((part, position) => {
    const bits = Number(BigInt.asUintN(BITS_PER_PART, BigInt(`0x${/^\s*(?:0[xX])?([0-9a-fA-F]+)/.exec(part)?.[1] ?? '0'}`)));
    for (let bit = 0; bit < BITS_PER_PART; bit++) {
      if ((bits >>> bit) & 1) cpus.push(position * BITS_PER_PART + bit);
    }
  });
  return cpus;
}

/** `0-15,32` for those cores, which must ascend. */
export function cpuRanges(cpus: readonly number[]): string {
  const ranges: string[] = [];
  let from = cpus[0];
  cpus.forEach((cpu, position) => {
    if (cpus[position + 1] === cpu + 1) return;
    ranges.push(from === cpu ? String(cpu) : `${from ?? cpu}-${cpu}`);
    from = cpus[position + 1];
  });
  return ranges.join(',');
}
