import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inFile, TcclError } from '../../../../src/errors.js';
import { diagnose } from '../../../../src/planner/topology/doctor/diagnose.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { validateTopology } from '../../../../src/planner/topology/xml/validate.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { oracleXmls } from './oracle-files.js';
import { runs } from '../../../runs.js';
import { anyCharacter } from '../../any-character.js';

/** A file with every kind of element, where no recorded files are available. */
const made = `<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1" host_hash="0x1">
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc030" link_speed="32.0 GT/s PCIe" link_width="16">
      <pcilink target="0000:04:00.0"/>
      <pci busid="0000:02:00.0" class="0x030200" link_speed="" link_width="0">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:c0:00.0" count="18" tclass="0x068000"/>
          <c2c bw="44712" count="10"/>
        </gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" latency="2.5" speed="400000" port="1" guid="0x98039b0300010000" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
</system>
`;

const recorded = oracleXmls('')
  .filter(({ text }) => text.length < 20_000)
  .map(({ text }) => text);
const texts = fc.constantFrom(made, ...recorded.slice(0, 60));

/** Damages to a file by a user, a script or a bad disk. Places are shares of its length. */
const share = fc.double({ min: 0, max: 1, noNaN: true });
const snippet = fc.constantFrom(
  '<',
  '>',
  '"',
  "'",
  '&',
  '/',
  '=',
  '</',
  '<!--',
  '-->',
  '<![CDATA[',
  ']]>',
  '<?xml version="1.0"?>',
  '<!DOCTYPE x [',
  '\t',
  '\n',
  '\r',
  '\u0000',
  '\uFEFF',
  '\uD800',
  '\u{1F600}',
  '&lt;',
  '&#0;',
  '&#x110000;',
  '<pci>',
  '</pci>',
  '<gpu/>',
  'rank="0"',
  ' rank="-1" ',
  '99999999999999999999',
  '-1',
  '0x',
  '1e999',
  'NaN',
);
const mutation = fc.oneof(
  fc.record({ kind: fc.constant('cut' as const), at: share }),
  fc.record({
    kind: fc.constant('insert' as const),
    at: share,
    what: fc.oneof(snippet, fc.string({ maxLength: 5, unit: anyCharacter })),
  }),
  fc.record({ kind: fc.constant('delete' as const), at: share, length: fc.nat(200) }),
  fc.record({ kind: fc.constant('repeat' as const), at: share, length: fc.nat(400), times: fc.integer({ min: 2, max: 20 }) }),
  fc.record({ kind: fc.constant('number' as const), at: share, what: fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }) }),
);

function mutate(text: string, mutations: readonly (typeof mutation extends fc.Arbitrary<infer M> ? M : never)[]): string {
  let result = text;
  for (const step of mutations) {
    const at = Math.floor(step.at * result.length);
    const before = result.slice(0, at);
    const after = result.slice(at);
    if (step.kind === 'cut') result = before;
    else if (step.kind === 'insert') result = before + step.what + after;
    else if (step.kind === 'delete') result = before + after.slice(step.length);
    else if (step.kind === 'number') result = before + after.replace(/"[^"<>]*"/, `"${step.what}"`);
    else result = before + after.slice(0, step.length).repeat(step.times) + after.slice(step.length);
  }
  return result;
}

describe('mutated files', () => {
  it('never make the doctor throw', () => {
    fc.assert(
      fc.property(texts, fc.array(mutation, { minLength: 1, maxLength: 3 }), (text, mutations) => {
        let parsed;
        try {
          parsed = parseXml(mutate(text, mutations));
        } catch {
          return;
        }
        for (const { code, consequence, remedy } of diagnose(parsed.root, { notes: parsed.notes }))
          expect([code, consequence, remedy]).not.toContain('');
      }),
      { numRuns: runs(80, 150) },
    );
  });

  it('are read or refused with an error of ours, and written in a stable form', () => {
    fc.assert(
      fc.property(texts, fc.array(mutation, { minLength: 1, maxLength: 5 }), (text, mutations) => {
        let root;
        try {
          root = parseXml(mutate(text, mutations), { fileName: 'fuzz.xml' }).root;
        } catch (error) {
          expectOurs(error);
          return;
        }
        const written = writeXml(root);
        expect(writeXml(parseXml(written).root)).toBe(written);
        try {
          inFile('fuzz.xml', () => {
            validateTopology(root);
          });
        } catch (error) {
          expectOurs(error);
        }
      }),
      { numRuns: runs(150, 400) },
    );
  });
});

function expectOurs(error: unknown): void {
  expect(error).toBeInstanceOf(TcclError);
  const { file, line, message } = error as TcclError;
  expect(file).toBe('fuzz.xml');
  expect(line).toBeGreaterThan(0);
  expect(message).not.toContain('\n');
}
