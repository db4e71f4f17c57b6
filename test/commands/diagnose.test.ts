import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { machine, parametersFromEnvironment } from '../../src/planner/index.js';
import { buildSystem } from '../../src/planner/topology/build/build-system.js';
import { tccl } from './in-process.js';
import { printed } from '../unit/planner/log/printed-system.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-diagnose-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
cpSync(join(import.meta.dirname, '../logs/flight'), folder, { recursive: true });

describe('tccl diagnose', () => {
  it('names the missing rank, from the recordings in a folder', async () => {
    const { code, stdout } = await tccl(['diagnose', folder]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^Verdict: rank 1 never called all_reduce \(number 2 of group 0\), in which 1 of 2 ranks wait; rank 1 called last all_reduce .*train\.py:10 step\)\n/,
    );
    expect(stdout).toContain('Read: 2 × flight recording (ranks 0-1)\n');
  });

  it('lists the fault of a machine before its consequences, and continues after a broken file', async () => {
    const dmesg = join(folder, 'dmesg.txt');
    writeFileSync(dmesg, '[12.3] NVRM: Xid (PCI:0000:c1:00): 79, pid=4321, name=python, GPU has fallen off the bus.\n');
    writeFileSync(join(folder, 'evil.pickle'), '\u0080\u0002cos\nsystem\n.', 'latin1');
    writeFileSync(
      join(folder, 'job.log'),
      'node1:1:2 [0] misc/socket.cc:57 NCCL WARN socketProgress: Connection closed by remote peer node2<46312>\n',
    );
    const [text, json] = await Promise.all([tccl(['diagnose', folder]), tccl(['diagnose', folder, '--json'])]);
    expect(text.stdout).toContain('Consequences of these: rank-behind, remote-closed');
    expect(text.stdout).toMatch(/Not read: \S*evil\.pickle: is no pickle of plain data: operation "c" is refused/);
    expect(JSON.parse(json.stdout)).toMatchObject({
      outcome: 'fault',
      verdict: { causes: ['xid-bus'], consequences: ['rank-behind', 'remote-closed'] },
      exhibits: expect.arrayContaining([{ file: dmesg, kind: 'text' }]) as unknown,
    });
  });

  it('shows findings of one code together', async () => {
    const incident = mkdtempSync(join(tmpdir(), 'tccl-joined-'));
    writeFileSync(
      join(incident, 'df.txt'),
      'Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   64M     0 100% /dev/shm\n',
    );
    writeFileSync(
      join(incident, 'job.log'),
      'n1:61:161 [1] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-QkZpLd to 33030532 bytes\n',
    );
    const { stdout } = await tccl(['diagnose', incident]);
    rmSync(incident, { recursive: true });
    expect(stdout.match(/code {3}shm-full/g)).toHaveLength(1);
    expect(stdout).toMatch(/\n {2}also {3}\/dev\/shm is /);
    expect(stdout).not.toContain('Also possible');
  });

  it('says of a test over several hosts that its speed was not compared, and what compares it', async () => {
    const incident = mkdtempSync(join(tmpdir(), 'tccl-speed-'));
    const file = join(incident, 'two.txt');
    const head = Array.from(
      { length: 16 },
      (_, rank) => `#  Rank ${rank} Group  0 Pid 31${rank} on gpu${rank >> 3} device ${rank & 7} [0x1b] NVIDIA H100 80GB HBM3`,
    );
    writeFileSync(
      file,
      [
        '# Collective test starting: all_reduce_perf',
        '# nThread 1 nGpus 1 minBytes 8388608 maxBytes 8388608 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0',
        ...head,
        '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong',
        '67108864 16777216 float sum -1 66225.9 1.01 1.90 0 66225.9 1.01 1.90 0',
        '# Out of bounds values : 0 OK',
        '# Avg bus bandwidth    : 1.9',
        '',
      ].join('\n'),
    );
    const { code, stdout } = await tccl(['diagnose', file]);
    rmSync(incident, { recursive: true });
    expect(code).toBe(0);
    expect(stdout).toContain('the speed was not compared: 2 hosts\n');
    expect(stdout).toContain(`tccl expect dgx-h100 --nodes 2 ${file} compares it\n`);
  });

  it('compares a graph file with the machine that a log beside it prints', async () => {
    const incident = mkdtempSync(join(tmpdir(), 'tccl-graphs-'));
    const { parameters } = parametersFromEnvironment({});
    writeFileSync(join(incident, 'job.log'), printed(buildSystem(machine('dgx-a100'), { parameters })).join('\n'));
    const graph = (dev: number) =>
      `<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="3" speedinter="3" typeintra="NVL" typeinter="PIX" samechannels="1"><channel><gpu dev="${dev}"/></channel></graph></graphs>`;
    writeFileSync(join(incident, 'graph.xml'), graph(77));
    const wrong = await tccl(['diagnose', incident]);
    writeFileSync(join(incident, 'graph.xml'), graph(0));
    const right = await tccl(['diagnose', incident]);
    rmSync(incident, { recursive: true });
    expect(wrong.stdout).toContain('graph.xml: the graph file uses GPU 119, and the topology has GPU 0');
    expect(right.stdout).not.toContain('the graph file uses');
  });

  it('finds no faults in prose and programs beside a log, unless they are all that is given', async () => {
    const incident = mkdtempSync(join(tmpdir(), 'tccl-prose-'));
    const fault = 'NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus.\n';
    const runbook = join(incident, 'RUNBOOK.md');
    writeFileSync(runbook, fault);
    writeFileSync(join(incident, 'train.py'), `# ${fault}`);
    const alone = await tccl(['diagnose', runbook]);
    writeFileSync(join(incident, 'job.log'), 'epoch 1\n');
    const beside = await tccl(['diagnose', incident]);
    rmSync(incident, { recursive: true });
    expect(alone.stdout).toMatch(/^Verdict: GPU 0000:5d:00 has fallen off the bus/);
    expect(beside.code).toBe(3);
    expect(beside.stdout).toMatch(/Read: .*2 × prose or source, not a log/);
  });

  it('reads RAS, lines of the job and outputs of tools from one file', async () => {
    const pasted = mkdtempSync(join(tmpdir(), 'tccl-pasted-'));
    // RAS finds nothing here, as in NVIDIA/nccl#1730, while the watchdog gives up.
    writeFileSync(
      join(pasted, 'report.txt'),
      `NCCL version 2.26.2 compiled with CUDA 12.4
CUDA runtime version 12040, driver version 12040

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
     32          8            1        256      256

Errors
======

Warnings
========

[rank118]:[E603 17:48:01.005271823 ProcessGroupNCCL.cpp:632] [Rank 118] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2398459, OpType=ALLREDUCE, NumelIn=8652160, NumelOut=8652160, Timeout(ms)=1800000) ran for 1800068 milliseconds before timing out.
`,
    );
    expect(await tccl(['diagnose', pasted])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("PyTorch's watchdog gave up on a collective") as string,
    });
    const port = (name: string, state: string) => `CA '${name}'\n\tPort 1:\n\t\tState: ${state}\n\t\tPhysical state: LinkUp\n`;
    writeFileSync(
      join(pasted, 'report.txt'),
      `\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-23\nGPU1\tNV4\t X \t0-23\n\n${port('mlx5_0', 'Active')}${port('mlx5_1', 'Active')}${port('mlx5_2', 'Initializing')}`,
    );
    const { stdout } = await tccl(['diagnose', pasted]);
    rmSync(pasted, { recursive: true });
    expect(stdout).toMatch(/^Verdict: mlx5_2:1 \(LinkUp\) is not active, 2 other ports are\n/);
  });

  it('recognises RCCL, and does not plan it as NCCL', async () => {
    const rccl = mkdtempSync(join(tmpdir(), 'tccl-rccl-'));
    const [log, topology] = [join(rccl, 'rccl.log'), join(rccl, 'rccl.xml')];
    writeFileSync(
      log,
      `n1:11:22 [0] NCCL INFO RCCL version : 2.22.3-HEAD:9d5cb5b
n1:11:22 [0] NCCL INFO === System : maxBw 48.0 totalBw 336.0 ===
n1:11:22 [0] NCCL INFO CPU/0 (1/2/-1)
n1:11:22 [0] NCCL INFO + PCI[24.0] - GPU/5000 (0)
n1:11:22 [0] NCCL INFO              + XGMI[48.0] - GPU/15000
n1:11:22 [0] NCCL INFO ==========================================
`,
    );
    const gpu = (dev: number) =>
      `<pci busid="0000:${dev + 1}5:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="${dev}" sm="94" gcn="gfx942" rank="${dev}" gdr="1"><xgmi target="0000:${2 - dev}5:00.0" count="1"/></gpu></pci>`;
    writeFileSync(
      topology,
      `<system version="2"><cpu numaid="0" affinity="ffff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">${gpu(0)}${gpu(1)}</cpu></system>`,
    );
    for (const file of [log, topology])
      for (const command of [['plan'], ['graph'], ['explain'], ['topo', 'show']])
        expect(await tccl([...command, file])).toMatchObject({
          code: 2,
          stderr: expect.stringMatching(/of RCCL \(AMD.* which plans otherwise than NCCL: it is not supported/) as string,
        });
    expect(await tccl(['topo', 'doctor', topology])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('this is a topology of RCCL') as string,
    });
    const { code, stdout } = await tccl(['diagnose', rccl]);
    rmSync(rccl, { recursive: true });
    expect([code, stdout]).toEqual([3, expect.stringContaining('this is the log of RCCL') as string]);
  });

  it('reports an unreadable file in one line', async () => {
    const file = join(folder, '..', 'tccl-nothing.bin');
    writeFileSync(file, Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0]));
    expect(await tccl(['diagnose', file])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is no text (a binary file)') as string,
    });
    rmSync(file);
    expect(await tccl(['diagnose', join(folder, 'missing')])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no such file or folder') as string,
    });
  });
});
