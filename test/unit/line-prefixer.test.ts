import fc from 'fast-check';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { LinePrefixer } from '../../src/runtime/launch/line-prefixer.js';

async function prefixed(chunks: readonly Uint8Array[], prefix = '[1] '): Promise<string> {
  const lines = new LinePrefixer(prefix);
  for (const chunk of chunks) lines.write(chunk);
  lines.end();
  return text(lines);
}

describe('a prefix before each line', () => {
  it('is there wherever the pieces of a stream end, in the middle of a character too', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: fc.constantFrom('a', '', '\n', 'é', '😀', '\r') }), { maxLength: 30 }),
        fc.array(fc.nat({ max: 60 }), { maxLength: 10 }),
        async (parts, cuts) => {
          const whole = parts.join('');
          const bytes = Buffer.from(whole);
          const ends = [...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b);
          const chunks = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
          const lines = whole.replace(/\n$/, '').split('\n');
          expect(await prefixed(chunks)).toBe(whole === '' ? '' : lines.map((line) => `[1] ${line}\n`).join(''));
        },
      ),
    );
  });

  it('lets only whole lines through', () => {
    const lines = new LinePrefixer('[1] ');
    lines.write('one\ntw');
    expect(String(lines.read())).toBe('[1] one\n');
    expect(lines.read()).toBeNull();
    lines.write('o\n');
    expect(String(lines.read())).toBe('[1] two\n');
  });

  it('may be empty', async () => {
    expect(await prefixed([Buffer.from('one\ntwo')], '')).toBe('one\ntwo\n');
  });
});
