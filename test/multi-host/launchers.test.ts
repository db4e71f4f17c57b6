import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cliPath, fixture, lacks, start } from '../multi-process/cli.js';
import { makeSshHosts, whyNoSshHosts, type SshHosts } from './ssh-hosts.js';
import { makeSlurmHosts, whyNoSlurm, type SlurmHosts } from './slurm-hosts.js';

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

const whyNot = whyNoSlurm();

describe.skipIf(whyNot)(`Slurm on two hosts${whyNot === undefined ? '' : ` (skipped: ${whyNot})`}`, () => {
  let slurm: SlurmHosts | undefined;
  const run = (command: readonly string[], env: Record<string, string> = {}) => slurm!.run('login', command, { env }).finished;
  const srun = (...args: string[]) => run(['srun', '-N', '2', '-n', '4', ...args]);
  beforeAll(async () => {
    slurm = await makeSlurmHosts();
  });
  afterAll(() => slurm?.remove());

  const rank = ['sh', '-c', 'TCCL_SOCKET_IFNAME=tccl0 TCCL_HOSTID="$(hostname)" exec "$0" "$@"', node, fixture('sum.mjs')];

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

  it('srun without either lets ranks meet on its first host', async () => {
    const { code, stdout, stderr } = await srun('--mpi=none', ...rank);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(sorted(stdout)).toEqual(sums);
  });

  it.each([
    ['at an address of its own', {}],
    ['at one address', { TCCL_COMM_ID: 'na:29842' }],
  ])('each task of a job array meets %s', async (_, env) => {
    const script = join(slurm!.directory, 'array.sh');
    writeFileSync(script, `#!/bin/sh\nexec srun --mpi=none ${rank.map((word) => `'${word}'`).join(' ')}\n`, { mode: 0o755 });
    const log = join(slurm!.directory, `array-${Object.keys(env).length}`);
    const job = ['sbatch', '--wait', '--array=0-3', '-N', '2', '-n', '4', '--overcommit', '-o', `${log}-%a`, script];
    const { code } = await run(job, env);
    const lines = [0, 1, 2, 3].map((task) => sorted(readFileSync(`${log}-${task}`, 'utf8')));
    const written = lines.map((all) => all.filter((line) => !line.startsWith('tccl: another job meets at 10.213.77.1:29842: ')));
    expect({ code, written }).toEqual({ code: 0, written: [sums, sums, sums, sums] });
  });

  describe('tccl run', () => {
    const job = [node, cliPath, 'run', '-x', 'TCCL_SOCKET_IFNAME=tccl0'];
    const perHost = ['sh', '-c', 'TCCL_HOSTID="$(hostname)" exec "$0" "$@"', node, fixture('sum.mjs')];

    it('starts as many ranks as tasks on the hosts of an allocation', async () => {
      const { code, stdout, stderr } = await run(['salloc', '-Q', '-N', '2', '-n', '4', ...job, '--no-prefix', ...perHost]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(sorted(stdout)).toEqual(sums);
    });

    it('does so in a batch script, on its first host and the other', async () => {
      const script = join(slurm!.directory, 'batch.sh');
      const log = join(slurm!.directory, 'batch');
      writeFileSync(script, `#!/bin/sh\nexec ${job.join(' ')} -n 4 hostname\n`, { mode: 0o755 });
      const { code } = await run(['sbatch', '--wait', '-N', '2', '-o', log, script]);
      const written = sorted(readFileSync(log, 'utf8'));
      expect({ code, written }).toEqual({ code: 0, written: ['[0 na] na', '[1 na] na', '[2 nb] nb', '[3 nb] nb'] });
    });

    it('passes all bytes of standard input to rank 0 on another host, and back', async () => {
      const bytes = String.fromCharCode(...Array(128).keys()).repeat(4000) + '\n';
      const command = ['salloc', '-Q', '-N', '2', '-n', '2', ...job, '--no-prefix', 'sh', '-c', '[ $TCCL_RANK = 1 ] || cat'];
      const { code, stdout } = await slurm!.run('login', command, { input: bytes }).finished;
      expect({ code, isEqual: stdout === bytes }).toEqual({ code: 0, isEqual: true });
    });

    it('shows with --dry-run which host gets which ranks', async () => {
      const { code, stdout } = await run(['salloc', '-Q', '-N', '2', '--ntasks-per-node', '3', ...job, '--dry-run', 'true']);
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'na  ranks 0 to 2 of 6\nnb  ranks 3 to 5 of 6\n' });
    });

    it('refuses more ranks than tasks', async () => {
      const { code, stderr } = await run(['salloc', '-Q', '-N', '2', '-n', '2', ...job, '-n', '4', 'true']);
      expect(code).toBe(2);
      expect(stderr).toMatch(
        /^tccl: 4 ranks do not fit on the hosts, which take 2: ask Slurm for more tasks \(salloc -n\), or .*--hosts\n/,
      );
    });

    it('has the exit code of a rank that failed, and names its host', async () => {
      const failing = ['sh', '-c', 'test "$TCCL_RANK" != 3 || exit 7; sleep 60'];
      const { code, stderr } = await run(['salloc', '-Q', '-N', '2', '-n', '4', ...job, '--grace', '0', ...failing]);
      expect(code).toBe(7);
      expect(stderr).toMatch(/rank 3 .*nb.*7/);
    });

    it('starts the ranks in one task of srun on its host', async () => {
      const { code, stdout } = await run(['srun', '-n', '1', '--mpi=none', ...job, '-n', '2', 'hostname']);
      expect({ code, lines: sorted(stdout) }).toEqual({ code: 0, lines: ['[0] na', '[1] na'] });
    });
  });
});
