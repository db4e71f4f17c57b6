// Fits the simulation's physical parameters to measurements, leaving out one machine at a time, and prints parameters and
// errors: `npm run calibrate`. With `-- --write FILE` it also writes the tables to FILE, the parameters to FILE.json
// and every prediction of what was left out to FILE.rows.csv.
import { readFileSync, writeFileSync } from 'node:fs';
import { believedCalls, PCIE, readMeasured, readMeasuredFiles } from './measured.js';
import { calibrate, calibrationTables, leftOutRow } from './report.js';

const read = (name: string) => readFileSync(`docs/notes/${name}`, 'utf8');
// Boxes without NVLinks are in the accuracy page only.
const calls = readMeasured(readMeasuredFiles(read)).filter(({ fabric }) => fabric !== PCIE);
const found = calibrate(calls, believedCalls(), (line) => process.stderr.write(`${line}\n`));
process.stdout.write(calibrationTables(found));
const [flag, file] = process.argv.slice(2);
if (flag === '--write' && file !== undefined) {
  writeFileSync(file, calibrationTables(found));
  writeFileSync(`${file}.json`, `${JSON.stringify(found.physics, undefined, 2)}\n`);
  const rows = [
    ...found.leftOut.map((row) => ['machine', row] as const),
    ...found.leftOutFabric.map((row) => ['fabric', row] as const),
  ];
  writeFileSync(`${file}.rows.csv`, rows.map(([left, row]) => `${left},${leftOutRow(row)}\n`).join(''));
}
