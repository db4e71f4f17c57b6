import { describe, expect, it } from 'vitest';
import { readSavedStudio, savedStudio } from '../../../src/studio/saved.js';

describe('a .tccl file', () => {
  it('has the view and the files, byte for byte', async () => {
    const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index & 255);
    const blob = await savedStudio('machine=dgx-h100', [{ name: 'a.gz', blob: new Blob([bytes]) }]);
    const { state, files } = readSavedStudio('view.tccl', await blob.text());
    expect(state).toBe('machine=dgx-h100');
    expect(files.map(({ name }) => name)).toEqual(['a.gz']);
    expect(new Uint8Array(await files[0]!.blob.arrayBuffer())).toEqual(bytes);
  });

  it.each([
    ['x', /is no JSON; a \.tccl file is written by/],
    ['{"a":1}', /of another program/],
    ['{"tccl":"studio","version":2}', /has version 2, and this page reads version 1/],
    ['{"tccl":"studio","version":1,"state":""}', /no state or no files/],
    ['{"tccl":"studio","version":1,"state":"","files":[{"name":"a"}]}', /files\[0\] has no name or no contents/],
    ['{"tccl":"studio","version":1,"state":"","files":[{"name":"a","base64":"%"}]}', /contents of files\[0\] are damaged/],
  ])('%s is refused with its reason', (text, message) => {
    expect(() => readSavedStudio('view.tccl', text)).toThrow(message);
  });
});
