// Builds dist/: the WebAssembly kernels (AssemblyScript), then both TypeScript projects.
// Both steps are skipped when nothing they read has changed. Outputs of deleted sources are removed: the package ships dist/.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { buildKernels } from './build-kernels.mjs';

await buildKernels();
const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.json'], { stdio: 'inherit' });
if (tsc.status !== 0) process.exit(tsc.status ?? 1);
for (const file of readdirSync('dist', { recursive: true, encoding: 'utf8' })) {
  const [, source] = /^(.+?)\.(?:js|js\.map|d\.ts)$/.exec(file) ?? [];
  if (source !== undefined && !existsSync(`src/${source}.ts`)) rmSync(`dist/${file}`);
}
copyFileSync('src/runtime/device/kernels/kernels.wasm', 'dist/runtime/device/kernels/kernels.wasm');
const kernels = readFileSync('src/runtime/device/kernels/kernels.wasm').toString('base64');
writeFileSync(
  'dist/runtime/device/kernels/kernels-wasm.js',
  `// Written by scripts/build.mjs.
const base64 = '${kernels}';
export const kernelsWasm = () => Buffer.from(base64, 'base64');
`,
);
if (existsSync('dist/cli/main.js')) chmodSync('dist/cli/main.js', 0o755);
