import { describe, expect, it } from 'vitest';
import { FrameReader, writeFrame } from '../../../../src/runtime/launch/hosts/frames.js';
import { explainFailedStart, splitWords, sshCommand, type RemotePrograms } from '../../../../src/runtime/launch/hosts/ssh.js';
import { PassThrough } from 'node:stream';
import { execFileSync, spawnSync } from 'node:child_process';
import { dirname } from 'node:path';

describe('the value of --ssh', () => {
  it.each([
    ['ssh', ['ssh']],
    ['  ssh -F  my\\ config ', ['ssh', '-F', 'my config']],
    [`ssh -o 'ProxyCommand=nc %h "1"' "-i a\\"b"c`, ['ssh', '-o', 'ProxyCommand=nc %h "1"', '-i a"bc']],
    ["'/a b/ssh'", ['/a b/ssh']],
  ])('%s', (text, words) => {
    expect(splitWords(text)).toEqual(words);
  });

  it.each(['', '  ', "ssh 'x", 'ssh "x', 'ssh x\\'])('refuses %j', (text) => {
    expect(() => splitWords(text)).toThrow('is no command: write for example');
  });
});

describe('the command of a host', () => {
  it('has our settings behind those of the user, only for ssh itself', () => {
    const programs = { ssh: ['ssh', '-o', 'BatchMode=no'], node: '/n/node', tccl: '/t/main.js', directory: '/d' };
    const line = sshCommand('me@a', programs, 30);
    expect(line.slice(0, 3)).toEqual(['ssh', '-o', 'BatchMode=no']);
    expect(line).toContain('BatchMode=yes');
    expect(line.slice(-3, -1)).toEqual(['--', 'me@a']);
    expect(sshCommand('a', { ...programs, ssh: ['/x/my-way'] }, 30).slice(0, 2)).toEqual(['/x/my-way', 'a']);
  });

  it('is a step of Slurm with srun, whose words no shell reads', () => {
    const programs = { ssh: ['/s/srun', '-v'], node: '/n/node', tccl: '/t/main.js', directory: "/it's d" };
    const line = sshCommand('a', programs, 30);
    expect(line.slice(0, 4)).toEqual(['/s/srun', '-v', '--nodes=1', '--ntasks=1']);
    expect(line).toContain('--nodelist=a');
    expect(line.slice(-5)).toEqual(['tccl-host', '/n/node', '/t/main.js', "/it's d", 'node']);
    const failed = { host: 'a', exitCode: 1, signal: null, stdout: '', stderr: 'srun: error: Unable to confirm allocation\n' };
    expect(explainFailedStart(failed, { ...programs, ssh: ['srun'] })).toBe(
      'tccl could not be started on host a: srun ended with exit code 1 (srun: error: Unable to confirm allocation); check that `srun --nodelist=a /n/node --version` works by hand',
    );
  });

  it("passes through the host's shell with any characters in paths", () => {
    const programs = { ssh: ['way'], node: '/no such/$(echo "x") \'node\'', tccl: '/t', directory: '/d' };
    const command = sshCommand('a', programs, 30).at(-1) ?? '';
    // An empty PATH: nothing is found.
    let printed = '';
    try {
      execFileSync('/bin/sh', ['-c', command], { env: { PATH: '/nowhere' }, stdio: 'pipe' });
    } catch (error) {
      printed = String((error as { stdout: Buffer }).stdout);
    }
    expect(printed).toBe('tccl-host-lacks node\n');
  });

  it('takes node from PATH in place of this host, but not in place of the one that the user named', () => {
    const run = (programs: RemotePrograms) =>
      spawnSync('/bin/sh', ['-c', sshCommand('a', programs, 30).at(-1) ?? ''], {
        env: { PATH: dirname(process.execPath) },
      }).stdout.toString();
    const programs = { ssh: ['way'], node: '/no/node', tccl: '/no/tccl', directory: '/no' };
    expect(run(programs)).toBe('tccl-host-lacks tccl\n');
    expect(run({ ...programs, nodeIsGiven: true })).toBe('tccl-host-lacks node\n');
    expect(run({ ...programs, node: 'node', nodeIsGiven: true })).toBe('tccl-host-lacks tccl\n');
    const failed = { host: 'b', exitCode: 127, signal: null, stdout: 'tccl-host-lacks node\n', stderr: '' };
    expect(explainFailedStart(failed, { ...programs, nodeIsGiven: true })).toBe(
      'host b has no /no/node, which --remote-node names: give the path of node there, or leave it out',
    );
  });
});

describe('advice to try ssh by hand', () => {
  const failed = { host: 'me@b', exitCode: 1, signal: null, stdout: '', stderr: 'oops' };
  it.each([
    [['ssh', '-p', '2222', '-F', 'my config'], "`ssh -p 2222 -F 'my config' me@b /n/node --version`"],
    [['/bin/rsh'], '`/bin/rsh me@b /n/node --version`'],
    [['sshpass', '-p', 'secret', 'ssh'], '`sshpass … me@b /n/node --version`'],
  ])('%j', (ssh, line) => {
    expect(explainFailedStart(failed, { ssh, node: '/n/node', tccl: '/t', directory: '/d' })).toBe(
      `tccl could not be started on host me@b: ssh ended with exit code 1 (oops); check that ${line} works by hand`,
    );
  });
});

describe('frames', () => {
  it('arrive unchanged, however the bytes are split', () => {
    const stream = new PassThrough();
    const payloads = ['', 'a', 'bc'.repeat(1000), 'end'];
    payloads.forEach((text, kind) => writeFrame(stream, kind, Buffer.from(text)));
    const bytes = stream.read() as Buffer;
    for (const size of [1, 3, 5, 7, 2001, bytes.length]) {
      const came: [number, string][] = [];
      const reader = new FrameReader((kind, payload) => came.push([kind, payload.toString()]));
      for (let start = 0; start < bytes.length; start += size) reader.push(bytes.subarray(start, start + size));
      expect(came).toEqual(payloads.map((text, kind) => [kind, text]));
    }
  });

  it('are refused with an impossible length', () => {
    expect(() => new FrameReader(() => undefined).push(Buffer.from('Welcome to host b'))).toThrow('not the protocol');
  });
});
