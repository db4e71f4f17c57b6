import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runChild } from './child.js';
import { Gpu } from './gpu.js';
import { openNccl } from './nccl.js';
import type { Seen, Setting } from './part.js';
import { check, hasService, titles, ways, type WayName } from './shared-memory.js';

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** Two processes with `tccl/cuda` on the GPU. */
export async function* ranks({ ordinal, isFake }: Setting): AsyncGenerator<Seen> {
  const tccl = pathOf('../../../dist/cli/main.js');
  const lines: string[] = [];
  const words = [process.execPath, tccl, 'run', '-n', '2', '--', process.execPath, pathOf('rank.js'), String(ordinal)];
  const { status, stderr } = await runChild([...words, ...(isFake ? ['--fake'] : [])], AbortSignal.timeout(60_000), (line) =>
    lines.push(line),
  );
  const isRight = status === 0 && lines.filter((line) => line.includes('right')).length === 2;
  yield { name: 'tccl/cuda', text: [...lines, stderr].join('; '), verdict: isRight ? 'right' : 'wrong' };
}

/** Memory of this process that another one reads and writes, by a way. */
export async function* sharing(setting: Setting): AsyncGenerator<Seen> {
  const service = hasService() ? 'with MPS' : 'without MPS';
  for (const way of Object.keys(ways) as WayName[]) {
    const gpu = new Gpu(setting.driver, setting.ordinal);
    try {
      const { pointer, words, fd } = ways[way].share(gpu);
      const program = [process.execPath, pathOf('shared-rank.js'), way, String(setting.ordinal), words];
      const end = await runChild(program, AbortSignal.timeout(20_000), () => undefined, fd === undefined ? {} : { fd });
      if (end.status !== 0) throw new Error(`the other process: ${end.reason ?? end.stderr.trim().split('\n').at(-1)}`);
      check(gpu, pointer, 3);
      yield { name: titles[way], text: `two processes read what the other one wrote, ${service}` };
    } catch (error) {
      const { message } = error as Error;
      const verdict = /NOT_SUPPORTED|has none/.test(message) ? 'skipped' : 'wrong';
      yield { name: titles[way], text: `${message}, ${service}`, verdict };
    }
    gpu.close();
  }
}

/** compute-sanitizer over some kernels. */
export async function* sanitizer({ ordinal }: Setting): AsyncGenerator<Seen> {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/cuda/bin'];
  const program = folders.map((folder) => join(folder, 'compute-sanitizer')).find((path) => existsSync(path));
  if (program === undefined) {
    yield { name: 'compute-sanitizer', text: 'is not installed: it is part of a CUDA toolkit', verdict: 'skipped' };
    return;
  }
  for (const tool of ['memcheck', 'racecheck']) {
    const lines: string[] = [];
    const part = [process.execPath, pathOf('main.js'), '--inside', 'kernels', '--only', 'sum_float32_', '--device', `${ordinal}`];
    const end = await runChild(
      [program, '--tool', tool, '--error-exitcode', '86', ...part],
      AbortSignal.timeout(40_000),
      (line) => lines.push(line),
    );
    const summary = lines.findLast((line) => line.includes('SUMMARY'))?.replace(/^=+ */, '');
    const text = `${tool}: ${summary ?? end.reason ?? `exit code ${end.status}`}`;
    yield { name: 'compute-sanitizer', text, verdict: end.status === 0 ? 'right' : 'wrong' };
  }
}

/** Bytes of an all-reduce beside that of `ranks`. */
const NCCL_BYTES = 2 ** 26;

/** NCCL with two ranks on the GPU, if it is installed and lets them. */
export async function* nccl({ ordinal, isFake }: Setting): AsyncGenerator<Seen> {
  const name = 'NCCL';
  let library;
  try {
    library = openNccl();
  } catch (error) {
    yield { name, text: `is not here: ${(error as Error).message.split('\n')[0]}; TCCL_NCCL names a file`, verdict: 'skipped' };
    return;
  }
  const id = Buffer.from(library.makeId()).toString('hex');
  const words = [process.execPath, pathOf('nccl-rank.js'), id, String(ordinal), String(isFake ? 64 : NCCL_BYTES)];
  const environment = { ...process.env, NCCL_MULTI_RANK_GPU_ENABLE: '1' };
  const lines: string[] = [];
  const run = (rank: number) =>
    runChild([...words, String(rank)], AbortSignal.timeout(40_000), (line) => lines.push(line), { environment });
  const ends = await Promise.all([run(0), run(1)]);
  const failed = ends.find(({ status }) => status !== 0);
  const why = failed?.stderr.trim().split('\n').at(-1) ?? '';
  yield failed === undefined
    ? { name: `${name} ${library.version}`, text: lines.join('; ') }
    : {
        name: `${name} ${library.version}`,
        text: `two ranks do not run on one GPU: ${why || failed.reason}`,
        verdict: 'skipped',
      };
}
