/**
 * All-reduces of GPUBuffers of two processes, beside readback, all-reduce of the host and upload, measured apart in the same
 * rounds.
 * It needs `npm ci --ignore-scripts --prefix test/webgpu` and a driver, such as Chromium's SwiftShader.
 *
 * @module
 */
import { existsSync } from 'node:fs';
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table, verdict } from '../lib/table.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'buffers of WebGPU';

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../ranks/webgpu.mjs', import.meta.url).pathname;
const library = new URL('../../test/webgpu/node_modules/webgpu/index.js', import.meta.url).pathname;
const chromium = '/usr/lib/chromium';
/** Sizes with the largest ratio that is aimed at. */
const sizes = [
  [8192, undefined],
  [2 ** 20, 1.3],
  [2 ** 24, 0.8],
];

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  if (!existsSync(library)) return note('webgpu: npm ci --ignore-scripts --prefix test/webgpu');
  const driver = `${chromium}/vk_swiftshader_icd.json`;
  /** @type {Record<string, string>} */
  const env =
    process.env['VK_ICD_FILENAMES'] === undefined && existsSync(driver)
      ? { LD_LIBRARY_PATH: chromium, VK_ICD_FILENAMES: driver }
      : {};
  for (const [bytes = 0] of sizes) {
    progress(`2 ranks, ${bytes} bytes`);
    try {
      const rounds = options.quick ? 10 : 40;
      const words = [process.execPath, program, library, String(bytes), String(rounds)];
      const args = [cli, 'run', '-n', '2', '--no-prefix', '--', ...words];
      const output = await runCommand({ file: process.execPath, args, env }, { timeoutMs: 120_000 });
      for (const line of jsonLines(output)) record({ webgpu: true, ...line });
    } catch (error) {
      note(`webgpu, ${bytes} bytes: ${messageOf(error)}`);
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ webgpu }) => webgpu === true);
  if (measured.length === 0) return '';
  const rows = measured.map((line) => {
    const of = (/** @type {string} */ part) => Number(line[`${part}LeastMs`]);
    const apart = of('readback') + of('allReduce') + of('upload');
    const aim = sizes.find(([bytes]) => bytes === line['bytes'])?.[1];
    const times = ['readback', 'allReduce', 'upload', 'together'].map((part) => of(part).toFixed(3));
    return [String(line['bytes']), ...times, verdict(of('together') / apart, aim)];
  });
  return table(['bytes', 'readback, ms', 'all-reduce of the host, ms', 'upload, ms', 'of GPUBuffers, ms', 'ratio'], rows);
}
