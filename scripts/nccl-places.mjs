// Compares the places in NCCL's source that pages name (`search.cc:614`) with docs/notes/nccl-places.yaml, which has a word of
// each line, and with a checkout of NCCL where one is given.
//
//     node scripts/nccl-places.mjs                        every place of the docs has an entry, and every entry a place
//     node scripts/nccl-places.mjs --nccl DIR             the same, and prints each line; fails if a line lacks its word
//     node scripts/nccl-places.mjs --nccl DIR --write     writes the file again, for new places
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';

const root = fileURLToPath(new URL('..', import.meta.url));
const TAG = 'v2.30.7-1';
const FOLDERS = ['docs/notes', 'docs/learn', 'docs/reference'].filter((folder) => existsSync(join(root, folder)));
const LIST = join(root, 'docs/notes/nccl-places.yaml');

/** Places by page: `search.cc:614` in backquotes. */
function placesOfDocs() {
  return FOLDERS.flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`))
    .filter((name) => name.endsWith('.md'))
    .flatMap((page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(/`([a-z_0-9]+\.(?:cc|cu|h)):(\d+)`/g)].map(([, file, line]) => ({
        page,
        file,
        line: Number(line),
      })),
    );
}

/** Words by file of NCCL and line. */
function knownPlaces() {
  return parse(readFileSync(LIST, 'utf8')).places;
}

/** Differences between docs and the list, as sentences. */
function differences(places = placesOfDocs(), known = knownPlaces()) {
  const paths = new Map(Object.keys(known).map((path) => [basename(path), path]));
  const named = new Set(places.map(({ file, line }) => `${file}:${line}`));
  return [
    ...places
      .filter(({ file, line }) => known[paths.get(file)]?.[line] === undefined)
      .map(({ page, file, line }) => `${page}: ${file}:${line} is not in nccl-places.yaml`),
    ...Object.entries(known).flatMap(([path, lines]) =>
      Object.keys(lines)
        .filter((line) => !named.has(`${basename(path)}:${line}`))
        .map((line) => `nccl-places.yaml: no page names ${basename(path)}:${line}`),
    ),
  ];
}

function git(checkout, ...args) {
  return execFileSync('git', ['-C', checkout, ...args], { encoding: 'utf8', maxBuffer: 2 ** 26 });
}

/** Compares the list with the source. @returns faults */
function compareWith(checkout) {
  const faults = [];
  for (const [path, lines] of Object.entries(knownPlaces())) {
    const source = git(checkout, 'show', `${TAG}:${path}`).split('\n');
    for (const [line, word] of Object.entries(lines)) {
      const text = source[Number(line) - 1];
      console.log(`${basename(path)}:${line}\t${text?.trim() ?? 'there is no such line'}`);
      if (text?.includes(word) !== true) faults.push(`${path}:${line} does not contain ${word}`);
    }
  }
  return faults;
}

function write(checkout) {
  const files = git(checkout, 'ls-tree', '-r', '--name-only', TAG, 'src').split('\n');
  const found = {};
  for (const { page, file, line } of placesOfDocs()) {
    // Of files with one name, docs mean the one that is least deep.
    const depth = (path) => path.split('/').length;
    const [path] = files.filter((each) => basename(each) === file).sort((a, b) => depth(a) - depth(b));
    if (path === undefined) throw new Error(`${page}: NCCL has no ${file}`);
    const text = git(checkout, 'show', `${TAG}:${path}`).split('\n')[line - 1] ?? '';
    // The longest word identifies the line.
    const word = (text.match(/[A-Za-z_][A-Za-z_0-9]*/g) ?? []).sort((a, b) => b.length - a.length)[0];
    if (word === undefined) throw new Error(`${page}: ${file}:${line} has no word: ${text}`);
    (found[path] ??= {})[line] = word;
  }
  const sorted = Object.fromEntries(
    Object.keys(found)
      .sort()
      .map((path) => [path, found[path]]),
  );
  writeFileSync(
    LIST,
    `# Lines of NCCL that docs name, each with its longest word. scripts/nccl-places.mjs writes and compares it.\n${stringify({ tag: TAG, places: sorted })}`,
  );
}

const at = process.argv.indexOf('--nccl');
const checkout = at < 0 ? undefined : process.argv[at + 1];
if (checkout !== undefined && process.argv.includes('--write')) write(checkout);
const faults = [...differences(), ...(checkout === undefined ? [] : compareWith(checkout))];
for (const fault of faults) console.error(fault);
console.error(`${placesOfDocs().length} places, ${faults.length} faults`);
if (faults.length > 0) process.exitCode = 1;
