// Compiles src/runtime/device/kernels/assembly/index.ts to src/runtime/device/kernels/kernels.wasm.
import { existsSync, readdirSync, statSync } from 'node:fs';

const source = 'src/runtime/device/kernels/assembly';
const output = 'src/runtime/device/kernels/kernels.wasm';

/** Compiles when a source, this script or the compiler is newer than the output. */
export async function buildKernels() {
  const inputs = [...readdirSync(source).map((file) => `${source}/${file}`), 'scripts/build-kernels.mjs'];
  const newest = Math.max(...inputs.map((file) => statSync(file).mtimeMs));
  if (existsSync(output) && statSync(output).mtimeMs > newest) return;

  const { default: asc } = await import('assemblyscript/asc');
  const { error, stderr } = await asc.main([
    `${source}/index.ts`,
    '--outFile',
    output,
    '-O3',
    '--noAssert',
    '--runtime',
    'stub',
    '--enable',
    'simd',
    '--enable',
    'threads',
    '--enable',
    'relaxed-simd',
    '--importMemory',
    '--sharedMemory',
    '--initialMemory',
    '1',
    '--maximumMemory',
    '65536',
    '--noExportMemory',
  ]);
  if (error) {
    process.stderr.write(`${stderr.toString()}\n${error.message}\n`);
    process.exit(1);
  }
}

if (import.meta.url === `file://${process.argv[1]}`) await buildKernels();
