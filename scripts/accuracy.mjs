// Writes docs/notes/accuracy.md: published results beside what the planner predicts for them.
import { readFileSync, writeFileSync } from 'node:fs';
import { accuracyPage } from '../dist/planner/plan/estimate/accuracy-page.js';

const notes = new URL('../docs/notes/', import.meta.url);
writeFileSync(new URL('accuracy.md', notes), accuracyPage(readFileSync(new URL('published-results.yaml', notes), 'utf8')));
