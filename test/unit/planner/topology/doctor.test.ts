import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { completeSkeleton } from '../../../../src/planner/topology/catalogue/complete.js';
import { parseHardware } from '../../../../src/planner/topology/catalogue/hardware.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { diagnose, type DiagnoseOptions } from '../../../../src/planner/topology/doctor/diagnose.js';
import { type Finding, type FindingCode, findingCodes } from '../../../../src/planner/topology/doctor/finding.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { descendants } from '../../../../src/planner/topology/xml/tree.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { oracleMissing, oracleXml } from './oracle-files.js';

/** A machine of the catalogue as text, changed. */
function edited(name: string, ...edits: readonly (readonly [search: string | RegExp, replacement: string])[]): string {
  return edits.reduce(
    (text, [search, replacement]) => {
      const changed = text.replace(search, replacement);
      if (changed === text) throw new Error(`nothing to change: ${String(search)}`);
      return changed;
    },
    writeXml(machine(name)),
  );
}

function examine(text: string, options: DiagnoseOptions = {}): Finding[] {
  const { root, notes } = parseXml(text);
  return diagnose(root, { notes, ...options });
}

function find(findings: readonly Finding[], code: FindingCode): Finding {
  const found = findings.find((finding) => finding.code === code);
  if (found === undefined)
    throw new Error(`no finding ${code} among ${findings.map((finding) => finding.code).join(' ') || 'none'}`);
  return found;
}

/** The line of the text that holds `part`, counted from 1. */
const lineOf = (text: string, part: string) => text.split('\n').findIndex((line) => line.includes(part)) + 1;

it('docs/reference/doctor.md has a row for each finding, and no other', () => {
  const rows = readFileSync('docs/reference/doctor.md', 'utf8').match(/^\| `.*?`(?=[^`]* \|)/gm) ?? [];
  const documented = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code));
  expect(documented.sort()).toEqual([...findingCodes].sort());
});

describe('sound machines', () => {
  it.skipIf(oracleMissing !== undefined).each(['real-azure-ndv5.n1', 'real-azure-ndv4.n1', 'real-aws-p4d.n1'])(
    'nor have %s',
    (name) => {
      expect(examine(oracleXml(name))).toEqual([]);
    },
  );

  it.skipIf(oracleMissing !== undefined)('but a card whose ports have 200 and 100 Gb/s, in a slot for one', () => {
    expect(examine(oracleXml('real-keysight-dgxa100.n1')).map(({ code }) => code)).toEqual([
      'nic-slot-shared',
      'nics-merged-unequal',
    ]);
  });
});

describe('CPUs that are newer than NCCL', () => {
  const granite = [/modelid="17"/g, 'modelid="173"'] as const;
  const intel = [[/vendor="AuthenticAMD" familyid="175"/g, 'vendor="GenuineIntel" familyid="6"'], granite] as const;

  it('are named, with the link that NCCL counts on', () => {
    const finding = find(examine(edited('pcie-8-rtx-pro-6000', ...intel)), 'cpu-misread');
    expect(finding).toMatchObject({ severity: 'warning', gbps: { is: 22, couldBe: 40 } });
    expect(finding.problem).toContain('Granite Rapids');
    expect(finding.places).toHaveLength(2);
  });

  it('are a remark where NVLinks join the GPUs, and none for known models', () => {
    expect(find(diagnose(machine('dgx-b300')), 'cpu-misread').severity).toBe('info');
    const { parameters } = parametersFromEnvironment({}, '2.31.2');
    expect(diagnose(machine('dgx-b300'), { parameters }).filter(({ code }) => code === 'cpu-misread')).toEqual([]);
    expect(diagnose(machine('dgx-b200')).filter(({ code }) => code === 'cpu-misread')).toEqual([]);
  });
});

describe('numbers', () => {
  it('a text instead of a number: NCCL reads the digits at its beginning', () => {
    const findings = examine(edited('dgx-h100', ['speed="400000"', 'speed="1e6"'], ['sm="90"', 'sm="ninety"']));
    expect(
      findings.filter(({ code }) => code === 'nccl-misreads').map(({ severity, problem, remedy }) => [severity, problem, remedy]),
    ).toEqual([
      ['warning', 'speed="1e6" is no whole number: NCCL reads 1', 'write speed as a whole number'],
      ['warning', 'sm="ninety" is no whole number: NCCL reads 0', 'write sm as a whole number'],
    ]);
  });

  it('a GPU and a NUMA node with the number of another', () => {
    const text = edited('dgx-h100', ['<gpu dev="3"', '<gpu dev="2"'], ['numaid="1"', 'numaid="0"']);
    expect(find(examine(text), 'gpu-number-twice')).toMatchObject({
      severity: 'warning',
      problem: `GPU 2 is on line ${lineOf(text, '<gpu dev="2"')} too`,
      remedy: 'number GPUs as nvidia-smi does: every one once',
    });
    expect(find(examine(text), 'cpu-number-twice')).toMatchObject({
      severity: 'warning',
      problem: 'NUMA node 0 is on line 2 too',
    });
  });
});

describe('PCI links', () => {
  it('a speed that matches no entry silently becomes Gen3', () => {
    // What NCCL itself writes where NVML does not tell the generation.
    const text = edited('dgx-h100', [
      'busid="0000:43:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x0000" link_speed="32.0 GT/s PCIe"',
      'busid="0000:43:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x0000" link_speed="32.0 GT/s"',
    ]);
    expect(find(examine(text), 'link-speed-unknown')).toMatchObject({
      severity: 'warning',
      problem: 'link_speed="32.0 GT/s" matches none of the texts that NCCL knows',
      consequence: 'it silently counts as Gen3: 12 instead of 48 GB/s',
      gbps: { is: 12, couldBe: 48 },
      remedy: 'write "32.0 GT/s PCIe"',
      places: [{ element: '<pci busid="0000:43:00.0">', line: lineOf(text, '0000:43:00.0') }],
    });
  });

  it('an empty speed and width 0 count as Gen3 x16', () => {
    const findings = examine(
      edited('pcie-2-l4', [/link_speed="16.0 GT\/s PCIe" link_width="16"/g, 'link_speed="" link_width="0"']),
    );
    expect(find(findings, 'link-speed-unknown')).toMatchObject({
      severity: 'info',
      consequence: 'it silently counts as Gen3: 12 GB/s',
    });
    expect(find(findings, 'link-width-unknown')).toMatchObject({
      severity: 'info',
      consequence: 'NCCL counts it as 16 lanes: 12 GB/s',
    });
  });

  it('a width that is no valid number of lanes', () => {
    expect(find(examine(edited('gh200', ['link_width="16"', 'link_width="x16"'])), 'link-width-unknown')).toMatchObject({
      severity: 'warning',
    });
  });

  it('a switch with 2.5 GT/s x1, as in virtual machines', () => {
    const text = edited('dgx-h200', [
      /(<pci busid="0000:16:00.0" .*?)link_speed="32.0 GT\/s PCIe" link_width="16"/,
      '$1link_speed="2.5 GT/s PCIe" link_width="1"',
    ]);
    expect(find(examine(text), 'link-bottleneck')).toMatchObject({
      severity: 'error',
      gbps: { is: 0.1875, couldBe: 48 },
      problem: 'the link of this switch has 0.1875 GB/s (2.5 GT/s PCIe x1), devices below it have 48 GB/s',
      consequence: 'GPU 0 to CPU 0 gets 0.1875 instead of 48 GB/s (and 6 more pairs)',
    });
  });

  it('a GPU in a power-saving state, or in a narrow slot', () => {
    const text = edited('pcie-8-l40s', [
      /(busid="0000:03:00.0" class="0x030200".*?)link_speed="16.0 GT\/s PCIe" link_width="16"/,
      '$1link_speed="16.0 GT/s PCIe" link_width="4"',
    ]);
    expect(find(examine(text), 'gpu-link-slow')).toMatchObject({
      consequence: 'GPU 1 reaches its CPU and NICs with 6 instead of 24 GB/s',
    });
  });

  it('a card in a slot of an older generation', () => {
    const text = edited('dgx-h100', [/(busid="0000:18:00.0" .*?)link_speed="32.0 GT\/s PCIe"/, '$1link_speed="16.0 GT/s PCIe"']);
    expect(find(examine(text), 'nic-link-slow')).toMatchObject({ consequence: 'the card moves 24 instead of 50 GB/s' });
  });
});

describe('network', () => {
  it('GPU and NIC connected only across sockets', () => {
    const text = writeXml(
      completeSkeleton(
        parseXml(`<system version="1">
      <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"><pci busid="0000:01:00.0" class="0x030200"/></cpu>
      <cpu numaid="1" affinity="ff00" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"><pci busid="0000:81:00.0" class="0x020700"/></cpu>
      </system>`).root,
        parseHardware('1 x A100 PCIe, 1 x 200G NIC'),
      ).root,
    );
    expect(find(examine(text), 'nic-across-sockets')).toMatchObject({
      severity: 'warning',
      consequence: 'it reaches the network with 10 instead of 24 GB/s, and without GPU Direct RDMA',
      gbps: { is: 10, couldBe: 24 },
      places: [{ element: '<gpu dev="0">' }],
    });
  });

  it.each([
    [
      'not told',
      / speed="400000" port="1" guid="0x98039b0300010000"/,
      ' port="1" guid="0x98039b0300010000"',
      'speed missing: NCCL takes 10 Gb/s',
    ],
    ['-1', / speed="400000"/, ' speed="-1"', 'speed="-1": NCCL takes 10 Gb/s'],
    [
      "NCCL's own default",
      / speed="400000"/,
      ' speed="10000"',
      'speed="10000" is what NCCL puts where it knows nothing, and this card is faster',
    ],
  ])('a NIC at its 10 Gb/s default: %s', (_name, search, replacement, problem) => {
    expect(find(examine(edited('dgx-h100', [search, replacement])), 'nic-default-speed')).toMatchObject({
      severity: 'warning',
      problem,
      gbps: { is: 1.25, couldBe: 50 },
    });
  });

  it('GPU Direct RDMA that is off, at the GPU or at the card', () => {
    const findings = examine(
      edited('dgx-a100', [/rank="3" gdr="1"/, 'rank="3" gdr="0"'], [/(name="mlx5_5".*?)gdr="1"/, '$1gdr="0"']),
    );
    const off = findings.filter(({ code }) => code === 'gdr-off');
    expect(off.map(({ places }) => places.map(({ element }) => element))).toEqual([['<gpu dev="3">'], ['<net dev="5">']]);
    expect(off[0]).toMatchObject({ severity: 'warning', gbps: { is: 12.5, couldBe: 25 } });
  });

  it('a flat tree, in which NCCL finds all NICs too far for GPU Direct RDMA', () => {
    expect(find(diagnose(machine('hgx-a100-4')), 'gdr-too-far').places.length).toBe(4);
    const { parameters } = parametersFromEnvironment({ NCCL_NET_GDR_LEVEL: 'PHB' });
    expect(diagnose(machine('hgx-a100-4'), { parameters })).toEqual([]);
  });

  it('a GPU without NIC at its switch while another has two', () => {
    const text = edited(
      'dgx-h100',
      [/ *<pci busid="0000:40:00.0"[\s\S]*?<\/pci>\n/, ''],
      [
        /(<pci busid="0000:18:00.0"[\s\S]*?<\/pci>\n)/,
        '$1<pci busid="0000:19:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic><net name="mlx5_1" dev="1" speed="400000" port="1" gdr="1"/></nic></pci>\n',
      ],
    );
    expect(find(examine(text), 'nic-uneven')).toMatchObject({
      problem: 'no network card is at its switch, while GPU 0 has 2',
      places: [{ element: '<gpu dev="1">' }],
      remedy: 'move one of the cards of GPU 0 to the switch of this GPU',
    });
  });

  it('cards that share the link of a switch without GPUs', () => {
    const card = (bus: string, dev: number) =>
      `<pci busid="0000:${bus}:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic><net name="n${dev}" dev="${dev}" speed="400000" gdr="1"/></nic></pci>`;
    const text = edited('gh200', [
      '</cpu>',
      `<pci busid="0000:70:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">${card('71', 1)}${card('72', 2)}</pci></cpu>`,
    ]);
    expect(find(examine(text), 'nic-shared-uplink')).toMatchObject({ consequence: 'together they move 48 instead of 96 GB/s' });
  });

  it('none at all', () => {
    expect(find(examine(edited('gh200', [/<pci busid="0001[\s\S]*?<\/pci>/, ''])), 'no-nic').severity).toBe('info');
  });
});

describe('CPUs', () => {
  it('NUMA -1', () => {
    const text = edited('pcie-2-l4', ['numaid="0"', 'numaid="-1"']);
    expect(find(examine(text), 'numa-unknown')).toMatchObject({
      severity: 'warning',
      consequence: expect.stringContaining('(about 16 GB/s)') as unknown,
    });
  });

  it('affinity empty, or left to NCCL', () => {
    expect(
      find(examine(edited('dgx-a100', [/affinity="[^"]*"/, 'affinity="00000000,00000000"'])), 'affinity-empty').severity,
    ).toBe('warning');
    expect(find(examine(edited('dgx-a100', [/affinity="[^"]*" /, ''])), 'affinity-empty').severity).toBe('info');
  });

  it('arch missing, which fails when some of the GPUs are used', () => {
    const text = edited('dgx-h100', [
      /(numaid="1" affinity="[^"]*") arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"/,
      '$1',
    ]);
    const findings = examine(text);
    expect(find(findings, 'cpu-arch-missing')).toMatchObject({
      problem: 'arch missing',
      remedy: 'add arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"',
      consequence: expect.stringContaining('Attribute arch of node cpu not found') as unknown,
      places: [{ element: '<cpu numaid="1">', line: lineOf(text, 'numaid="1"') }],
    });
    expect(find(findings, 'nccl-fails').problem).toContain('attribute arch is missing');
  });

  it('a vendor that NCCL does not know, as RCCL writes AMD', () => {
    expect(find(examine(edited('dgx-a100', [/vendor="AuthenticAMD"/g, 'vendor="AMD"'])), 'cpu-unknown')).toMatchObject({
      consequence: 'NCCL takes the link between sockets for 5000 GB/s, where it has about 16, and prefers paths across it',
      gbps: { is: 5000, couldBe: 16 },
    });
  });
});

describe('NVLink', () => {
  it('missing on one GPU, as seen on a rack', () => {
    const text = edited('gb300-tray', [/(<gpu dev="1"[^>]*>)\s*<nvlink [^>]*\/>/, '$1']);
    expect(find(examine(text), 'nvlink-unequal')).toMatchObject({
      severity: 'error',
      problem: 'it has no NVLink, GPU 0 of the same kind has 18',
      places: [{ element: '<gpu dev="1">' }],
      gbps: { couldBe: 721.7999877929688 },
      consequence: expect.stringContaining('NVLink SHARP is off for all') as unknown,
    });
  });

  it('fewer than others have', () => {
    const text = edited('dgx-h100', [/(<gpu dev="5"[^>]*>\s*<nvlink target="[^"]*" count=)"5"/, '$1"1"']);
    expect(find(examine(text), 'nvlink-unequal')).toMatchObject({
      severity: 'warning',
      problem: 'it has 14 NVLinks, GPU 0 of the same kind has 18',
    });
  });

  it('fewer than the model has, on all GPUs', () => {
    const text = edited('dgx-a100', [/count="2"/g, 'count="1"']);
    expect(find(examine(text), 'nvlink-missing')).toMatchObject({
      problem: 'it has 6 NVLinks in the file, and A100 SXM has 12',
      consequence: '120 instead of 240 GB/s over NVLink',
    });
  });

  it('in one direction only', () => {
    const text = edited('dgx-1v', [/(<gpu dev="0"[\s\S]*?target="0000:0a:00.0" count=)"2"/, '$1"1"']);
    expect(find(examine(text), 'nvlink-one-way')).toMatchObject({
      problem: '2 NVLinks to GPU 0, 1 back',
      consequence: 'GPU 0 sends to GPU 4 with 20 instead of 40 GB/s',
    });
  });

  it('without another end, where NCCL would fail to compute paths', () => {
    const text = edited('dgx-1v', ['target="0000:0a:00.0"', 'target="0000:ee:00.0"']);
    const findings = examine(text);
    expect(find(findings, 'impossible')).toMatchObject({
      severity: 'error',
      places: [{ line: lineOf(text, '0000:ee:00.0') }],
      problem: expect.stringContaining('is an NVLink to nowhere') as unknown,
    });
    expect(find(findings, 'nccl-fails').problem).toContain('there is none back');
    expect(find(findings, 'nvlink-gpu-absent')).toBeDefined();
  });

  it('to a GPU that the file does not name', () => {
    const text = edited('hgx-a100-4', [/<pci busid="0000:05:00.0"[\s\S]*?<\/pci>/, '']);
    const found = find(examine(text), 'nvlink-gpu-absent');
    expect(found).toMatchObject({ severity: 'info', consequence: 'NCCL leaves it out: 80 GB/s fewer' });
    expect(found.places.length).toBe(3);
  });

  it.skipIf(oracleMissing !== undefined)('to the GPU itself, as in the file of Azure NCv4', () => {
    expect(find(examine(oracleXml('real-azure-ncv4.n1')), 'nvlink-to-itself')).toMatchObject({ gbps: { is: 12, couldBe: 240 } });
  });

  it('no C2C on a chip that has it', () => {
    expect(find(examine(edited('gh200', [/\s*<c2c [^>]*\/>/, ''])), 'c2c-missing').consequence).toBe(
      'it reaches its CPU with 48 instead of 447.1 GB/s',
    );
  });
});

describe('devices', () => {
  it.skipIf(oracleMissing !== undefined)('hidden behind a NIC, as in a file of a cloud', () => {
    const findings = examine(oracleXml('real-modal-b200-v4.n1'));
    expect(find(findings, 'devices-hidden')).toMatchObject({ severity: 'error' });
    expect(find(findings, 'nccl-fails').severity).toBe('error');
  });

  it.skipIf(oracleMissing !== undefined)('with one bus id, as in files of RCCL', () => {
    expect(find(examine(oracleXml('real-rccl-4p4h.n1')), 'bus-id-twice').severity).toBe('warning');
  });

  it('with one number', () => {
    expect(
      find(examine(edited('dgx-a100', [/name="mlx5_7" dev="7"/, 'name="mlx5_7" dev="0"'])), 'net-number-twice').problem,
    ).toMatch(/^network device 0 is on line \d+ too$/);
  });

  it('a GPU that no rank uses', () => {
    expect(find(examine(edited('pcie-2-l4', [' rank="1"', ''])), 'gpu-unused').places).toMatchObject([
      { element: '<gpu dev="1">' },
    ]);
  });

  it('a file that names GPUs and cards which are not there', () => {
    const findings = examine(edited('pcie-2-l4', [/0000:02:00.0/, '0000:42:00.0'], [/0000:03:00.0/, '0000:43:00.0']), {
      machine: machine('pcie-2-l4'),
    });
    expect(find(findings, 'gpu-not-there')).toMatchObject({
      severity: 'error',
      problem: 'the machine has no GPU at 0000:42:00.0; it has 0000:01:00.0 0000:02:00.0',
      places: [{ element: '<gpu dev="1">' }],
    });
    expect(find(findings, 'gpu-not-in-file').problem).toBe('GPU 1 of the machine, at 0000:02:00.0, has no place in the file');
    expect(find(findings, 'nic-not-there').problem).toBe('the machine has no network card at 0000:43:00.0');
    expect(diagnose(machine('dgx-h100'), { machine: machine('dgx-h100') })).toEqual([]);
  });

  it('a graph file for more GPUs than are used', () => {
    const graph = parseXml(
      '<graphs version="1"><graph id="0"><channel><gpu dev="0"/><gpu dev="0xa"/></channel></graph></graphs>',
    ).root;
    expect(
      find(diagnose(machine('pcie-2-l4'), { graph: { root: graph, fileName: 'graph.xml' } }), 'graph-gpu-not-there'),
    ).toMatchObject({
      problem: 'the graph file uses GPU 10, and the topology has GPU 0, GPU 1',
      places: [{ element: 'graph.xml: <gpu dev="0xa">', line: 1 }],
    });
  });
});

describe('the file', () => {
  it('parts that NCCL itself would refuse, ignore or misread', () => {
    const findings = examine(edited('gh200', [/^/, '<?xml version="1.0"?>\n'], ['numaid="0"', 'numaid="0"  numa="0"']));
    expect(find(findings, 'nccl-refuses')).toMatchObject({
      severity: 'error',
      places: [{ element: 'the text', line: 1, column: 1 }],
    });
    expect(findings.filter(({ code }) => code === 'nccl-misreads').map(({ severity }) => severity)).toEqual(['warning', 'info']);
  });

  it('impossible machines', () => {
    expect(find(examine(edited('pcie-2-l4', [/0000:02:00.0/, '0000:01:00.0'])), 'impossible').problem).toContain(
      'is a second GPU of this bus id',
    );
    expect(examine('<graphs version="1"/>').map(({ code }) => code)).toEqual(['impossible']);
  });

  it('a skeleton without findings', () => {
    const findings = examine(
      '<system version="1"><cpu numaid="0" affinity="ff" arch="arm64"><pci busid="0000:01:00.0" class="0x030200"/></cpu></system>',
    );
    expect(findings.map(({ code, severity }) => [code, severity])).toEqual([
      ['skeleton', 'info'],
      ['no-nic', 'info'],
    ]);
  });

  it('with more NUMA nodes than NCCL can link', () => {
    const text = `<system version="1">${Array.from(
      { length: 580 },
      (_, node) =>
        `<cpu numaid="${node}" affinity="1" arch="arm64">${
          node > 0
            ? ''
            : '<pci busid="0000:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>'
        }</cpu>`,
    ).join('')}</system>`;
    expect(find(examine(text), 'nccl-fails').problem).toBe('<system> (line 1): NCCL has room for 576 links of one node only');
  });

  it('without a CPU', () => {
    expect(find(examine('<system version="1"/>'), 'nccl-fails').problem).toContain('no <cpu> in it');
  });

  it('with too many devices', () => {
    const text = `<system version="1"><cpu numaid="0" arch="arm64">${'<pci busid="0000:01:00.0"/>'.repeat(5001)}</cpu></system>`;
    expect(find(examine(text), 'impossible').problem).toBe('it has 5001 PCI devices, 0 network devices and 1 CPUs');
  });

  it('merges equal findings about many elements', () => {
    const found = examine(edited('dgx-2', [/link_speed="8.0 GT\/s PCIe"/g, 'link_speed="8.0"'])).filter(
      ({ code }) => code === 'link-speed-unknown',
    );
    expect(found.map(({ places }) => places.length)).toEqual([36]);
  });

  it('lists the worst first', () => {
    const findings = examine(edited('gb300-tray', [/<nvlink [^>]*\/>/, ''], ['affinity=', 'affinty=']));
    expect(findings.map(({ severity }) => severity)).toEqual(['error', 'info', 'info']);
  });
});

describe('cards and ports', () => {
  const codes = (text: string, options: DiagnoseOptions = {}) => examine(text, options).map(({ code }) => code);
  const secondPort =
    '<net name="mlx5_1" dev="1" latency="0" speed="SPEED" port="2" guid="0x98039b0300010000" maxconn="131072" gdr="1" net="1"/>';
  const twoPorts = (first: number, second: number) =>
    edited('gh200', [/speed="\d+"(.*\/>)/, `speed="${first}" $1${secondPort.replace('SPEED', String(second))}`]);

  it('share a slot that carries one of two ports', () => {
    const finding = find(examine(twoPorts(400_000, 400_000)), 'nic-slot-shared');
    expect(finding).toMatchObject({ severity: 'warning', gbps: { is: 48, couldBe: 100 } });
    expect(codes(twoPorts(200_000, 200_000))).not.toContain('nic-slot-shared');
    for (const name of ['oci-h100', 'oci-a100', 'dgx-h100-storage', 'dgx-a100', 'aws-p5'])
      expect(codes(writeXml(machine(name))), name).not.toContain('nic-slot-shared');
  });

  it('count as one port in a bond', () => {
    const finding = find(examine(edited('gh200', [/mlx5_0/, 'mlx5_bond_0'], [/speed="400000"/, 'speed="200000"'])), 'nic-bonded');
    expect(finding).toMatchObject({ severity: 'info', gbps: { is: 25, couldBe: 48 } });
    const known = machine('gh200');
    for (const element of descendants(known)) {
      if (element.name !== 'net') continue;
      element.attributes.set('speed', '200000').set('carries', '400000');
    }
    expect(find(diagnose(known), 'nic-bonded')).toMatchObject({ severity: 'warning', gbps: { is: 25, couldBe: 48 } });
    expect(codes(writeXml(machine('gh200')))).not.toContain('nic-bonded');
  });

  it('are merged, and the slower one decides', () => {
    const finding = find(examine(twoPorts(200_000, 100_000)), 'nics-merged-unequal');
    expect(finding).toMatchObject({ severity: 'warning', gbps: { is: 25, couldBe: 37.5 } });
    expect(codes(twoPorts(200_000, 200_000))).not.toContain('nics-merged-unequal');
    const { parameters } = parametersFromEnvironment({ NCCL_NET_MERGE_LEVEL: 'LOC' });
    expect(codes(twoPorts(200_000, 100_000), { parameters })).not.toContain('nics-merged-unequal');
  });

  it('are halves on a DGX Spark', () => {
    const half = writeXml(machine('dgx-spark')).replace(/<pci busid="0002:01:00.0"[\s\S]*?<\/pci>/, '');
    expect(find(examine(half), 'nic-half-port')).toMatchObject({ severity: 'warning', gbps: { is: 12, couldBe: 24 } });
    expect(codes(writeXml(machine('dgx-spark')))).not.toContain('nic-half-port');
  });

  it('hang at CPUs where a virtual machine hides the switches', () => {
    const root = machine('dgx-h100');
    for (const cpu of root.children) {
      const ends = [...descendants(cpu)].filter((pci) => pci.name === 'pci' && !pci.children.some(({ name }) => name === 'pci'));
      cpu.children.splice(0, cpu.children.length, ...ends);
    }
    expect(find(examine(writeXml(root)), 'pci-hidden')).toMatchObject({ severity: 'warning', gbps: { is: 200, couldBe: 400 } });
    for (const name of ['dgx-h100', 'perlmutter', 'gb200-tray', 'pcie-8-l40s', 'azure-nd-h100-v5'])
      expect(codes(writeXml(machine(name))), name).not.toContain('pci-hidden');
  });

  it('are more than NCCL has room for on hosts with 32 of them', () => {
    const sparse = [...Array(32).keys()]
      .map(
        (nic) =>
          `<pci busid="0000:e0:${nic.toString(16).padStart(2, '0')}.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"><nic><net name="rdmap${nic}s0" dev="${nic + 8}" speed="100000" port="1" guid="0x${nic + 9}" maxconn="1024" gdr="1"/></nic></pci>`,
      )
      .join('');
    const crowded = edited('dgx-h100', [/<\/cpu>/, `${sparse}</cpu>`]);
    expect(find(examine(crowded), 'xml-nodes')).toMatchObject({ severity: 'info', gbps: { is: 0, couldBe: 800 } });
    expect(find(examine(writeXml(machine('aws-p5'))), 'xml-nodes').problem).toContain('32 NICs');
    for (const name of ['dgx-h100', 'aws-p5en', 'dgx-2', 'gb200-nvl72', 'dgx-b300'])
      expect(codes(writeXml(machine(name))), name).not.toContain('xml-nodes');
  });
});
