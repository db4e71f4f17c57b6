// Writes docs/notes/accuracy.md: published results beside the planner's predictions. Run it with `npm run accuracy`.
import { readFileSync, writeFileSync } from 'node:fs';
import { accuracyPage } from './accuracy-page.js';

writeFileSync('docs/notes/accuracy.md', accuracyPage(readFileSync('docs/notes/published-results.yaml', 'utf8')));
