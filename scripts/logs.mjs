// Measures verdicts on logs whose cause is known: npm run logs -- [FOLDER of more labels] [--json]
// With --slow SECONDS: looks for lines that take long to read, by random joins of what rules look for; prints the slowest.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { checkLog, NcclLogReader, verdictOf } from '../dist/planner/index.js';
import { lineRules } from '../dist/planner/log/rules/all.js';

const repository = join(dirname(fileURLToPath(import.meta.url)), '..');
const folders = process.argv.includes('--slow') ? [] : process.argv.slice(2).filter((word) => !word.startsWith('--'));
const asJson = process.argv.includes('--json');
const tables = [join(repository, 'test/logs'), ...folders];

/** Reads a file line by line, as `tccl log` does. */
function verdictOn(path) {
  const bytes = readFileSync(path);
  const reader = new NcclLogReader();
  reader.openFile(path);
  for (const line of (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n'))
    reader.readLine(line.replace(/\r$/, ''));
  return verdictOf(checkLog(reader.finish()));
}

const slow = process.argv.indexOf('--slow');
if (slow >= 0) {
  findSlowLines(Number(process.argv[slow + 1]));
  process.exit(0);
}

/** Lines of 64 KiB, the longest that are read, of repeated pieces: a pattern that is not linear takes seconds for one. */
function findSlowLines(seconds) {
  const words = [
    ...lineRules.flatMap(({ needles }) => needles),
    'NCCL WARN ',
    'NCCL INFO ',
    'node1:1:2 [0] NCCL INFO ',
    'Channel 00/1 : ',
    'Trees [0] ',
    '->',
    '-1/-1/-1',
    '[',
    ']',
    ' ',
    '9',
    '/',
    ':',
    '(',
    'comm 0x',
    '{',
    '"',
    '# Rank 0 Pid',
    '+ NVL[',
  ];
  const pick = () => words[Math.floor(Math.random() * words.length)];
  let worst = { ms: 0, line: '' };
  let count = 0;
  for (const end = Date.now() + seconds * 1000; Date.now() < end; count++) {
    const piece = Array.from({ length: 1 + Math.floor(Math.random() * 4) }, pick).join(Math.random() < 0.5 ? ' ' : '');
    const line = (Math.random() < 0.5 ? pick() : '') + piece.repeat(65_536 / piece.length);
    const reader = new NcclLogReader();
    reader.openFile('slow');
    const begin = performance.now();
    reader.readLine(line);
    const ms = performance.now() - begin;
    if (ms > worst.ms) worst = { ms, line };
  }
  console.log(
    `${count} lines of 64 KiB; the slowest took ${worst.ms.toFixed(1)} ms: ${JSON.stringify(worst.line.slice(0, 120))}`,
  );
}

const results = [];
let absent = 0;
for (const table of tables) {
  for (const { file, causes, also = [], origin } of parse(readFileSync(join(table, 'labels.yaml'), 'utf8'))) {
    const path = [join(table, file), join(repository, '../shared/logs', file)].find(existsSync);
    if (path === undefined) {
      absent++;
      continue;
    }
    const verdict = verdictOn(path);
    const named = verdict.causes.slice(0, 3).map(({ code }) => code);
    const isHealthy = causes.length === 0;
    results.push({
      file,
      origin,
      named,
      isHealthy,
      first: !isHealthy && causes.includes(named[0]),
      among: !isHealthy && named.some((code) => causes.includes(code)),
      wrong: !isHealthy && named.length > 0 && !causes.includes(named[0]) && !also.includes(named[0]),
      alarm: isHealthy && named.length > 0,
    });
  }
}

const known = results.filter(({ isHealthy }) => !isHealthy);
const healthy = results.filter(({ isHealthy }) => isHealthy);
const share = (list, of) =>
  `${list.length} of ${of.length} (${of.length === 0 ? 0 : Math.round((100 * list.length) / of.length)} %)`;
if (asJson) for (const result of results) console.log(JSON.stringify(result));
else {
  for (const { file, named, first, among, isHealthy, alarm, wrong } of results) {
    const mark = isHealthy ? (alarm ? 'ALARM' : 'quiet') : first ? 'first' : among ? 'among' : wrong ? 'WRONG' : 'MISSED';
    console.log(`${mark.padEnd(7)}${file.padEnd(58)}${named.join(', ')}`);
  }
  console.log(
    `\ncause among the first three  ${share(
      known.filter(({ among }) => among),
      known,
    )}`,
  );
  console.log(
    `cause first                  ${share(
      known.filter(({ first }) => first),
      known,
    )}`,
  );
  console.log(
    `wrong verdict                ${share(
      known.filter(({ wrong }) => wrong),
      known,
    )}`,
  );
  console.log(
    `healthy with an alarm        ${share(
      healthy.filter(({ alarm }) => alarm),
      healthy,
    )}`,
  );
  if (absent > 0) console.log(`${absent} files of the table are not in this checkout`);
}
process.exitCode = results.some(({ alarm, wrong }) => alarm || wrong) ? 1 : 0;
