import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../../../src/errors.js';
import { parseClusterFile } from '../../../../src/planner/plan/cluster-file.js';
import { splitCount } from '../../../../src/planner/plan/cluster-text.js';
import { runs } from '../../../runs.js';

/** `line:column: message` of what is wrong with the text. */
function complaint(text: string): string {
  try {
    parseClusterFile(text);
  } catch (error) {
    if (error instanceof InputError) return `${error.line ?? '?'}:${error.column ?? '?'}: ${error.message}`;
    throw error;
  }
  throw new Error('nothing is wrong with it');
}

describe('a cluster file', () => {
  it('has the kind of network', () => {
    expect(parseClusterFile('machines: dgx-h100:2').network).toBeUndefined();
    expect(parseClusterFile('machines: dgx-h100:2\nnetwork: tcpx').network).toBe('tcpx');
    expect(complaint('machines: dgx-h100\nnetwork: tcp')).toBe(
      "2:1: no network 'tcp'; did you mean tcpx? (there are verbs, infiniband, roce, efa, efa-v1, slingshot, sockets, tcpx)",
    );
  });

  it('has the windows that buffers of calls lie in', () => {
    const windowsIn = (text: string) => parseClusterFile(`machines: dgx-h100:2\n${text}`).windows;
    expect([windowsIn(''), windowsIn('windows: symmetric'), windowsIn('windows: receive')]).toEqual([
      undefined,
      'both',
      'receive',
    ]);
    expect(complaint('machines: dgx-h100\nwindows: symetric')).toBe(
      "2:1: no windows 'symetric'; did you mean symmetric? (there are symmetric, none, send, receive, both)",
    );
  });

  it('has machines in the order of their ranks, and an environment', () => {
    const { name, machines, environment } = parseClusterFile(
      [
        'name: training',
        'machines:',
        '  - machine: dgx-h100',
        '    count: 4',
        '    name: rack A',
        '    overrides: { gpus: [0, 2], nics: 4, nic-speed: 200G, nic-carries: 400G, sharp: true, p2p: false }',
        '  - hgx-a100-4:2',
        '  - machine: skeleton.xml',
        '    hardware: { gpus: { model: H100 SXM, count: 8 } }',
        'environment:',
        '  NCCL_CROSS_NIC: 0',
        '  NCCL_P2P_LEVEL: PIX',
        '  NCCL_BUFFSIZE: 0x100000',
      ].join('\n'),
    );
    expect(name).toBe('training');
    expect(machines).toMatchObject([
      {
        machine: 'dgx-h100',
        count: 4,
        name: 'rack A',
        hardware: undefined,
        overrides: { gpus: [0, 2], nics: 4, nicSpeedMbps: 200_000, nicCarriesMbps: 400_000, sharp: true, p2p: false },
      },
      { machine: 'hgx-a100-4', count: 2, name: undefined, hardware: undefined, overrides: {} },
      { machine: 'skeleton.xml', count: 1, name: undefined, hardware: '{"gpus":{"model":"H100 SXM","count":8}}', overrides: {} },
    ]);
    expect(environment).toEqual({ NCCL_CROSS_NIC: '0', NCCL_P2P_LEVEL: 'PIX', NCCL_BUFFSIZE: '0x100000' });
  });

  it('may be JSON, or only the name of a machine', () => {
    expect(parseClusterFile('{"machines": [{"machine": "gh200", "count": 3}]}').machines[0]).toMatchObject({
      machine: 'gh200',
      count: 3,
    });
    expect(parseClusterFile('machines: dgx-h100:16').machines[0]).toMatchObject({ machine: 'dgx-h100', count: 16 });
  });

  it('may have anchors and aliases', () => {
    const { machines } = parseClusterFile('machines:\n  - &one { machine: gh200, count: 2 }\n  - dgx-h100\n  - *one\n');
    expect(machines.map(({ machine, count }) => `${count} ${machine}`)).toEqual(['2 gh200', '1 dgx-h100', '2 gh200']);
  });

  it.each([
    ['machines:\n  - machine: dgx-h100\n    cuont: 4', '3:5: machines[0] has no field cuont; did you mean count?'],
    ['machine: dgx-h100', '1:1: the cluster file has no field machine; did you mean machines?'],
    ['name: x', '1:1: the cluster file has no machines; write machines: [{ machine: dgx-h100, count: 2 }]'],
    ['machines: []', '1:1: the list of machines is empty; write machines: [{ machine: dgx-h100, count: 2 }]'],
    ['machines:\n  - count: 2', '2:5: an entry of machines has no field machine: a name of the catalogue or a topology file'],
    ['machines: [{ machine: gh200, count: two }]', '1:30: count is "two"; it has to be a whole number from 1 to 1000000'],
    ['machines: [{ machine: gh200, count: 0 }]', '1:30: count is 0; it has to be a whole number from 1 to 1000000'],
    [
      'machines: gh200\nenvironment:\n  NCCL_CROS_NIC: 0',
      '3:3: NCCL has no variable NCCL_CROS_NIC; did you mean NCCL_CROSS_NIC?',
    ],
    ['machines: gh200\nenvironment:\n  CROSS_NIC: 0', '3:3: NCCL has no variable CROSS_NIC; did you mean NCCL_CROSS_NIC?'],
    ['machines: [{ machine: gh200, overrides: { nic-speed: fast } }]', '1:43: nic-speed is "fast"; it has to be a speed as 400G'],
    ['machines: [{ machine: gh200, overrides: { sharp: perhaps } }]', '1:43: sharp is "perhaps"; it has to be true or false'],
    ['just a text', '1:1: the cluster file is "just a text"; it has to be a mapping (name: value)'],
    ['', '1:1: the cluster file is empty; it has to be a mapping (name: value)'],
  ])('%j is refused with its place and a remedy', (text, expected) => {
    expect(complaint(text)).toBe(expected);
  });

  it('that is no YAML is refused with the line', () => {
    expect(complaint('machines: [\n')).toMatch(/^\d+:\d+: the cluster file is no YAML or JSON: /);
    expect(complaint('name: a\nname: b\n')).toMatch(/^2:1: the cluster file has the field name twice/);
  });
});

describe('any text', () => {
  const pieces = [
    'machines',
    'machine',
    'count',
    'overrides',
    'gpus',
    'environment',
    'NCCL_ALGO',
    'hardware',
    ': ',
    ':',
    '- ',
    '\n',
    '\n  ',
    '\n    ',
    '{',
    '}',
    '[',
    ']',
    ',',
    '&a ',
    '*a',
    '"',
    '4',
    '-1',
    'dgx-h100',
    '!!x ',
    '? ',
    '---\n',
  ];

  it('is a cluster file or an InputError with a place', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 3 })), { maxLength: 30 }), (parts) => {
        const text = parts.join('');
        try {
          expect(parseClusterFile(text).machines.length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
          expect((error as InputError).line).toBeGreaterThan(0);
        }
      }),
      { numRuns: runs(500, 1500) },
    );
  });

  it.each([
    ['a value that holds itself', 'machines: [{ machine: gh200, hardware: &a { gpus: *a } }]', /without such references/],
    ['a list that holds itself', 'machines: &a [*a]', /has to be a mapping/],
    ['brackets without end', '['.repeat(10_000), /nested too deeply|no YAML or JSON/],
    ['tens of thousands of fields', Array.from({ length: 60_000 }, (_, index) => `k${index}: 0\n`).join(''), /has no field k0/],
    ['a field twice', 'machines: gh200\nname: a\nname: b', /has the field name twice/],
    ['more than anybody writes', '#'.repeat(2 ** 20 + 1), /more than 1 MiB/],
  ])('%s is refused', (_, text, message) => {
    expect(() => parseClusterFile(text)).toThrow(InputError);
    expect(() => parseClusterFile(text)).toThrow(message);
  });
});

describe('a name with a count', () => {
  it.each([
    ['dgx-h100:4', { name: 'dgx-h100', count: 4 }],
    ['a/b.xml:16', { name: 'a/b.xml', count: 16 }],
    ['dgx-h100', { name: 'dgx-h100', count: undefined }],
    ['c:0', { name: 'c:0', count: undefined }],
  ])('%s', (text, expected) => {
    expect(splitCount(text)).toEqual(expected);
  });
});
