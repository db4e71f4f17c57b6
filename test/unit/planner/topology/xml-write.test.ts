import { describe, expect, it } from 'vitest';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { createElement } from '../../../../src/planner/topology/xml/tree.js';
import { formatFloat, formatHex, writeXml } from '../../../../src/planner/topology/xml/write.js';

describe('writing', () => {
  it('keeps the order in which attributes were set', () => {
    const system = createElement('system');
    system.attributes.set('version', '1');
    const cpu = createElement('cpu', system, [
      ['numaid', '0'],
      ['affinity', 'ff'],
    ]);
    cpu.attributes.set('numaid', '1');
    expect(writeXml(system)).toBe('<system version="1">\n  <cpu numaid="1" affinity="ff"/>\n</system>\n');
  });

  it('escapes characters that would break XML, so that it reads back', () => {
    const system = createElement('system', undefined, [['name', 'a "b" <c> & d']]);
    expect(parseXml(writeXml(system)).root.attributes.get('name')).toBe('a "b" <c> & d');
  });

  it.each([
    [0, '0'],
    [1, '0x1'],
    [10, '0xa'],
    [-1, '0xffffffffffffffff'],
    [0x98039b0300010000n, '0x98039b0300010000'],
  ])('writes %s as %%#lx does', (value, text) => {
    expect(formatHex(value)).toBe(text);
  });

  // Answers of glibc's printf("%g").
  it.each([
    [0, '0'],
    [-0, '-0'],
    [20, '20'],
    [48, '48'],
    [12.5, '12.5'],
    [0.1875, '0.1875'],
    [1 / 3, '0.333333'],
    [Math.fround(20.6), '20.6'],
    [999_999.5, '1e+06'],
    [1_000_000, '1e+06'],
    [123_456_789, '1.23457e+08'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [100_000.5, '100000'],
    [100_001.5, '100002'],
    [5000, '5000'],
    [-24.96, '-24.96'],
    [2.5, '2.5'],
    [Infinity, 'inf'],
  ])('writes %s as %%g does', (value, text) => {
    expect(formatFloat(value)).toBe(text);
  });
});
