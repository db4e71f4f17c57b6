// Chooses cases of the oracle that together execute as much of the planner as all of them, and copies them:
//     npm run -s build && node scripts/choose-corpus.mjs ../shared/oracle/cases testing/corpus/oracle 40 25000
// 40 cases at most, of cases of at most 25,000 bytes.
// Each turn takes the case that executes the most blocks which no chosen one does, for its length. Blocks are V8's.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { runOracleCase, sectionNames } from '../dist/planner/plan/oracle/run-oracle.js';

const [from = '', to = '', most = '40', longest = 'Infinity'] = process.argv.slice(2);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
// Counting: without counts V8 reports each block once only.
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

const cases = [];
for (const name of readdirSync(from)) {
  const folder = join(from, name);
  const texts = new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  const bytes = [...texts.values()].reduce((sum, text) => sum + text.length, 0);
  if (bytes > Number(longest)) continue;
  const json = (/** @type {string} */ file) => JSON.parse(texts.get(file) ?? '');
  await session.post('Profiler.takePreciseCoverage'); // forgets what was executed before
  runOracleCase(
    {
      name,
      case: json('case.json'),
      expected: json('expected.json'),
      files: new Map([...texts].filter(([file]) => file.endsWith('.xml'))),
    },
    sectionNames,
  );
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const blocks = result
    .filter(({ url }) => url.includes('/dist/planner/'))
    .flatMap(({ url, functions }) =>
      functions.flatMap(({ ranges }) =>
        ranges.filter(({ count }) => count > 0).map(({ startOffset, endOffset }) => `${url}:${startOffset}-${endOffset}`),
      ),
    );
  cases.push({ name, folder, blocks: new Set(blocks), bytes });
}

const covered = new Set();
const gainOf = (/** @type {Set<string>} */ blocks) => [...blocks].filter((block) => !covered.has(block)).length;
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
