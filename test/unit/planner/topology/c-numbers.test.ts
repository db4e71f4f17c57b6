import { describe, expect, it } from 'vitest';
import { parseUnsigned64 } from '../../../../src/planner/topology/c-numbers.js';

describe('numbers as the C library reads them', () => {
  it.each([
    ['0x98039b0300010000', 0x98039b0300010000n],
    ['98039B0300010000', 0x98039b0300010000n],
    ['0x98039b03000100000', 0xffffffffffffffffn],
    ['-1', 0xffffffffffffffffn],
    ['-0x20000000000000000', 0xffffffffffffffffn],
    ['none', 0n],
  ])('%s in base 16 is an unsigned integer of 64 bits', (text, value) => {
    expect(parseUnsigned64(text, 16)).toBe(value);
  });
});
