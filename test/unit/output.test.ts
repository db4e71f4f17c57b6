import { describe, expect, it } from 'vitest';
import { progressLine } from '../../src/cli/output.js';

function terminal(isTTY: boolean, columns = 20) {
  const written: string[] = [];
  return { written, isTTY, columns, write: (text: string | Uint8Array) => { written.push(String(text)); return true; } };
}

describe('progress line', () => {
  it('writes nothing where stderr is no terminal', () => {
    const stream = terminal(false);
    const progress = progressLine(stream);
    progress.update('half');
    progress.done();
    expect(stream.written).toEqual([]);
  });

  it('writes over the line, skips what is already shown, and wipes it at the end', () => {
    const stream = terminal(true);
    const progress = progressLine(stream);
    progress.update('one');
    progress.update('one');
    progress.update('two');
    progress.done();
    progress.done();
    expect(stream.written).toEqual(['\r\u001b[Kone', '\r\u001b[Ktwo', '\r\u001b[K']);
  });

  it('cuts what would wrap to the next line', () => {
    const stream = terminal(true, 5);
    progressLine(stream).update('123456');
    expect(stream.written).toEqual(['\r\u001b[K1234']);
  });
});
