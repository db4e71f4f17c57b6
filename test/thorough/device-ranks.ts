import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect } from 'vitest';
import { repository, resultsOf } from './dawn.js';

/** Starts a program of ranks, each of which prints a line of JSON. Returns their values in the order of ranks. */
export function started(words: readonly string[], env: NodeJS.ProcessEnv = process.env): readonly unknown[] {
  return resultsOf(spawnSync(process.execPath, words, { cwd: repository, env, encoding: 'utf8' }));
}

/** Words that start a rank's command as ranks. */
export function ranksOf(nRanks: number, command: readonly string[]): readonly string[] {
  return ['dist/cli/main.js', 'run', '-n', String(nRanks), '--', ...command];
}

export const forEach = <T>(nRanks: number, of: (rank: number) => T): readonly T[] =>
  Array.from({ length: nRanks }, (_, rank) => of(rank));

type Environment = Readonly<Record<string, string | undefined>>;

/** Ranks with GPUs of the fake driver; test/cuda/rank.mjs has the values of FAKE_GPUS. Call it once in a file of tests. */
export function fakeGpus() {
  const folder = fileURLToPath(new URL('../cuda', import.meta.url));
  const built = mkdtempSync(join(tmpdir(), 'tccl-cuda-'));
  /** The fake driver as one module, which ranks import. */
  const fake = join(built, 'fake-driver.mjs');
  beforeAll(async () => {
    for (const [name, text] of Object.entries(topologies())) writeFileSync(join(built, `${name}.xml`), text);
    const input = fileURLToPath(new URL('../../testing/cuda/fake-driver.ts', import.meta.url));
    const bundle = await rolldown({ input, platform: 'node' });
    await bundle.write({ file: fake, format: 'esm' });
    await bundle.close();
  });
  afterAll(() => rmSync(built, { recursive: true, force: true }));

  const environment = (env: Environment) => ({ ...process.env, TCCL_TOPO_FILE: join(built, 'nvlink.xml'), ...env });
  const rank = ['node', `${folder}/rank.mjs`, fake];
  return {
    /** For TCCL_TOPO_FILE. */
    topologyFile: (name: keyof ReturnType<typeof topologies>): string => join(built, `${name}.xml`),
    run: (nRanks: number, check: readonly string[], env: Environment = {}): readonly unknown[] =>
      started(ranksOf(nRanks, [...rank, ...check]), environment(env)),
    threads: (nRanks: number, check: readonly string[], env: Environment = {}): readonly unknown[] =>
      started([`${folder}/threads.mjs`, String(nRanks), fake, ...check], environment(env)),
    /** Results of ranks 0 and 2, of which rank 1 is killed. */
    survivors(check: string, env: Environment): readonly unknown[] {
      const words = ['dist/cli/main.js', 'run', '-n', '3', '--grace', '20', '--', ...rank, check];
      const { stdout } = spawnSync(process.execPath, words, { cwd: repository, env: environment(env), encoding: 'utf8' });
      const lines = stdout.split('\n').filter((line) => /^\[\d\] \{/.test(line));
      expect(lines.sort().map((line) => line.slice(0, 3))).toEqual(['[0]', '[2]']);
      return lines.map((line) => JSON.parse(line.slice(4)) as unknown);
    },
  };
}

/** Words of ranks when rank 1 was killed. */
export const died = expect.stringMatching(/^RANK_DIED: rank 1 (\(process \d+ on .*\) )?died: /) as string;

/** Things of a fake driver that are left at the end, but for the check's own two contexts. */
export const nothingLeft = { allocations: 0, virtual: 0, opened: 0, locked: 0, handles: 0, contexts: 2, current: 0 };
/** The same before the last array is freed, which keeps the context of its device. */
export const beforeFree = { allocations: 1, contexts: 2 };

/** Results of the check queuedOrder on three ranks. */
export function queuedOrder(allocations: number): readonly unknown[] {
  const [x, y] = [Int32Array.of(1, 2, 3), new Int32Array(3)];
  for (let i = 0; i < 20; i++) {
    const [from, to] = i % 2 ? [y, x] : [x, y];
    from.forEach((value, rank) => (from[rank] = value + rank + 1));
    to.fill(from.reduce((sum, value) => (sum + value) | 0));
  }
  return forEach(3, (rank) => ({ values: [x[rank], y[rank]], hasReturnedEarly: true, allocations }));
}

/** Machines of the fake driver's GPUs: each has two CPUs of Intel; GPU 2 is at the second one. */
function topologies() {
  const gpus = Array.from({ length: 16 }, (_, dev) => ({ dev, busId: `0000:${(16 + dev).toString(16)}:00.0` }));
  const machine = (nvlinks: string): string => {
    const textOf = ({ dev, busId }: (typeof gpus)[number]): string =>
      `<pci busid="${busId}" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="${dev}" sm="90" rank="${dev}" gdr="1">${nvlinks}</gpu></pci>`;
    const cpu = (numa: number, busId: string, own: typeof gpus): string =>
      `<cpu numaid="${numa}" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="106">
        <pci busid="${busId}" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">${own.map(textOf).join('')}</pci></cpu>`;
    const isFar = ({ dev }: (typeof gpus)[number]): boolean => dev === 2;
    const near = cpu(
      0,
      '0000:01:00.0',
      gpus.filter((gpu) => !isFar(gpu)),
    );
    return `<system version="1">${near}${cpu(1, '0000:02:00.0', gpus.filter(isFar))}</system>`;
  };
  return { nvlink: machine('<nvlink target="ffff:ff:ff" count="18" tclass="0x068000"/>'), pcie: machine('') };
}
