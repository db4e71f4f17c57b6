import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { gpuModels } from '../../src/planner/topology/catalogue/gpus.js';
import { parseXml } from '../../src/planner/topology/xml/parse.js';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-topo-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const skeleton = file(
  'skeleton.xml',
  `<?xml version="1.0"?>
<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="17">
    <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
    <pci busid="0101:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
  </cpu>
</system>
`,
);
const hardware = '1 x H100 SXM, 1 x 400G NIC';

describe('tccl topo show', () => {
  it('draws a machine of the catalogue', async () => {
    const { code, stdout, stderr } = await tccl(['topo', 'show', 'dgx-1v']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('├─ 12 ─ GPU 0  0000:02:00.0 · NVLink to GPU 1 20, GPU 2 20, GPU 3 40, GPU 4 40 GB/s');
    expect(stdout).toContain('GPU0     X  NVL  NVL  NVL  NVL  NVB  NVB  NVB  PIX');
  });

  it('obeys the variables of NCCL', async () => {
    const { stdout } = await tccl(['topo', 'show', 'dgx-1v'], { env: { NCCL_NVB_DISABLE: '1' } });
    expect(stdout).not.toContain('NVB');
  });

  it('leaves out drives and NUMA nodes without devices, as NCCL does', async () => {
    const whole = (await tccl(['topo', 'complete', 'pcie-2-l4'])).stdout;
    const drive = '<pci busid="0000:99:00.0" class="0x010802" link_speed="32.0 GT/s PCIe" link_width="4"/></cpu>';
    const withMore = whole.replace('</cpu>', `${drive}<cpu numaid="7" affinity="0" arch="x86_64"/>`);
    expect(withMore).not.toBe(whole);
    const [shown, plain] = await Promise.all([
      tccl(['topo', 'show', '-'], { input: withMore }),
      tccl(['topo', 'show', '-'], { input: whole }),
    ]);
    expect(shown).toEqual(plain);
  });

  it('notes that a version is older than the GPUs', async () => {
    const note = /^note: dgx-b200: NCCL 2\.21\.5 is older than GPUs of compute capability 10\.0; it plans for them as for 9\.0/m;
    const [shown, judged] = await Promise.all([
      tccl(['topo', 'show', 'dgx-b200', '--nccl', '2.21.5']),
      tccl(['topo', 'doctor', 'dgx-b200', '--torch', '2.5']),
    ]);
    expect(shown).toMatchObject({ code: 0, stderr: expect.stringMatching(note) as string });
    expect(judged).toMatchObject({ code: 0, stderr: expect.stringMatching(note) as string });
  });

  it('draws and judges a machine as an older NCCL sees it', async () => {
    const [shown, judged, unknown] = await Promise.all([
      tccl(['topo', 'show', 'dgx-1v', '--nccl', '2.22.3']),
      tccl(['topo', 'doctor', 'dgx-h100', '--torch', '2.4']),
      tccl(['topo', 'show', 'dgx-1v', '--nccl', '2.4.8']),
    ]);
    expect(shown).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('note: NCCL 2.22.3: 1 rule is read from source') as string,
    });
    expect(judged).toMatchObject({ code: 0, stdout: 'dgx-h100: nothing to complain of\n' });
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('2.4.8') as string });
  });

  it('reads the standard input and a description, and reports what NCCL would refuse', async () => {
    const { code, stdout, stderr } = await tccl(['topo', 'show', '-', '--hardware', hardware], {
      input: readFileSync(skeleton, 'utf8'),
    });
    expect(code).toBe(0);
    expect(stdout).toContain('1 GPU (sm 90), 1 network device (50 GB/s), 1 CPU, NVSwitch');
    expect(stderr).toBe('note: standard input:1:1: NCCL itself would refuse this: an XML declaration\n');
  });

  it('joins the ports of a card as NCCL does at its start, on request', async () => {
    const ports = file(
      'ports.xml',
      readFileSync(skeleton, 'utf8').replace(
        'link_width="16"/>\n  </cpu>',
        'link_width="16"><nic><net name="mlx5_0" dev="0" speed="200000" gdr="1"/><net name="mlx5_1" dev="1" speed="200000" gdr="1"/></nic></pci>\n  </cpu>',
      ),
    );
    const show = async (args: readonly string[], env: Record<string, string> = {}) =>
      tccl(['topo', 'show', ports, '--hardware', '1 x H100 SXM', ...args], { env });
    expect((await show([])).stdout).toContain('2 network devices (25 GB/s)');
    expect((await show(['--merge-nics'])).stdout).toContain('50 ─ NET 2  mlx5_0+mlx5_1');
    expect((await show(['--merge-nics'], { NCCL_NET_MERGE_LEVEL: 'LOC' })).stdout).toContain('2 network devices (25 GB/s)');
    expect((await show([], { NCCL_NET_FORCE_MERGE: 'mlx5_0,mlx5_1' })).stderr).toContain(
      'note: NCCL_NET_FORCE_MERGE counts with --merge-nics only',
    );
    expect(await show(['--merge-nics'], { NCCL_NET_FORCE_MERGE: 'mlx5_0,mlx5_7' })).toMatchObject({
      stdout: '',
      stderr: expect.stringContaining(
        'NCCL_NET_FORCE_MERGE: "mlx5_0,mlx5_7" names 2 devices and 1 of them are here; there are mlx5_0, mlx5_1',
      ) as unknown,
    });
    const merged = await tccl(['topo', 'complete', ports, '--hardware', '1 x H100 SXM', '--merge-nics']);
    expect(merged.stdout).toMatch(
      /<nic>\s*<net name="mlx5_0\+mlx5_1" dev="2" latency="0" speed="400000" [^>]*net="1"\/>\s*<\/nic>/,
    );
  });

  it('writes a picture', async () => {
    const picture = join(folder, 'picture.svg');
    expect(await tccl(['topo', 'show', 'gh200', '--svg', picture])).toMatchObject({ code: 0 });
    expect(parseXml(readFileSync(picture, 'utf8')).root.name).toBe('svg');
  });

  it('prints everything as JSON', async () => {
    const { stdout } = await tccl(['topo', 'show', 'gh200', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      title: 'gh200',
      endpoints: [{ label: 'GPU0' }, { label: 'NET0' }],
      notes: [],
      paths: expect.arrayContaining([expect.objectContaining({ from: 'GPU/0-1000', to: 'NET/0-0', type: 'P2C' })]) as unknown,
    });
  });

  it('counts paths where the matrix would be too wide', async () => {
    expect((await tccl(['topo', 'show', 'gb200-nvl72'])).stdout).toContain('GPU to GPU  NVL   721.8 GB/s     5112 pairs');
  });
});

describe('tccl topo doctor', () => {
  const sick = file(
    'sick.xml',
    `<system version="1">
  <cpu numaid="0" affinity="ff" arch="arm64">
    <pci busid="0000:01:00.0" class="0x030200" link_speed="32.0 GT/s" link_width="16">
      <gpu dev="0" sm="90" rank="0" gdr="1"/>
    </pci>
    <nic><net name="eth0" dev="0" speed="10000" port="0" guid="0x0" maxconn="65536" gdr="0"/></nic>
  </cpu>
</system>
`,
  );

  it('gives place, cost and remedy, and exits with 0 at a warning', async () => {
    const { code, stdout } = await tccl(['topo', 'doctor', sick]);
    expect(code).toBe(0);
    expect(stdout).toBe(`warning link-speed-unknown: link_speed="32.0 GT/s" matches none of the texts that NCCL knows
  at <pci busid="0000:01:00.0"> ${sick}:3:5
  cost: it silently counts as Gen3: 12 instead of 48 GB/s
  do:   write "32.0 GT/s PCIe"

sick.xml: 1 warning
`);
  });

  it('fails where NCCL would fail', async () => {
    const { code, stdout } = await tccl(['topo', 'doctor', skeleton, '--json']);
    expect(code).toBe(1);
    expect((JSON.parse(stdout) as { findings: { code: string }[] }).findings[0]?.code).toBe('nccl-refuses');
  });

  it('compares with the machine, and with a graph file', async () => {
    const graph = file(
      'graph-of-two.xml',
      '<graphs version="1"><graph id="0"><channel><gpu dev="1"/></channel></graph></graphs>',
    );
    const { code, stdout } = await tccl(['topo', 'doctor', sick, '--machine', 'gh200', '--graph', graph]);
    expect(code).toBe(1);
    expect(stdout).toContain('error graph-gpu-not-there: the graph file uses GPU 1, and the topology has GPU 0');
    expect((await tccl(['topo', 'doctor', sick, '--machine', 'pcie-2-l4'])).stdout).toContain('warning gpu-not-in-file');
  });

  it('takes a graph file and a machine, and refuses one in place of the other', async () => {
    const graph = file('a-graph.xml', '<graphs version="1"/>');
    expect(await tccl(['topo', 'doctor', sick, '--graph', sick])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `tccl: ${sick}:1:1: its root is <system>, not <graphs>: --graph takes an NCCL_GRAPH_FILE, or what NCCL_GRAPH_DUMP_FILE wrote\n`,
    });
    expect((await tccl(['topo', 'doctor', sick, '--machine', graph])).stderr).toContain('its root is <graphs>, not <system>');
  });

  it('finds nothing on a sound machine', async () => {
    expect(await tccl(['topo', 'doctor', 'dgx-h100'])).toMatchObject({ code: 0, stdout: 'dgx-h100: nothing to complain of\n' });
  });
});

describe('tccl topo complete', () => {
  it('writes a file that topo show reads without a description', async () => {
    const output = join(folder, 'complete.xml');
    expect(await tccl(['topo', 'complete', skeleton, '--hardware', hardware, '-o', output])).toMatchObject({
      code: 0,
      stdout: '',
    });
    expect((await tccl(['topo', 'show', output])).stdout).toContain('GPU0');
  });

  it('takes a description from a file', async () => {
    const description = file('hardware.yaml', 'gpus: { model: L40S, at: ["0001:00:00.0"] }\ncpu: Genoa\n');
    const { stdout } = await tccl(['topo', 'complete', skeleton, '--hardware', `@${description}`]);
    expect(stdout).toContain('<gpu dev="0" sm="89" rank="0" gdr="1"/>');
  });
});

describe('tccl topo complete --machine', () => {
  const device = (root: string, busId: string, ids: Readonly<Record<string, string>>) => {
    const path = join(root, 'sys/bus/pci/devices', busId);
    mkdirSync(path, { recursive: true });
    for (const [name, text] of Object.entries(ids)) writeFileSync(join(path, name), `${text}\n`);
  };

  it("writes NCCL's topology from the file on that machine", async () => {
    const machine = join(folder, 'machine');
    device(machine, '0001:00:00.0', { class: '0x030200', vendor: '0x10de', device: '0x2330' });
    const { code, stdout, stderr } = await tccl(['topo', 'complete', skeleton, '--machine', machine]);
    expect(code).toBe(0);
    expect(stdout).toContain(
      '<pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16" vendor="0x10de" device="0x2330">',
    );
    expect(stderr).toContain('left out, because no GPU or network device of the machine is there: 0101:00:00.0');
    expect((await tccl(['topo', 'show', '-'], { input: stdout })).stdout).toContain('1 GPU (sm 90)');
  });

  it('requires a machine with GPUs, and one source of devices', async () => {
    expect(await tccl(['topo', 'complete', skeleton, '--machine', folder])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('no GPU found on the machine at') as unknown,
    });
    expect(await tccl(['topo', 'complete', skeleton, '--machine', '/', '--hardware', hardware])).toMatchObject({
      code: 2,
      stdout: '',
    });
  });
});

describe('tccl topo list', () => {
  it('shows machines and models', async () => {
    const { stdout } = await tccl(['topo', 'list']);
    expect(stdout).toMatch(/^ {2}dgx-h100 .*8 x H100 SXM/m);
    expect(stdout).toMatch(/^ {2}h800-sxm +90 {2}Gen5 {2}8 \(164\.8 GB\/s\)$/m);
    const { gpus } = JSON.parse((await tccl(['topo', 'list', '--json'])).stdout) as { gpus: object[] };
    expect(gpus).toEqual(JSON.parse(JSON.stringify(gpuModels)));
  });

  it('prints the sources of the facts about a machine', async () => {
    const { stdout } = await tccl(['topo', 'list', 'p4d.24xlarge']);
    expect(stdout).toMatch(/^aws-p4d: AWS p4d.24xlarge: 8 x A100 SXM/);
    expect(stdout).toMatch(/^ {2}known: .*\n {2}assumed: .*\n {2}source: +https:/m);
    expect(stdout).toMatch(/^ {2}variables: NCCL_BUFFSIZE=8388608 /m);
    const { stdout: json } = await tccl(['topo', 'list', 'aws-p4d', '--json']);
    expect(JSON.parse(json)).toMatchObject({ name: 'aws-p4d', limits: { 'gpu-link-slow': 'its PCIe is Gen3' } });
    expect(await tccl(['topo', 'list', 'aws-p4'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'tccl: topo list: the catalogue has no machine "aws-p4"; did you mean aws-p4d?; tccl topo list shows all\n',
    });
  });
});

describe('tccl topo detect', () => {
  it('writes this machine, which topo show reads', async () => {
    const { code, stdout } = await tccl(['topo', 'detect', '--ranks', '2']);
    expect(code).toBe(0);
    const shown = await tccl(['topo', 'show', '-'], { input: stdout });
    expect(shown.stdout).toMatch(/CPU device 1/);
  });

  it("takes a folder as the root of a machine's file system", async () => {
    const output = join(folder, 'detected.xml');
    const { code, stderr } = await tccl(['topo', 'detect', '--root', folder, '-o', output]);
    expect([code, stderr]).toEqual([0, 'note: no GPU found; --ranks N adds a device for each of N CPU ranks\n']);
    expect(parseXml(readFileSync(output, 'utf8')).root.children.length).toBe(1);
  });

  it.each([
    [['--root', '/no such folder'], 1, 'tccl: /no such folder: is not a folder\n'],
    [['--ranks', '0'], 2, "tccl: option '--ranks <count>' argument '0' is invalid. It must be a whole number from 1 to 640.\n"],
    [['--net', 'fibre'], 2, "tccl: option '--net <kind>' argument 'fibre' is invalid. Allowed choices are auto, ib, socket.\n"],
  ])('refuses %j', async (args, code, stderr) => {
    expect(await tccl(['topo', 'detect', ...args])).toMatchObject({ code, stdout: '', stderr });
  });

  it('gives the doctor the machine that a file is for', async () => {
    expect((await tccl(['topo', 'doctor', 'pcie-2-l4', '--machine', folder])).stdout).toContain(
      'error gpu-not-there: the machine has no GPU at 0000:01:00.0; it has none',
    );
  });
});

describe('wrong input', () => {
  const cut = file('cut.xml', '<system version="1">\n  <cpu numaid="0">');
  const graph = file('graph.xml', '<graphs version="1"/>');
  const large = file('large.xml', ' '.repeat(65 * 2 ** 20));
  const bare = file(
    'bare.xml',
    '<system version="1"><cpu numaid="0"><pci busid="0001:00:00.0" class="0x030200"><gpu dev="0" sm="80" gdr="1"/></pci></cpu></system>',
  );

  it.each([
    ['a file that ends too early', [cut], `tccl: ${cut}:2:19: the file ends inside <cpu numaid="0"> (line 2); was it cut?\n`],
    ['a graph file', [graph], `tccl: ${graph}:1:1: <graphs> (line 1) is no topology: its root must be <system>\n`],
    ['a file that is too large', [large], `tccl: ${large}: more than 64 MiB; that is no topology\n`],
    ['a folder with such a file', [folder], `tccl: ${join(folder, 'large.xml')}: more than 64 MiB`],
    [
      'a file without GPUs',
      [skeleton],
      `tccl: ${skeleton}:2:1: no GPU in <system>: NCCL adds those of the machine that it runs on; describe them with --hardware`,
    ],
    [
      'a file without CPUs',
      [file('empty.xml', '<system version="1">\n</system>')],
      `${join(folder, 'empty.xml')}:1:1: <system> (line 1): no <cpu> in it`,
    ],
    [
      'a CPU without architecture',
      [bare],
      `tccl: ${bare}:1:21: <cpu numaid="0"> (line 1): attribute arch is missing, and NCCL needs it`,
    ],
    [
      'a name that is neither',
      ['dgx-h10'],
      'tccl: there is no file dgx-h10, and no such machine in the catalogue; did you mean dgx-h100?',
    ],
    ['a server that is none', ['pcie-8-l41s'], 'no such machine in the catalogue; did you mean pcie-8-l40s?'],
    ['a server that is too large', ['pcie-17-l40s'], 'no such machine in the catalogue; did you mean pcie-16-l40s?'],
    ['a description that does not fit', [skeleton, '--hardware', '8 x H100 SXM'], 'the file has places for 1 only'],
  ])('%s: one line, and an exit code', async (_name, args, message) => {
    const { code, stdout, stderr } = await tccl(['topo', 'show', ...args]);
    expect(code === 1 || code === 2).toBe(true);
    expect(stdout).toBe('');
    expect(stderr).toContain(message);
    expect(stderr.split('\n').length).toBe(2);
  });
});
