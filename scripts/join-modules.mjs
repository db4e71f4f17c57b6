// Writes dist/ from the modules that tsc made. Node.js takes 0.2 s of processor time to load the 250 modules of a rank, and
// 0.04 s to load the same code in few files.
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';

const modules = resolve('build/modules');
const kernels = 'src/runtime/device/kernels/kernels.wasm';
/** The names of the modules that dist/ was made of. */
const record = 'build/joined.json';
/** Modules with which a process or a thread starts. They run when they are imported: no other module may share their file. */
const programs = [
  'cli/main.js',
  'perf/algorithm-times-rank.js',
  'runtime/pool/pool-rank.js',
  'runtime/threads/direct-thread.js',
  'runtime/threads/network-thread.js',
].map((file) => join(modules, file));
/** Modules that programs of users import. */
const entries = ['', 'planner/', 'ddp/', 'browser/', 'webgpu/', 'cuda/'].map((folder) => join(modules, `${folder}index.js`));

/** Modules that processes load at their start. Modules that the same starts import are joined in one file. */
const starts = {
  // Ranks of several hosts load the second as they start.
  api: ['index.js', 'runtime/resources/network-engine-of.js'],
  run: ['cli/main.js', 'cli/run/run.js'],
  planner: ['planner/index.js'],
  plan: [
    'cli/program.js',
    'cli/commands/plan.js',
    'cli/plan/plan.js',
    'planner/plan/checks/check-plan.js',
    'planner/plan/prediction.js',
  ],
  log: ['cli/program.js', 'cli/commands/log.js', 'cli/log/show.js'],
  perf: [
    'cli/program.js',
    'cli/commands/perf.js',
    'perf/run.js',
    'perf/report.js',
    'runtime/init/init.js',
    'runtime/resources/network-engine-of.js',
  ],
};

/** Joins the modules, unless dist/ is newer than all of them, the kernels and this script. */
export async function joinModules() {
  const files = namesIn(modules).filter((file) => file.endsWith('.js'));
  const inputs = [...files.map((file) => join(modules, file)), kernels, 'scripts/join-modules.mjs', 'package.json'];
  if (isDone(files, Math.max(...inputs.map((file) => statSync(file).mtimeMs)))) return;

  await joinForBrowsers(inputs);
  const forNode = files.filter((file) => !ofBrowsers.test(file));
  const bundle = await rolldown({
    // Each module can be imported by its own path: threads, benchmarks and tests do, and commands import what they need.
    input: Object.fromEntries(forNode.map((file) => [file.slice(0, -'.js'.length), join(modules, file)])),
    external: /^(node:|[^./#])/,
    platform: 'neutral',
    treeshake: false,
    preserveEntrySignatures: 'allow-extension',
    checks: { ineffectiveDynamicImport: false },
    plugins: [kernelsInCode(inNode), buildInCode(inputs)],
  });
  const { output } = await bundle.write({
    dir: 'dist',
    format: 'esm',
    // Editors show those of the declarations.
    comments: { legal: true, annotation: true, jsdoc: false },
    entryFileNames: '[name].js',
    // src/own-module.ts, which asks for its own folder, is in one of the joined files.
    chunkFileNames: ({ name }) => (name.startsWith('joined-') ? '[name].js' : 'parts/[name].js'),
    codeSplitting: { groups: groups() },
  });
  await bundle.close();
  const written = new Set(output.map(({ fileName }) => fileName));
  for (const file of namesIn('dist'))
    if (/\.(js|js\.map)$/.test(file) && !written.has(file) && !file.startsWith('browser/')) rmSync(join('dist', file));
  chmodSync('dist/cli/main.js', 0o755);
  await joinDeclarations();
  writeFileSync('dist/.npmignore', notPublished(output));
  writeFileSync(record, JSON.stringify(files));
}

/** Writes dist/types: the declarations of each entry in one file, and what several of them use in further ones. */
async function joinDeclarations() {
  rmSync('dist/types', { recursive: true, force: true });
  const bundle = await rolldown({
    input: Object.fromEntries(
      entries.map((file) => [nameOf(file), join('dist', relative(modules, file)).replace(/js$/, 'd.ts')]),
    ),
    external: /^node:/,
    checks: { pluginTimings: false },
    plugins: [dts({ dtsInput: true, tsconfig: false })],
  });
  await bundle.write({ dir: 'dist/types', format: 'esm', chunkFileNames: 'shared/[name].js', minifyInternalExports: false });
  await bundle.close();
}

/** The name of an entry in dist/types: that of its folder. */
function nameOf(file) {
  const path = relative(modules, file);
  return path === 'index.js' ? 'index' : dirname(path);
}

/** Modules for pages alone. */
const ofBrowsers = /^(browser|runtime\/page|runtime\/platform\/browser)\//;

/**
 * Writes dist/browser: a file of what starts ranks, one of what ranks load first, and files for later. Few files compress better
 * than many; bundlers drop the second from a page that only starts ranks.
 */
async function joinForBrowsers(inputs) {
  for (const file of namesIn('dist')) if (/^browser\/.*\.js$/.test(file)) rmSync(join('dist', file));
  const entry = join(modules, 'browser/index.js');
  const ofStart = ['spawn', 'open-pool'].map((name) => join(modules, `runtime/page/${name}.js`));
  const joined = (name, files, priority) => {
    let imported;
    return {
      debugName: name,
      name: (id, context) => {
        imported ??= new Set(files.flatMap((file) => [...withImports(file, context)]));
        return imported.has(id) ? name : null;
      },
      priority,
    };
  };
  const bundle = await rolldown({
    input: { index: entry, webgpu: join(modules, 'webgpu/index.js'), ddp: join(modules, 'ddp/index.js') },
    platform: 'browser',
    resolve: { conditionNames: ['browser'] },
    // Neither Node's modules nor names of ours without a form for pages.
    onLog(level, log) {
      throw new Error(`${level} in what pages load: ${log.message}`);
    },
    plugins: [kernelsInCode(inPages), buildInCode(inputs)],
  });
  await bundle.write({
    dir: 'dist/browser',
    format: 'esm',
    comments: { legal: true, annotation: true, jsdoc: false },
    chunkFileNames: ({ name }) => (name.startsWith('joined') ? '[name].js' : '[name]-[hash].js'),
    codeSplitting: { groups: [joined('joined-start', ofStart, 1), joined('joined', [entry], 0)] },
  });
  await bundle.close();
}

/**
 * Lines for npm, of the files in dist/ that only our tests and benchmarks import, by the path of their module. What users'
 * programs and the command load, in whatever way, is published, and the joined declarations.
 */
function notPublished(output) {
  const chunks = new Map(output.filter(({ type }) => type === 'chunk').map((chunk) => [chunk.fileName, chunk]));
  const loaded = new Set();
  const load = (fileName) => {
    const chunk = chunks.get(fileName);
    if (chunk === undefined || loaded.has(fileName)) return;
    loaded.add(fileName);
    [...chunk.imports, ...chunk.dynamicImports].forEach(load);
  };
  const published = [...programs, ...entries].map((id) => relative(modules, id));
  published.forEach(load);

  const others = namesIn('dist').filter(
    (file) =>
      (file.endsWith('.js') && !loaded.has(file) && !file.startsWith('browser/')) ||
      (file.endsWith('.d.ts') && !file.startsWith('types/')),
  );
  return [...others.sort().map((file) => `/${file}`), ''].join('\n');
}

const namesIn = (folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' });

function isDone(files, newestMs) {
  if (!existsSync(record) || !existsSync('dist/types/index.d.ts') || readFileSync(record, 'utf8') !== JSON.stringify(files))
    return false;
  return files
    .filter((file) => !ofBrowsers.test(file))
    .every((file) => existsSync(join('dist', file)) && statSync(join('dist', file)).mtimeMs >= newestMs);
}

/** A file for each set of starts, of the modules that exactly these import. */
function groups() {
  const names = Object.keys(starts);
  const sets = Array.from({ length: 2 ** names.length - 1 }, (_, i) => names.filter((_, bit) => ((i + 1) >> bit) & 1));
  const users = new Map();
  const ofCommands = new Set();
  const ofStarts = sets.map((set) => ({
    debugName: set.join('-'),
    name: (id, context) => {
      if (users.size === 0) for (const name of names) addUser(users, name, context);
      return users.get(id)?.join() === set.join() ? `joined-${set.join('-')}` : null;
    },
    // A module is placed together with its imports, unless they were placed before: those of many starts come first.
    priority: set.length,
  }));
  const others = {
    debugName: 'others',
    name: (id, context) => {
      if (ofCommands.size === 0) addOfCommands(ofCommands, context);
      return ofCommands.has(id) && !users.has(id) ? 'joined-others' : null;
    },
    priority: 0,
  };
  // Rooms that few programs load, in a file each.
  const rooms = {
    'joined-devices': /^(devices|webgpu)\//,
    'joined-cuda': /^(cuda|runtime\/device\/cuda)\//,
    'joined-ddp': /^ddp\//,
  };
  const ofRooms = Object.entries(rooms).map(([name, path]) => ({
    debugName: name,
    name: (id) => (path.test(relative(modules, id)) ? name : null),
    priority: 0,
  }));
  return [...ofStarts, ...ofRooms, others];
}

/** A module and all that it imports, directly or not. */
function withImports(entry, context) {
  const seen = new Set();
  const visit = (id) => {
    if (seen.has(id)) return;
    seen.add(id);
    context.getModuleInfo(id)?.importedIds.forEach(visit);
  };
  visit(entry);
  return seen;
}

/** Adds the modules that commands alone load, when they are run: no thread and no program of a user should read them. */
function addOfCommands(set, context) {
  const loaded = (id, seen, follow) => {
    const info = context.getModuleInfo(id);
    if (seen.has(id) || info === null || !id.startsWith(modules)) return seen;
    seen.add(id);
    for (const each of [...info.importedIds, ...(follow ? info.dynamicallyImportedIds : [])]) loaded(each, seen, follow);
    return seen;
  };
  const main = join(modules, 'cli/main.js');
  const elsewhere = new Set();
  for (const start of [...programs, ...entries]) if (start !== main) loaded(start, elsewhere, false);
  for (const id of loaded(main, new Set(), true)) {
    const { importers } = context.getModuleInfo(id);
    if (importers.length > 0 && !elsewhere.has(id) && !programs.includes(id) && !entries.includes(id)) set.add(id);
  }
}

/** Adds a start to the list of each module that it imports, directly or not. */
function addUser(users, name, context) {
  const visit = (id) => {
    const list = users.get(id) ?? [];
    if (!id.startsWith(modules) || list.includes(name)) return;
    users.set(id, programs.includes(id) ? [] : [...list, name]);
    context.getModuleInfo(id).importedIds.forEach(visit);
  };
  for (const file of starts[name]) visit(join(modules, file));
}

/** Puts a hash of all modules into src/version.ts, so that ranks of different builds know each other. */
const buildInCode = (files) => ({
  name: 'build-in-code',
  transform: (code, id) => {
    if (id !== join(modules, 'version.js')) return null;
    const hash = createHash('sha256');
    for (const file of files.toSorted()) hash.update(readFileSync(file));
    const made = code.replace("BUILD = ''", `BUILD = '${hash.digest('hex').slice(0, 8)}'`);
    if (made === code) throw new Error('src/version.ts has no place for the hash of the build');
    return made;
  },
});

/** Puts the kernels into the module that reads them: a bundle has no other files. */
const kernelsInCode = (codeOf) => ({
  name: 'kernels-in-code',
  load: (id) => (id === join(modules, 'runtime/device/kernels/kernels-wasm.js') ? codeOf(readFileSync(kernels)) : null),
});

const inNode = (bytes) => `const base64 = '${bytes.toString('base64')}';
export const kernelsWasm = () => Buffer.from(base64, 'base64');
export const loadKernels = async () => {};
`;

/** Pages load bytes over a network, which compresses base64 by no more than its quarter: it is deflated before. */
const inPages = (bytes) => `const base64 = '${deflateRawSync(bytes, { level: 9 }).toString('base64')}';
let kernels;
export const kernelsWasm = () => kernels;
export const loadKernels = async () => {
  if (kernels !== undefined) return;
  const deflated = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const inflated = new Blob([deflated]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  kernels = new Uint8Array(await new Response(inflated).arrayBuffer());
};
`;
