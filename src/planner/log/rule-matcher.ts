import { excerpt } from './excerpt.js';
import type { LogPlace } from './line.js';
import { candidatesOf } from './line-index.js';
import { ownText } from './own-text.js';
import { lineRules } from './rules/all.js';
import type { LineRule } from './rules/rule.js';

/** Matches of one rule. */
export interface RuleHit {
  readonly rule: LineRule;
  readonly count: number;
  /** The first line. */
  readonly text: string;
  /** The first lines, with the groups of the rule's pattern. */
  readonly matches: readonly RuleMatch[];
  /** By file, its last line that matched. */
  readonly lastLines: ReadonlyMap<number, number>;
  /** Ranks or processes that wrote such lines. */
  readonly who: readonly string[];
}

/** One line of a rule. */
export interface RuleMatch {
  readonly place: LogPlace;
  readonly groups: readonly string[];
}

interface GrowingHit extends RuleHit {
  count: number;
  readonly matches: RuleMatch[];
  readonly lastLines: Map<number, number>;
  readonly who: string[];
}

const MATCH_LIMIT = 16;
const WHO_LIMIT = 4096;
/** Characters of a line that rules match. NCCL's own lines are shorter. */
const LENGTH_LIMIT = 4000;

interface Match {
  readonly rule: LineRule;
  readonly groups: readonly string[];
}

/** The rule of a line, or undefined where it has none. */
export function ruleOf(text: string): LineRule | undefined {
  return match(text, candidatesOf(text).rules)?.rule;
}

/** Counts the lines of each rule. */
export class RuleMatcher {
  readonly #hits = new Map<LineRule, GrowingHit>();

  /**
   * @param candidates numbers of the rules whose texts are in the line
   * @param who returns the rank or process that wrote the line; called only where a rule matches
   */
  read(text: string, candidates: readonly number[], place: LogPlace, who: () => string): LineRule | undefined {
    const found = match(text, candidates);
    if (found === undefined) return undefined;
    const { rule, groups } = found;
    let hit = this.#hits.get(rule);
    if (hit === undefined)
      this.#hits.set(rule, (hit = { rule, count: 0, text: excerpt(text, 500), matches: [], lastLines: new Map(), who: [] }));
    hit.count++;
    hit.lastLines.set(place.file, place.line);
    if (hit.matches.length < MATCH_LIMIT) hit.matches.push({ place, groups });
    if (hit.who.length < WHO_LIMIT) {
      const name = who();
      if (name !== '' && !hit.who.includes(name)) hit.who.push(name);
    }
    return rule;
  }

  list(): RuleHit[] {
    return [...this.#hits.values()];
  }
}

function match(text: string, candidates: readonly number[]): Match | undefined {
  if (candidates.length === 0) return undefined;
  const short = text.length > LENGTH_LIMIT ? text.slice(0, LENGTH_LIMIT) : text;
  for (const index of candidates) {
    const rule = lineRules[index];
    if (rule === undefined) continue;
    const groups = rule.pattern === undefined ? [] : rule.pattern.exec(short);
    if (groups === null || rule.except?.test(short) === true) continue;
    return { rule, groups: groups.slice(1).map((group: string | undefined) => ownText(group ?? '')) };
  }
  return undefined;
}
