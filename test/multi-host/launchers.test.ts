import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fixture, lacks, start } from '../multi-process/cli.js';
import { makeSshHosts, whyNoSshHosts, type SshHosts } from './ssh-hosts.js';
import { makeTwoHosts, whyNoHosts, type TwoHosts } from './two-hosts.js';

const node = process.execPath;
const sums = [0, 1, 2, 3].map((rank) => JSON.stringify({ round: 0, rank, nRanks: 4, sums: Array(5).fill(10) }));
const sorted = (text: string) => text.trimEnd().split('\n').sort();

describe('MPI on two hosts', () => {
  const reason = whyNoSshHosts();
  const noMpi = { openmpi: lacks('mpirun.openmpi'), mpich: lacks('mpiexec.mpich') };
  let hosts: SshHosts | undefined;
  let ssh = '';
  beforeAll(async () => {
    if (reason !== undefined) return;
    hosts = await makeSshHosts();
    ssh = join(hosts.directory, 'ssh');
    writeFileSync(ssh, `#!/bin/sh\nexec ${hosts.ssh} "$@"\n`);
    chmodSync(ssh, 0o755);
  });
  afterAll(() => hosts?.remove());
  // Namespaces share one kernel: only TCCL_HOSTID distinguishes two hosts.
  const rank = ['sh', '-c', 'TCCL_SOCKET_IFNAME=tccl0 TCCL_HOSTID="$SSH_CONNECTION" exec "$0" "$@"', node, fixture('sum.mjs')];
  const list = '10.213.77.1:2,10.213.77.2:2';

  const whyNotOpenMpi = reason ?? noMpi.openmpi;
  it.skipIf(whyNotOpenMpi)(
    `mpirun --host of Open MPI, with an address${whyNotOpenMpi ? ` (skipped: ${whyNotOpenMpi})` : ''}`,
    async () => {
      const [ip = '', ...rest] = hosts?.on[0] ?? [];
      const args = ['--allow-run-as-root', '--oversubscribe', '--host', list, '--mca', 'plm_rsh_agent', ssh];
      const flags = ['-x', 'TCCL_COMM_ID=10.213.77.1:29831'];
      const { code, stdout, stderr } = await start(ip, [...rest, 'mpirun.openmpi', ...args, ...flags, ...rank]).finished;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(sorted(stdout)).toEqual(sums);
    },
  );

  const whyNotMpich = reason ?? noMpi.mpich;
  it.skipIf(whyNotMpich)(
    `mpiexec -hosts of MPICH, without an address${whyNotMpich ? ` (skipped: ${whyNotMpich})` : ''}`,
    async () => {
      const [ip = '', ...rest] = hosts?.on[0] ?? [];
      const args = ['-hosts', list, '-launcher', 'ssh', '-launcher-exec', ssh, '-n', '4'];
      const { code, stdout, stderr } = await start(ip, [...rest, 'mpiexec.mpich', ...args, ...rank]).finished;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(sorted(stdout)).toEqual(sums);
    },
  );
});

/** Reason why Slurm can't be started here; undefined where it can. */
function whyNoSlurm(): string | undefined {
  const programs = ['munged', 'slurmctld', 'slurmd'].map((name) => `/usr/sbin/${name}`);
  const missing = [...programs, '/usr/bin/srun'].find((path) => !existsSync(path));
  return missing === undefined ? whyNoHosts() : `${missing} (packages munge and slurm-wlm) is missing`;
}
const whyNot = whyNoSlurm();

describe.skipIf(whyNot)(`Slurm on two hosts${whyNot === undefined ? '' : ` (skipped: ${whyNot})`}`, () => {
  let hosts: TwoHosts | undefined;
  let directory = '';
  const daemons: ChildProcess[] = [];
  /** The namespace's network alone: `ip netns exec` would hide the control groups that slurmd wants. */
  const onHost = (host: 0 | 1) => ['nsenter', `--net=/run/netns/${hosts?.on[host][3] ?? ''}`] as const;
  const srun = (...args: string[]) => {
    const [command, ...rest] = [...onHost(0), 'srun', '-N', '2', '-n', '4', ...args];
    return start(command, rest, { env: { SLURM_CONF: join(directory, 'slurm.conf') } }).finished;
  };

  beforeAll(async () => {
    hosts = makeTwoHosts();
    directory = mkdtempSync(join(tmpdir(), 'tccl-slurm-'));
    chmodSync(directory, 0o755);
    const file = (name: string) => join(directory, name);
    for (const name of ['state', 'spool']) mkdirSync(file(name));
    writeFileSync(file('key'), randomBytes(1024), { mode: 0o400 });
    writeFileSync(
      file('slurm.conf'),
      [
        'ClusterName=tccl',
        `SlurmctldHost=${hostname()}(10.213.77.1)`,
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
        ...['a', 'b'].map((n, i) => `NodeName=n${n} NodeHostname=${hostname()} NodeAddr=10.213.77.${i + 1} CPUs=4 State=UNKNOWN`),
        'PartitionName=all Nodes=na,nb Default=YES State=UP OverSubscribe=FORCE',
      ].join('\n') + '\n',
    );
    const daemon = (prefix: readonly string[], ...args: string[]) => {
      const [command = '', ...rest] = [...prefix, ...args];
      daemons.push(spawn(command, rest, { stdio: 'ignore', env: { ...process.env, SLURM_CONF: file('slurm.conf') } }));
    };
    const munge = ['key', 'pid', 'log', 'seed'].map((name) => `--${name}-file=${file(name)}`);
    daemon([], '/usr/sbin/munged', '--foreground', '--force', `--socket=${file('socket')}`, ...munge);
    while (!existsSync(file('socket'))) await new Promise((resolve) => setTimeout(resolve, 20));
    daemon(onHost(0), '/usr/sbin/slurmctld', '-D');
    daemon(onHost(0), '/usr/sbin/slurmd', '-D', '-N', 'na');
    daemon(onHost(1), '/usr/sbin/slurmd', '-D', '-N', 'nb');
    const [command, ...rest] = [...onHost(0), 'sinfo', '-h', '-t', 'idle', '-o', '%D'] as const;
    const idle = () => {
      try {
        return execFileSync(command, rest, { stdio: 'pipe', env: { ...process.env, SLURM_CONF: file('slurm.conf') } })
          .toString()
          .trim();
      } catch {
        return '';
      }
    };
    while (idle() !== '2') await new Promise((resolve) => setTimeout(resolve, 100));
  });
  afterAll(() => {
    for (const daemon of daemons) daemon.kill('SIGKILL');
    hosts?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  const rank = ['sh', '-c', 'TCCL_SOCKET_IFNAME=tccl0 TCCL_HOSTID="$SLURM_NODEID" exec "$0" "$@"', node, fixture('sum.mjs')];

  it('srun --mpi=pmi2 lets ranks meet without an address', async () => {
    const { code, stdout, stderr } = await srun('--mpi=pmi2', ...rank);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(sorted(stdout)).toEqual(sums);
  });

  it('srun lets ranks meet at TCCL_COMM_ID', async () => {
    const { code, stdout, stderr } = await srun('--export=ALL,TCCL_COMM_ID=10.213.77.1:29841', '--mpi=none', ...rank);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(sorted(stdout)).toEqual(sums);
  });

  it('srun without either is an error that names both', async () => {
    const { code, stderr } = await srun('--mpi=none', ...rank);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(
      /slurm started rank \d of 4 but does not say where the ranks meet: .*TCCL_COMM_ID=HOST:PORT.*--mpi=pmi2/,
    );
  });
});
