import { resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { expect, it } from 'vitest';

/** Bytes, compressed, of what a page loads before its first collective. Lower it with each part that is loaded later. */
const BUDGET_BYTES = 140_000;

it(`a page loads at most ${BUDGET_BYTES / 1000} kB before its first collective`, async () => {
  const entry = '\0page';
  const bundle = await rolldown({
    input: entry,
    platform: 'browser',
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === entry ? id : null),
        load: (id) =>
          id === entry ? `export { init, spawnRanks } from ${JSON.stringify(resolve('dist/browser/index.js'))};` : null,
      },
    ],
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  const chunks = output.filter((file) => file.type === 'chunk');
  const first = new Set<string>();
  const load = (fileName: string): void => {
    const chunk = chunks.find((one) => one.fileName === fileName);
    if (chunk === undefined || first.has(fileName)) return;
    first.add(fileName);
    chunk.imports.forEach(load);
  };
  load(chunks.find(({ isEntry }) => isEntry)?.fileName ?? '');

  const code = chunks.filter(({ fileName }) => first.has(fileName)).map((chunk) => chunk.code);
  expect(code.reduce((sum, text) => sum + gzipSync(text, { level: 9 }).length, 0)).toBeLessThan(BUDGET_BYTES);
});
