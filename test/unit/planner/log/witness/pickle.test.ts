import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TcclError } from '../../../../../src/errors.js';
import { plainValue, readPickle } from '../../../../../src/planner/log/witness/pickle.js';
import { utf8Text } from '../../../../../src/planner/log/witness/utf8.js';

const bytesOf = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const read = (text: string) => plainValue(readPickle(bytesOf(text)));

describe('a pickle', () => {
  // Python: pickle.dumps({'a': [1, -2, 3.5, None, True], 'b': (1, 2**40), 'c': 'é', 'd': -1 << 70}, protocol)
  it.each([
    [
      0,
      '(dp0\nVa\np1\n(lp2\nI1\naI-2\naF3.5\naNaI01\nasVb\np3\n(I1\nL1099511627776L\ntp4\nsVc\np5\nV\u00e9\np6\ns.',
      { a: [1, -2, 3.5, null, true], b: [1, 2 ** 40], c: '\ufffd' },
    ],
    [
      2,
      '\u0080\u0002}q\u0000(X\u0001\u0000\u0000\u0000aq\u0001]q\u0002(K\u0001J\u00fe\u00ff\u00ff\u00ffG@\u000c\u0000\u0000\u0000\u0000\u0000\u0000N\u0088eX\u0001\u0000\u0000\u0000bq\u0003K\u0001\u008a\u0006\u0000\u0000\u0000\u0000\u0000\u0001\u0086q\u0004X\u0001\u0000\u0000\u0000cq\u0005X\u0002\u0000\u0000\u0000\u00c3\u00a9q\u0006u.',
      { a: [1, -2, 3.5, null, true], b: [1, 2 ** 40], c: 'é' },
    ],
  ])('of protocol %i is read', (_, text, expected) => {
    expect(read(text)).toEqual(expected);
  });

  it('that PyTorch could have written is read', () => {
    const value = plainValue(
      readPickle(readFileSync(join(import.meta.dirname, '../../../../logs/flight/nccl_trace_rank_0'))),
    ) as { readonly entries: readonly unknown[] };
    expect(value.entries).toHaveLength(2);
  });

  it.each([
    ['cos\nsystem\nX\u0004\u0000\u0000\u0000echo\u0085R.', 'c'],
    ['\u0080\u0004\u008c\u0002os\u008c\u0006system\u0093.', '\\x93'],
    ['(ios\nsystem\n.', 'i'],
    ['\u0080\u0002Q.', 'Q'],
  ])('that asks for a function is refused: %j', (text, code) => {
    expect(() => read(text)).toThrow(`operation "${code}" is refused`);
  });

  it('of any bytes is read or refused, and nothing else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          plainValue(readPickle(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(TcclError);
        }
      }),
      { numRuns: 3000 },
    );
  });
});

it('UTF-8 is read as TextDecoder does, where it is valid', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const bytes = new TextEncoder().encode(text);
      expect(utf8Text(bytes)).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
    }),
  );
});
