import { describe, expect, it } from 'vitest';
import { assignHost } from '../../../../src/planner/topology/build/build-system.js';
import { describeNote } from '../../../../src/planner/topology/xml/notes.js';
import { parseXml, xmlLimits } from '../../../../src/planner/topology/xml/parse.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { inputError } from './input-error.js';
import { oracleMissing, oracleXml, oracleXmls } from './oracle-files.js';

const notesOf = (text: string) => parseXml(text).notes.map((note) => describeNote(note));

describe('reading', () => {
  it('returns elements, attributes in order, and their places', () => {
    const { root, notes } = parseXml('<system version="1">\n  <cpu numaid="0" arch="x86_64"/>\n</system>\n');
    const cpu = root.children[0]!;
    expect(notes).toEqual([]);
    expect([root.name, root.line, root.column]).toEqual(['system', 1, 1]);
    expect([cpu.name, cpu.line, cpu.column, cpu.parent]).toEqual(['cpu', 2, 3, root]);
    expect([...cpu.attributes]).toEqual([
      ['numaid', '0'],
      ['arch', 'x86_64'],
    ]);
  });

  it('reads single quotes and comments, as NCCL does', () => {
    const { root, notes } = parseXml("<!-- made by hand -->\n<system version='1'><!--x--><cpu numaid='0'/></system>");
    expect(notes).toEqual([]);
    expect(root.children[0]?.attributes.get('numaid')).toBe('0');
  });

  it('uses the first of two equal attributes', () => {
    const { root } = parseXml('<system version="1" version="2"/>');
    expect(root.attributes.get('version')).toBe('1');
  });

  it('keeps elements and attributes that NCCL does not know', () => {
    const text = '<system version="1">\n  <gpus count="8">\n    <pci/>\n  </gpus>\n</system>\n';
    expect(writeXml(parseXml(text).root)).toBe(text);
  });

  it('keeps an & that begins no entity, as NCCL does', () => {
    const { root, notes } = parseXml('<system version="1" name="a & b">\n  <cpu numaid="0" vendor="R&D;&amp;&"/>&\n</system>');
    expect([root.attributes.get('name'), root.children[0]?.attributes.get('vendor')]).toEqual(['a & b', 'R&D;&&']);
    expect(notes.map((note) => describeNote(note))).toEqual([
      '2:3: NCCL itself would misread this: an entity (&…;) in a value, which it would not decode',
      '2:40: NCCL itself would refuse this: text between elements',
    ]);
    expect(parseXml(writeXml(root)).root.attributes.get('name')).toBe('a & b');
  });

  it('reads graph files too', () => {
    const text =
      '<graphs version="1">\n  <graph id="0" pattern="4">\n    <channel>\n      <net dev="0"/>\n      <gpu dev="0" rank="0"/>\n    </channel>\n  </graph>\n</graphs>\n';
    const { root, notes } = parseXml(text);
    expect(notes).toEqual([]);
    expect(writeXml(root)).toBe(text);
  });
});

describe('notes on text that NCCL reads in another way', () => {
  it.each([
    ['<?xml version="1.0"?>\n<system version="1"/>', '1:1: NCCL itself would refuse this: an XML declaration'],
    ['<!DOCTYPE system>\n<system version="1"/>', '1:1: NCCL itself would refuse this: a document type'],
    ['\uFEFF<system version="1"/>', '1:1: NCCL itself would refuse this: a byte order mark'],
    [
      '<system version="1">\n\t<cpu/>\n\t<cpu/></system>',
      '1:21: NCCL itself would refuse this: a tab between elements (2 times)',
    ],
    ['<system\tversion="1"/>', '1:1: NCCL itself would refuse this: a tab inside a tag'],
    ['<system\n version="1"/>', '1:1: NCCL itself would refuse this: a line break inside a tag'],
    ['<system version = "1"/>', '1:1: NCCL itself would refuse this: a space beside the = of an attribute'],
    ['<system version="1"></system >', '1:21: NCCL itself would refuse this: white space inside an end tag'],
    ['<system version="1">stray</system>', '1:21: NCCL itself would refuse this: text between elements'],
    ['<system version="1"/>\nstray', '1:22: NCCL itself would refuse this: text between elements'],
    ['<system version="1"/>\n\t\n', '1:22: NCCL itself would refuse this: a tab between elements'],
    ['<system version="1"><![CDATA[x]]></system>', '1:21: NCCL itself would refuse this: a CDATA section'],
    ['<system version="1"><?go on?></system>', '1:21: NCCL itself would refuse this: a processing instruction'],
    ['<!--a=b--><system version="1"/>', '1:1: NCCL itself would refuse this: a comment whose first word holds a ='],
    ['<system version="2"/>', '1:1: NCCL itself would refuse this: <system> without version="1"'],
    [
      '<system version="1" name="a&amp;b"/>',
      '1:1: NCCL itself would misread this: an entity (&…;) in a value, which it would not decode',
    ],
    [
      '<system  version="1"/>',
      '1:1: NCCL itself would misread this: two spaces between attributes, where it sees an attribute without name',
    ],
    ['<system version="1" version="1"/>', '1:1: NCCL itself would ignore this: a second attribute version in one element'],
    [
      '<system version="1"><gpu><nvlink/></gpu></system>',
      '1:21: NCCL itself would ignore this: element <gpu> in <system>, with all below it; did you mean cpu?',
    ],
    [
      '<system version="1"><cpu affinty="0"/></system>',
      '1:21: NCCL itself would ignore this: attribute affinty of <cpu>; did you mean affinity?',
    ],
    [
      '<system version="1" name="' + 'x'.repeat(254) + '"/>',
      '1:1: NCCL itself would refuse this: a value of more than 253 characters (name of <system>)',
    ],
    [
      '<system version="1">' + '<cpu/>'.repeat(256) + '</system>',
      '1:1: NCCL itself would refuse this: more than 255 elements in one file',
    ],
  ])('%#: $1', (text, note) => {
    expect(notesOf(text)).toEqual([note]);
  });

  it('include a too long name, though the element would be ignored', () => {
    expect(notesOf(`<system version="1"><${'x'.repeat(254)}/></system>`)).toContain(
      '1:21: NCCL itself would refuse this: a name of more than 253 characters',
    );
  });

  it('count attributes beyond the 16 that NCCL reads', () => {
    const attributes = Array.from({ length: 17 }, (_, index) => `a${index}="0"`).join(' ');
    expect(notesOf(`<system version="1"><cpu ${attributes}/></system>`)).toContain(
      '1:21: NCCL itself would ignore this: attributes of <cpu> after the 16th',
    );
  });

  it('include a list of children that NCCL has no room for', () => {
    expect(notesOf(`<graphs version="1"><graph><channel>${'<gpu/>'.repeat(641)}</channel></graph></graphs>`)).toEqual([
      expect.stringContaining('NCCL itself would refuse this: more than 640 elements in <channel>'),
    ]);
  });

  it('are bounded in number', () => {
    const attributes = Array.from({ length: 5000 }, (_, index) => `a${index}=""`).join(' ');
    expect(parseXml(`<system version="1" ${attributes}/>`).notes.length).toBe(500);
  });
});

describe('wrong input', () => {
  it.each([
    ['', 'SYNTAX', 'the file is empty', 1, 1],
    ['just text', 'SYNTAX', 'no element in it', 1, 10],
    ['<system version="1">\n  <cpu numaid="0">\n', 'SYNTAX', 'the file ends inside <cpu numaid="0"> (line 2); was it cut?', 3, 1],
    ['<system version="1">\n  <cpu numaid="0', 'SYNTAX', 'the file ends inside <system> (line 1); was it cut?', 2, 17],
    ['<system version="1"></cpu>', 'SYNTAX', '</cpu> closes nothing; <system> (line 1) is open', 1, 21],
    [
      '<system version="1"/>\n<system version="1"/>',
      'SYNTAX',
      'a second root element; a file holds one <system> or <graphs>',
      2,
      1,
    ],
    ['<system version=1/>', 'SYNTAX', 'not XML: unquoted attribute value', 1, 17],
    ['<system version="1"/>\n\u0000', 'SYNTAX', 'not XML: disallowed character', 2, 1],
  ])('%#: $2', (text, code, message, line, column) => {
    const error = inputError(() => parseXml(text, { fileName: 'topo.xml' }));
    expect([error.code, error.message, error.file, error.line, error.column]).toEqual([code, message, 'topo.xml', line, column]);
  });

  it('unbounded nesting: refused at a depth that no machine has', () => {
    const error = inputError(() => parseXml('<pci>\n'.repeat(100_000)));
    expect([error.code, error.line]).toEqual(['TOO_LARGE', xmlLimits.depth + 1]);
  });

  it('100 MB: refused before anything is read', () => {
    const text = `<system version="1">${' '.repeat(100_000_000)}</system>`;
    expect(inputError(() => parseXml(text)).code).toBe('TOO_LARGE');
  });

  it('millions of elements in less text: refused before they fill the memory', () => {
    expect(inputError(() => parseXml(`<system version="1">${'<cpu/>'.repeat(xmlLimits.parts)}</system>`)).code).toBe('TOO_LARGE');
  });

  it('a name of millions of characters is not in the message', () => {
    const note = describeNote(parseXml(`<${'x'.repeat(5_000_000)}/>`).notes[0]!);
    expect(note.length).toBeLessThan(200);
    const error = inputError(() => parseXml(`<system version="1" name="${'y'.repeat(5_000_000)}">`));
    expect(error.message).toBe(`the file ends inside <system name="${'y'.repeat(60)}…"> (line 1); was it cut?`);
  });

  it('entities that would grow are not expanded', () => {
    const bomb = '<!DOCTYPE s [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><system version="1" name="&b;"/>';
    expect(parseXml(bomb).root.attributes.get('name')).toBe('&b;');
  });
});

describe.skipIf(oracleMissing !== undefined)('recorded files', () => {
  it.each(['dump-dgx1v.n1', 'dump-dgxh100-nostorage.n2', 'dump-pcie8-skl-plx02.n2'])(
    "%s: the written file equals NCCL's own dump",
    (name) => {
      const { root } = parseXml(oracleXml(name));
      assignHost(root, 0x1000n);
      expect(writeXml(root)).toBe(oracleXml(name, 'topo-dump.xml'));
    },
  );

  it('are read without a note, and written unchanged', () => {
    const files = oracleXmls('');
    expect(files.length).toBeGreaterThan(100);
    for (const { name, text } of files) {
      const { root, notes } = parseXml(text, { fileName: name });
      expect([name, notes]).toEqual([name, []]);
      expect(writeXml(root) === text, name).toBe(true);
    }
  });
});
