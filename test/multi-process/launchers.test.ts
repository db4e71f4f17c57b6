import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { localMeetingPoint } from '../../src/runtime/launch/meeting-point.js';
import { fixture, lacks, start, tccl } from './cli.js';

const node = process.execPath;
const isRoot = process.getuid?.() === 0;
const launchers = [
  {
    name: 'openmpi',
    command: 'mpirun.openmpi',
    args: ['--oversubscribe', ...(isRoot ? ['--allow-run-as-root'] : [])],
    rounds: '2',
  },
  // Its store is open for one exchange only.
  { name: 'mpich', command: 'mpiexec.mpich', args: [], rounds: '1' },
];

const parseLines = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { rank: number; round: number });
const sums = (nRanks: number, rounds: number) =>
  Array.from({ length: rounds }, (_, round) =>
    Array.from({ length: nRanks }, (_, rank) => ({
      round,
      rank,
      nRanks,
      sums: Array<number>(5).fill((nRanks * (nRanks + 1)) / 2),
    })),
  ).flat();
const byRoundAndRank = (a: { rank: number; round: number }, b: { rank: number; round: number }) =>
  a.round - b.round || a.rank - b.rank;

describe.each(launchers)('$command', ({ name, command, args, rounds }) => {
  const missing = lacks(command);
  const skipped = missing === undefined ? '' : ` (skipped: ${missing})`;

  it.skipIf(missing)(`gives ranks their number${skipped}`, async () => {
    const { code, stdout } = await start(command, [...args, '-n', '3', node, fixture('place.mjs')]).finished;
    expect(code).toBe(0);
    const places = parseLines(stdout).sort((a, b) => a.rank - b.rank);
    // Of these, Open MPI's has an id of the job in the environment.
    const jobId: unknown = name === 'openmpi' ? expect.stringMatching(/^pmix ./) : undefined;
    expect(places).toEqual(
      [0, 1, 2].map((rank) => ({ launcher: name, rank, nRanks: 3, localRank: rank, nLocalRanks: 3, jobId })),
    );
    expect(new Set(places.map((place) => (place as { jobId?: string }).jobId)).size).toBe(1);
  });

  it.skipIf(missing)(`lets ranks meet without an address${skipped}`, async () => {
    const { code, stdout, stderr } = await start(command, [...args, '-n', '3', node, fixture('sum.mjs'), rounds]).finished;
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(parseLines(stdout).sort(byRoundAndRank)).toEqual(sums(3, Number(rounds)));
  });

  it.skipIf(missing)(`lets ranks meet at TCCL_COMM_ID, repeatedly${skipped}`, async () => {
    const { TCCL_COMM_ID } = await localMeetingPoint();
    const env = { TCCL_COMM_ID: name === 'mpich' ? TCCL_COMM_ID : TCCL_COMM_ID.replace('127.0.0.1', 'localhost') };
    const { stdout, stderr } = await start(command, [...args, '-n', '2', node, fixture('sum.mjs'), '2'], { env }).finished;
    expect(stderr).toBe('');
    expect(parseLines(stdout).sort(byRoundAndRank)).toEqual(sums(2, 2));
  });
});

describe('tccl run', () => {
  it('lets ranks meet, repeatedly', async () => {
    const { code, stdout, stderr } = await tccl(['run', '-n', '3', '--no-prefix', node, fixture('sum.mjs'), '2']);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(parseLines(stdout).sort(byRoundAndRank)).toEqual(sums(3, 2));
  });
});

describe('variables of torchrun', () => {
  it("give an address one port above torchrun's own", async () => {
    const port = Number((await localMeetingPoint()).TCCL_COMM_ID.split(':')[1]);
    const env = { WORLD_SIZE: '2', MASTER_ADDR: 'localhost', MASTER_PORT: String(port - 1) };
    const ranks = ['0', '1'].map((RANK) => start(node, [fixture('sum.mjs')], { env: { ...env, RANK } }).finished);
    const outputs = await Promise.all(ranks);
    expect(outputs.map(({ stderr }) => stderr)).toEqual(['', '']);
    expect(outputs.flatMap(({ stdout }) => parseLines(stdout))).toEqual(sums(2, 1));
  });
});

describe('a launcher that gives no address', () => {
  it('is an error that names the variables to set', async () => {
    const env = { SLURM_JOB_ID: '7', SLURM_STEP_ID: '0', SLURM_PROCID: '1', SLURM_NTASKS: '4' };
    const { code, stderr } = await start(node, [fixture('sum.mjs')], { env }).finished;
    expect(code).toBe(1);
    expect(stderr).toContain(
      'slurm started rank 1 of 4 but does not say where the ranks meet: before you start them, export TCCL_COMM_ID=HOST:PORT',
    );
  });
});

describe("the directory of PRRTE's session (Open MPI 5)", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'tccl-session-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const rankOf = (rank: number) =>
    start(node, [fixture('pass.mjs'), '2'], {
      env: {
        OMPI_COMM_WORLD_RANK: String(rank),
        OMPI_COMM_WORLD_SIZE: '2',
        OMPI_COMM_WORLD_LOCAL_RANK: String(rank),
        OMPI_COMM_WORLD_LOCAL_SIZE: '2',
        PMIX_SERVER_TMPDIR: directory,
        PMIX_NAMESPACE: 'prterun-node7-4711@1',
      },
      openInput: true,
    });

  it('carries a text to the ranks of a host, and is left unchanged', async () => {
    const one = rankOf(1);
    const zero = rankOf(0);
    const texts = [0, 1].map((round) => `from=${zero.process.pid ?? 0},round=${round}`);
    expect(await one.shown(/\n/)).toBe(`${JSON.stringify({ rank: 1, texts })}\n`);
    expect(await zero.shown(/\n/)).toBe(`${JSON.stringify({ rank: 0, texts })}\n`);
    expect(readdirSync(directory)).toHaveLength(2);
    for (const rank of [one, zero]) rank.process.stdin?.end();
    await Promise.all([one.finished, zero.finished]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is not used where other users can enter it', async () => {
    chmodSync(directory, 0o755);
    const { code, stderr } = await rankOf(0).finished;
    expect(code).toBe(1);
    expect(stderr).toContain(
      'openmpi started rank 0 of 2 but does not say where the ranks meet: start them with mpirun -x TCCL_COMM_ID=HOST:PORT',
    );
  });
});

describe("PMI of MPICH's launcher", () => {
  /** Runs rank 0 of 2 against a launcher that answers with `answers`, by the command that it is asked. */
  async function againstLauncher(answers: Readonly<Record<string, string>>, rounds = 1) {
    const rank = spawn(node, [fixture('pass.mjs'), String(rounds)], {
      env: { PATH: process.env['PATH'], PMI_RANK: '0', PMI_SIZE: '2', PMI_FD: '3' },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    const pmi = rank.stdio[3] as Duplex;
    createInterface({ input: pmi }).on('line', (line) => {
      const answer = answers[/cmd=(\w+)/.exec(line)?.[1] ?? ''];
      if (answer === undefined) pmi.end();
      else pmi.write(`${answer}\n`);
    });
    let output = '';
    rank.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    rank.stderr?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    const [code] = (await once(rank, 'close')) as [number];
    return { code, output };
  }

  const answers = {
    init: 'cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0',
    get_my_kvsname: 'cmd=my_kvsname kvsname=kvs_1',
    put: 'cmd=put_result rc=0 msg=success',
    barrier_in: 'cmd=barrier_out',
    get: 'cmd=get_result rc=0 msg=success value=a=b:c',
    finalize: 'cmd=finalize_ack',
  };

  it('carries a text of any characters', async () => {
    expect(await againstLauncher(answers)).toEqual({ code: 0, output: '{"rank":0,"texts":["a=b:c"]}\n' });
  });

  it('carries one text only, and gives a remedy for a second', async () => {
    const { code, output } = await againstLauncher(answers, 2);
    expect(code).toBe(1);
    expect(output).toContain('this launcher lets ranks meet only once: for a second init(), export TCCL_COMM_ID=HOST:PORT');
  });

  it.each([
    ['closed', []],
    ['a file', ['ignore']],
  ] as const)('is not used where the connection is %s, as behind npx', async (_, third) => {
    const rank = spawn(node, [fixture('pass.mjs'), '1'], {
      env: { PATH: process.env['PATH'], PMI_RANK: '0', PMI_SIZE: '2', PMI_FD: '3' },
      stdio: ['ignore', 'pipe', 'pipe', ...third],
    });
    let output = '';
    rank.stderr?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    expect(await once(rank, 'close')).toEqual([1, null]);
    expect(output).toContain('PMI_FD=3 is no connection to the launcher here');
  });

  it.each([
    [
      'another version',
      { ...answers, init: 'cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1' },
      'the launcher answered "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1" to "cmd=init"',
    ],
    ['noise', { ...answers, barrier_in: 'hello' }, 'the launcher answered "hello" to "cmd=barrier_in"'],
    ['the end of its connection', { ...answers, put: undefined }, 'the launcher closed its PMI connection'],
  ])('fails at %s from the launcher', async (_, given, message) => {
    const { code, output } = await againstLauncher(given as Record<string, string>);
    expect(code).toBe(1);
    expect(output).toContain(message);
  });
});
