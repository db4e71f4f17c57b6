import type { SpawnSyncReturns } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

export const repository = fileURLToPath(new URL('../..', import.meta.url));
/** SwiftShader and the loader of drivers, which Chromium contains. */
const chromium = '/usr/lib/chromium';
const driver = `${chromium}/vk_swiftshader_icd.json`;

/** The reason why ranks cannot use Dawn for Node.js here, in parentheses. */
export const missing = existsSync(`${repository}/test/webgpu/node_modules`)
  ? missingDriver()
  : ' (needs: npm ci --ignore-scripts --prefix test/webgpu)';

const deno = `${repository}/test/bundles/node_modules/@deno/linux-x64-glibc/deno`;

/** Runtimes with WebGPU: the command of a rank, and the reason why it cannot run here. */
export const runtimes = [
  { name: 'Node.js', command: ['node'], missing, lost: 'device was destroyed' },
  {
    name: 'Deno',
    command: [deno, 'run', '--allow-all'],
    missing: existsSync(deno) ? missingDriver() : ' (needs: npm ci --ignore-scripts --prefix test/bundles)',
    lost: 'device was lost',
  },
];

function missingDriver(): string {
  return existsSync(driver) ? '' : ' (needs: chromium, with its SwiftShader)';
}

/** Variables with which Dawn and Deno find the driver. */
export const environment = { ...process.env, LD_LIBRARY_PATH: chromium, VK_ICD_FILENAMES: driver };

/** Lines of JSON of `tccl run`, in the order of ranks. */
export function resultsOf({ stdout, stderr }: SpawnSyncReturns<string>): readonly unknown[] {
  expect(stderr).toBe('');
  return stdout
    .split('\n')
    .map((line) => /^\[(\d+)\] (.*)$/.exec(line)?.slice(1))
    .filter((found) => found !== undefined)
    .sort(([one], [other]) => Number(one) - Number(other))
    .map(([, text = '']) => JSON.parse(text) as unknown);
}
