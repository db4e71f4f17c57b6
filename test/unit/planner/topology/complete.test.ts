import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../../../src/errors.js';
import { completeSkeleton, isSkeleton } from '../../../../src/planner/topology/catalogue/complete.js';
import { parseHardware } from '../../../../src/planner/topology/catalogue/hardware.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { childNamed, descendants, detach, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { inputError } from './input-error.js';
import { oracleMissing, oracleXml } from './oracle-files.js';

/** Two places for GPUs and one for a card, as clouds ship it. */
const skeleton = parseXml(`<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0002:00:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8"/>
      <pci busid="0001:00:00.0" class="0x030200"/>
      <pci busid="0101:00:00.0" class="0x020700"/>
    </pci>
  </cpu>
</system>`).root;

const complete = (root: XmlElement, text: string) => completeSkeleton(root, parseHardware(text));
const named = (root: XmlElement, name: string) => [...descendants(root)].filter((element) => element.name === name);
const attributes = (element: XmlElement | undefined) => Object.fromEntries(element?.attributes ?? []);

describe('completing a skeleton', () => {
  it('puts devices into the places of the file, in the order of bus ids', () => {
    const { root, notes } = complete(skeleton, '2 x A100 SXM, 1 x 200G NIC');
    expect(notes).toEqual([]);
    expect(named(root, 'gpu').map((gpu) => [gpu.parent?.attributes.get('busid'), attributes(gpu)])).toEqual([
      ['0002:00:00.0', { dev: '1', sm: '80', rank: '1', gdr: '1' }],
      ['0001:00:00.0', { dev: '0', sm: '80', rank: '0', gdr: '1' }],
    ]);
    expect(attributes(named(root, 'net')[0])).toMatchObject({
      name: 'mlx5_0',
      dev: '0',
      speed: '200000',
      port: '1',
      gdr: '1',
      net: '1',
    });
  });

  it('sets only what the file does not have', () => {
    const { root } = complete(skeleton, '2 x A100 SXM');
    const [first, second] = named(root, 'pci').slice(1);
    expect(attributes(first)).toMatchObject({ link_width: '8', vendor: '0x10de', device: '0x20b2' });
    expect(attributes(second)).toMatchObject({ link_width: '16', link_speed: '16.0 GT/s PCIe' });
  });

  it('leaves the given tree unchanged', () => {
    const before = writeXml(skeleton);
    complete(skeleton, '2 x A100 SXM, 1 x 200G NIC');
    expect(writeXml(skeleton)).toBe(before);
  });

  it('follows the bus ids of the description', () => {
    const { root } = complete(skeleton, '1 x L4 at 0002:00:00.0');
    expect(named(root, 'gpu').map((gpu) => gpu.parent?.attributes.get('busid'))).toEqual(['0002:00:00.0']);
  });

  it('joins GPUs by NVSwitch, in pairs, or link by link', () => {
    const links = (text: string) =>
      named(complete(skeleton, text).root, 'nvlink').map((link) => [link.attributes.get('target'), link.attributes.get('count')]);
    expect(links('2 x H100 SXM')).toEqual([
      ['fffffff:ffff:ff', '18'],
      ['fffffff:ffff:ff', '18'],
    ]);
    expect(links('2 x A6000 with nvlink pairs')).toEqual([
      ['0001:00:00.0', '4'],
      ['0002:00:00.0', '4'],
    ]);
    expect(links('gpus: {model: V100 SXM, count: 2, nvlink: [[0, 2], [2, 0]]}')).toEqual([
      ['0001:00:00.0', '2'],
      ['0002:00:00.0', '2'],
    ]);
    expect(links('2 x L40S')).toEqual([]);
  });

  it('refuses NVLinks whose ends are unknown', () => {
    expect(complete(skeleton, '2 x V100 SXM').notes).toEqual([
      expect.stringContaining('V100 SXM has 6 NVLinks, but what they join differs by machine'),
    ]);
  });

  it('fills in the CPU', () => {
    const bare = parseXml('<system version="1"><cpu numaid="0"/></system>').root;
    expect(attributes(complete(bare, 'Sapphire Rapids').root.children[0])).toEqual({
      numaid: '0',
      arch: 'x86_64',
      vendor: 'GenuineIntel',
      familyid: '6',
      modelid: '143',
    });
  });

  it('without a description gives ranks only, in the order of dev', () => {
    const root = parseXml(
      '<system version="1"><cpu numaid="0"><pci busid="1"><gpu dev="1" sm="80" gdr="0"/></pci><pci busid="2"><gpu dev="0" sm="80" gdr="1"/></pci></cpu></system>',
    ).root;
    expect(isSkeleton(root)).toBe(true);
    const completed = completeSkeleton(root).root;
    expect(isSkeleton(completed)).toBe(false);
    expect(named(completed, 'gpu').map((gpu) => [...gpu.attributes])).toEqual([
      [
        ['dev', '1'],
        ['sm', '80'],
        ['rank', '1'],
        ['gdr', '0'],
      ],
      [
        ['dev', '0'],
        ['sm', '80'],
        ['rank', '0'],
        ['gdr', '1'],
      ],
    ]);
  });

  it('keeps the marks of a file with only some GPUs in use', () => {
    const root = parseXml(
      '<system version="1"><cpu numaid="0"><pci busid="1"><gpu dev="0" rank="0"/></pci><pci busid="2"><gpu dev="1"/></pci></cpu></system>',
    ).root;
    expect(completeSkeleton(root).notes).toEqual([
      '1 of 2 GPUs have no rank (the first: <gpu dev="1"> (line 1)): NCCL leaves them out',
    ]);
  });
});

describe('a description that does not fit', () => {
  it.each([
    ['3 x A100 SXM', '3 x A100 SXM: the file has places for 2 only (PCI devices of that class), at 0002:00:00.0 0001:00:00.0'],
    ['1 x A100 SXM', '1 x A100 SXM: the file has 2 places, at 0002:00:00.0 0001:00:00.0; say which, as in'],
    [
      '1 x A100 SXM at 0009:00:00.0',
      '1 x A100 SXM: the file has no PCI device at 0009:00:00.0; it has 0002:00:00.0 0001:00:00.0 0101:00:00.0',
    ],
    ['2 x A100 SXM at 0001:00:00.0', '2 x A100 SXM, but 1 bus ids; give one for each'],
    ['2 x L4 with nvlink pairs', 'L4 has no NVLink'],
    ['0 x L4', '0 x L4: a machine has 1 to 640 of them'],
    ['gpus: {model: L4, cuont: 2}', 'an entry of gpus has no field cuont'],
    ['gpus: {model: V100 SXM, count: 2, nvlink: [[0]]}', 'the NVLinks of 2 x V100 SXM must be 2 rows of 2 numbers'],
    ['gpus: [', 'the description of the hardware is no YAML'],
    ['nics: {speed: fast}', 'speed: "fast" is no speed; write 400G'],
    ['', 'the description of the hardware is empty'],
  ])('%s', (text, message) => {
    expect(inputError(() => complete(skeleton, text)).message).toContain(message);
  });

  it('names devices that the catalogue does not have', () => {
    expect(() => parseHardware('8 x RX 7900')).toThrow(InvalidArgumentError);
    expect(() => parseHardware('gpus: {model: h10, count: 8}')).toThrow(/no GPU is called "h10"/);
  });
});

describe('descriptions', () => {
  it.each([
    ['8 x H100 SXM, 8 x 400G NICs', 'h100-sxm*8 none | connectx-7*8@400000'],
    ['8x h100; 8x ConnectX-7', 'h100-sxm*8 none | connectx-7*8@400000'],
    ['4 x GB200 + 4 x 200 Gb/s ConnectX-7 NIC', 'gb200*4 none | connectx-7*4@200000'],
    ['32 x EFA', '| efa*32@100000'],
    ['gpus: {model: B200, count: 8}\nnics: {count: 8, speed: 400G}', 'b200*8 none | connectx-7*8@400000'],
    ['{"gpus": [{"model": "L4"}, {"model": "A10G", "count": 3}], "nics": []}', 'l4*1 none a10g*3 none |'],
    ['1 x 25G NIC', '| connectx-5*1@25000'],
    ['1 x 1600G NIC', '| connectx-9*1@1600000'],
  ])('%s', (text, summary) => {
    const { gpus, nics } = parseHardware(text);
    const said = [
      ...gpus.map(({ model, count }) => `${model.id}*${count} none`),
      '|',
      ...nics.map(({ model, count, speedMbps }) => `${model.id}*${count}@${speedMbps}`),
    ];
    expect(said.join(' ')).toBe(summary);
  });
});

describe.skipIf(oracleMissing !== undefined)('real cloud files', () => {
  /** A recorded file that was completed, taken back to what the cloud ships. */
  function bare(name: string): XmlElement {
    const { root } = parseXml(oracleXml(name));
    for (const element of [...named(root, 'gpu'), ...named(root, 'nic')]) detach(element);
    return root;
  }

  it('Azure NDv5 becomes the recorded input of NCCL', () => {
    const recorded = parseXml(oracleXml('real-azure-ndv5.n1')).root;
    const completed = complete(bare('real-azure-ndv5.n1'), '8 x H100 SXM, 8 x 400G NIC').root;
    const links = (root: XmlElement) => named(root, 'nvlink').map((link) => [...link.attributes]);
    const gpus = (root: XmlElement) =>
      named(root, 'gpu').map((gpu) => [
        gpu.parent?.attributes.get('busid'),
        [...gpu.attributes].filter(([key]) => key !== 'gdr'),
      ]);
    expect(links(completed)).toEqual(links(recorded));
    expect(gpus(completed).map(([busId, entries]) => [busId, Object.fromEntries(entries as [string, string][])])).toEqual(
      gpus(recorded).map(([busId, entries]) => [busId, Object.fromEntries(entries as [string, string][])]),
    );
    expect(named(completed, 'net').map((net) => net.parent?.parent?.attributes.get('busid'))).toEqual(
      named(recorded, 'net').map((net) => net.parent?.parent?.attributes.get('busid')),
    );
  });

  it('AWS p5 has 32 network devices', () => {
    const completed = complete(bare('real-aws-p5.n1'), '8 x H100 SXM, 32 x EFA').root;
    expect(named(completed, 'net').length).toBe(32);
    expect(childNamed(named(completed, 'nic')[0]!, 'net')?.attributes.get('maxconn')).toBe('1024');
  });
});

it('a machine of the catalogue is complete', () => {
  const root = machine('dgx-a100');
  expect(isSkeleton(root)).toBe(false);
  expect(writeXml(completeSkeleton(root).root)).toBe(writeXml(root));
});
