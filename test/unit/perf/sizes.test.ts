import { describe, expect, it } from 'vitest';
import { formatSize, parseSize, sweep } from '../../../src/perf/sizes.js';

describe('sizes as nccl-tests writes them', () => {
  it.each([
    ['8', 8],
    ['64K', 65536],
    ['64k', 65536],
    ['1M', 1048576],
    ['1G', 1073741824],
    ['1.5M', 1572864],
    ['.5K', 512],
    ['0', 0],
    ['10.7', 10],
    ['64KiB', 65536],
    ['64KB', 65536],
    ['8B', 8],
  ])('%s is %d bytes', (text, bytes) => {
    expect(parseSize(text, '--minbytes')).toBe(bytes);
  });

  it.each(['', '-8', 'K', '8T', '1M2', 'eight', '0x10', '99999999999G', 'NaN'])("%j is refused by the flag's name", (text) => {
    expect(() => parseSize(text, '--maxbytes')).toThrow(`--maxbytes '${text}' is not a size`);
  });
});

describe('sweep', () => {
  it('multiplies by a factor and stops at the last size that fits', () => {
    expect(sweep(8, 1000, { kind: 'factor', factor: 8 })).toEqual([8, 64, 512]);
  });

  it('adds a step and includes both ends', () => {
    expect(sweep(0, 12, { kind: 'bytes', bytes: 4 })).toEqual([0, 4, 8, 12]);
  });

  it('needs no step for a single size', () => {
    expect(sweep(0, 0, { kind: 'factor', factor: 2 })).toEqual([0]);
    expect(sweep(64, 64, { kind: 'bytes', bytes: 0 })).toEqual([64]);
  });

  it('refuses a sweep without end', () => {
    expect(() => sweep(16, 8, { kind: 'factor', factor: 2 })).toThrow('--minbytes 16 is more than --maxbytes 8');
    expect(() => sweep(0, 8, { kind: 'factor', factor: 2 })).toThrow('never grows by a factor');
    expect(() => sweep(8, 16, { kind: 'bytes', bytes: 0 })).toThrow('too many sizes');
    expect(() => sweep(0, 2 ** 30, { kind: 'bytes', bytes: 1 })).toThrow('too many sizes');
  });
});

it('sizes print in binary units', () => {
  expect([8, 1024, 1536, 2 ** 20, 3 * 2 ** 30, 2 ** 42].map(formatSize)).toEqual([
    '8 B',
    '1 KiB',
    '1.5 KiB',
    '1 MiB',
    '3 GiB',
    '4096 GiB',
  ]);
});
