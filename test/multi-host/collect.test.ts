import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cliPath, start } from '../multi-process/cli.js';
import { makeSshHosts, whyNoSshHosts, type SshHosts } from './ssh-hosts.js';

const missing = whyNoSshHosts();

describe.skipIf(missing !== undefined)('tccl diagnose --collect over ssh', () => {
  let hosts: SshHosts;
  beforeAll(async () => {
    hosts = await makeSshHosts();
  });
  afterAll(() => {
    hosts.remove();
  });

  it('gathers the outputs of two hosts under a POSIX shell, and diagnose takes the folder', async () => {
    const [ip = '', ...rest] = hosts.on[0];
    const script = join(hosts.directory, 'collect.sh');
    const into = join(hosts.directory, 'incident');
    const printed = spawnSync(process.execPath, [cliPath, 'diagnose', '--collect', '--hosts', 'a,b'], { encoding: 'utf8' });
    expect([printed.status, printed.stderr]).toEqual([0, '']);
    writeFileSync(script, printed.stdout);
    const gathering = start(ip, [...rest, 'dash', script, into], { env: { TCCL_SSH: hosts.ssh } });
    expect(await gathering.finished).toMatchObject({ code: 0 });
    expect(readdirSync(into).sort()).toEqual(['a.txt', 'b.txt']);
    // Each file is of its own host.
    expect(readFileSync(join(into, 'a.txt'), 'utf8')).toContain('10.213.77.1');
    expect(readFileSync(join(into, 'b.txt'), 'utf8')).toContain('10.213.77.2');
    const { status, stdout } = spawnSync(process.execPath, [cliPath, 'diagnose', into, '--json'], { encoding: 'utf8' });
    const { outcome, exhibits } = JSON.parse(stdout) as { outcome: string; exhibits: { refused?: string }[] };
    // The kernel of the machine that tests may have logged a fault of its own.
    expect([status, outcome]).toEqual(outcome === 'fault' ? [1, 'fault'] : [3, 'undecided']);
    expect(exhibits.filter(({ refused }) => refused !== undefined)).toEqual([]);
  });
});
