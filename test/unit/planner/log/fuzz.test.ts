import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { verdictOf } from '../../../../src/planner/log/verdict/verdict.js';
import { randomFrom } from './made-log.js';
import { findingsOf } from './read.js';

const folder = join(import.meta.dirname, '../../../logs');
const real = join(folder, '../../../shared/logs/real');

/** Lines of real logs: excerpts, the lines of all rules, and whole files where the checkout has them. */
const lines = [
  ...readdirSync(join(folder, 'excerpts')).flatMap((name) => readFileSync(join(folder, 'excerpts', name), 'utf8').split('\n')),
  ...(parse(readFileSync(join(folder, 'threads.yaml'), 'utf8')) as readonly { readonly log: string }[]).flatMap(({ log }) =>
    log.split('\n'),
  ),
  ...Object.values(parse(readFileSync(join(folder, 'lines.yaml'), 'utf8')) as Readonly<Record<string, readonly string[]>>).flat(),
  ...(existsSync(real)
    ? readdirSync(real)
        .filter((name) => name.includes('.log'))
        .flatMap((name) => {
          const bytes = readFileSync(join(real, name));
          return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n').slice(0, 1500);
        })
    : []),
];

type Random = () => number;
const pick = <Type>(list: readonly Type[], random: Random): Type => list[Math.floor(random() * list.length)]!;

/** Ways in which logs get damaged, and ways in which patterns get slow. */
const mutations: readonly ((line: string, random: Random) => string)[] = [
  (line) => line,
  (line, random) => line.slice(0, Math.floor(random() * line.length)),
  (line, random) => line.slice(Math.floor(random() * line.length)),
  (line, random) => {
    const at = Math.floor(random() * line.length);
    return line.slice(0, at) + pick(lines, random) + line.slice(at);
  },
  (line, random) => line.replaceAll(/\d+/g, () => String(Math.floor(random() * 1e12))),
  (line, random) =>
    `${line}${pick([' ', '9', '[', ':', '/', '-1/-1/-1->', '\u001b[31m', '\r', '\ufffd'], random).repeat(Math.floor(random() * 3000))}`,
  (line) => JSON.stringify({ log: `${line}\n`, stream: 'stdout' }),
  (line, random) =>
    `${pick(['[1,0]<stdout>:', '3: ', '[rank3]:', '2026-01-02T03:04:05Z ', '(VllmWorker pid=7) ', '"'], random)}${line}`,
  (line, random) =>
    Array.from(line)
      .map((letter) => (random() < 0.03 ? String.fromCharCode(32 + Math.floor(random() * 95)) : letter))
      .join(''),
];

describe('real logs that are damaged at random', () => {
  it('never make the reader, the checks or the verdict throw', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const random = randomFrom(seed);
        const from = Math.floor(random() * lines.length);
        const text = Array.from({ length: 150 }, (_, index) =>
          pick(mutations, random)(random() < 0.7 ? lines[(from + index) % lines.length]! : pick(lines, random), random),
        );
        const { causes, consequences, remarks } = verdictOf(findingsOf(text));
        for (const { code, problem, remedy } of [...causes, ...consequences, ...remarks])
          expect([code, problem, remedy].every((part) => part.length > 0)).toBe(true);
      }),
      { numRuns: 60, seed: 20_260_722 },
    );
  });
});
