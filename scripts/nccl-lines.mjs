// Finds the versions of NCCL whose source has the texts of rules:
//   node scripts/nccl-lines.mjs CLONE_OF_NCCL > src/planner/log/rules/nccl-versions.ts
// The clone needs the tags of all versions. Texts in no version belong to other programs, or are put together at run time.
import { execFileSync } from 'node:child_process';
import { lineRules } from '../dist/planner/log/rules/all.js';

const [clone] = process.argv.slice(2);
if (clone === undefined) throw new Error('give a clone of NVIDIA/nccl');
const git = (...words) => execFileSync('git', ['-C', clone, ...words], { maxBuffer: 2 ** 28, encoding: 'latin1' });

/** Shorter texts may stand in a source by chance. */
const FEWEST_LETTERS = 12;
const parts = (version) => version.split('.').map(Number);
const byVersion = (a, b) => {
  const [x, y] = [parts(a), parts(b)];
  return x[0] - y[0] || x[1] - y[1] || x[2] - y[2];
};

const tags = new Map(
  git('tag', '--list', 'v2.*')
    .split('\n')
    .flatMap((tag) => {
      const [, version] = /^v(\d+\.\d+\.\d+)-\d+$/.exec(tag) ?? [];
      return version === undefined ? [] : [[version, tag]];
    }),
);
const versions = [...tags.keys()].sort(byVersion);
// The system's words, which stand in NCCL's source too, come from anywhere; older versions put names of verbs in at run time.
const ofSystem = [
  'ibv_modify_qp failed',
  'connection reset by peer',
  'driver/library version mismatch',
  'fallen off the bus',
  'argument is null',
];
const needles = [...new Set(lineRules.flatMap((rule) => rule.needles))].filter(
  (needle) => needle.trim().length >= FEWEST_LETTERS && !ofSystem.includes(needle),
);
const found = new Map();
for (const version of versions) {
  const files = git('ls-tree', '-r', '--name-only', tags.get(version), 'src')
    .split('\n')
    .filter((path) => /\.(?:cc|cu|c|h)$/.test(path));
  // Literals that are broken over lines are one text to the reader of a log.
  const source = execFileSync('git', ['-C', clone, 'cat-file', '--batch'], {
    input: files.map((path) => `${tags.get(version)}:${path}\n`).join(''),
    maxBuffer: 2 ** 28,
    encoding: 'latin1',
  })
    .replaceAll(/"\s*\n\s*"/g, '')
    .toLowerCase();
  for (const needle of needles)
    if (source.includes(needle)) found.set(needle, { since: found.get(needle)?.since ?? version, until: version });
}

const [oldest, newest] = [versions[0], versions.at(-1)];
const lines = [...found]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([needle, { since, until }]) => {
    const range = [since === oldest ? undefined : `since: '${since}'`, until === newest ? undefined : `until: '${until}'`];
    const text = needle.includes("'") ? JSON.stringify(needle) : `'${needle}'`;
    return `  [${text}, { ${range.filter((each) => each !== undefined).join(', ')} }],`;
  });
console.log(`/**
 * By text that rules look for: the versions of NCCL whose source has it, from \`${oldest}\` to \`${newest}\` where no end is given.
 * Made by \`node scripts/nccl-lines.mjs\` from NCCL's source.
 */
export const ncclVersions: ReadonlyMap<string, { readonly since?: string; readonly until?: string }> = new Map<
  string,
  { readonly since?: string; readonly until?: string }
>([
${lines.join('\n').replaceAll('{  }', '{}')}
]);`);
