// Measures what a page loads of tccl/browser, by parts: node scripts/page-size.mjs, after npm run build.
// docs/notes/performance.md has the table, and test/browser/size.test.ts compares it.
import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { minifySync } from 'rolldown/utils';

const modules = resolve('build/modules');
/** Parts by the beginnings of their modules' paths; the first that fits counts. */
const parts = {
  programs: ['runtime/programs/', 'planner/', 'runtime/algorithms/connections/'],
  objects: ['runtime/objects/', 'runtime/platform/browser/clone'],
  messages: ['runtime/messages/', 'runtime/communicator/message'],
  'groups, graphs, grids, explain': [
    'runtime/communicator/group',
    'runtime/communicator/fusion',
    'runtime/communicator/gr',
    'runtime/communicator/neighbour',
    'runtime/communicator/explain',
    'runtime/operators/',
    'runtime/windows/',
  ],
  'split, shrink, grow, recover': [
    'runtime/communicator/children',
    'runtime/communicator/out-of-band',
    'runtime/bootstrap/survivors',
  ],
  'communicator, checks of calls': ['runtime/communicator/', 'runtime/init/', 'runtime/resources/'],
  'bootstrap network': ['runtime/bootstrap/', 'runtime/page/connect', 'runtime/page/port'],
  'algorithms in memory, calls': ['runtime/algorithms/'],
  'segment, teams, types': ['runtime/device/'],
  'waiting, failures': ['runtime/progress/', 'runtime/failure/'],
  'errors, page, platform, others': [''],
};

/**
 * The chunks that a bundler makes of `names`, without those that are loaded later.
 *
 * @param {string} names
 * @param {string} from
 * @param {boolean} minify
 */
async function bundled(names, from, minify) {
  const entry = '\0page';
  const bundle = await rolldown({
    input: entry,
    platform: 'browser',
    resolve: { conditionNames: ['browser'] },
    treeshake: { moduleSideEffects: false },
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === entry ? id : null),
        load: (id) => {
          if (id === entry) return `export { ${names} } from ${JSON.stringify(resolve(from))};`;
          // The text of the kernels is measured apart.
          return id === join(modules, 'runtime/device/kernels/kernels-wasm.js')
            ? 'export const kernelsWasm = () => undefined; export const loadKernels = async () => {};'
            : null;
        },
      },
    ],
  });
  const { output } = await bundle.generate({ format: 'esm', minify });
  await bundle.close();
  const chunks = output.filter((file) => file.type === 'chunk');
  /** @type {Set<(typeof chunks)[number]>} */
  const first = new Set();
  const load = (/** @type {(typeof chunks)[number] | undefined} */ chunk) => {
    if (chunk === undefined || first.has(chunk)) return;
    first.add(chunk);
    for (const name of chunk.imports) load(chunks.find(({ fileName }) => fileName === name));
  };
  load(chunks.find(({ isEntry }) => isEntry));
  return [...first];
}

const gzipped = (/** @type {string} */ code) => gzipSync(code, { level: 9 }).length;

async function loaded(/** @type {string} */ names) {
  const chunks = await bundled(names, 'dist/browser/index.js', true);
  return chunks.reduce((sum, { code }) => sum + gzipped(code), 0);
}

/**
 * Bytes with gzip: of a page that starts ranks, of a rank's module, and of each part of the latter: by what the rest is smaller
 * without it.
 */
export async function pageSizes() {
  const chunks = await bundled('init', 'build/modules/browser/index.js', false);
  const codes = chunks
    .flatMap((chunk) => Object.entries(chunk.modules))
    .map(([id, { code }]) => ({ part: partOf(relative(modules, id)), code: minifySync(id, code ?? '').code }));
  const without = (/** @type {string} */ part) =>
    gzipped(
      codes
        .filter((one) => one.part !== part)
        .map(({ code }) => code)
        .join('\n'),
    );
  const whole = without('');
  const joined = ['joined-start', 'joined'].map((name) => readFileSync(`dist/browser/${name}.js`, 'utf8')).join('');
  return {
    start: await loaded('spawnRanks'),
    rank: await loaded('init'),
    parts: {
      'kernels of WebAssembly': gzipped(/[\w+/]{5000,}/.exec(joined)?.[0] ?? ''),
      ...Object.fromEntries(Object.keys(parts).map((part) => [part, whole - without(part)])),
    },
  };
}

function partOf(/** @type {string} */ path) {
  return Object.entries(parts).find(([, beginnings]) => beginnings.some((beginning) => path.startsWith(beginning)))?.[0];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { start, rank, parts: sizes } = await pageSizes();
  const rows = { 'a page that starts ranks': start, "a rank's module": rank, ...sizes };
  for (const [name, bytes] of Object.entries(rows)) console.log(`| ${name} | ${(bytes / 1000).toFixed(1)} |`);
}
