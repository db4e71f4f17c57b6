import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { secretOf, UniqueId } from '../../src/runtime/bootstrap/unique-id.js';
import { cliPath, fixture, gone, numbersOf } from '../multi-process/cli.js';
import { makeSshHosts, whyNoSshHosts, type SshHosts } from './ssh-hosts.js';

const node = process.execPath;
const reason = whyNoSshHosts();
const lines = (text: string) => text.trimEnd().split('\n').sort();
/** Namespaces share one kernel: only this variable distinguishes two hosts. */
const twoHosts = ['sh', '-c', 'TCCL_HOSTID="$SSH_CONNECTION" exec "$0" "$@"', node];

describe.skipIf(reason !== undefined)(`tccl run --hosts${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: SshHosts;
  beforeAll(async () => void (hosts = await makeSshHosts()));
  afterAll(() => hosts.remove());
  afterEach(() => hosts.empty());

  /** Starts ranks that stay, two on each host, and waits until they and their children are up. */
  async function startFamilies(list: string, flags: readonly string[], ...args: string[]) {
    const job = hosts.run(['--hosts', list, ...flags, node, fixture('family.mjs'), ...args]);
    const shown = await job.shown(/(up\n[^]*){4}/);
    const pids = [...numbersOf(shown, 'pid'), ...numbersOf(shown, 'child')];
    expect(pids).toHaveLength(8);
    const pidOf = (rank: number) =>
      numbersOf(shown.split('\n').find((line) => line.startsWith(`[${rank} `)) ?? '', 'pid')[0] ?? 0;
    return { job, pids, pidOf };
  }

  /** The process on a host whose arguments contain a text. */
  function processWith(text: string, host: 0 | 1): number {
    const found = hosts.processes(host).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(text));
    expect(found, text).not.toEqual([]);
    return found[0] ?? 0;
  }

  describe('ranks', () => {
    it('of two hosts, three here and one there, compute together', async () => {
      const job = hosts.run(['--hosts', '10.213.77.1:3,b', ...twoHosts, fixture('sum.mjs'), '2']);
      const { code, stdout, stderr } = await job.finished;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const sums = [0, 1, 2, 3].flatMap((rank) =>
        [0, 1].map(
          (round) =>
            `[${rank} ${rank < 3 ? '10.213.77.1' : 'b'}] ${JSON.stringify({ round, rank, nRanks: 4, sums: Array(5).fill(10) })}`,
        ),
      );
      expect(lines(stdout)).toEqual(sums.sort());
    });

    it('exchange data over a second cable, without a setting', async () => {
      const inside = (host: 0 | 1, ...args: string[]) => {
        const [ip = '', ...rest] = hosts.on[host];
        return execFileSync(ip, [...rest, 'ip', ...args], { stdio: 'pipe' }).toString();
      };
      const [a, b] = hosts.on.map((command) => command.at(-1) ?? '');
      execFileSync('ip', ['link', 'add', 'ib1', 'netns', a ?? '', 'type', 'veth', 'peer', 'name', 'ib1', 'netns', b ?? '']);
      try {
        for (const host of [0, 1] as const) {
          inside(host, 'address', 'add', `10.213.79.${host + 1}/24`, 'dev', 'ib1');
          inside(host, 'link', 'set', 'ib1', 'up');
        }
        while (!/state UP/.test(inside(0, 'link', 'show', 'ib1')) || !/state UP/.test(inside(1, 'link', 'show', 'ib1')));
        const env = { TCCL_DEBUG: 'INFO', TCCL_DEBUG_SUBSYS: 'NET' };
        const { code, stdout, stderr } = await hosts.run(['--hosts', 'a,b', ...twoHosts, fixture('sum.mjs'), '1'], { env })
          .finished;
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        expect(stdout).toMatch(/0\[0\] -> 1\[0\] via NET\/Socket\/0 \(tccl0\)/);
        expect(stdout).toMatch(/0\[0\] -> 1\[0\] via NET\/Socket\/1 \(ib1\)/);
      } finally {
        inside(0, 'link', 'del', 'ib1');
      }
    });

    it('get their placement, the variables of tccl, NCCL and -x, the directory, and node in PATH', async () => {
      const script =
        'echo $TCCL_RANK/$TCCL_NRANKS $TCCL_LOCAL_RANK/$TCCL_LOCAL_NRANKS $TCCL_ALGO $NCCL_DEBUG $WORD "$OTHER" $HIDDEN $PWD; command -v node >/dev/null';
      const directory = join(hosts.directory, 'a directory');
      mkdirSync(directory, { recursive: true });
      const env = { TCCL_ALGO: 'ring', NCCL_DEBUG: 'INFO', WORD: 'here', HIDDEN: 'hidden', TCCL_RANK: '7', TCCL_LOCAL_RANK: '7' };
      const flags = ['-x', 'WORD', '-x', `OTHER=it's "$x"`, '--wdir', directory];
      const { code, stdout, stderr } = await hosts.run(['--hosts', 'a:1,b:2', ...flags, 'sh', '-c', script], { env }).finished;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const own = `ring INFO here it's "$x" ${directory}`;
      expect(lines(stdout)).toEqual([`[0 a] 0/3 0/1 ${own}`, `[1 b] 1/3 0/2 ${own}`, `[2 b] 2/3 1/2 ${own}`]);
    });

    it('write complete lines, more than fits into the connection between the hosts', async () => {
      const { stdout } = await hosts.run(['--hosts', 'a:1,b:1', node, fixture('chatter.mjs')]).finished;
      for (const [rank, host] of ['a', 'b'].entries()) {
        const own = stdout.split('\n').filter((line) => line.startsWith(`[${rank} ${host}] rank ${rank} line `));
        expect(own.map((line) => Number(line.split(' ')[5]))).toEqual(Array.from({ length: 3000 }, (_, index) => index));
      }
    });

    it('read the standard input on rank 0, to its end, and write the same bytes as a single rank', async () => {
      const input = Array.from({ length: 300_000 }, (_, i) => `${i}\n`).join('') + 'end';
      const { code, stdout } = await hosts.run(['--hosts', 'b', '--no-prefix', 'cat'], { input }).finished;
      expect(code).toBe(0);
      expect(stdout === input).toBe(true);
    });

    it('write to files of the host of the launcher', async () => {
      const logs = join(hosts.directory, 'logs');
      const { code } = await hosts.run(['--hosts', 'a,b', '--output-dir', logs, 'sh', '-c', 'printf "$TCCL_RANK\\nend"'])
        .finished;
      expect(code).toBe(0);
      expect([0, 1].map((rank) => readFileSync(join(logs, `rank-${rank}.log`), 'utf8'))).toEqual(['0\nend', '1\nend']);
    });

    it('meet at a port of the range for outgoing connections, so that one rule of a firewall is enough', async () => {
      for (const host of hosts.on) {
        const [ip = '', ...rest] = host;
        execFileSync(ip, [...rest, 'sysctl', '-qw', 'net.ipv4.ip_local_port_range=50000 50031']);
      }
      try {
        const job = hosts.run(['--hosts', 'a,b', '--no-prefix', ...twoHosts, '-p', 'process.env.TCCL_COMM_ID']);
        const { stdout } = await job.finished;
        const ports = stdout
          .trimEnd()
          .split('\n')
          .map((id) => UniqueId.parse(id).root.port);
        expect(ports).toHaveLength(2);
        for (const port of ports) expect(port >= 50_000 && port <= 50_031).toBe(true);
        const sums = await hosts.run(['--hosts', 'a,b', ...twoHosts, fixture('sum.mjs')]).finished;
        expect(sums).toMatchObject({ code: 0, stderr: '' });
      } finally {
        for (const host of hosts.on) {
          const [ip = '', ...rest] = host;
          execFileSync(ip, [...rest, 'sysctl', '-qw', 'net.ipv4.ip_local_port_range=32768 60999']);
        }
      }
    });

    it('share a secret that no arguments show', async () => {
      const { job, pids, pidOf } = await startFamilies('a:2,b:2', []);
      const environment = readFileSync(`/proc/${pidOf(3)}/environ`, 'latin1');
      const id = /TCCL_COMM_ID=([^\0]+)/.exec(environment)?.[1] ?? '';
      const secret = Buffer.from(secretOf(UniqueId.parse(id))).toString('hex');
      expect(secret).toMatch(/^[0-9a-f]{64}$/);
      const everything = ([0, 1] as const)
        .flatMap((host) => hosts.processes(host))
        .map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1'));
      expect(everything.join('\n')).toContain('run-host');
      expect(everything.join('\n')).not.toContain(secret);
      expect(everything.join('\n')).not.toContain(id);
      job.process.kill('SIGTERM');
      await job.finished;
      await gone(pids);
    });
  });

  describe('a failure', () => {
    it('of a rank is named with its host, gives the exit code, and ends the others everywhere', async () => {
      const command = `if [ $TCCL_RANK = 2 ]; then exit 7; fi; exec sleep 1000`;
      const { code, stderr } = await hosts.run(['--hosts', 'a:2,b:2', 'sh', '-c', command]).finished;
      expect({ code, stderr }).toEqual({ code: 7, stderr: 'tccl run: rank 2 on b exited with code 7; ending the other ranks\n' });
    });

    it('by a signal ends ranks and children that ignore SIGTERM', async () => {
      const { job, pids, pidOf } = await startFamilies('a:2,b:2', ['--grace', '0.2'], 'deaf');
      process.kill(pidOf(3), 'SIGKILL');
      const { code, stderr } = await job.finished;
      expect({ code, stderr }).toEqual({
        code: 137,
        stderr: `tccl run: rank 3 on b was killed by SIGKILL; ending the other ranks\n${deaf('0-2')}`,
      });
      await gone(pids);
    });

    it('of ssh names the host and its ranks, and leaves no process on either', async () => {
      const { job, pids } = await startFamilies('10.213.77.1:2,b:2', ['--grace', '0.2'], 'deaf');
      process.kill(processWith('BatchMode', 0), 'SIGKILL');
      const { code, stderr } = await job.finished;
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `tccl run: host b is lost: ssh was killed by SIGKILL, and with it ranks 2,3; ending the other ranks\n${deaf('0,1')}`,
      });
      await gone(pids);
    });

    it("of tccl's agent on a host names the host, and leaves no process on either", async () => {
      const { job, pids } = await startFamilies('a:2,b:2', ['--grace', '0.2'], 'deaf');
      process.kill(processWith('run-host', 1), 'SIGKILL');
      const { code, stderr } = await job.finished;
      expect(stderr).toMatch(
        /^tccl run: host b is lost: ssh ended with exit code \d+.*, and with it ranks 2,3; ending the other ranks\ntccl run: ranks 0,1 did not end within 0\.2 s of SIGTERM: killing\n$/,
      );
      expect(code).toBe(1);
      await gone(pids);
    });
  });

  describe('the launcher', () => {
    it('that is killed leaves nothing on any host', async () => {
      const { job, pids } = await startFamilies('10.213.77.1:2,b:2', ['--grace', '0.2'], 'deaf');
      job.process.kill('SIGKILL');
      await gone(pids);
    });

    it.each([
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const)('passes %s on to every host', async (signal, expected) => {
      const { job, pids } = await startFamilies('a:2,b:2', []);
      job.process.kill(signal);
      expect(await job.finished).toMatchObject({ code: expected, stderr: '' });
      await gone(pids);
    });

    it('kills remaining ranks at a second SIGINT', async () => {
      const { job, pids } = await startFamilies('a:2,b:2', ['--grace', '60'], 'deaf');
      job.process.kill('SIGINT');
      await job.shown(/(deaf to SIGINT[^]*){4}/);
      job.process.kill('SIGINT');
      expect(await job.finished).toMatchObject({ code: 137 });
      await gone(pids);
    });

    it('ends the job when the reader of its output is gone', async () => {
      const job = hosts.run(['--hosts', 'a,b', '--grace', '0.2', 'sh', '-c', 'while :; do echo y; done']);
      await job.shown(/y/);
      job.process.stdout?.destroy();
      expect(await job.finished).toMatchObject({ code: 141 });
    });

    it('stops the ranks of all hosts with it, for longer than a host may be silent, and continues them', async () => {
      const { job, pids, pidOf } = await startFamilies('a:2,b:2', ['-x', 'TCCL_HEARTBEAT=1']);
      const state = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '')[0];
      const until = async (condition: () => boolean) => {
        while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
      };
      job.process.kill('SIGTSTP');
      await until(() => [pidOf(0), pidOf(3), job.process.pid ?? 0].every((pid) => state(pid) === 'T'));
      await new Promise((resolve) => setTimeout(resolve, 3000)); // three times the limit that would end the job
      job.process.kill('SIGCONT');
      await until(() => [pidOf(0), pidOf(3)].every((pid) => state(pid) !== 'T'));
      job.process.kill('SIGTERM');
      expect(await job.finished).toMatchObject({ code: 143, stderr: '' });
      await gone(pids);
    });

    it('learns why its ranks ended where only it was stopped, for longer than it may be silent', async () => {
      const { job, pids } = await startFamilies('a:2,b:2', ['-x', 'TCCL_HEARTBEAT=1']);
      job.process.kill('SIGSTOP');
      await gone(pids);
      job.process.kill('SIGCONT');
      const { code, stderr } = await job.finished;
      expect(stderr).toMatch(
        /^tccl run: host [ab] is lost: ssh ended with exit code 1 \(nothing came from tccl run for 1 s, so its ranks were/,
      );
      expect(code).toBe(1);
    });
  });

  describe('a host that cannot take part is an error of one line, and no rank starts:', () => {
    const refused = async (args: readonly string[], expected: RegExp | string, code = 1) => {
      const outcome = await hosts.run(args).finished;
      expect(outcome.stdout).toBe('');
      expect(outcome.stderr.trimEnd().split('\n')).toHaveLength(1);
      if (typeof expected === 'string') expect(outcome.stderr).toContain(expected);
      else expect(outcome.stderr).toMatch(expected);
      expect(outcome.code).toBe(code);
    };
    const config = (name: string, text: string) => {
      const path = join(hosts.directory, name);
      writeFileSync(path, text + readFileSync(join(hosts.directory, 'config'), 'utf8'));
      return ['--ssh', `ssh -F ${path}`];
    };

    it('only loopback is left to it where ranks meet', () =>
      refused(
        ['--hosts', 'a,b', '-x', 'TCCL_SOCKET_IFNAME=^tccl,ib', 'echo', 'x'],
        /host a.*TCCL_SOCKET_IFNAME=\^tccl,ib leaves only lo \(127\.0\.0\.1\), which other hosts cannot reach; it excludes tccl0, ib0/,
      ));

    it('it asks for a password', () =>
      refused(
        [...config('password', 'Host b\n  PubkeyAuthentication no\n'), '--hosts', 'a,b', 'echo', 'x'],
        /^tccl run: ssh may not log in to host b without a password \(.*Permission denied \(publickey.*\)\): set up a key \(ssh-copy-id b\)/,
      ));

    it('its key is not known', () =>
      refused(
        [...config('unknown', 'Host b\n  UserKnownHostsFile /dev/null\n'), '--hosts', 'a,b', 'echo', 'x'],
        /^tccl run: the key of host b is not known here: log in once by hand \(`ssh -F \S+unknown b`\) and check the key/,
      ));

    it('its key has changed', async () => {
      const known = join(hosts.directory, 'changed');
      const other = readFileSync(join(hosts.directory, 'other-key.pub'), 'utf8').split(' ').slice(0, 2).join(' ');
      writeFileSync(known, `[10.213.77.2]:2222 ${other}\n`);
      await refused(
        [...config('stale', `Host b\n  UserKnownHostsFile ${known}\n`), '--hosts', 'a,b', 'echo', 'x'],
        'host b has another host key than the one known here',
      );
    });

    it('nothing answers at its address', () =>
      refused(
        ['--connect-timeout', '3', '--hosts', 'a,10.213.77.9', 'echo', 'x'],
        /^tccl run: host 10\.213\.77\.9 (cannot be reached|has not answered within 3 s)/,
      ));

    it('it refuses ssh', () =>
      refused([...config('port', 'Host b\n  Port 1\n'), '--hosts', 'a,b', 'echo', 'x'], 'host b refuses ssh'));

    it('its name does not resolve', () =>
      refused(['--hosts', 'a,no.such.host.invalid', 'echo', 'x'], 'the name of host no.such.host.invalid does not resolve'));

    it('it has no such command', () =>
      refused(['--hosts', 'a,b', 'no-such-command'], 'hosts a, b: no-such-command: command not found', 127));

    it.each(['a', 'b'])('it has no such directory (host %s)', (host) =>
      refused(
        ['--hosts', host, '--wdir', '/no/such/directory', 'echo', 'x'],
        `host ${host}: the directory /no/such/directory cannot be entered (ENOENT): make it, or give one that all hosts have with --wdir`,
      ),
    );

    /** Stands for ssh: what it runs has an empty PATH, and knows some paths by other names. */
    const bareHost = (name: string, replacements: string) => {
      const path = join(hosts.directory, name);
      writeFileSync(path, `#!/bin/sh\nexec env -i PATH=/nowhere /bin/sh -c "$(printf %s "$2" | sed '${replacements}')"\n`);
      chmodSync(path, 0o755);
      return ['--ssh', path];
    };

    it('it has no node', () =>
      refused(
        [...bareHost('no-node', `s#${node}#/no/node#`), '--hosts', 'b', 'echo', 'x'],
        `host b has no node, neither ${node} nor in the PATH that ssh gets there: install Node 20 or newer, or give its path with --remote-node`,
      ));

    it('it has no node where --remote-node says', () =>
      refused(
        ['--hosts', 'b', '--remote-node', '/no/node', 'echo', 'x'],
        'host b has no /no/node, which --remote-node names: give the path of node there, or leave it out',
      ));

    it('it has no tccl', () =>
      refused(
        [...bareHost('no-tccl', `s#${cliPath}#/no/tccl#`), '--hosts', 'b', '--wdir', '/tmp', 'echo', 'x'],
        /host b has no tccl, neither .* nor in \/tmp or the PATH that ssh gets there: install the same version there/,
      ));

    it('it has another tccl', async () => {
      const other = join(hosts.directory, 'other-node');
      writeFileSync(
        other,
        '#!/bin/sh\nprintf "\\ntccl-host-agent {\\"version\\":\\"9.9.9\\",\\"sshConnection\\":\\"\\"}\\n"\nexec cat >/dev/null\n',
      );
      chmodSync(other, 0o755);
      await refused(
        ['--hosts', 'b', '--remote-node', other, 'echo', 'x'],
        /host b has tccl 9\.9\.9, and this host \d.*: install one version on both/,
      );
    });

    it('it does not answer in time', async () => {
      const slow = join(hosts.directory, 'slow-node');
      writeFileSync(slow, '#!/bin/sh\nexec sleep 1000\n');
      chmodSync(slow, 0o755);
      await refused(
        ['--connect-timeout', '2', '--hosts', 'b', '--remote-node', slow, 'echo', 'x'],
        'host b has not answered within 2 s',
      );
      for (const pid of hosts.processes(1)) process.kill(pid, 'SIGKILL');
    });
  });
});

describe.skipIf(reason !== undefined)(`a host that vanishes${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  it('is named with its ranks, and the ranks end on both sides of the cut', async () => {
    const hosts = await makeSshHosts();
    try {
      const job = hosts.run(['--hosts', '10.213.77.1:2,b:2', '--grace', '0.2', node, fixture('family.mjs'), 'deaf'], {
        env: { TCCL_HEARTBEAT: '2' },
      });
      const shown = await job.shown(/(up\n[^]*){4}/);
      hosts.cut();
      const { code, stderr } = await job.finished;
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `tccl run: host b has not answered for 2 s, and with it ranks 2,3; ending the other ranks\n${deaf('0,1')}`,
      });
      await gone([...numbersOf(shown, 'pid'), ...numbersOf(shown, 'child')]);
    } finally {
      hosts.remove();
    }
  });
});

/** The line about ranks that ignore SIGTERM. */
function deaf(ranks: string): string {
  return `tccl run: ranks ${ranks} did not end within 0.2 s of SIGTERM: killing\n`;
}
