import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start, type Started, type StartOptions } from '../multi-process/cli.js';
import { makeTwoHosts, whyNoHosts } from './two-hosts.js';

/** Two hosts `na` and `nb` with four CPUs each, under a Slurm of their own, and a host `login` beside them that runs no jobs. */
export interface SlurmHosts {
  readonly directory: string;
  /** Runs a command on a host, with the configuration of this Slurm. */
  run(host: (typeof names)[number], command: readonly string[], options?: StartOptions): Started;
  remove(): void;
}

const names = ['na', 'nb', 'login'] as const;
/** `login` has the network of the first host. */
const networks = { na: 0, nb: 1, login: 0 } as const;

/** Reason why Slurm can't be started here; undefined where it can. */
export function whyNoSlurm(): string | undefined {
  const programs = ['munged', 'slurmctld', 'slurmd'].map((name) => `/usr/sbin/${name}`);
  const missing = [...programs, '/usr/bin/srun'].find((path) => !existsSync(path));
  return missing === undefined ? whyNoHosts() : `${missing} (packages munge and slurm-wlm) is missing`;
}

export async function makeSlurmHosts(): Promise<SlurmHosts> {
  const hosts = makeTwoHosts();
  const directory = mkdtempSync(join(tmpdir(), 'tccl-slurm-'));
  chmodSync(directory, 0o755);
  const file = (name: string): string => join(directory, name);
  const env = { SLURM_CONF: file('slurm.conf') };
  const daemons: ChildProcess[] = [];
  for (const name of ['state', 'spool']) mkdirSync(file(name));
  writeFileSync(file('key'), randomBytes(1024), { mode: 0o400 });
  writeFileSync(file('hosts'), '127.0.0.1 localhost\n10.213.77.1 na login\n10.213.77.2 nb\n');
  writeFileSync(
    env.SLURM_CONF,
    [
      'ClusterName=tccl',
      'SlurmctldHost=login(10.213.77.1)',
      'SlurmUser=root',
      'SlurmdUser=root',
      `AuthInfo=socket=${file('socket')}`,
      `StateSaveLocation=${file('state')}`,
      `SlurmdSpoolDir=${file('spool')}/%n`,
      'SlurmctldPort=26817',
      'SlurmdPort=26818',
      `SlurmctldPidFile=${file('ctld.pid')}`,
      `SlurmdPidFile=${file('slurmd-%n.pid')}`,
      `SlurmctldLogFile=${file('ctld.log')}`,
      `SlurmdLogFile=${file('slurmd-%n.log')}`,
      'ProctrackType=proctrack/pgid',
      'TaskPlugin=task/none',
      'JobAcctGatherType=jobacct_gather/none',
      'AccountingStorageType=accounting_storage/none',
      'SelectType=select/cons_tres',
      'SelectTypeParameters=CR_Core',
      'SlurmdParameters=config_overrides',
      ...['na', 'nb'].map((n, i) => `NodeName=${n} NodeAddr=10.213.77.${i + 1} CPUs=4 State=UNKNOWN`),
      'PartitionName=all Nodes=na,nb Default=YES State=UP OverSubscribe=FORCE',
    ].join('\n') + '\n',
  );
  // The namespace's network alone: `ip netns exec` would hide the control groups that slurmd wants.
  const on = (host: (typeof names)[number]): readonly [string, ...string[]] => [
    'nsenter',
    `--net=/run/netns/${hosts.on[networks[host]][3] ?? ''}`,
    ...['unshare', '--uts', '--mount', 'sh', '-c'],
    `hostname ${host} && mount --bind ${file('hosts')} /etc/hosts && exec "$@"`,
    'sh',
  ];
  const daemon = (prefix: readonly string[], ...args: string[]): void => {
    const [command = '', ...rest] = [...prefix, ...args];
    daemons.push(spawn(command, rest, { stdio: 'ignore', env: { ...process.env, ...env } }));
  };
  const remove = (): void => {
    for (const one of daemons) one.kill('SIGKILL');
    // Also what Slurm leaves of a step whose end it could no longer report.
    hosts.remove();
    rmSync(directory, { recursive: true, force: true });
  };
  const munge = ['key', 'pid', 'log', 'seed'].map((name) => `--${name}-file=${file(name)}`);
  daemon([], '/usr/sbin/munged', '--foreground', '--force', `--socket=${file('socket')}`, ...munge);
  while (!existsSync(file('socket'))) await new Promise((resolve) => setTimeout(resolve, 20));
  daemon(on('login'), '/usr/sbin/slurmctld', '-D');
  for (const name of ['na', 'nb'] as const) daemon(on(name), '/usr/sbin/slurmd', '-D', '-N', name);
  const [command, ...rest] = on('login');
  const idle = (): string => {
    try {
      const args = [...rest, 'sinfo', '-h', '-t', 'idle', '-o', '%D'];
      return execFileSync(command, args, { stdio: 'pipe', env: { ...process.env, ...env } })
        .toString()
        .trim();
    } catch {
      return '';
    }
  };
  while (idle() !== '2') await new Promise((resolve) => setTimeout(resolve, 100));
  return {
    directory,
    run(host, args, options = {}) {
      const [first, ...others] = on(host);
      return start(first, [...others, ...args], { ...options, env: { ...env, ...options.env } });
    },
    remove,
  };
}
