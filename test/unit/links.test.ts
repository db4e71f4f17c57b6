import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

const pages = [
  'README.md',
  'CHANGELOG.md',
  'examples/README.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
const textOf = (page: string): string => readFileSync(page, 'utf8').replace(/^```[\s\S]*?^```$/gm, '');

/** As GitHub makes the anchor of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[`*]/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
const anchorsOf = (page: string): string[] =>
  [...textOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));

/** Files that a page links to, with the anchor if there is one. */
const linksOf = (page: string): { readonly link: string; readonly target: string; readonly anchor: string }[] =>
  [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^https?:/.test(link))
    .map((link) => {
      const [path = '', anchor = ''] = link.split('#');
      return { link, target: path === '' ? page : join(dirname(page), path), anchor };
    });

it.each(pages)('links of %s have targets', (page) => {
  const broken = linksOf(page).filter(
    ({ target, anchor }) =>
      !existsSync(target) || (anchor !== '' && target.endsWith('.md') && !anchorsOf(target).includes(anchor)),
  );
  expect(broken.map(({ link }) => link)).toEqual([]);
});

it('every page of docs can be reached from docs/README.md', () => {
  const linked = new Set(linksOf('docs/README.md').map(({ target }) => target));
  expect(pages.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md' && !linked.has(page))).toEqual([]);
});

it('every source file that a page names exists', () => {
  const files = ['src', 'bench', 'scripts', 'test', 'testing', 'examples'].flatMap(sourcesIn);
  // A page may name a file by any end of its path.
  const known = new Set(files.flatMap((file) => file.split('/').map((_, part, parts) => parts.slice(part).join('/'))));
  const missing = pages
    .filter((page) => page.startsWith('docs/'))
    .flatMap((page) =>
      [...textOf(page).matchAll(/(?<![\w/.-])(?:\.\.\/)*((?:[\w-]+\/)*[\w-]+\.(?:ts|mjs))\b/g)]
        .map(([, name = '']) => name)
        .filter((name) => !known.has(name))
        .map((name) => `${page}: ${name}`),
    );
  expect(known.size).toBeGreaterThan(1000);
  expect(missing).toEqual([]);
});

/** Files below a folder, without those of installed packages. */
function sourcesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules')
    .flatMap((entry) => (entry.isDirectory() ? sourcesIn(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]));
}
