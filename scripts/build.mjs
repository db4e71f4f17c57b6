// Builds dist/: the WebAssembly kernels (AssemblyScript), then both TypeScript projects.
// Both steps are skipped when nothing they read has changed. Outputs of deleted sources are removed: the package ships dist/.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { buildKernels } from './build-kernels.mjs';

await buildKernels();
const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.json'], { stdio: 'inherit' });
if (tsc.status !== 0) process.exit(tsc.status ?? 1);
for (const file of readdirSync('dist', { recursive: true, encoding: 'utf8' })) {
  const [, source] = /^(.+?)\.(?:js|js\.map|d\.ts)$/.exec(file) ?? [];
  if (source !== undefined && !existsSync(`src/${source}.ts`)) rmSync(`dist/${file}`);
}
mkdirSync('dist/runtime/device/kernels', { recursive: true });
copyFileSync('src/runtime/device/kernels/kernels.wasm', 'dist/runtime/device/kernels/kernels.wasm');
if (existsSync('dist/cli/main.js')) chmodSync('dist/cli/main.js', 0o755);
