// Measures verdicts on logs whose cause is known: npm run logs -- [FOLDER of more tables] [--json]
// With --large [GIB]: the cost of a log of this size (default 2), by file and by pipe.
// With --slow SECONDS: searches for lines that are slow to read, by random joins of the rules' needles; prints the slowest.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { checkLog, NcclLogReader, verdictOf } from '../dist/planner/index.js';
import { measureLarge } from './large-log.mjs';
import { lineRules } from '../dist/planner/log/rules/all.js';

const repository = join(dirname(fileURLToPath(import.meta.url)), '..');
const folders =
  process.argv.includes('--slow') || process.argv.includes('--large')
    ? []
    : process.argv.slice(2).filter((word) => !word.startsWith('--'));
const asJson = process.argv.includes('--json');
const tables = [join(repository, 'test/logs'), ...folders];

function textOf(path) {
  const bytes = readFileSync(path);
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
}

/** Reads a text line by line, as `tccl log` does. */
function verdictOn(name, text) {
  const reader = new NcclLogReader();
  reader.openFile(name);
  for (const line of text.split('\n')) reader.readLine(line.replace(/\r$/, ''));
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

/** The logs of a folder's tables: labels.yaml names files, threads.yaml holds excerpts. */
function casesOf(folder) {
  const read = (table) => (existsSync(join(folder, table)) ? parse(readFileSync(join(folder, table), 'utf8')) : []);
  const files = read('labels.yaml').map((label) => {
    const path = [join(folder, label.file), join(repository, '../shared/logs', label.file)].find(existsSync);
    return { ...label, name: label.file, text: path === undefined ? undefined : textOf(path) };
  });
  const excerpts = read('threads.yaml').map((label) => ({ ...label, name: label.origin, text: label.log }));
  return [files, excerpts.filter(({ round }) => round === undefined), excerpts.filter(({ round }) => round !== undefined)];
}

function judge({ name, text, causes, also = [] }) {
  const named = verdictOn(name, text)
    .causes.slice(0, 3)
    .map(({ code }) => code);
  const first = causes.includes(named[0]);
  const among = named.some((code) => causes.includes(code));
  if (causes.length === 0) return { name, named, result: named.length > 0 ? 'ALARM' : 'quiet' };
  if (first) return { name, named, result: 'first' };
  if (among) return { name, named, result: 'among' };
  const isWrong = named.length > 0 && !named.every((code) => code === 'nccl-warning' || also.includes(code));
  return { name, named, result: isWrong ? 'WRONG' : 'MISSED' };
}

const large = process.argv.indexOf('--large');
if (large >= 0) {
  const [files] = casesOf(join(repository, 'test/logs'));
  await measureLarge(
    files.flatMap(({ text }) => (text === undefined ? [] : [text])),
    Number(process.argv[large + 1] ?? 2),
  );
  process.exit(0);
}

let failed = false;
for (const folder of tables) {
  for (const cases of casesOf(folder)) {
    const present = cases.filter(({ text }) => text !== undefined);
    if (present.length > 0) report(present.map(judge));
    if (present.length < cases.length)
      console.log(`${cases.length - present.length} files of the table are not in this checkout\n`);
  }
}

function report(results) {
  failed ||= results.some(({ result }) => result === 'ALARM' || result === 'WRONG');
  for (const result of results) {
    if (asJson) console.log(JSON.stringify(result));
    else console.log(`${result.result.padEnd(7)}${result.name.padEnd(58)}${result.named.join(', ')}`);
  }
  if (asJson) return;
  const count = (...kinds) => results.filter(({ result }) => kinds.includes(result)).length;
  const healthy = count('quiet', 'ALARM');
  const known = results.length - healthy;
  const share = (part, whole) => `${part} of ${whole} (${whole === 0 ? 0 : Math.round((100 * part) / whole)} %)`;
  console.log(`
cause first                  ${share(count('first'), known)}
cause among the first three  ${share(count('first', 'among'), known)}
missed                       ${share(count('MISSED'), known)}
wrong verdict                ${share(count('WRONG'), known)}
healthy with an alarm        ${share(count('ALARM'), healthy)}
`);
}
process.exitCode = failed ? 1 : 0;
