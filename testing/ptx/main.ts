import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { allKernels, kernelName, levelsOf } from '../../src/runtime/device/ptx/kernels.js';
import { targets } from '../../src/runtime/device/ptx/targets.js';
import { assembleAll, findAssembler } from './assemble.js';
import { compileKernels, differencesOf, findClang } from './compiled.js';
import { registerTable } from './registers.js';
import { writeKernels } from './write.js';

const help = `npm run ptx [-- options]: the kernels for NVIDIA GPUs (docs/notes/cuda.md)

  --out DIR         writes each kernel as DIR/sm_NN/NAME.ptx, for sm_NN and newer GPUs up to the next folder that has it
  --only TEXT       kernels whose names contain the text
  --list            names of the kernels, with the folders that have them
  --registers FILE  assembles all of them for all GPUs by ptxas (TCCL_PTXAS, or on the path; minutes), and writes the table

  --clang           compares the interpreter with PTX that clang (TCCL_CLANG, or on the path) makes of testing/ptx/compiled.cl

  npm run ptx -- --out build/ptx --only float16`;

/** Schedules of each kernel of clang. */
const SCHEDULES = 100;

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    only: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    registers: { type: 'string' },
    clang: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

const { out, only, list, registers, clang, help: wantsHelp } = values;
if (wantsHelp || (out === undefined && !list && registers === undefined && !clang)) console.log(help);
const kernels = allKernels().filter((kernel) => kernelName(kernel).includes(only));
if (list)
  for (const kernel of kernels)
    console.log(
      `${kernelName(kernel)} ${levelsOf(kernel)
        .map((level) => `sm_${level}`)
        .join(' ')}`,
    );
if (out !== undefined) console.log(`${kernels.length} kernels in ${writeKernels(out, kernels)} files in ${out}`);
if (registers !== undefined) writeTable(registers);
if (clang) compareWithClang();

function writeTable(file: string): void {
  const assembler = findAssembler();
  if (assembler === undefined) {
    console.error('ptx: no ptxas; it is part of a CUDA toolkit: put it on the path, or its path into TCCL_PTXAS');
    process.exitCode = 1;
    return;
  }
  const columns = targets.map((target) => {
    console.log(`sm_${target}`);
    return [target, assembleAll(assembler, allKernels(), target)] as const;
  });
  writeFileSync(file, registerTable(assembler.version, columns));
}

function compareWithClang(): void {
  const compiler = findClang();
  if (compiler === undefined) {
    console.log('ptx: skipped: no clang 15 or newer; apt-get install clang-19, or put its path into TCCL_CLANG');
    return;
  }
  const file = fileURLToPath(new URL('../../../testing/ptx/compiled.cl', import.meta.url));
  for (const optimization of ['-O1', '-O2', '-O3']) {
    const differences = differencesOf(compileKernels(compiler, file, optimization), SCHEDULES);
    for (const each of differences) console.log(each);
    console.log(
      `clang ${compiler.version} ${optimization}: ${differences.length} differences in ${SCHEDULES} schedules of each kernel`,
    );
    if (differences.length > 0) process.exitCode = 1;
  }
}
