// Measures verdicts on logs whose cause is known: npm run logs -- [FOLDER of more labels] [--json]
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { checkLog, NcclLogReader, verdictOf } from '../dist/planner/index.js';

const repository = join(dirname(fileURLToPath(import.meta.url)), '..');
const folders = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const asJson = process.argv.includes('--json');
const tables = [join(repository, 'test/logs'), ...folders];

/** Reads a file line by line, as `tccl log` does. */
function verdictOn(path) {
  const bytes = readFileSync(path);
  const reader = new NcclLogReader();
  reader.openFile(path);
  for (const line of (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n')) reader.readLine(line.replace(/\r$/, ''));
  return verdictOf(checkLog(reader.finish()));
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
      file, origin, named, isHealthy,
      first: !isHealthy && causes.includes(named[0]),
      among: !isHealthy && named.some((code) => causes.includes(code)),
      wrong: !isHealthy && named.length > 0 && !causes.includes(named[0]) && !also.includes(named[0]),
      alarm: isHealthy && named.length > 0,
    });
  }
}

const known = results.filter(({ isHealthy }) => !isHealthy);
const healthy = results.filter(({ isHealthy }) => isHealthy);
const share = (list, of) => `${list.length} of ${of.length} (${of.length === 0 ? 0 : Math.round((100 * list.length) / of.length)} %)`;
if (asJson) for (const result of results) console.log(JSON.stringify(result));
else {
  for (const { file, named, first, among, isHealthy, alarm, wrong } of results) {
    const mark = isHealthy ? (alarm ? 'ALARM' : 'quiet') : first ? 'first' : among ? 'among' : wrong ? 'WRONG' : 'MISSED';
    console.log(`${mark.padEnd(7)}${file.padEnd(58)}${named.join(', ')}`);
  }
  console.log(`\ncause among the first three  ${share(known.filter(({ among }) => among), known)}`);
  console.log(`cause first                  ${share(known.filter(({ first }) => first), known)}`);
  console.log(`wrong verdict                ${share(known.filter(({ wrong }) => wrong), known)}`);
  console.log(`healthy with an alarm        ${share(healthy.filter(({ alarm }) => alarm), healthy)}`);
  if (absent > 0) console.log(`${absent} files of the table are not in this checkout`);
}
process.exitCode = results.some(({ alarm, wrong }) => alarm || wrong) ? 1 : 0;
