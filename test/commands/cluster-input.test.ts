import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { machine } from '../../src/planner/topology/catalogue/machines.js';
import { writeXml } from '../../src/planner/topology/xml/write.js';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-cluster-'));
const file = (name: string) => join(folder, name);
afterAll(() => {
  rmSync(folder, { recursive: true });
});

beforeAll(async () => {
  await tccl(['topo', 'complete', 'hgx-a100-4', '-o', file('host.xml')]);
  writeFileSync(
    file('cluster.yaml'),
    'machines:\n  - { machine: host.xml, count: 2, overrides: { gpus: 2 } }\n  - machine: pcie-2-l40s\nenvironment:\n  NCCL_CROSS_NIC: 0\n',
  );
  writeFileSync(file('same.json'), '{ "machines": ["host.xml:2"] }');
  writeFileSync(file('typo.yaml'), 'machines:\n  - machine: dgx-h10\n');
  writeFileSync(file('nic.yaml'), 'machines:\n  - machine: host.xml\n    overrides: { nics: [mlx5_9] }\n');
  writeFileSync(file('broken.xml'), '<system version="1">\n  <cpu numaid="0"\n</system>');
  writeFileSync(file('broken.yaml'), 'machines:\n  - broken.xml\n');
});

it.each([
  [['plan', '/'], 2, '/: is a folder without outputs about a machine'],
  [['topo', 'show', '/'], 2, '/: is a folder without outputs about a machine'],
  [['plan', '--topology', '/'], 2, '/: is a folder: give what TCCL_TOPO_DUMP_FILE wrote, one file for each host'],
  [['plan', 'dgx-h100', '--hardware', '@/'], 2, '/: is a folder: give a file that describes hardware'],
  [['plan', 'dgx-h100', '--env', 'NCCL_GRAPH_FILE=/'], 2, '/: is a folder: give in NCCL_GRAPH_FILE what'],
  [['expect', 'dgx-h100', '/'], 2, '/: is a folder: give what nccl-tests printed'],
  [['tuner', 'dgx-h100', '--check', '/'], 2, '/: is a folder: give a table of a tuner plugin'],
  [['trace', 'dgx-h100', '--size', '1M', '--program', '/'], 2, "/: is a folder: give a program: MSCCL's XML"],
  [['topo', 'doctor', 'dgx-h100', '--graph', '/'], 2, '/: is a folder: give an NCCL_GRAPH_FILE'],
  [['perf', 'all_reduce', '--program', '/'], 1, '--program / cannot be read: it is a folder; name a file in it'],
  [['tune', '-o', '/'], 1, '/: the profile cannot be written: it is a folder; name a file in it'],
  [['plan', 'p5.49xlarge'], 2, 'did you mean p5.48xlarge?'],
  [['plan', 'dgx-h100', '--env', 'NCCL_BUFFSIZE=0'], 2, 'NCCL_BUFFSIZE=0 is below 1'],
  [['explain', 'dgx-h100', '--env', 'NCCL_P2P_NET_CHUNKSIZE=-1'], 2, 'NCCL_P2P_NET_CHUNKSIZE=-1 is below 1'],
])('%j is refused', async (args, exitCode, message) => {
  const { stdout, stderr, code } = await tccl(args);
  expect([stdout, code]).toEqual(['', exitCode]);
  expect(stderr).toContain(message);
  expect(stderr.trim().split('\n')).toHaveLength(1);
});

interface Graphs {
  readonly plan: {
    readonly hosts: readonly { readonly name: string; readonly count: number; readonly nRanks: number }[];
    readonly parameters: object;
  };
}

async function hostsOf(...args: string[]): Promise<Graphs['plan']> {
  const { stdout, stderr, code } = await tccl(['graph', ...args, '--json']);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return (JSON.parse(stdout) as Graphs).plan;
}

describe('a cluster', () => {
  it('is a file with machines of the catalogue and topology files beside it', async () => {
    const { hosts, parameters } = await hostsOf(file('cluster.yaml'));
    expect(hosts.map(({ name, count, nRanks }) => ({ name, count, nRanks }))).toEqual([
      { name: 'host.xml', count: 2, nRanks: 2 },
      { name: 'pcie-2-l40s', count: 1, nRanks: 2 },
    ]);
    expect(parameters).toMatchObject({ crossNic: 0 });
  });

  it('is a machine with --nodes or with a count, with the same result', async () => {
    const made = await Promise.all([
      hostsOf(file('host.xml'), '--nodes', '2'),
      hostsOf(`${file('host.xml')}:2`),
      hostsOf(file('same.json')),
    ]);
    expect(made[1]).toEqual(made[0]);
    expect(made[2]).toEqual(made[0]);
  });

  it('has the network of its provider, of the cluster file, or of --network', async () => {
    const timeOf = async (...args: string[]) => {
      const { stdout } = await tccl(['plan', ...args, '--sizes', '1K', '--costs', 'json']);
      const { rows } = JSON.parse(stdout) as { rows: { collective: string; hosts: number; timeUs: number }[] };
      return rows.find(({ collective, hosts }) => collective === 'AllReduce' && hosts === 2)?.timeUs ?? NaN;
    };
    writeFileSync(join(folder, 'network.yaml'), 'machines: dgx-h100:2\nnetwork: sockets\n');
    const verbs = await timeOf('dgx-h100', '--nodes', '2');
    expect(await timeOf(join(folder, 'network.yaml'))).toBeGreaterThan(verbs + 40);
    expect(await timeOf(join(folder, 'network.yaml'), '--network', 'verbs')).toBeCloseTo(verbs, 6);
    const own = await timeOf('gcp-a3-mega', '--nodes', '2');
    expect(own).toBeCloseTo(await timeOf('gcp-a3-mega', '--nodes', '2', '--network', 'tcpx'), 6);
    expect(own).toBeGreaterThan((await timeOf('gcp-a3-mega', '--nodes', '2', '--network', 'verbs')) + 30);
    // Cards of AWS and Slingshot are for one network; those of NVIDIA are not.
    writeFileSync(join(folder, 'cards.xml'), writeXml(machine('aws-p5')));
    const cards = join(folder, 'cards.xml');
    expect(await timeOf(`${cards}:2`)).toBeCloseTo(await timeOf(`${cards}:2`, '--network', 'efa'), 6);
    expect(await timeOf('dgx-h100', '--nodes', '2', '--launch', 'single')).toBeGreaterThan(verbs);
    const { code, stderr } = await tccl(['plan', 'dgx-h100', '--launch', 'now']);
    expect([code, stderr]).toEqual([2, expect.stringContaining("no launch mode 'now' (there are queued, single, graph)")]);
  });

  it('takes variables from the shell, then the cluster file, then --env', async () => {
    const run = async (args: string[]) => {
      const { stdout } = await tccl(['graph', ...args, '--json'], { env: { NCCL_CROSS_NIC: '1', NCCL_NVLS_ENABLE: '0' } });
      return (JSON.parse(stdout) as Graphs).plan.parameters;
    };
    expect(await run([file('host.xml')])).toMatchObject({ crossNic: 1, nvlsEnable: 0 });
    expect(await run([file('cluster.yaml')])).toMatchObject({ crossNic: 0, nvlsEnable: 0 });
    expect(await run([file('cluster.yaml'), '--env', 'NCCL_CROSS_NIC=2', '--env', 'NCCL_NVLS_ENABLE=1'])).toMatchObject({
      nvlsEnable: 1,
    });
  });

  it.each([
    ['a machine that is not there', ['typo.yaml'], /typo\.yaml:2:5: .*did you mean dgx-h100\?/],
    ['a NIC that is not there', ['nic.yaml'], /nic\.yaml:2:5: there is no NIC mlx5_9/],
    ['a topology that is broken', ['broken.yaml'], /broken\.xml:\d+:\d+: /],
    ['--nodes with a cluster file', ['cluster.yaml', '--nodes', '2'], /--nodes does not go with a cluster file/],
    ['--nodes with a count', ['host.xml:2', '--nodes', '2'], /--nodes goes with one machine/],
    ['a number that is none', ['host.xml', '--nodes', '2.5'], /--nodes '2\.5' must be a whole number/],
    ['a variable that NCCL does not have', ['host.xml', '--env', 'NCCL_CROS_NIC=0'], /did you mean NCCL_CROSS_NIC\?/],
    ['a variable without a value', ['host.xml', '--env', 'NCCL_CROSS_NIC'], /write NAME=VALUE/],
  ])('%s is an error of one line with exit code 2', async (_, [name = '', ...rest], message) => {
    const { code, stdout, stderr } = await tccl(['graph', file(name), ...rest]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });
});

describe('outputs of tools', () => {
  const gpus = Array.from({ length: 8 }, (_, gpu) => `GPU ${gpu}: NVIDIA H200 (UUID: GPU-2f3c${gpu})`).join('\n');
  const ports = Array.from({ length: 8 }, (_, nic) => `mlx5_${nic} port 1 ==> ib${nic} (Up)`).join('\n');
  const labels =
    'apiVersion: v1\nkind: Node\nmetadata:\n  labels:\n    kubernetes.io/hostname: n1\n    node.kubernetes.io/instance-type: p5.48xlarge\n';

  it.each([
    ['gpus.txt', gpus, 'the machine in gpus.txt', 'the machine is dgx-h200 (8 x H200 SXM)'],
    ['node.yaml', labels, 'n1', 'the machine is aws-p5, by its name (p5.48xlarge)'],
    ['slurm.txt', 'NodeName=gpu[01-02] Gres=gpu:h100:8\n', '2 x gpu01 …', 'the machine is dgx-h100 (8 x H100 SXM)'],
    ['prompts.txt', `me@n1:~$ nvidia-smi -L\n${gpus}\nme@n2:~$ nvidia-smi -L\n${gpus}\n`, '2 x n1', 'dgx-h200'],
  ])('%s is a machine or several', async (name, text, title, note) => {
    writeFileSync(file(name), text);
    for (const args of [
      ['plan', file(name)],
      ['graph', file(name), '--json'],
      ['explain', file(name), 'how many channels'],
    ]) {
      const { stdout, stderr, code } = await tccl(args);
      expect([args, stderr, code]).toEqual([args, expect.stringContaining(note), 0]);
      if (args[0] === 'plan') expect(stdout).toContain(title);
    }
    expect((await tccl(['topo', 'show', file(name)])).code).toBe(0);
  });

  it('as a name of a product are its machine', async () => {
    expect((await tccl(['plan', 'DGX H100', '--nodes', '2'])).stdout).toContain('2 x dgx-h100');
  });

  it('in a folder are one machine, a file each', async () => {
    mkdirSync(file('outputs'));
    writeFileSync(file('outputs/gpus.txt'), gpus);
    writeFileSync(file('outputs/ports.txt'), ports);
    const { stdout, code } = await tccl(['topo', 'show', file('outputs')]);
    expect([code, stdout.includes('NET 7  mlx5_7')]).toEqual([0, true]);
  });

  it.each([
    ['text of lstopo', 'Machine (2015GB total)\n  Package L#0\n    NUMANode L#0 (P#0 1007GB)\n', 'lstopo has no GPUs'],
    ['ibstat', "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n", 'ibstat has no GPUs'],
    ['a few GPUs', 'GPU 0: NVIDIA H200 (UUID: GPU-2f3c)\n', 'no machine of the catalogue has 1 x H200 SXM (dgx-h200 has 8)'],
    ['two machines', `DGX A100\n${gpus}\n`, 'contradict each other'],
  ])('that determine no machine are refused: %s', async (_, text, message) => {
    writeFileSync(file('partial.txt'), text);
    for (const args of [
      ['plan', file('partial.txt'), '--nodes', '2'],
      ['topo', 'show', file('partial.txt')],
    ]) {
      const { stdout, stderr, code } = await tccl(args);
      expect([stdout, code]).toEqual(['', 2]);
      expect(stderr).toMatch(/partial\.txt:\d+: /);
      expect(stderr).toContain(message);
      expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    }
  });
});

describe('a matrix of nvidia-smi', () => {
  const matrix = file('matrix.txt');
  beforeAll(() => {
    writeFileSync(
      matrix,
      [
        '        GPU0  GPU1  GPU2  GPU3  NIC0  NIC1',
        'GPU0     X    NV18  SYS   SYS   PIX   SYS',
        'GPU1    NV18   X    SYS   SYS   PIX   SYS',
        'GPU2    SYS   SYS    X    NV18  SYS   PIX',
        'GPU3    SYS   SYS   NV18   X    SYS   PIX',
        '',
        'NIC0: rocep80s0   -> ens2005np0  10.32.16.0/24   (rail 0)',
        'NIC1: rocep203s0  -> ens5008np0  10.32.15.0/24   (rail 1)',
        '',
      ].join('\n'),
    );
  });

  it.each([
    [['plan', matrix, '--nodes', '2'], '2 x the machine in matrix.txt'],
    [['explain', matrix, '--nodes', '2', 'how many channels'], 'channels'],
    [['graph', matrix], 'ranks 0 1'],
    [['topo', 'show', matrix], 'NET 1  rocep203s0'],
    [['topo', 'doctor', matrix], 'the machine in matrix.txt'],
    [['topo', 'complete', matrix], '<system version="1">'],
  ])('is a machine for %j', async (args, expected) => {
    const { stdout, stderr, code } = await tccl(args);
    expect(stdout).toContain(expected);
    expect(stderr).toContain('to be certain, run on that machine: tccl topo detect -o machine.xml');
    expect(code).toBe(0);
  });

  it('takes models from --hardware, also in a cluster file', async () => {
    const hardware = '4 x H200, 2 x 200G NIC';
    const { stdout, stderr } = await tccl(['topo', 'show', matrix, '--hardware', hardware]);
    expect(stdout).toContain('2 network devices (25 GB/s)');
    expect(stderr).not.toContain('GPUs are');
    writeFileSync(file('of-matrix.yaml'), `machines:\n  - { machine: matrix.txt, count: 2, hardware: "${hardware}" }\n`);
    const plan = await tccl(['plan', file('of-matrix.yaml')]);
    expect([plan.code, plan.stdout.includes('2 network devices (25 GB/s)')]).toEqual([0, true]);
  });

  it('may be in UTF-16, as PowerShell writes it', async () => {
    writeFileSync(file('wide.txt'), `\ufeff${readFileSync(matrix, 'utf8')}`, 'utf16le');
    const { stdout, code } = await tccl(['topo', 'show', file('wide.txt')]);
    expect([stdout.includes('NET 1  rocep203s0'), code]).toEqual([true, 0]);
  });

  it('that contradicts itself is refused with file and line', async () => {
    writeFileSync(file('wrong.txt'), readFileSync(matrix, 'utf8').replace('X    NV18', 'X    NV12'));
    const { stdout, stderr, code } = await tccl(['plan', file('wrong.txt')]);
    expect([stdout, code]).toEqual(['', 2]);
    expect(stderr).toMatch(/wrong\.txt:3: .*contradicts itself: GPU0 to GPU1 is NV12, but GPU1 to GPU0 is NV18\n$/);
  });
});

describe('a script of a job', () => {
  const script = (...options: string[]) =>
    ['#!/bin/bash', ...options.map((option) => `#SBATCH ${option}`), 'srun python train.py', ''].join('\n');

  it.each([
    ['4 x the machine in job.sh', ['--job-name=a', '--nodes=4', '--ntasks-per-node=8', '--gres=gpu:h100:8']],
    ['2 x the machine in job.sh', ['-N 2', '--gpus-per-node=a100:4']],
    ['2 x the machine in job.sh', ['--nodes 2', '--gpus=h200:16']],
    ['2 x gpu01 …', ['-w gpu[01-02]', '--gres=gpu:a100:8']],
    ['the machine in job.sh', ['--gres=gpu:h100:8']],
  ])('is a cluster: %s', async (title, options) => {
    writeFileSync(file('job.sh'), script(...options));
    const { stdout, code } = await tccl(['plan', file('job.sh'), '--no-predict']);
    expect(stdout).toMatch(new RegExp(`^${title}  NCCL`));
    expect(code).toBe(0);
  });

  it('takes the model of its GPUs from --hardware', async () => {
    writeFileSync(file('job.sh'), script('--nodes=2', '--gres=gpu:8'));
    const { stdout } = await tccl(['plan', file('job.sh'), '--no-predict', '--hardware', 'h100']);
    expect(stdout).toMatch(/^2 x .*16 ranks on 2 nodes/);
    const { stderr, code } = await tccl(['plan', file('job.sh'), '--no-predict', '--hardware', '4 x h100']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('the outputs name 8 GPUs, and --hardware describes 4')]);
  });
});

it('a folder of topology files is a cluster of their hosts, and equal ones are counted', async () => {
  mkdirSync(file('dumps'), { recursive: true });
  for (const [name, of] of [
    ['a.xml', 'dgx-h100'],
    ['b.xml', 'dgx-h100'],
    ['c.xml', 'hgx-h20-8'],
  ] as const)
    writeFileSync(join(file('dumps'), name), writeXml(machine(of)));
  writeFileSync(join(file('dumps'), 'readme.txt'), 'of Monday');
  const { stdout, stderr, code } = await tccl(['plan', file('dumps'), '--no-predict']);
  expect(stdout).toMatch(/^2 x a\.xml \+ c\.xml .* 24 ranks on 3 nodes/);
  expect(stderr).toContain('1 other file beside the topology files is not read');
  expect(code).toBe(0);
});

it.each(['text', 'cluster file'])('topo doctor reads the standard input once: %s', async (kind) => {
  const input = kind === 'text' ? readFileSync(file('host.xml'), 'utf8') : 'machines:\n  - hgx-a100-4:2\n';
  const { code, stderr } = await tccl(['topo', 'doctor', '-'], { input });
  expect([code, stderr]).toEqual([0, '']);
});

it('--collnet makes NICs of the catalogue’s machines reduce; a cluster file may except a host', async () => {
  const { stdout } = await tccl(['plan', 'dgx-h100', '--nodes', '2', '--collnet', '--no-predict']);
  expect(stdout).toMatch(/^CollNet +yes: the network reduces; 8 heads$/m);
  writeFileSync(file('no-sharp.yaml'), 'machines:\n  - { machine: dgx-h100, count: 2, overrides: { sharp: false } }\n');
  const without = await tccl(['plan', file('no-sharp.yaml'), '--collnet', '--no-predict']);
  expect(without.stdout).toMatch(/^CollNet +no: the network does not reduce$/m);
  const switchedOff = await tccl(['plan', 'dgx-h100:2', '--collnet', '--env', 'NCCL_COLLNET_ENABLE=0', '--no-predict']);
  expect(switchedOff.stdout).toMatch(/^CollNet +no: NICs can reduce; NCCL_COLLNET_ENABLE=1 would ask them to$/m);
});
