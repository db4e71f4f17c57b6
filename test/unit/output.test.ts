import { afterEach, describe, expect, it, vi } from 'vitest';
import { colorsFor, progressLine, shown } from '../../src/cli/output.js';

function terminal(isTTY: boolean, columns = 20) {
  const written: string[] = [];
  return {
    written,
    isTTY,
    columns,
    write: (text: string | Uint8Array) => {
      written.push(String(text));
      return true;
    },
  };
}

describe('progress line', () => {
  it('writes nothing where stderr is no terminal', () => {
    const stream = terminal(false);
    const progress = progressLine(stream);
    progress.update('half');
    progress.done();
    expect(stream.written).toEqual([]);
  });

  it('overwrites the line, skips unchanged text, and clears it at the end', () => {
    const stream = terminal(true);
    const progress = progressLine(stream);
    progress.update('one');
    progress.update('one');
    progress.update('two');
    progress.done();
    progress.done();
    expect(stream.written).toEqual(['\r\u001b[Kone', '\r\u001b[Ktwo', '\r\u001b[K']);
  });

  it('cuts text that would wrap to the next line', () => {
    const stream = terminal(true, 5);
    progressLine(stream).update('123456');
    expect(stream.written).toEqual(['\r\u001b[K1234']);
    const unknown = terminal(true, 0);
    progressLine(unknown).update('123456');
    expect(unknown.written).toEqual(['\r\u001b[K123456']);
  });
});

describe('colours', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it('are for terminals only, also in continuous integration', () => {
    for (const name of ['CI', 'FORCE_COLOR']) vi.stubEnv(name, '1');
    vi.stubEnv('NO_COLOR', undefined);
    vi.stubEnv('TERM', 'xterm');
    expect(colorsFor({}).red('text')).toBe('text');
    expect(colorsFor({ isTTY: false }).red('text')).toBe('text');
    expect(shown(colorsFor({ isTTY: true }).red('text'))).toBe('\u001b[31mtext\u001b[39m');
  });

  it('are omitted where the user disables them', () => {
    vi.stubEnv('TERM', 'xterm');
    vi.stubEnv('NO_COLOR', '1');
    expect(colorsFor({ isTTY: true }).red('text')).toBe('text');
  });
});
