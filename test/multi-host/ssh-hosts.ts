import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cliPath, start, type Started, type StartOptions } from '../multi-process/cli.js';
import { makeTwoHosts, whyNoHosts, type TwoHosts } from './two-hosts.js';

const SSHD = '/usr/sbin/sshd';
const PORT = 2222;

/** Two hosts, each with an sshd of its own that lets a key in, and a configuration of ssh that calls them `a` and `b`. */
export interface SshHosts extends TwoHosts {
  readonly directory: string;
  /** For `--ssh`. */
  readonly ssh: string;
  /** Runs `tccl run …` on host a, with this ssh. */
  run(args: readonly string[], options?: StartOptions): Started;
  /** Processes on a host, but for its sshd. */
  processes(host: 0 | 1): number[];
  /** First process of a host that is apart, as seen from here. */
  init(host: 0 | 1): number;
  /** Resolves when neither host has processes but its sshd. */
  empty(): Promise<void>;
}

/** Reason why the hosts can't be made here; undefined where they can. */
export function whyNoSshHosts(): string | undefined {
  if (!existsSync(SSHD)) return `${SSHD} (package openssh-server) is missing`;
  return whyNoHosts();
}

/** @param apart true for hosts with names and processes of their own, on which everything is run through ssh */
export async function makeSshHosts(apart = false): Promise<SshHosts> {
  const hosts = makeTwoHosts();
  const directory = mkdtempSync(join(tmpdir(), 'tccl-ssh-'));
  const file = (name: string) => join(directory, name);
  // sshd changes to an empty directory before it knows the user.
  mkdirSync('/run/sshd', { recursive: true });
  for (const key of ['key', 'host-key', 'other-key'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file(key)]);
  const hostKey = readFileSync(file('host-key.pub'), 'utf8').split(' ').slice(0, 2).join(' ');
  const addresses = ['10.213.77.1', '10.213.77.2'];
  writeFileSync(file('known'), addresses.map((address) => `[${address}]:${PORT} ${hostKey}\n`).join(''));
  const user = process.env['USER'] ?? 'root';
  writeFileSync(
    file('config'),
    ['a', 'b'].map((name, i) => `Host ${name}\n  HostName ${addresses[i] ?? ''}\n`).join('') +
      `Host *\n  User ${user}\n  Port ${PORT}\n  IdentityFile ${file('key')}\n  IdentitiesOnly yes\n  UserKnownHostsFile ${file('known')}\n`,
  );

  const servers = addresses.map((address, i) => {
    writeFileSync(
      file(`sshd-${i}`),
      [
        `ListenAddress ${address}`,
        `Port ${PORT}`,
        `HostKey ${file('host-key')}`,
        `AuthorizedKeysFile ${file('key.pub')}`,
        'PidFile none',
        'StrictModes no',
        'UsePAM no',
        'PasswordAuthentication no',
        'PermitRootLogin yes',
      ].join('\n') + '\n',
    );
    const [ip = '', ...args] = hosts.on[i] ?? [];
    const own = ['unshare', '--uts', '--pid', '--fork', '--mount-proc', '--kill-child'];
    const named = [...own, 'sh', '-c', 'hostname $0 && exec "$@"', ['a', 'b'][i] ?? ''];
    return spawn(ip, [...args, ...(apart ? named : []), SSHD, '-D', '-e', '-f', file(`sshd-${i}`)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  });
  await Promise.all(servers.map(listening));

  const processes = (host: 0 | 1) => hosts.processes(host).filter((pid) => pid !== servers[host]?.pid);
  const ssh = `ssh -F ${file('config')}`;
  return {
    ...hosts,
    directory,
    ssh,
    run(args, options) {
      const [ip = '', ...rest] = hosts.on[0];
      return start(ip, [...rest, process.execPath, cliPath, 'run', '--ssh', ssh, ...args], options);
    },
    processes,
    init: (host) => Number(execFileSync('pgrep', ['-P', String(servers[host]?.pid)])),
    async empty() {
      while (processes(0).length + processes(1).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    },
    remove() {
      hosts.remove();
      rmSync(directory, { recursive: true });
    },
  };
}

function listening(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = '';
    server.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('Server listening')) resolve();
    });
    server.once('exit', () => reject(new Error(`sshd has ended: ${said}`)));
  });
}
