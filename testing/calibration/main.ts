// Fits the simulation's physical parameters to measurements, leaving out one machine at a time, and prints parameters and
// errors: `npm run calibrate`. The parameters of all fits go to testing/calibration/left-out.jsonl, which `npm run accuracy`
// reads. With `-- --write FILE` it also writes the tables to FILE, the parameters to FILE.json and every prediction of what was
// left out to FILE.rows.csv.
import { readFileSync, writeFileSync } from 'node:fs';
import { believedCalls, readMeasured, readMeasuredFiles } from './measured.js';
import { leftOutText } from './left-out.js';
import { calibrate, calibrationTables, leftOutRow } from './report.js';

const read = (name: string) => readFileSync(`docs/notes/${name}`, 'utf8');
const calls = readMeasured(readMeasuredFiles(read));
const found = calibrate(calls, believedCalls(), (line) => process.stderr.write(`${line}\n`));
process.stdout.write(calibrationTables(found));
writeFileSync('testing/calibration/left-out.jsonl', leftOutText(found.fits));
const [flag, file] = process.argv.slice(2);
if (flag === '--write' && file !== undefined) {
  writeFileSync(file, calibrationTables(found));
  writeFileSync(`${file}.json`, `${JSON.stringify(found.physics, undefined, 2)}\n`);
  writeFileSync(`${file}.rows.csv`, found.leftOut.map((row) => `${row.left.by},${leftOutRow(row)}\n`).join(''));
}
