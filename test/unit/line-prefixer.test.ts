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
  it('is written wherever the chunks of a stream end, even in the middle of a character', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: fc.constantFrom('a', '', '\n', 'é', '😀', '\r') }), { maxLength: 30 }),
        fc.array(fc.nat({ max: 60 }), { maxLength: 10 }),
        async (parts, cuts) => {
          const whole = parts.join('');
          const bytes = Buffer.from(whole);
          const ends = [...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort((a, b) => a - b);
          const chunks = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
          const lines = whole
            .replace(/\n$/, '')
            .split('\n')
            .map((line) => line.replace(/^.*\r(?=.)/s, ''));
          expect(await prefixed(chunks)).toBe(whole === '' ? '' : lines.map((line) => `[1] ${line}\n`).join(''));
        },
      ),
    );
  });

  it('passes only complete lines', () => {
    const lines = new LinePrefixer('[1] ');
    lines.write('one\ntw');
    expect(String(lines.read())).toBe('[1] one\n');
    expect(lines.read()).toBeNull();
    lines.write('o\n');
    expect(String(lines.read())).toBe('[1] two\n');
  });

  it('stays before a progress line, of which a file gets the last state', async () => {
    expect(await prefixed([Buffer.from('10 %\r50 %\r'), Buffer.from('100 %\ndone\r\n\r1\r2')])).toBe(
      '[1] 100 %\n[1] done\r\n[1] 2\n',
    );
    expect(await prefixed([Buffer.from('1\r2\n')], '')).toBe('1\r2\n');
  });

  it('shows each state of a progress line in the last line of a terminal, which later lines erase', () => {
    const terminal = { showsProgress: false };
    const [bar, other] = [new LinePrefixer('[0] ', { terminal }), new LinePrefixer('[1] ', { terminal })];
    const read = (lines: LinePrefixer) => String(lines.read());
    other.write('first\n');
    expect(read(other)).toBe('[1] first\n');
    bar.write('\r10 %');
    expect(read(bar)).toBe('[0] 10 %\x1b[K\r');
    bar.write('\r20 %\r30 %\r');
    expect(read(bar)).toBe('[0] 30 %\x1b[K\r');
    other.write('hi\n');
    expect(read(other)).toBe('[1] hi\x1b[K\n');
    bar.write('all\n');
    expect(read(bar)).toBe('[0] all\x1b[K\n');
  });

  it('may be empty', async () => {
    expect(await prefixed([Buffer.from('one\ntwo')], '')).toBe('one\ntwo\n');
  });
});
