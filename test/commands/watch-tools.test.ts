import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RasServer, type ServedCommunicator } from './ras-server.js';
import { watch } from './watching.js';

/*
 * The programs are small shells on PATH that print outputs in the forms of nvidia-smi 570 and py-spy 0.4: no GPU and no
 * process of Python is involved.
 */
const folder = mkdtempSync(join(tmpdir(), 'tccl-tools-'));
afterAll(() => rmSync(folder, { recursive: true }));
const bin = join(folder, 'bin');
mkdirSync(bin);
const calls = join(folder, 'calls');

function program(name: string, script: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >> ${calls}\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
}

const gpus = `index, uuid, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], temperature.gpu, ecc.errors.uncorrected.volatile.total, clocks_event_reasons.active
0, GPU-aaaa, 100 %, 71234 MiB, 81559 MiB, 118.20 W, 41, 0, 0x0000000000000000
1, GPU-bbbb, 0 %, 70011 MiB, 81559 MiB, 71.55 W, 87, 2, 0x0000000000000040
`;
const stack = `Process 4005: python train.py
Python v3.11.9 (/usr/bin/python3.11)

Thread 4005 (idle): "MainThread"
    wait (threading.py:331)
    get (queue.py:180)
    next_batch (loader.py:120)
    train (train.py:88)
    main (train.py:140)
    <module> (train.py:160)
Thread 4077 (active): "pin_memory"
    select (selectors.py:415)
`;

const servers: RasServer[] = [];
beforeEach(() => {
  rmSync(calls, { force: true });
  vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const server of servers.splice(0)) await server.close();
});

/** Eight ranks, the one numbered `late` behind, on `host`. */
async function job(host = '127.0.0.1', late = 5, pid = 4000): Promise<string> {
  const communicator: ServedCommunicator = {
    hash: '0xa',
    ranks: Array.from({ length: 8 }, (_, rank) => ({
      rank,
      host,
      pid: pid + rank,
      counts: { AllReduce: rank === late ? 639 : 640 },
    })),
  };
  const server = new RasServer({ version: '2.30.7', communicators: () => [communicator, { ...communicator, hash: '0xb' }] });
  servers.push(server);
  return server.listen();
}

describe('tools that tccl watch runs when asked', () => {
  it('shows the GPU and the stack of a late rank, found by its process', async () => {
    program(
      'nvidia-smi',
      `case "$*" in *compute-apps*) printf 'pid, gpu_uuid\\n4005, GPU-bbbb\\n';; *) cat <<'E'\n${gpus}E\n;; esac`,
    );
    program('py-spy', `cat <<'E'\n${stack}E`);
    const { code, stdout } = await watch([await job()], { gpus: true, stacks: true });
    expect(stdout).toContain(
      'rank 5 (127.0.0.1, pid 4005): GPU 1: 0 % busy, 70011 of 81559 MiB, 72 W, 87 °C, 2 uncorrected memory errors, slowed by heat (hardware)',
    );
    expect(stdout).toContain(
      'rank 5 (127.0.0.1, pid 4005) is in wait (threading.py:331) < get (queue.py:180) < next_batch (loader.py:120) < train (train.py:88) < main (train.py:140) < …',
    );
    // Once for a trouble, and only about the rank that is late.
    expect(readFileSync(calls, 'utf8').match(/py-spy .*/g)).toEqual(['py-spy dump --pid 4005']);
    expect(code).toBe(1);
    const { stdout: json } = await watch([await job()], { gpus: true, stacks: true, json: true });
    const lines = json
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toContainEqual(
      expect.objectContaining({
        tool: 'nvidia-smi',
        host: '127.0.0.1',
        rank: 5,
        pid: 4005,
        gpu: expect.objectContaining({ index: 1, uuid: 'GPU-bbbb' }) as object,
      }),
    );
    expect(lines).toContainEqual(expect.objectContaining({ tool: 'py-spy', rank: 5, pid: 4005 }));
  });

  it("takes the GPU of NVML's number where a container hides processes, and an older name of a field", async () => {
    program(
      'nvidia-smi',
      `case "$*" in *event_reasons*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2;; *compute-apps*) echo 'pid, gpu_uuid';; *) cat <<'E'\n${gpus.replace('event', 'throttle')}E\n;; esac`,
    );
    const { stdout } = await watch([await job('127.0.0.1', 1)], { gpus: true });
    expect(stdout).toMatch(/rank 1 \(127\.0\.0\.1, pid 4001\): GPU 1: .* slowed by heat \(hardware\)/);
  });

  it('runs nothing unasked, or while the job moves', async () => {
    program('nvidia-smi', 'exit 1');
    program('py-spy', 'exit 1');
    await watch([await job()]);
    await watch([await job()], { gpus: true, stacks: true, stuckAfter: 3_600_000, samples: 1 });
    expect(() => readFileSync(calls)).toThrow();
  });

  it('says in a line which tool is not there, or what it refuses', async () => {
    rmSync(join(bin, 'nvidia-smi'), { force: true });
    program('py-spy', "echo 'Permission Denied: Try running again with elevated permissions' >&2; exit 1");
    const { code, stdout } = await watch([await job()], { gpus: true, stacks: true });
    expect(stdout).toMatch(/job 1: nvidia-smi on 127\.0\.0\.1: nvidia-smi is not installed there, or not in PATH\n/);
    expect(stdout).toMatch(/job 1: py-spy on 127\.0\.0\.1: Permission Denied: Try running again/);
    expect(code).toBe(1);
  });

  it('reaches other hosts by ssh, or by a command of the user', async () => {
    program('py-spy', `cat <<'E'\n${stack}E`);
    program('fake-ssh', 'shift 4; host=$1; shift; sh -c "$*"');
    vi.stubEnv('TCCL_SSH', 'fake-ssh');
    expect((await watch([await job('10.0.0.1')], { stacks: true })).stdout).toContain('rank 5 (10.0.0.1, pid 4005) is in wait');
    expect(readFileSync(calls, 'utf8')).toContain(
      'fake-ssh -o BatchMode=yes -o ConnectTimeout=5 10.0.0.1 py-spy dump --pid 4005',
    );
    program('fake-kubectl', 'shift 3; "$@"');
    const toolCommand = 'fake-kubectl exec {host} -- sh -c {command}';
    expect((await watch([await job('10.0.0.2')], { stacks: true, toolCommand })).stdout).toContain(
      '(10.0.0.2, pid 4005) is in wait',
    );
    expect((await watch(['x'], { stacks: true, toolCommand: 'ssh' })).stdout).toContain('needs {host} and {command}');
    expect((await watch([], { stacks: true, follow: [folder] })).stdout).toContain('need a target');
  });

  it('asks PyTorch for recordings by its pipes, says so before, and reads them as they appear', async () => {
    const traces = mkdtempSync(join(folder, 'traces-'));
    const prefix = join(folder, 'fr pipe_');
    for (const rank of [0, 1, 2]) execFileSync('mkfifo', [`${prefix}${rank}.pipe`]);
    // PyTorch's thread opens the pipe, and writes a recording when it reads anything. Rank 2 has ended.
    const dumps = [0, 1].map((rank) =>
      spawn('sh', [
        '-c',
        'read word < "$0" && cp "$1" "$2"',
        `${prefix}${rank}.pipe`,
        join('test/logs/flight', `nccl_trace_rank_${rank}`),
        traces,
      ]),
    );
    const { code, stdout } = await watch([await job()], {
      torchDump: prefix,
      follow: [traces],
      samples: Infinity,
      every: 200,
      untilStuck: 100,
    });
    expect(stdout).toMatch(
      /job 1: asks PyTorch for its flight recordings: writes to .*fr pipe_\*\.pipe on 127\.0\.0\.1\n.*job 1: 127\.0\.0\.1: 2 processes write their recordings\n/,
    );
    expect(stdout).toMatch(/traces-.*: fault: /);
    expect(code).toBe(1);
    for (const dump of dumps) expect(dump.exitCode ?? (await new Promise((resolve) => dump.once('exit', resolve)))).toBe(0);
  });

  it('says what PyTorch lacks where there is no pipe', async () => {
    const { stdout } = await watch([await job()], { torchDump: join(folder, 'none_') });
    expect(stdout).toMatch(/127\.0\.0\.1: no process reads a pipe .*none_\*\.pipe: TORCH_NCCL_DEBUG_INFO_PIPE_FILE/);
  });
});
