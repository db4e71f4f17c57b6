// Chooses cases of the oracle that together execute as much of the planner as all cases do, and copies them. The corpus in
// the repository was made by
//     npm run build:testing && node build/testing/oracle/choose-corpus.js ../shared/oracle/cases testing/corpus/oracle 40 25000
// (at most 40 cases, of at most 25,000 bytes each). Each turn takes the case that adds the most blocks for its length; the
// blocks are those of V8's coverage.
import { cpSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { caseFolders, readCase } from './read-cases.js';
import { runOracleCase, sectionNames } from './run-oracle.js';

const [from = '', to = '', most = '40', longest = 'Infinity'] = process.argv.slice(2);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
// Without counts V8 reports each block only once.
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

const cases: { name: string; folder: string; blocks: Set<string>; bytes: number }[] = [];
for (const folder of caseFolders(from)) {
  const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
  if (bytes > Number(longest)) continue;
  const input = readCase(folder);
  await session.post('Profiler.takePreciseCoverage'); // resets the counts
  runOracleCase(input, sectionNames);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const blocks = result
    .filter(({ url }) => url.includes('/src/planner/'))
    .flatMap(({ url, functions }) =>
      functions.flatMap(({ ranges }) =>
        ranges.filter(({ count }) => count > 0).map(({ startOffset, endOffset }) => `${url}:${startOffset}-${endOffset}`),
      ),
    );
  cases.push({ name: input.name, folder, blocks: new Set(blocks), bytes });
}

const covered = new Set<string>();
const gainOf = (blocks: ReadonlySet<string>) => [...blocks].filter((block) => !covered.has(block)).length;
rmSync(to, { recursive: true, force: true });
mkdirSync(to, { recursive: true });
for (let chosen = 0; chosen < Number(most); chosen++) {
  const [best] = cases
    .map((one) => ({ ...one, gain: gainOf(one.blocks) }))
    .filter(({ gain }) => gain > 0)
    .sort((a, b) => b.gain / Math.sqrt(b.bytes) - a.gain / Math.sqrt(a.bytes));
  if (best === undefined) break;
  for (const block of best.blocks) covered.add(block);
  cpSync(best.folder, join(to, best.name), { recursive: true });
  console.log(`${best.name}: ${best.gain} blocks more, ${best.bytes} bytes`);
}
const all = new Set(cases.flatMap(({ blocks }) => [...blocks]));
console.log(`${covered.size} of ${all.size} blocks`);
