import { excerpt } from '../lines/excerpt.js';
import { type KernelStamp, kernelStampOf } from './kernel-lines.js';
import type { LogPlace } from '../lines/line.js';
import { candidatesOf } from './line-index.js';
import { ownText } from '../lines/own-text.js';
import { lineRules } from '../rules/all.js';
import type { LineRule } from '../rules/rule.js';

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

/** A kernel line that is not about this job, with the reason in words. */
export interface ApartHit {
  readonly hit: RuleHit;
  readonly reason: string;
}

/** One line of a rule. */
export interface RuleMatch {
  readonly place: LogPlace;
  readonly groups: readonly string[];
  /** The host or pod that the line names; '' if none. */
  readonly host: string;
}

interface GrowingHit extends RuleHit {
  count: number;
  readonly matches: RuleMatch[];
  readonly lastLines: Map<number, number>;
  readonly who: string[];
}

/** Lines of a rule of one file, host and hour of the kernel; all others of a rule are together. */
interface StampedHit extends GrowingHit {
  readonly stamp: KernelStamp | undefined;
}

/** Hours of the kernel that are told apart. */
const STAMP_LIMIT = 1024;
const MATCH_LIMIT = 16;
const WHO_LIMIT = 4096;
/** Characters of a line that rules match. NCCL's own lines are shorter. */
const LENGTH_LIMIT = 4000;

interface Match {
  readonly rule: LineRule;
  readonly groups: readonly string[];
  /** Text of a group named `host`, `node` or `pod`. */
  readonly host: string | undefined;
}

/** The rule of a line, or undefined where it has none. */
export function ruleOf(text: string): LineRule | undefined {
  return match(text, candidatesOf(text).rules)?.rule;
}

/** Counts the lines of each rule. */
export class RuleMatcher {
  readonly #hits = new Map<LineRule, Map<string, StampedHit>>();
  #stamps = 0;

  /**
   * @param candidates numbers of the rules whose texts are in the line
   * @param who returns the rank or process that wrote the line; called only where a rule matches
   */
  read(text: string, candidates: readonly number[], place: LogPlace, who: () => string): LineRule | undefined {
    const found = match(text, candidates);
    if (found === undefined) return undefined;
    const { rule, groups, host } = found;
    const hit = this.#hitOf(rule, text, place);
    hit.count++;
    hit.lastLines.set(place.file, place.line);
    if (hit.matches.length < MATCH_LIMIT) hit.matches.push({ place, groups, host: host ?? hit.stamp?.host ?? '' });
    if (hit.who.length < WHO_LIMIT) {
      const name = who();
      if (name !== '' && !hit.who.includes(name)) hit.who.push(name);
    }
    return rule;
  }

  #hitOf(rule: LineRule, text: string, { file }: LogPlace): StampedHit {
    let hits = this.#hits.get(rule);
    if (hits === undefined) this.#hits.set(rule, (hits = new Map<string, StampedHit>()));
    const found = kernelStampOf(text);
    const stamp = found !== undefined && this.#stamps < STAMP_LIMIT ? found : undefined;
    const key =
      stamp === undefined
        ? ''
        : `${file} ${stamp.host ?? ''} ${stamp.moment?.year ?? ''} ${Math.floor((stamp.uptime ?? (stamp.moment?.ms ?? 0) / 1000) / 3600)}`;
    let hit = hits.get(key);
    if (hit === undefined) {
      hit = { rule, count: 0, text: excerpt(text, 500), matches: [], lastLines: new Map(), who: [], stamp };
      hits.set(key, hit);
      if (stamp !== undefined) this.#stamps++;
    }
    return hit;
  }

  /**
   * One hit for each rule, and those that lines of the kernel of another time or host have.
   *
   * @param apart why a line of the kernel with this stamp is not about the job; undefined if it may be
   */
  list(apart: (stamp: KernelStamp, file: number, rule: LineRule) => string | undefined): { hits: RuleHit[]; apart: ApartHit[] } {
    const hits: RuleHit[] = [];
    const others: ApartHit[] = [];
    for (const stamped of this.#hits.values()) {
      const own: RuleHit[] = [];
      const byReason = new Map<string, RuleHit[]>();
      for (const hit of stamped.values()) {
        const reason = hit.stamp === undefined ? undefined : apart(hit.stamp, hit.matches[0]?.place.file ?? 0, hit.rule);
        if (reason === undefined) own.push(hit);
        else byReason.set(reason, [...(byReason.get(reason) ?? []), hit]);
      }
      hits.push(...merged(own));
      for (const [reason, list] of byReason) others.push(...merged(list).map((hit) => ({ hit, reason })));
    }
    return { hits, apart: others };
  }
}

/** Hits of one rule as one; none of none. */
function merged(hits: readonly RuleHit[]): RuleHit[] {
  const [first, ...others] = hits;
  if (first === undefined || others.length === 0) return first === undefined ? [] : [first];
  const lastLines = new Map<number, number>();
  for (const hit of hits) for (const [file, line] of hit.lastLines) lastLines.set(file, Math.max(line, lastLines.get(file) ?? 0));
  return [
    {
      rule: first.rule,
      count: hits.reduce((sum, { count }) => sum + count, 0),
      text: first.text,
      matches: hits.flatMap(({ matches }) => matches).slice(0, MATCH_LIMIT),
      lastLines,
      who: [...new Set(hits.flatMap(({ who }) => who))],
    },
  ];
}

function match(text: string, candidates: readonly number[]): Match | undefined {
  if (candidates.length === 0) return undefined;
  const short = text.length > LENGTH_LIMIT ? text.slice(0, LENGTH_LIMIT) : text;
  for (const index of candidates) {
    const rule = lineRules[index];
    if (rule === undefined) continue;
    const groups = rule.pattern === undefined ? undefined : rule.pattern.exec(short);
    if (groups === null || rule.except?.test(short) === true) continue;
    const { host, node = host, pod = node } = groups?.groups ?? {};
    return {
      rule,
      host: pod === undefined ? undefined : ownText(pod),
      groups: [...(groups ?? [])].slice(1).map((group: string | undefined) => ownText(group ?? '')),
    };
  }
  return undefined;
}
