import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Profile } from '../../src/runtime/algorithms/profile.js';
import { cliPath, fixture, tccl } from '../multi-process/cli.js';

const directory = mkdtempSync(join(tmpdir(), 'tccl-tune-'));
afterAll(() => rmSync(directory, { recursive: true }));

async function explain(ranks: number, env: NodeJS.ProcessEnv): Promise<unknown> {
  const { code, stdout, stderr } = await tccl(
    ['run', '-n', String(ranks), '--no-prefix', '--', process.execPath, fixture('explain.mjs')],
    { env },
  );
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

describe('tccl tune', () => {
  it('writes the times of every algorithm for every collective, by which ranks choose', async () => {
    const path = join(directory, 'deeper', 'profile.json');
    const { code, stdout, stderr } = await tccl(['tune', '-n', '2', '-e', '64', '-o', path]);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(
      /^The profile of .*, \d+ cores is in .*profile\.json\n(By this profile, the defaults are the fastest here|What differs from the defaults by it:\n  \w+ of 2 ranks: )/,
    );
    const profile = JSON.parse(readFileSync(path, 'utf8')) as Profile;
    const measured = Object.entries(profile.times[2] ?? {}).map(
      ([kind, byAlgorithm]) => `${kind}: ${Object.keys(byAlgorithm).join(' ')}`,
    );
    expect(measured.find((line) => line.startsWith('allReduce'))).toMatch(/^allReduce: direct ring tree/);
    expect(measured).toContain('scatter: direct pairs');
    expect(measured).toHaveLength(8);
    expect(await explain(2, { TCCL_PROFILE: path })).toMatchObject({ measured: 'here' });
  });

  it('a profile of rank 0 decides for all ranks', async () => {
    const path = join(directory, 'made.json');
    const profile: Profile = {
      format: 'tccl profile',
      formatVersion: 1,
      machine: 'made',
      cores: 2,
      times: {
        2: {
          allReduce: {
            direct: [
              [8, 50],
              [65_536, 50],
            ],
            tree: [
              [8, 7],
              [65_536, 7],
            ],
          },
        },
      },
    };
    writeFileSync(path, JSON.stringify(profile));
    expect(await explain(2, { TCCL_PROFILE: path })).toMatchObject({ algorithm: 'tree', predictedUs: 7, measured: 'here' });
    expect(await explain(2, { TCCL_PROFILE: path, TCCL_ALGO: 'direct' })).toMatchObject({ algorithm: 'direct', predictedUs: 50 });
    expect(await explain(2, { XDG_CONFIG_HOME: directory })).toMatchObject({ algorithm: 'direct', measured: 'elsewhere' });
  });

  it('has no times for ranks over sockets, neither for the choice nor for predictions', async () => {
    const path = join(directory, 'of-memory.json');
    const profile: Profile = {
      format: 'tccl profile',
      formatVersion: 1,
      machine: 'made',
      cores: 2,
      times: {
        4: {
          allReduce: {
            direct: [
              [8, 1],
              [65_536, 1],
            ],
            ring: [
              [8, 5],
              [65_536, 5],
            ],
            tree: [
              [8, 60],
              [65_536, 60],
            ],
          },
        },
      },
    };
    writeFileSync(path, JSON.stringify(profile));
    for (const env of [{ TCCL_PROFILE: path }, { TCCL_PROFILE: 'none' }]) {
      const told = await explain(4, { ...env, TCCL_SHM_DISABLE: '1' });
      expect(told).toMatchObject({ algorithm: 'hierarchical', measured: 'nowhere', candidates: [] });
      expect(told).toMatchObject({
        text: 'allReduce of 4000 bytes takes hierarchical (Simple, 1 channel); how long calls take over sockets was never measured',
      });
    }
  });

  it('a profile of another machine causes a warning, and an unreadable one ends init with one line', async () => {
    const path = join(directory, 'elsewhere.json');
    writeFileSync(
      path,
      JSON.stringify({
        format: 'tccl profile',
        formatVersion: 1,
        machine: 'a supercomputer',
        cores: 2,
        times: {},
      } satisfies Profile),
    );
    const run = ['run', '-n', '2', '--no-prefix', '--', process.execPath, fixture('explain.mjs')];
    const doubted = await tccl(run, { env: { TCCL_PROFILE: path } });
    expect(doubted.code, doubted.stderr).toBe(0);
    expect(doubted.stderr).toMatch(
      /^tccl: the profile .*elsewhere\.json was measured on another machine \(a supercomputer; .*\) and is used nevertheless: tccl tune measures this one\n$/,
    );
    expect(JSON.parse(doubted.stdout)).toMatchObject({ algorithm: 'direct', measured: 'elsewhere' });
    writeFileSync(path, '{"format":"tccl profile","formatVersion":2}');
    const refused = await tccl(run, { env: { TCCL_PROFILE: path } });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('this is not a profile that this version can read');
    expect(refused.stderr).toContain('make a new one with tccl tune');
  });

  it('refuses an unwritable file, and a launch around it, before it measures', async () => {
    const directoryNamed = await tccl(['tune', '-o', directory]);
    expect(directoryNamed.code).toBe(1);
    expect(directoryNamed.stderr).toContain('the profile cannot be written: it is a folder; name a file in it');
    const launched = await tccl(['run', '-n', '2', '--no-prefix', '--', process.execPath, cliPath, 'tune']);
    expect(launched.stderr).toContain('tccl tune starts its ranks by itself: run it once, not as 2 ranks by tccl');
  });

  it('replaces a missing or broken profile where TCCL_PROFILE points, and at the default place', async () => {
    const missing = join(directory, 'missing.json');
    const usual = join(directory, 'home', 'tccl', 'profile.json');
    mkdirSync(dirname(usual), { recursive: true });
    writeFileSync(usual, 'spoilt');
    // TCCL_PROTO would have rings of one protocol only.
    for (const env of [{ TCCL_PROFILE: missing, TCCL_PROTO: 'll' }, { XDG_CONFIG_HOME: join(directory, 'home') }]) {
      const { code, stderr } = await tccl(['tune', '-n', '2', '-e', '8'], { env });
      expect(code, stderr).toBe(0);
    }
    for (const path of [missing, usual]) expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ format: 'tccl profile' });
    writeFileSync(usual, 'spoilt');
    expect(await explain(2, { XDG_CONFIG_HOME: join(directory, 'home'), TCCL_PROFILE: 'none' })).toMatchObject({
      measured: 'elsewhere',
    });
  });

  it('gives the reason why a host cannot be measured', async () => {
    const { code, stdout, stderr } = await tccl(['tune', '-n', '2', '-e', '64', '--json'], { env: { TCCL_SHM_DISABLE: '1' } });
    expect({ code, lines: stderr.trim().split('\n').length }).toEqual({ code: 1, lines: 1 });
    expect(stderr).toMatch(/the algorithms cannot be measured with 2 ranks: .*memory that all ranks share/);
    expect(stderr).toBe(`tccl: ${(JSON.parse(stdout) as { error: { message: string } }).error.message}\n`);
  });

  it.each([
    [['-n', '2,x'], 'They must be whole numbers from 2 to 256'],
    [['-e', '16Q'], '--maxbytes'],
    [['-e', '4'], '--maxbytes 4 is less than the smallest size that is measured, 8'],
  ])('%j is wrong use', async (args, message) => {
    const { code, stderr } = await tccl(['tune', ...args]);
    expect({ code, lines: stderr.trim().split('\n').length }).toEqual({ code: 2, lines: 1 });
    expect(stderr).toContain(message);
  });
});
