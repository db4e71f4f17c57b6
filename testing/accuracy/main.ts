// Writes docs/notes/accuracy.md: measurements and published results beside the planner's predictions: `npm run accuracy`.
import { readFileSync, writeFileSync } from 'node:fs';
import { readMeasured, readMeasuredFiles } from '../calibration/measured.js';
import { accuracyPage, compareResults } from './accuracy-page.js';
import { leftOutPhysics, simulatedTable } from './simulated.js';

const read = (name: string) => readFileSync(`docs/notes/${name}`, 'utf8');
const published = read('published-results.yaml');
const calls = readMeasured(readMeasuredFiles(read));
const simulated = simulatedTable(calls, leftOutPhysics(read('simulate.md')));
writeFileSync('docs/notes/accuracy.md', accuracyPage(compareResults(published), simulated));
