import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const cli = 'dist/cli/main.js';
/** Open MPI runs as root only if two variables allow it. */
const mpiEnvironment = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' };
const directory = mkdtempSync(join(tmpdir(), 'tccl-perf-'));
afterAll(() => rmSync(directory, { recursive: true }));

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(file: string, ...args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...mpiEnvironment } });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (text: Buffer) => (stdout += text.toString()));
    child.stderr.on('data', (text: Buffer) => (stderr += text.toString()));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

const perf = (...args: readonly string[]) => run(process.execPath, cli, 'perf', ...args);
const few = ['-n', '5', '-w', '1'];
/** Arguments of `tccl` for a single size. */
const eightBytes = ['perf', 'all_reduce', '-b', '8', '-e', '8', '--json', ...few];
const parse = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('tccl perf between processes', () => {
  it('starts its ranks and verifies an all-reduce at every size', async () => {
    const { code, stdout, stderr } = await perf(
      'all_reduce',
      '--ranks',
      '2',
      '-b',
      '8',
      '-e',
      '64K',
      '-f',
      '8',
      '-c',
      '1',
      '--json',
      ...few,
    );
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const lines = parse(stdout);
    expect(lines.slice(0, -1).map((line) => [line['bytes'], line['inplace'], line['wrong']])).toEqual(
      [8, 64, 512, 4096, 32768].flatMap((bytes) => [
        [bytes, 0, 0],
        [bytes, 1, 0],
      ]),
    );
    expect(lines.at(-1)).toMatchObject({ summary: 'all_reduce', ranks: 2, errors: 0 });
  });

  it.each([
    ['all_reduce', 'sync'],
    ['all_reduce', 'promise'],
    ['alltoall', 'sync'],
    ['sendrecv', 'promise'],
  ])('verifies %s over sockets, with the %s API', async (collective, api) => {
    const { code, stdout, stderr } = await run(
      'env',
      'TCCL_SHM_DISABLE=1',
      process.execPath,
      cli,
      'perf',
      collective,
      '--ranks',
      '3',
      '-b',
      '96',
      '-e',
      '960K',
      '-f',
      '100',
      '--api',
      api,
      '--json',
      ...few,
    );
    expect(code, stderr).toBe(0);
    expect(parse(stdout).filter((line) => line['wrong'] === 0).length).toBeGreaterThanOrEqual(3);
    expect(parse(stdout).at(-1)).toMatchObject({ errors: 0 });
  });

  it('measures messages over sockets', async () => {
    const { code, stderr } = await run(
      'env',
      'TCCL_SHM_DISABLE=1',
      process.execPath,
      cli,
      'perf',
      'sendrecv',
      '--ranks',
      '2',
      '-b',
      '8',
      '-e',
      '8',
    );
    expect(code, stderr).toBe(0);
  });

  it('ends silently when the reader of its output is gone', async () => {
    const { stdout, stderr, code } = await run(
      'bash',
      '-c',
      `"${process.execPath}" ${cli} perf all_reduce --ranks 2 -b 8 -e 1M -f 2 | head -n 3; exit \${PIPESTATUS[0]}`,
    );
    expect(stdout.split('\n')).toHaveLength(4);
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });

  it.each([
    [
      'the table',
      ['> /dev/full'],
      /^tccl: the output cannot be written: ENOSPC: .*\ntccl perf: rank 0 exited with code 1(; ending the other ranks)?\n$/,
    ],
    [
      'JSON lines',
      ['-J /dev/full > /dev/null'],
      /^tccl: \/dev\/full: the results cannot be written here: ENOSPC: .*\ntccl perf: rank 0 exited with code 1(; ending the other ranks)?\n$/,
    ],
  ] as const)('on a full disk %s end with one line that says so', async (_, [output], stderr) => {
    const outcome = await run('bash', '-c', `"${process.execPath}" ${cli} perf all_reduce --ranks 2 -b 8 -e 1M -f 2 ${output}`);
    expect(outcome.stderr).toMatch(stderr);
    expect(outcome.code).toBe(1);
  });

  it('names unknown variables, once', async () => {
    const { code, stderr } = await run(
      'env',
      'TCCL_AGLO=ring',
      process.execPath,
      cli,
      'perf',
      'all_reduce',
      '--ranks',
      '2',
      '-b',
      '8',
      '-e',
      '8',
      ...few,
    );
    expect(stderr).toBe('tccl perf: TCCL_AGLO is set, but there is no such variable; did you mean TCCL_ALGO?\n');
    expect(code).toBe(0);
  });

  it.each(['sync', 'promise'].flatMap((api) => ['shared', 'plain'].map((memory) => [api, memory] as const)))(
    'verifies every type and operator with the %s API and %s memory, three ranks',
    async (api, memory) => {
      const { code, stdout } = await perf(
        'all_reduce',
        '--ranks',
        '3',
        '-b',
        '4',
        '-e',
        '40000',
        '-f',
        '100',
        '-d',
        'all',
        '-o',
        'all',
        '--api',
        api,
        '--memory',
        memory,
        '--json',
        ...few,
      );
      expect(code).toBe(0);
      const lines = parse(stdout);
      expect(lines).toHaveLength(12 * 6 * 3 * 2 + 1);
      expect(lines.slice(0, -1).filter((line) => line['wrong'] !== 0)).toEqual([]);
    },
  );

  it('verifies broadcasts from each root, and writes JSON lines beside the table', async () => {
    const file = join(directory, 'broadcast.jsonl');
    const { code, stdout } = await perf('broadcast', '--ranks', '2', '-b', '1M', '-e', '1M', '-r', '-1', '-J', file, ...few);
    expect(code).toBe(0);
    const rows = stdout.split('\n').filter((line) => !line.startsWith('#') && line !== '');
    expect(
      rows
        .map((row) => row.trim().split(/\s+/))
        .map(([bytes, count, type, operator, root]) => [bytes, count, type, operator, root]),
    ).toEqual([
      ['1048576', '262144', 'float', 'none', '0'],
      ['1048576', '262144', 'float', 'none', '1'],
    ]);
    expect(stdout).toMatch(/^# {2}Rank {2}0 .*\n# {2}Rank {2}1 /m);
    expect(stdout).toContain('# Out of bounds values : 0 OK\n');
    expect(parse(readFileSync(file, 'utf8')).map((line) => line['wrong'])).toEqual([0, 0, 0, 0, undefined]);
  });

  it('measures the ranks of the launch around it, and rank 0 alone prints', async () => {
    const { code, stdout } = await run(
      process.execPath,
      cli,
      'run',
      '-n',
      '2',
      '--no-prefix',
      process.execPath,
      cli,
      ...eightBytes,
    );
    expect(code).toBe(0);
    expect(parse(stdout).map((line) => line['ranks'])).toEqual([2, 2, 2]);
  });

  it.skipIf(spawnSync('mpirun.openmpi', ['--version']).status !== 0)(
    'measures ranks that Open MPI starts (skipped without mpirun.openmpi)',
    async () => {
      const { code, stdout } = await run('mpirun.openmpi', '--oversubscribe', '-np', '2', process.execPath, cli, ...eightBytes);
      expect(code).toBe(0);
      expect(parse(stdout).map((line) => line['ranks'])).toEqual([2, 2, 2]);
    },
  );
});

describe('wrong use of tccl perf ends with exit code 2 and one line', () => {
  it.each([
    [['all_reduc'], "unknown collective 'all_reduc'; did you mean all_reduce?"],
    [['all_reduce', '-d', 'flaot'], "unknown datatype 'flaot'; did you mean float?"],
    [['all_reduce', '-o', 'summ'], "unknown operator 'summ'; did you mean sum?"],
    [['all_reduce', '-b', '8Q'], "--minbytes '8Q' is not a size"],
    [['all_reduce', '-b', '16', '-e', '8'], '--minbytes 16 is more than --maxbytes 8'],
    [['all_reduce', '--ranks', '0'], "--ranks '0' must be a whole number from 1 to 9999"],
    [['broadcast', '--ranks', '2', '-r', '2', '-b', '8', '-e', '8'], '--root 2 is not a rank: there are 2, from 0 to 1'],
    [['all_reduce', '--rank', '2'], "unknown option '--rank'"],
    [[], "missing required argument 'collective'"],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await perf(...args);
    expect(stderr).toContain(message);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect([code, stdout]).toEqual([2, '']);
  });
});
