import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { NeedleFinder } from '../../../../src/planner/log/matching/needles.js';
import { logFindingCodes } from '../../../../src/planner/log/rules/codes.js';
import { ruleOf } from '../../../../src/planner/log/matching/rule-matcher.js';
import { lineRules } from '../../../../src/planner/log/rules/all.js';
import { versionsOf } from '../../../../src/planner/log/rules/versions-of.js';
import { compareVersions } from '../../../../src/planner/versions/version.js';
import { verdictOf } from '../../../../src/planner/log/verdict/verdict.js';
import { type Node, ts } from '../../typescript.js';
import { findingsOf } from './read.js';

interface Label {
  readonly file: string;
  readonly causes: readonly string[];
  readonly also?: readonly string[];
}

const folder = join(import.meta.dirname, '../../../logs');
interface Thread {
  readonly origin: string;
  readonly causes: readonly string[];
  readonly log: string;
  /** Known to raise an alarm, and why. */
  readonly alarm?: string;
}

const labels = parse(readFileSync(join(folder, 'labels.yaml'), 'utf8')) as Label[];
const threads = parse(readFileSync(join(folder, 'threads.yaml'), 'utf8')) as Thread[];
const lines = parse(readFileSync(join(folder, 'lines.yaml'), 'utf8')) as Readonly<Record<string, readonly string[]>>;

function linesOf(file: string): string[] | undefined {
  const path = [join(folder, file), join(folder, '../../../shared/logs', file)].find(existsSync);
  if (path === undefined) return undefined;
  const bytes = readFileSync(path);
  return (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString().split('\n');
}

describe('a log whose cause is known', () => {
  it.each(labels.filter(({ causes }) => causes.length > 0))('has it first in its verdict: $file', ({ file, causes }) => {
    const text = linesOf(file);
    if (text === undefined) return;
    expect(causes).toContain(verdictOf(findingsOf(text)).causes[0]?.code);
  });

  it.each(labels.filter(({ causes }) => causes.length === 0))('that is healthy has no finding: $file', ({ file }) => {
    const text = linesOf(file);
    if (text === undefined) return;
    expect(
      findingsOf(text)
        .filter(({ severity }) => severity !== 'info')
        .map(({ problem }) => problem),
    ).toEqual([]);
  });
});

describe('an excerpt of a thread', () => {
  it.each(threads.filter(({ causes }) => causes.length > 0))('has its cause first: $origin', ({ log, causes }) => {
    expect(causes).toContain(verdictOf(findingsOf(log.split('\n'))).causes[0]?.code);
  });

  it.each(threads.filter(({ causes, alarm }) => causes.length === 0 && alarm === undefined))(
    'that is healthy has no finding: $origin',
    ({ log }) => {
      expect(findingsOf(log.split('\n')).filter(({ severity }) => severity !== 'info')).toEqual([]);
    },
  );
});

describe('the table of rules', () => {
  it.each(Object.entries(lines).flatMap(([code, list]) => list.map((line) => ({ code, line }))))(
    'has $code: $line',
    ({ code, line }) => {
      expect(ruleOf(line)?.code ?? 'none').toBe(code);
    },
  );

  it('is in the reference, code by code, with the meanings of the table of codes', () => {
    const page = readFileSync(join(folder, '../../docs/reference/log-findings.md'), 'utf8');
    const rowOf = (code: string) => page.split('\n').find((line) => line.startsWith(`| \`${code}\` |`)) ?? '';
    const wrong = Object.entries(logFindingCodes).filter(([code, meaning]) => !rowOf(code).includes(` ${meaning} |`));
    expect(wrong.map(([code]) => code)).toEqual([]);
    expect(lineRules.filter(({ code }) => rowOf(code) === '').map(({ code }) => code)).toEqual([]);
  });

  it('has a real line for every code', () => {
    expect([...new Set(lineRules.map(({ code }) => code))].filter((code) => !(code in lines))).toEqual([]);
  });

  it('has needles in lower case that occur in the matches of the patterns', () => {
    for (const { code, needles } of lineRules) for (const needle of needles) expect(needle, code).toBe(needle.toLowerCase());
  });

  it('has no unbounded repetition, so matching takes linear time', () => {
    for (const { code, pattern, except } of lineRules) {
      for (const form of [pattern, except]) {
        const bare = form?.source.replaceAll(/\\.|\[(?:\\.|[^\]])*\]/g, 'x') ?? '';
        expect(/[*+]|\{\d+,\}/.test(bare), `${code}: ${bare}`).toBe(false);
      }
    }
  });
});

describe('patterns of the reader', () => {
  const room = join(import.meta.dirname, '../../../../src/planner/log');
  const literals = readdirSync(room, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const found: { readonly name: string; readonly pattern: string }[] = [];
      const visit = (node: Node) => {
        if (ts.isRegularExpressionLiteral(node)) found.push({ name, pattern: node.text });
        ts.forEachChild(node, visit);
      };
      visit(ts.createSourceFile(name, readFileSync(join(room, name), 'utf8'), ts.ScriptTarget.Latest));
      return found;
    });

  /** Each repetition begins with a sign that the rest of it cannot hold, so there is one way to match. */
  const unambiguous: readonly string[] = [
    String.raw`/^Channel (\d+)\/(\d+) :((?: +\d+)+)(.*)$/`,
    String.raw`/^(NET|COLLNET)\/([^/]+)\/(\d+)(?:\((\d+)\))?((?:\/[A-Za-z]+|\([A-Za-z]+\))*)$/`,
    String.raw`/^P2P\/(?:(direct pointer)|(CUMEM|IPC|MNNVL)|indirect\/(\d+)\[[0-9a-f]+\])((?:\/[A-Za-z]+)*)(?: .*)?$/`,
    String.raw`/^NVLS Head +(\d+):((?: +\d+)+)$/`,
  ];

  it('have no nested unbounded repetition, which takes exponential time', () => {
    expect(literals.length).toBeGreaterThan(200);
    for (const { name, pattern } of literals) {
      let bare = pattern.replaceAll(/\\.|\[(?:\\.|[^\]])*\]/g, 'x');
      let nested = false;
      // From the inside out: a group is a letter then, and one that repeats without a bound is a capital.
      for (let before = ''; before !== bare;) {
        before = bare;
        bare = bare.replaceAll(/\((?:\?(?:[:=!]|<[=!]|<\w+>))?([^()]*)\)/g, (_, inside: string) =>
          /[*+A]|\{\d+,\}/.test(inside) ? 'A' : 'x',
        );
        nested ||= /A(?:[*+]|\{\d+,\})/.test(bare);
      }
      if (nested) expect(unambiguous, `${name}: ${pattern}`).toContain(pattern);
    }
  });
});

describe('versions of rules', () => {
  it('are ranges of existing versions', () => {
    for (const rule of lineRules) {
      const { since, until } = versionsOf(rule);
      for (const version of [since, until])
        if (version !== undefined) expect(version, rule.code).toMatch(/^2\.\d{1,2}\.\d{1,2}$/);
      if (since !== undefined && until !== undefined) expect(compareVersions(since, until), rule.code).toBeLessThanOrEqual(0);
    }
    expect(versionsOf({ needles: ['no such text'] })).toEqual({});
    expect(versionsOf({ needles: ['async event :'] })).toEqual({ until: '2.22.3' });
    expect(versionsOf({ needles: ['async event :', 'async fatal event'] })).toEqual({});
    expect(versionsOf({ needles: ['bootstrap : using'] })).toEqual({ since: '2.4.8', until: '2.23.4' });
  });
});

describe('NeedleFinder', () => {
  it('finds all needles, overlapping and nested, in any case', () => {
    const needles = ['he', 'she', 'his', 'hers', 'xid ('];
    const found: string[] = [];
    new NeedleFinder(needles).find('uSHErs Xid (', (index) => found.push(needles[index] ?? ''));
    expect(found.sort()).toEqual(['he', 'hers', 'she', 'xid (']);
  });

  it('agrees with indexOf', () => {
    const random = (seed: number) => () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
    const next = random(11);
    const word = (length: number) => Array.from({ length }, () => 'ab:'[Math.floor(next() * 3)]).join('');
    for (let round = 0; round < 200; round++) {
      const needles = [...new Set(Array.from({ length: 12 }, () => word(1 + Math.floor(next() * 5))))];
      const text = word(60);
      const found = new Set<string>();
      new NeedleFinder(needles).find(text, (index) => found.add(needles[index] ?? ''));
      expect([...found].sort()).toEqual(needles.filter((needle) => text.includes(needle)).sort());
    }
  });
});
