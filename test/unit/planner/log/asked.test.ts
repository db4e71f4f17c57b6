import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { diagnoseJob } from '../../../../src/planner/log/verdict/diagnosis.js';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';
import { type Node, ts } from '../../typescript.js';

interface Sample {
  readonly command: string;
  readonly lines: readonly string[];
  readonly codes?: readonly string[];
  readonly tool?: string;
}

const samples = parse(readFileSync(join(import.meta.dirname, '../../../logs/outputs.yaml'), 'utf8')) as Sample[];
const root = join(import.meta.dirname, '../../../../src/planner/log');

/** Commands between backticks in the texts of a source file. */
function commandsIn(file: string): string[] {
  const found: string[] = [];
  const visit = (node: Node): void => {
    if (ts.isStringLiteralLike(node)) find(node.text);
    else if (ts.isTemplateExpression(node))
      find([node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('<value>'));
    node.forEachChild(visit);
  };
  const find = (text: string) => found.push(...[...text.matchAll(/`([^`]*)`/g)].map(([, command = '']) => command));
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true));
  return found;
}

describe('a command that a finding asks for', () => {
  const asked = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => commandsIn(join(root, file)))
    .filter((command) => /^[a-z]/.test(command) && !command.startsWith('tccl '));

  it.each([...new Set(asked)].sort())('has a reader of its output: %s', (command) => {
    expect(samples.some((sample) => command === sample.command || command.startsWith(`${sample.command} `))).toBe(true);
  });

  it('is one of many', () => expect(new Set(asked).size).toBeGreaterThan(40));

  it.each(samples)('$command: its output is read', ({ lines, codes, tool }) => {
    const reader = new NcclLogReader();
    reader.openFile('output.txt');
    for (const line of lines) reader.readLine(line);
    const model = reader.finish();
    if (tool !== undefined) expect(JSON.stringify([model.tools.map((each) => each.tool), model.ras.length])).toContain(tool);
    const found = diagnoseJob(model).findings.map(({ code }) => code as string);
    if (codes !== undefined)
      expect(
        codes.some((code) => found.includes(code)),
        `found: ${found.join(' ')}`,
      ).toBe(true);
  });
});
