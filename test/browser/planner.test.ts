import { fileURLToPath } from 'node:url';
import { build, type Rolldown } from 'vite';
import { expect, it } from 'vitest';
import { domOf, missing } from './chromium.js';
import { answers } from './planner-page.mjs';

it.skipIf(missing)(`the planner gives the same results in a browser as in Node${missing}`, async () => {
  const script = await bundle();
  // A script element ends at the first end tag in its text, even inside a string.
  const dom = domOf(
    `<!doctype html><pre id="answers"></pre><script type="module">${script.replaceAll('</script', '<\\/script')}</script>`,
  );
  const shown = /<pre id="answers">([^<]*)<\/pre>/.exec(dom)?.[1];
  expect(Buffer.from(shown ?? '', 'base64').toString()).toBe(answers());
});

/** A script for the page: the planner with the libraries it uses, as a user's bundler would make it. */
async function bundle(): Promise<string> {
  const page = fileURLToPath(new URL('planner-page.mjs', import.meta.url));
  const entry = 'virtual:entry';
  // Base64, because the page's text is read back out of HTML.
  const source = `import { answers } from ${JSON.stringify(page)};
    const bytes = new TextEncoder().encode(answers());
    document.getElementById('answers').textContent = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));`;
  const { output } = (await build({
    configFile: false,
    logLevel: 'warn',
    build: { write: false, rolldownOptions: { input: entry } },
    plugins: [
      { name: 'entry', resolveId: (id) => (id === entry ? id : undefined), load: (id) => (id === entry ? source : undefined) },
    ],
  })) as Rolldown.RolldownOutput;
  expect(output).toHaveLength(1);
  return output[0].code;
}
