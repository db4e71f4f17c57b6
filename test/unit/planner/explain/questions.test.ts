import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readCluster } from '../../../../src/cli/cluster-input.js';
import { type Answer } from '../../../../src/planner/explain/answer.js';
import { rootsOf } from '../../../../src/planner/explain/counterfactual/apply.js';
import { explain } from '../../../../src/planner/explain/explain.js';
import { nearestQuestions } from '../../../../src/planner/explain/grammar/complete.js';
import { parseQuestions } from '../../../../src/planner/explain/grammar/parse.js';
import { withNicNumbers } from '../../../../src/planner/explain/nic-names.js';
import { type Situation, situationOf } from '../../../../src/planner/explain/situation.js';
import { runs } from '../../../runs.js';

/** A row of test/questions/questions.yaml, whose head describes the fields. */
interface Row {
  readonly ask: string;
  readonly on: string;
  readonly nccl?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly asks?: readonly string[];
  readonly refused?: true;
  readonly must?: 'refuse';
  readonly says?: readonly string[];
  readonly never?: readonly string[];
}

const folder = new URL('../../../questions/', import.meta.url);
const rows = parse(readFileSync(new URL('questions.yaml', folder), 'utf8')) as readonly Row[];

/** Rows of one situation stand together, so that it is planned once. */
const bySituation = new Map<string, Row[]>();
for (const row of rows) {
  const key = JSON.stringify([row.on, row.nccl, row.env]);
  bySituation.set(key, [...(bySituation.get(key) ?? []), row]);
}

async function situationFor({ on, nccl, env = {} }: Row): Promise<Situation> {
  const name = on.startsWith('machines/') ? fileURLToPath(new URL(on, folder)) : on;
  const { cluster, machines, parameters, environment, given, simulated } = await readCluster([name], {
    env: Object.entries(env).map(([variable, value]) => `${variable}=${value}`),
    ...(nccl === undefined ? {} : { nccl }),
  });
  const roots = new Map(machines.map(({ system, root }) => [system, root]));
  return situationOf(cluster, parameters, { simulated, roots, environment, ...given });
}

const textOf = ({ title, lines }: Answer) => [title, ...lines.map(({ text }) => text)].join('\n');

const groups = [...bySituation.values()].filter((_, index) => index % runs(8, 1) === 0);

describe.each(groups.map((group) => [group[0]?.on ?? '', group] as const))('on %s', (_, group) => {
  let planned: Promise<Situation> | undefined;
  it.each(group.map((row) => [row.ask, row] as const))('%s', async (__, row) => {
    let questions = parseQuestions(row.ask);
    if (row.refused === true) {
      expect(questions).toEqual([]);
      expect(nearestQuestions(row.ask)).toHaveLength(3);
      return;
    }
    planned ??= situationFor(row);
    const situation = await planned;
    questions = parseQuestions(withNicNumbers(row.ask, rootsOf(situation)));
    const isRefused = row.must === 'refuse';
    const subjects = questions.map(({ asks }) => asks);
    // Several subjects in `asks` are all of several questions, or any of one.
    if (isRefused) expect(row.asks).toBeUndefined();
    else if (subjects.length > 1) expect(subjects).toEqual(row.asks);
    else expect(row.asks).toContain(subjects[0]);
    const answers = questions.map((question) => explain(situation, question));
    const text = answers.map(textOf).join('\n');
    // No answer may leave out what decides it, and no other row may be refused for its words.
    if (isRefused) expect(answers.filter(({ asks }) => asks !== 'unclear')).toEqual([]);
    else if (row.says?.includes('I cannot tell') !== true)
      expect(text).not.toMatch(/^I cannot tell: the answer would leave out/m);
    for (const pattern of row.says ?? []) expect(text).toMatch(new RegExp(pattern));
    for (const pattern of row.never ?? []) expect(text).not.toMatch(new RegExp(pattern, 'm'));
    expect(text).not.toMatch(/undefined|NaN|\bInfinity\b|\?\?|\bnull\b/);
    // A plain value, without loss, whose references are parts of its lines.
    expect(JSON.parse(JSON.stringify(answers))).toEqual(answers);
    for (const { text: line, references } of answers.flatMap(({ lines }) => lines))
      for (const { from, to } of references) expect(line.slice(from, to)).not.toMatch(/^\s*$/);
  });
});
