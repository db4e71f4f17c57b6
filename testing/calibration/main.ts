// Fits the simulation's physical parameters to measurements, leaving out one machine at a time, and prints parameters and
// errors: `npm run calibrate`. With `-- --write FILE` it also writes the tables to FILE and the parameters to FILE.json.
import { readFileSync, writeFileSync } from 'node:fs';
import { believedCalls, readMeasured } from './measured.js';
import { calibrate, calibrationTables } from './report.js';

const read = (name: string) => readFileSync(`docs/notes/${name}`, 'utf8');
const calls = readMeasured({
  aiconfigurator: read('measured/aiconfigurator.csv'),
  hosts: read('measured/h100-hosts.csv'),
  published: read('published-results.yaml'),
});
const found = calibrate(calls, believedCalls(), (line) => process.stderr.write(`${line}\n`));
process.stdout.write(calibrationTables(found));
const [flag, file] = process.argv.slice(2);
if (flag === '--write' && file !== undefined) {
  writeFileSync(file, calibrationTables(found));
  writeFileSync(`${file}.json`, `${JSON.stringify(found.physics, undefined, 2)}\n`);
}
