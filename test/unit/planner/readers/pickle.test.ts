import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TcclError } from '../../../../src/errors.js';
import { plainValue, readPickle } from '../../../../src/planner/readers/pickle.js';
import { utf8Text } from '../../../../src/planner/readers/utf8.js';
import { runs } from '../../../runs.js';
import { anyCharacter } from '../../any-character.js';

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
    const value = plainValue(readPickle(readFileSync(join(import.meta.dirname, '../../../logs/flight/nccl_trace_rank_0')))) as {
      readonly entries: readonly unknown[];
    };
    expect(value.entries).toHaveLength(2);
  });

  it.each([
    ['cos\nsystem\nX\u0004\u0000\u0000\u0000echo\u0085R.', 'c'],
    ['\u0080\u0004\u008c\u0002os\u008c\u0006system\u0093.', '\\x93'],
    ['(ios\nsystem\n.', 'i'],
    ['\u0080\u0002Q.', 'Q'],
  ])('that names a function to call is refused: %j', (text, code) => {
    expect(() => read(text)).toThrow(`operation "${code}" is refused`);
  });

  it('whose lists unfold without end, or contain themselves, is refused or cut', () => {
    // Each list holds the one before ten times: 10^60 values from a kilobyte.
    const laughs = Array.from({ length: 60 }, (_, at) =>
      at === 0
        ? ']q\u0000(' + 'K\u0001'.repeat(10) + 'e'
        : `]q${String.fromCharCode(at)}(${`h${String.fromCharCode(at - 1)}`.repeat(10)}e`,
    );
    expect(() => read(`\u0080\u0002${laughs.join('0')}.`)).toThrow('its lists unfold to more than');
    expect(read('\u0080\u0002]q\u0000(h\u0000h\u0000K\u0007e.')).toEqual([null, null, 7]);
    expect(JSON.stringify(read(`\u0080\u0002${']'.repeat(50_000)}${'a'.repeat(49_999)}.`)).length).toBeLessThan(1000);
    // What stands in several places is read once.
    const shared = read('\u0080\u0002](]q\u0000K\u0001ah\u0000e.') as unknown[];
    expect(shared).toEqual([[1], [1]]);
    expect(shared[0]).toBe(shared[1]);
  });

  it('of any bytes is read or refused without other errors', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          plainValue(readPickle(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(TcclError);
        }
      }),
      { numRuns: runs(1000, 3000) },
    );
  });
});

it('UTF-8 is read as TextDecoder does, where it is valid', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      const bytes = new TextEncoder().encode(text);
      expect(utf8Text(bytes)).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
    }),
  );
});
