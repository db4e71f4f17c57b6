// Prints docs/reference/log-findings.md from the tables of codes and rules:
//   node scripts/log-findings.mjs > docs/reference/log-findings.md
import { logFindingCodes } from '../dist/planner/log/rules/codes.js';
import { versionsOf } from '../dist/planner/log/rules/versions-of.js';
import { lineRules } from '../dist/planner/log/rules/all.js';

/** `2.14.3 to 2.22.3`, `from 2.14.3`, `to 2.22.3`. */
function range({ since, until }) {
  if (since !== undefined && until !== undefined) return `${since} to ${until}`;
  return since !== undefined ? `from ${since}` : until !== undefined ? `to ${until}` : '';
}

const rows = new Map();
for (const rule of lineRules) {
  const { code, kind, cause, source } = rule;
  const known = rows.get(code);
  if (known === undefined) rows.set(code, { kind, cause, source, versions: versionsOf(rule) });
  else known.source ??= source;
}
const cell = (text) => text.replaceAll('|', '\\|');

console.log(`# Findings of tccl log and tccl diagnose

Codes are stable; \`--json\` has them. The page is made by \`node scripts/log-findings.mjs\` from the tables in \`src/planner/log/rules/codes.ts\` and \`rules/\`.

A finding's *kind* is its role in the incident, from the likeliest root cause down: a \`fault\` is a broken part or a wrong setting, a \`failure\`
is a failed call, a \`symptom\` follows from something else, a \`cost\` works but is slow, a \`risk\` counts only if the job did not complete
init, an \`outcome\` is the end of the job, a \`note\` is information.

## From lines

*NCCL*: the versions whose source has the text (of the first rule, if several have one code); empty if all have it, or if another program
writes it.

| code | kind | what is wrong | usual cause | NCCL | thread |
|---|---|---|---|---|---|`);
for (const [code, { kind, cause, source, versions }] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1)))
  console.log(
    `| \`${code}\` | ${kind} | ${cell(logFindingCodes[code])} | ${cell(cause)} | ${range(versions)} | ${source ?? ''} |`,
  );
console.log(`
## From the rebuilt job, the machine, recordings, tools and settings

| code | what is wrong |
|---|---|`);
for (const [code, meaning] of Object.entries(logFindingCodes).filter(([code]) => !rows.has(code)))
  console.log(`| \`${code}\` | ${cell(meaning)} |`);
console.log('| `topology-…` | findings of `tccl topo doctor`, with its codes |');
