//     node scripts/build-studio.mjs [FILE]        build/studio/tccl-studio.html by default
//
// Builds the page of `tccl studio`: one HTML file with its scripts and style in it, which works from a disk or any web
// server. The page's script is small and has the planned example with it: the page draws before its worker has been read.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { packedWords } from './packed-words.mjs';

/** Writes the page, unless it is newer than all that it is made of. */
export async function buildStudio(page = 'dist/studio/tccl-studio.html') {
  const inputs = [
    ...['src/planner', 'src/studio', 'src/view'].flatMap(filesIn),
    ...rootFiles(),
    'scripts/build-studio.mjs',
    'scripts/packed-words.mjs',
  ];
  if (existsSync(page) && statSync(page).mtimeMs > Math.max(...inputs.map((file) => statSync(file).mtimeMs))) return;
  const [main, worker, planned] = await Promise.all([bundled('main.tsx'), bundled('worker-main.ts'), bundled('beginning.ts')]);
  const { beginning } = await import(`data:text/javascript;base64,${Buffer.from(planned.code).toString('base64')}`);
  mkdirSync(dirname(page), { recursive: true });
  writeFileSync(
    page,
    html({
      script: inScript(main.code),
      worker: packedWords(inScript(worker.code)),
      beginning: inScript(JSON.stringify(await beginning())),
      style: readFileSync('src/studio/style.css', 'utf8').trim(),
      notices: licences([...main.moduleIds, ...worker.moduleIds]),
    }),
  );
}

/**
 * A script of the studio in one piece: that of the build as a module, those of the page as they are.
 *
 * @param {string} entry
 */
async function bundled(entry) {
  const bundle = await rolldown({
    input: `src/studio/${entry}`,
    platform: 'browser',
    plugins: [readsYamlOnly],
    treeshake: { propertyReadSideEffects: false },
    resolve: { extensionAlias: { '.js': ['.ts', '.tsx', '.js'] } },
    transform: { jsx: { runtime: 'automatic', importSource: 'preact' }, target: 'es2023' },
  });
  const format = entry === 'beginning.ts' ? 'esm' : 'iife';
  const { output } = await bundle.generate({ format, minify: format === 'iife', comments: false, codeSplitting: false });
  await bundle.close();
  return output[0];
}

/**
 * Leaves out what the page does not need of yaml, 9 kB compressed: it only reads, and a file of YAML 1.1 is read by the types of
 * YAML 1.2.
 */
const readsYamlOnly = {
  name: 'reads-yaml-only',
  /** @param {string} id */
  load: (id) => {
    if (/\/yaml\/browser\/dist\/schema\/yaml-1\.1\/schema\.js$/.test(id)) return "export { schema } from '../core/schema.js';";
    if (
      !/\/yaml\/browser\/dist\/(?:stringify\/|parse\/cst-|schema\/json\/|schema\/yaml-1\.1\/(?!merge)|doc\/(?:createNode|anchors|applyReviver))/.test(
        id,
      )
    )
      return null;
    const names = [...readFileSync(id, 'utf8').matchAll(/^export \{ (.*) \};$/gm)].flatMap(([, list = '']) => list.split(', '));
    return names.map((name) => `export const ${name} = undefined;`).join('\n');
  },
};

/**
 * A text for an element `script`: an end tag within a string would end it, and a comment's beginning would hide its end tag.
 *
 * @param {string} text
 */
const inScript = (text) => text.trim().replaceAll('</script', '<\\/script').replaceAll('<!--', '\\u003c!--');

/** @param {string} folder */
const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

const rootFiles = () => ['counted.ts', 'errors.ts', 'printable.ts', 'suggest.ts'].map((name) => `src/${name}`);

/**
 * The page. Its policy allows this script and style alone, workers and images made by it, and no request at all: names in files
 * that people open cannot run, and nothing of them leaves the page. The worker's script
 * comes last: the page draws before it is read.
 *
 * @param {{ script: string, worker: string, beginning: string, style: string, notices: string }} parts
 */
function html({ script, worker, beginning, style, notices }) {
  const hash = (/** @type {string} */ text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'worker-src blob:',
    'img-src blob: data:',
    "connect-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tccl studio</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<div id="studio"></div>
<noscript>This page plans in your browser: allow its script.</noscript>
<script type="application/json" id="files">[]</script>
<script type="application/json" id="beginning">${beginning}</script>
<script>${script}</script>
<script type="text/plain" id="worker">${worker}</script>
<!--
This page contains:

${notices}
-->
</body>
</html>
`;
}

/**
 * Licence texts of the packages that are in the script.
 *
 * @param {string[]} moduleIds
 */
function licences(moduleIds) {
  const folders = new Set(
    moduleIds.flatMap((id) => /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll('\\', '/'))?.[1] ?? []),
  );
  return [...folders]
    .sort()
    .map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
      const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim();
      return `${name} ${version}\n${text}`.replaceAll('--', '- -');
    })
    .join('\n\n');
}

// Last, because the page needs all that is above.
const isCommand = process.argv[1] === fileURLToPath(import.meta.url);
if (isCommand) {
  const page = process.argv[2] ?? 'build/studio/tccl-studio.html';
  await buildStudio(page);
  // A web server shows this of the folder.
  if (process.argv[2] === undefined) copyFileSync(page, join(dirname(page), 'index.html'));
}
