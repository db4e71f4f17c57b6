import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kernelName, levelsOf, moduleText, type KernelDescription } from '../../src/runtime/device/ptx/kernels.js';

/** Writes each text of each kernel as FOLDER/sm_NN/NAME.ptx, and gives the number of files. */
export function writeKernels(folder: string, kernels: readonly KernelDescription[]): number {
  let files = 0;
  for (const kernel of kernels)
    for (const level of levelsOf(kernel)) {
      mkdirSync(join(folder, `sm_${level}`), { recursive: true });
      writeFileSync(join(folder, `sm_${level}`, `${kernelName(kernel)}.ptx`), moduleText([kernel], level));
      files++;
    }
  return files;
}
