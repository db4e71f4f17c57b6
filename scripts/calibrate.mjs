// Fits the simulation's physical parameters to what was measured, leaving out one machine at a time, and prints
// parameters and errors. With --write FILE it also writes the tables there, and the fitted parameters to FILE.json.
import { readFileSync, writeFileSync } from 'node:fs';
import { readMeasured } from '../dist/planner/plan/calibration/measured.js';
import { calibrate, calibrationTables } from '../dist/planner/plan/calibration/report.js';

const notes = new URL('../docs/notes/', import.meta.url);
const read = (name) => readFileSync(new URL(name, notes), 'utf8');
const calls = readMeasured({
  aiconfigurator: read('measured/aiconfigurator.csv'),
  hosts: read('measured/h100-hosts.csv'),
  published: read('published-results.yaml'),
});
const found = calibrate(calls, (line) => process.stderr.write(`${line}\n`));
const tables = calibrationTables(found);
process.stdout.write(tables);
const [flag, file] = process.argv.slice(2);
if (flag === '--write' && file !== undefined) {
  writeFileSync(file, tables);
  writeFileSync(`${file}.json`, `${JSON.stringify(found.physics, undefined, 2)}\n`);
}
