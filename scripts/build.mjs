// Builds dist/: the WebAssembly kernels (AssemblyScript), both TypeScript projects, then files that each hold many modules, and
// the page of the studio.
// Steps are skipped when nothing they read has changed. Outputs of deleted sources are removed: the package ships dist/.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { buildKernels } from './build-kernels.mjs';
import { buildStudio } from './build-studio.mjs';
import { joinModules } from './join-modules.mjs';

await buildKernels();
const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.json'], { stdio: 'inherit' });
if (tsc.status !== 0) process.exit(tsc.status ?? 1);
const deleted = { 'build/modules': /^(.+?)\.js(?:\.map)?$/, dist: /^(.+?)\.d\.ts$|\.(?:wasm|tsbuildinfo)$/ };
for (const [folder, outputs] of Object.entries(deleted))
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const match = outputs.exec(file);
    if (match !== null && !file.startsWith('types/') && !existsSync(`src/${match[1]}.ts`)) rmSync(`${folder}/${file}`);
  }
await joinModules();
await buildStudio();
