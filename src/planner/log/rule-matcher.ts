import type { LogPlace } from './line.js';
import { NeedleFinder } from './needles.js';
import { ownText } from './own-text.js';
import { lineRules } from './rules/all.js';
import type { LineRule } from './rules/rule.js';

/** Matches of one rule. */
export interface RuleHit {
  readonly rule: LineRule;
  readonly count: number;
  /** Groups of the rule's pattern in the first line. */
  readonly groups: readonly string[];
  /** The first line. */
  readonly text: string;
  readonly places: readonly LogPlace[];
  /** Ranks or processes that wrote such lines. */
  readonly who: readonly string[];
}

interface GrowingHit extends RuleHit {
  count: number;
  readonly places: LogPlace[];
  readonly who: string[];
}

const PLACE_LIMIT = 8;
const WHO_LIMIT = 4096;
/** Characters of a line that rules match. NCCL's own lines are shorter. */
const LENGTH_LIMIT = 4000;

const needles = [...new Set(lineRules.flatMap((rule) => rule.needles))];
const rulesOfNeedle = needles.map((needle) => lineRules.flatMap((rule, index) => (rule.needles.includes(needle) ? [index] : [])));
const finder = new NeedleFinder(needles);

/** Matches every line with the table of rules. */
export class RuleMatcher {
  readonly #hits = new Map<LineRule, GrowingHit>();
  readonly #candidates = new Set<number>();

  /** Finds the rule of a line, or undefined where it has none. */
  ruleOf(text: string): LineRule | undefined {
    return this.#match(text)?.rule;
  }

  /** @param who returns the rank or process that wrote the line; called only where a rule matches */
  read(text: string, place: LogPlace, who: () => string): LineRule | undefined {
    const match = this.#match(text);
    if (match === undefined) return undefined;
    const { rule, groups } = match;
    let hit = this.#hits.get(rule);
    if (hit === undefined)
      this.#hits.set(rule, (hit = { rule, groups, count: 0, text: ownText(text.trim().slice(0, 500)), places: [], who: [] }));
    hit.count++;
    if (hit.places.length < PLACE_LIMIT) hit.places.push(place);
    if (hit.who.length < WHO_LIMIT) {
      const name = who();
      if (name !== '' && !hit.who.includes(name)) hit.who.push(name);
    }
    return rule;
  }

  list(): RuleHit[] {
    return [...this.#hits.values()];
  }

  #match(text: string): { readonly rule: LineRule; readonly groups: readonly string[] } | undefined {
    const candidates = this.#candidates;
    finder.find(text, (needle) => {
      for (const rule of rulesOfNeedle[needle] ?? []) candidates.add(rule);
    });
    if (candidates.size === 0) return undefined;
    const short = text.length > LENGTH_LIMIT ? text.slice(0, LENGTH_LIMIT) : text;
    const ordered = [...candidates].sort((a, b) => a - b);
    candidates.clear();
    for (const index of ordered) {
      const rule = lineRules[index];
      if (rule === undefined) continue;
      const match = rule.pattern === undefined ? [] : rule.pattern.exec(short);
      if (match === null || rule.except?.test(short) === true) continue;
      return { rule, groups: match.slice(1).map((group: string | undefined) => ownText(group ?? '')) };
    }
    return undefined;
  }
}
