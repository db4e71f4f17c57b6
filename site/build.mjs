// Makes the static site of the documentation in build/docs, with the reference of all public names, from docs/ and the
// declarations in dist/: npm run docs:build
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const site = join(root, 'site');
const pages = join(site, 'build/pages');
const { repository, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** Address at which files of the repository can be read; undefined while package.json names none. */
const source = repository?.url === undefined ? undefined : `${repository.url.replace(/^git\+|\.git$/g, '')}/blob/v${version}`;

rmSync(join(site, 'build'), { recursive: true, force: true });
mkdirSync(pages, { recursive: true });
for (const [from, to] of [
  ['docs', '.'],
  ['README.md', 'index.md'],
  ['CHANGELOG.md', 'changelog.md'],
  ['examples/README.md', 'examples.md'],
])
  cpSync(join(root, from), join(pages, to), { recursive: true });
for (const name of readdirSync(pages, { recursive: true })) {
  if (!name.endsWith('.md')) continue;
  const file = join(pages, name);
  writeFileSync(file, withLinks(readFileSync(file, 'utf8'), placeOf(name)));
}
writeApi();
const { build } = await import('vitepress');
await build(site);

/** The place in the repository of a page. */
function placeOf(name) {
  return { 'index.md': 'README.md', 'changelog.md': 'CHANGELOG.md', 'examples.md': 'examples/README.md' }[name] ?? `docs/${name}`;
}

/** The page of a place in the repository; undefined where it is none. */
function pageOf(place) {
  const own = { 'README.md': 'index.md', 'CHANGELOG.md': 'changelog.md', 'examples/README.md': 'examples.md' }[place];
  return own ?? (place.startsWith('docs/') ? place.slice('docs/'.length) : undefined);
}

/** Links between pages stay; links to other files of the repository lead there, or become text where it has no address. */
function withLinks(text, place) {
  const name = pageOf(place);
  return text.replace(/(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)/g, (whole, label, target, anchor = '') => {
    if (/^[a-z]+:/.test(target)) return whole;
    const to = posix.normalize(posix.join(posix.dirname(place), target));
    const page = pageOf(to);
    if (page !== undefined && /\.md$/.test(to)) {
      const link = posix.relative(posix.dirname(name), page);
      return `[${label}](${link.startsWith('.') ? link : `./${link}`}${anchor})`;
    }
    return source === undefined ? label : `[${label}](${source}/${to}${anchor})`;
  });
}

/** A page for each module that programs import, with all of its public names (typedoc.json). */
function writeApi() {
  const typedoc = fileURLToPath(new URL('../bin/typedoc', import.meta.resolve('typedoc')));
  const { status } = spawnSync(process.execPath, [typedoc, '--options', 'typedoc.json'], { cwd: site, stdio: 'inherit' });
  if (status !== 0) throw new Error('typedoc cannot read the declarations in dist/');
}
