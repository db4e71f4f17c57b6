import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { diagnoseJob } from '../../../../src/planner/log/verdict/diagnosis.js';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';

interface Case {
  readonly folder: string;
  /** Default: all. */
  readonly files?: readonly string[];
  readonly cause: string;
  readonly outcome: 'fault' | 'healthy' | 'undecided';
  readonly first?: readonly string[];
  readonly says?: readonly string[];
  readonly among?: readonly string[];
  readonly not?: readonly string[];
}

const room = join(import.meta.dirname, '../../../logs');
const cases = parse(readFileSync(join(room, 'cases.yaml'), 'utf8')) as Case[];

describe('a job whose cause is known', () => {
  it.each(cases.map((each) => ({ ...each, title: `${each.folder} ${each.files?.join(' ') ?? ''}`.trim() })))(
    'has the right outcome and first cause: $title',
    ({ folder, files, outcome, first, says = [], among = [], not = [] }) => {
      const reader = new NcclLogReader();
      for (const file of (files ?? readdirSync(join(room, 'cases', folder))).toSorted()) {
        reader.openFile(file);
        for (const line of readFileSync(join(room, 'cases', folder, file), 'utf8').split('\n')) reader.readLine(line);
      }
      const diagnosis = diagnoseJob(reader.finish());
      const [cause] = diagnosis.verdict.causes;
      expect(diagnosis.outcome).toBe(outcome);
      if (first !== undefined) expect(first).toContain(cause?.code);
      const told = cause ?? diagnosis.open;
      const text = [told?.problem, told?.cause, told?.remedy, diagnosis.open?.command].join('\n');
      for (const pattern of says) expect(text).toMatch(new RegExp(pattern, 'm'));
      const found = diagnosis.findings.map(({ code }) => code);
      for (const code of among) expect(found).toContain(code);
      for (const code of not) expect(diagnosis.verdict.causes.map((each) => each.code)).not.toContain(code);
    },
  );
});

describe('a job that failed, of whose beginning there is no line', () => {
  const failed = [
    'c01-peer-process-gone',
    'd04-killed-by-negative-code',
    'd05-killed-in-subprocess',
    'm01-deepspeed-exit-minus7',
    'm02-exception-of-one-rank',
    'm02b-dataloader-worker-killed',
    'm13-no-evidence',
  ];
  const linesOf = (folder: string): readonly string[] =>
    readdirSync(join(room, 'cases', folder)).flatMap((file) =>
      readFileSync(join(room, 'cases', folder, file), 'utf8')
        .trimEnd()
        .split('\n'),
    );
  const test = linesOf('m05-same-pair-many-times');
  function outcomeOf(...files: readonly (readonly string[])[]): string {
    const reader = new NcclLogReader();
    for (const [index, lines] of files.entries()) {
      reader.openFile(`${index}.log`);
      for (const line of lines) reader.readLine(line);
    }
    return diagnoseJob(reader.finish()).outcome;
  }

  it.each(failed)('is not healthy because a test of NCCL beside it ended well: %s', (folder) => {
    const job = linesOf(folder);
    expect(outcomeOf(test)).toBe('healthy');
    expect([outcomeOf(job, test), outcomeOf(test, job), outcomeOf([...job, ...test]), outcomeOf([...test, ...job])]).toEqual(
      Array.from({ length: 4 }, () => 'fault'),
    );
  });

  it('but an error that a test printed and outlived does not make it a fault', () => {
    const between = test.length - 2;
    const line = 'RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)';
    expect(outcomeOf([...test.slice(0, between), line, ...test.slice(between)])).toBe('healthy');
    expect(outcomeOf([...test, line])).toBe('fault');
  });
});
