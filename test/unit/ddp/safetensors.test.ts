import { describe, expect, it } from 'vitest';
import { headerLengthOf, headerOf, parseHeader } from '../../../src/ddp/safetensors.js';

const textOf = (header: Uint8Array) => new TextDecoder().decode(header.subarray(8));
const bytesOf = (header: unknown) => new TextEncoder().encode(JSON.stringify(header));
const messageOf = (action: () => unknown) => {
  try {
    action();
    return 'nothing';
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
};

describe('safetensors', () => {
  it('has a header of a multiple of 8 bytes with types, shapes and places', () => {
    const header = headerOf(
      [
        { name: 'kernel', type: 'float32', shape: [2, 3], bytes: 24 },
        { name: 'half', type: 'bfloat16', shape: [], bytes: 2 },
      ],
      { step: '7' },
    );
    expect(header.length % 8).toBe(0);
    expect(headerLengthOf(header, header.length)).toBe(header.length - 8);
    expect(JSON.parse(textOf(header))).toEqual({
      __metadata__: { step: '7' },
      kernel: { dtype: 'F32', shape: [2, 3], data_offsets: [0, 24] },
      half: { dtype: 'BF16', shape: [], data_offsets: [24, 26] },
    });
    const { tensors, metadata } = parseHeader(header.subarray(8), 26);
    expect(metadata).toEqual({ step: '7' });
    expect([...tensors]).toEqual([
      ['kernel', { type: 'float32', shape: [2, 3], begin: 0, end: 24 }],
      ['half', { type: 'bfloat16', shape: [], begin: 24, end: 26 }],
    ]);
  });

  it('keeps a parameter of any name', () => {
    const header = headerOf([{ name: '__proto__', type: 'int8', shape: [1], bytes: 1 }], {});
    expect([...parseHeader(header.subarray(8), 1).tensors.keys()]).toEqual(['__proto__']);
  });

  it('reads types that no array holds by their names, and bool as uint8', () => {
    const entry = (dtype: string) => ({ dtype, shape: [1], data_offsets: [0, 1] });
    const { tensors } = parseHeader(bytesOf({ a: entry('F8_E8M0'), b: entry('BOOL') }), 1);
    expect([...tensors.values()].map(({ type }) => type)).toEqual(['F8_E8M0', 'uint8']);
  });

  it('refuses what is no header', () => {
    const entry = { dtype: 'U8', shape: [1], data_offsets: [0, 1] };
    expect([
      messageOf(() => headerLengthOf(new TextEncoder().encode('# a text'), 100)),
      messageOf(() => parseHeader(new TextEncoder().encode('{"a'), 0)),
      messageOf(() => parseHeader(Uint8Array.of(0xff), 0)),
      messageOf(() => parseHeader(bytesOf(null), 0)),
      messageOf(() => parseHeader(bytesOf({ a: null }), 0)),
      messageOf(() => parseHeader(bytesOf({ a: { ...entry, shape: [-1] } }), 1)),
      messageOf(() => parseHeader(bytesOf({ a: { ...entry, data_offsets: [0] } }), 1)),
      messageOf(() => parseHeader(bytesOf({ a: { ...entry, data_offsets: [0, 9] } }), 1)),
      messageOf(() => parseHeader(bytesOf({ a: { ...entry, data_offsets: [1, 0] } }), 1)),
    ]).toEqual([
      'CONTENT it is no safetensors file: its header would have 8392569455038767000 bytes, the file has 100',
      'SYNTAX it is no safetensors file: its header is no JSON',
      'SYNTAX it is no safetensors file: its header is no JSON',
      'CONTENT it is no safetensors file: its header is null',
      'CONTENT its header has "a" without dtype, shape or data_offsets',
      'CONTENT its header has "a" without dtype, shape or data_offsets',
      'CONTENT its header has "a" without dtype, shape or data_offsets',
      'CONTENT "a" has bytes 0 to 9 of 1: the file is damaged or cut off',
      'CONTENT "a" has bytes 1 to 0 of 1: the file is damaged or cut off',
    ]);
  });
});
