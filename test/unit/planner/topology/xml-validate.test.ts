import { describe, expect, it } from 'vitest';
import { inFile } from '../../../../src/errors.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { validateTopology } from '../../../../src/planner/topology/xml/validate.js';
import { oracleMissing, oracleXml, oracleXmls } from './oracle-files.js';
import { inputError } from './input-error.js';

const link = 'class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16"';
const gpu = (busId: string, rank: number, links = '') =>
  `<pci busid="${busId}" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">\n<gpu dev="${rank}" sm="80" rank="${rank}" gdr="1">${links}</gpu></pci>`;
const nvlink = (target: string, tclass = '0x030200') => `<nvlink target="${target}" count="1" tclass="${tclass}"/>`;
const system = (inside: string) => `<system version="1">\n<cpu numaid="0" arch="arm64">\n${inside}\n</cpu></system>`;
const validate = (text: string) => {
  inFile('topo.xml', () => {
    validateTopology(parseXml(text).root);
  });
};

describe('an impossible topology', () => {
  it.each([
    [
      'a cycle by bus ids',
      system(
        `<pci busid="0000:01:00.0" ${link}>\n<pci busid="0000:02:00.0" ${link}>\n<pci busid="0000:01:00.0" ${link}/></pci></pci>`,
      ),
      '<pci busid="0000:01:00.0"> (line 5) is below a device of the same bus id: the tree would have a cycle',
    ],
    [
      'two GPUs at one bus id',
      system(`${gpu('0000:01:00.0', 0)}\n${gpu('0000:01:00.0', 1)}`),
      '<pci busid="0000:01:00.0"> (line 5) is a second GPU of this bus id; the first is on line 3',
    ],
    [
      'one bus id written in two ways',
      system(`${gpu('0000:0A:00.0', 0)}\n${gpu('0000:0a:00.0', 1)}`),
      '<pci busid="0000:0a:00.0"> (line 5) is a second GPU of this bus id; the first is on line 3',
    ],
    [
      'one rank for two GPUs',
      system(`${gpu('0000:01:00.0', 3)}\n${gpu('0000:02:00.0', 3)}`),
      '<gpu dev="3"> (line 6) has rank 3, as the GPU on line 4 has',
    ],
    [
      'a bus id that is none',
      system(gpu('first slot', 0)),
      '<pci busid="first slot"> (line 3) busid="first slot" is no bus id; write domain:bus:device.function in hexadecimal, as 0000:1b:00.0',
    ],
    [
      'an NVLink to nowhere',
      system([gpu('0000:01:00.0', 0, nvlink('0000:77:00.0')), gpu('0000:02:00.0', 1, nvlink('0000:01:00.0'))].join('\n')),
      '<nvlink target="0000:77:00.0"> (line 4) is an NVLink to nowhere: no GPU has this bus id, and ' +
        '<pci busid="0000:02:00.0"> (line 5) has a link to this GPU that nothing answers',
    ],
    [
      'an NVLink to a network card',
      system(`${gpu('0000:01:00.0', 0, nvlink('0000:02:00.0'))}<pci busid="0000:02:00.0" class="0x020000"/>`),
      '<nvlink target="0000:02:00.0"> (line 4) leads to no GPU, but to <pci busid="0000:02:00.0"> (line 4)',
    ],
    ['a graph in its place', '<graphs version="1"/>', '<graphs> (line 1) is no topology: its root must be <system>'],
  ])('%s', (_name, text, message) => {
    const error = inputError(() => {
      validate(text);
    });
    expect([error.code, error.message, error.file]).toEqual(['CONTENT', message, 'topo.xml']);
    expect(error.line).toBe(Number(/line (\d+)/.exec(message)?.[1]));
  });

  it.each([
    ['<pci busid="0000:01:00.0" link_width="4096"/>', 'link_width="4096" is out of range; it can be 0 to 255'],
    [
      '<pci busid="0000:01:00.0" link_width="99999999999999999999"/>',
      'link_width="99999999999999999999" is out of range; it can be 0 to 255',
    ],
    ['<pci busid="0000:01:00.0" vendor="0x1000000000"/>', 'vendor="0x1000000000" is out of range; it can be 0 to 4294967295'],
    ['<nic><net dev="0" speed="99999999999"/></nic>', 'speed="99999999999" is out of range; it can be -1 to 2147483647'],
    ['<nic><net dev="-7"/></nic>', 'dev="-7" is out of range; it can be -1 to 65535'],
    ['<nic><net dev="0" latency="-1.5"/></nic>', 'latency="-1.5" is no time in microseconds'],
    ['<nic><net dev="0" latency="nan"/></nic>', 'latency="nan" is no time in microseconds'],
    ['<nic><net dev="0" latency="1e999"/></nic>', 'latency="1e999" is no time in microseconds'],
    [
      '<nic><net dev="0" guid="0x123456789abcdef01"/></nic>',
      'guid="0x123456789abcdef01" is out of range; it can be 0 to 18446744073709551615',
    ],
    [gpu('0000:01:00.0', 0, '<c2c bw="44712" count="-5"/>'), 'count="-5" is out of range; it can be 0 to 1024'],
    [
      '<pci busid="0000:01:00.0"><gpu dev="0" rank="4000000000"/></pci>',
      'rank="4000000000" is out of range; it can be -1 to 2147483647',
    ],
  ])('numbers out of range: $1', (inside, problem) => {
    expect(
      inputError(() => {
        validate(system(inside));
      }).message,
    ).toContain(problem);
  });
});

describe('peculiarities of real files are accepted', () => {
  it.each([
    ['switches that share a bus id', `<pci busid="0000:01:00.0" ${link}/><pci busid="0000:01:00.0" ${link}/>`],
    [
      'a NIC with the bus id of a switch',
      `<pci busid="0000:01:00.0" ${link}/><pci busid="0000:01:00.0" class="0x020000"><nic/></pci>`,
    ],
    [
      'NVLinks to GPUs that were trimmed',
      gpu('0000:01:00.0', 0, nvlink('0000:02:00.0')) + gpu('0000:03:00.0', 1, nvlink('0000:04:00.0')),
    ],
    ['an NVLink of a GPU to itself', gpu('0000:01:00.0', 0, nvlink('0000:01:00.0'))],
    ['a hidden NVSwitch', gpu('0000:01:00.0', 0, nvlink('fffffff:ffff:ff', '0x068000'))],
    ['two ranks on one GPU', '<pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" rank="0"/><gpu dev="0" rank="1"/></pci>'],
    ['a skeleton', '<pci busid="0000:01:00.0"/>'],
    [
      'unknown width, speed and NUMA node',
      '<pci busid="0000:01:00.0" link_width=""/><nic><net name="eth0" speed="-1" port="0" guid="0x0"/></nic>',
    ],
  ])('%s', (_name, inside) => {
    expect(() => {
      validate(system(inside));
    }).not.toThrow();
  });

  it('the same bus ids on two hosts', () => {
    const host = (hash: string, rank: number) =>
      `<cpu host_hash="${hash}" numaid="0" arch="arm64">${gpu('0000:01:00.0', rank)}</cpu>`;
    expect(() => {
      validate(`<system version="1">${host('0x1', 0)}${host('0x2', 1)}</system>`);
    }).not.toThrow();
  });
});

describe.skipIf(oracleMissing !== undefined)('recorded files', () => {
  it('are possible', () => {
    for (const { name, text } of oracleXmls('topo')) {
      expect(() => {
        validateTopology(parseXml(text).root);
      }, name).not.toThrow();
    }
  });

  it('with one wrong NVLink are not', () => {
    const text = oracleXml('dgx1v.n1').replace('target="0000:0f:00.0"', 'target="0000:ff:00.0"');
    expect(
      inputError(() => {
        validate(text);
      }).message,
    ).toContain('is an NVLink to nowhere');
  });
});
