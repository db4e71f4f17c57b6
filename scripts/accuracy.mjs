// Writes docs/accuracy.md: published results beside what the planner predicts for them.
import { readFileSync, writeFileSync } from 'node:fs';
import { accuracyPage } from '../dist/planner/plan/estimate/accuracy-page.js';

const docs = new URL('../docs/', import.meta.url);
writeFileSync(new URL('accuracy.md', docs), accuracyPage(readFileSync(new URL('published-results.yaml', docs), 'utf8')));
