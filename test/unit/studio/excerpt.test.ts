import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/errors.js';
import { excerptAt } from '../../../src/studio/excerpt.js';

describe('the place of an error', () => {
  const texts = new Map([['a.xml', `<system>\r\n  <cpu numaid="0>\r\n${'x'.repeat(200)}y${'z'.repeat(200)}`]]);
  const at = (line: number, column?: number) =>
    excerptAt(new InputError('SYNTAX', 'wrong', { file: 'a.xml', line, ...(column === undefined ? {} : { column }) }), texts);

  it('is marked in its line', () => {
    expect(at(2, 8)).toEqual({ line: 2, before: '  <cpu ', marked: 'n', after: 'umaid="0>' });
    expect(at(1)).toEqual({ line: 1, before: '', marked: '<', after: 'system>' });
  });

  it('behind the end of a line is a blank, and of a long line only the surroundings are kept', () => {
    expect(at(2, 99)).toEqual({ line: 2, before: '  <cpu numaid="0>', marked: ' ', after: '' });
    expect(at(3, 201)).toEqual({ line: 3, before: `…${'x'.repeat(60)}`, marked: 'y', after: `${'z'.repeat(59)}…` });
  });

  it('is unknown for another file, a line that the text lacks, and an error without a place', () => {
    expect(at(9, 1)).toBeUndefined();
    expect(excerptAt(new InputError('SYNTAX', 'wrong', { file: 'b.xml', line: 1 }), texts)).toBeUndefined();
    expect(excerptAt(new Error('wrong'), texts)).toBeUndefined();
  });
});
