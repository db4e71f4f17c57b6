// Writes docs/notes/accuracy.md: measurements and published results beside the planner's predictions: `npm run accuracy`.
import { readFileSync, writeFileSync } from 'node:fs';
import { PCIE, readMeasured, readMeasuredFiles } from '../calibration/measured.js';
import { accuracyPage, compareResults } from './accuracy-page.js';
import { coverageTable } from '../calibration/coverage.js';
import { predictCards, predictLeftOut, readLeftOut } from '../calibration/left-out.js';
import { simulatedTable } from './simulated.js';

const read = (name: string) => readFileSync(`docs/notes/${name}`, 'utf8');
const published = read('published-results.yaml');
const calls = readMeasured(readMeasuredFiles(read));
const fits = readLeftOut(readFileSync('testing/calibration/left-out.jsonl', 'utf8'));
const simulated = simulatedTable(calls, fits);
const trusted = calls.filter(({ fabric, doubt }) => fabric !== PCIE && doubt === undefined);
const coverage = coverageTable([...fits.flatMap((fit) => predictLeftOut(fit, trusted)), ...predictCards(calls)]);
writeFileSync('docs/notes/accuracy.md', accuracyPage(compareResults(published), simulated, coverage));
