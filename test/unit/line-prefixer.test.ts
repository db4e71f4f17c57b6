import fc from 'fast-check';
import { PassThrough, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { LinePrefixer, type LinePlace } from '../../src/runtime/launch/line-prefixer.js';

async function prefixed(chunks: readonly Uint8Array[], prefix = '[1] '): Promise<string> {
  const out = new PassThrough();
  const lines = new LinePrefixer(prefix, out, { isTerminal: false });
  for (const chunk of chunks) lines.write(chunk);
  lines.end(() => out.end());
  return text(out);
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
    const out = new PassThrough();
    const lines = new LinePrefixer('[1] ', out, { isTerminal: false });
    lines.write('one\ntw');
    expect(String(out.read())).toBe('[1] one\n');
    expect(out.read()).toBeNull();
    lines.write('o\n');
    expect(String(out.read())).toBe('[1] two\n');
  });

  it('stays before a progress line, of which a file gets the last state', async () => {
    expect(await prefixed([Buffer.from('10 %\r50 %\r'), Buffer.from('100 %\ndone\r\n\r1\r2')])).toBe(
      '[1] 100 %\n[1] done\r\n[1] 2\n',
    );
    expect(await prefixed([Buffer.from('1\r2\n')], '')).toBe('1\r2\n');
  });

  it('shows each state of a progress line in the last line of a terminal, which later lines erase', () => {
    const terminal: LinePlace = { isTerminal: true };
    const out = new PassThrough();
    const [bar, other] = ['[0] ', '[1] '].map((prefix) => new LinePrefixer(prefix, out, terminal));
    other!.write('first\n');
    expect(String(out.read())).toBe('[1] first\n');
    bar!.write('\r10 %');
    expect(String(out.read())).toBe('[0] 10 %\x1b[K\r');
    bar!.write('\r20 %\r30 %\r');
    expect(String(out.read())).toBe('[0] 30 %\x1b[K\r');
    other!.write('hi\n');
    expect(String(out.read())).toBe('[1] hi\x1b[K\n');
    bar!.write('all\n');
    expect(String(out.read())).toBe('[0] all\x1b[K\n');
  });

  it('may be empty', async () => {
    expect(await prefixed([Buffer.from('one\ntwo')], '')).toBe('one\ntwo\n');
  });
});

describe('a line of many MiB', () => {
  const chunk = Buffer.alloc(65536, 'x');
  /** Collects what is written. */
  const sink = () => {
    const written: Buffer[] = [];
    const out = new Writable({
      write: (bytes: Buffer, _encoding, done) => {
        written.push(bytes);
        setImmediate(done);
      },
    });
    return { out, all: () => Buffer.concat(written).toString(), most: () => Math.max(...written.map(({ length }) => length)) };
  };
  const write = async (lines: LinePrefixer, bytes: Buffer | string): Promise<void> => {
    await new Promise((resolve) => lines.write(bytes, resolve));
  };

  it.each(['[1] ', ''])('goes in pieces, each byte once, behind the prefix "%s"', async (prefix) => {
    const { out, all, most } = sink();
    const lines = new LinePrefixer(prefix, out, { isTerminal: false });
    for (let i = 0; i < 160; i++) await write(lines, chunk);
    expect(all().length).toBeGreaterThan(8 * 2 ** 20);
    await write(lines, 'y\nnext\n');
    lines.end();
    await finished(lines);
    await finished(out.end());
    expect(all() === `${prefix}${'x'.repeat(160 * 65536)}y\n${prefix}next\n`).toBe(true);
    expect(most()).toBeLessThan(2 * 2 ** 20);
  });

  it('is broken by the line of another stream, and goes on behind its prefix', async () => {
    const { out, all } = sink();
    const place: LinePlace = { isTerminal: false };
    const [long, other] = [new LinePrefixer('[0] ', out, place), new LinePrefixer('[1] ', out, place)];
    for (let i = 0; i < 17; i++) await write(long, chunk);
    await write(other, 'hi\n');
    await write(long, 'z\n');
    for (let i = 0; i < 17; i++) await write(long, chunk);
    long.end();
    await finished(long);
    other.end('ho');
    await finished(other);
    await finished(out.end());
    const x = 'x'.repeat(17 * 65536);
    expect(all() === `[0] ${x}\n[1] hi\n[0] z\n[0] ${x}\n[1] ho\n`).toBe(true);
  });

  it('is discarded once the destination is gone', async () => {
    const out = new Writable({ write: (_bytes, _encoding, done) => done(new Error('gone')) });
    out.on('error', () => undefined);
    const lines = new LinePrefixer('', out, { isTerminal: false });
    for (let i = 0; i < 40; i++) await write(lines, chunk);
    lines.end();
    await finished(lines);
  });
});
