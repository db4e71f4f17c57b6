import { deathNeedles } from './deaths/tracker.js';
import { NeedleFinder } from './needles.js';
import { lineRules } from './rules/all.js';

/** Everything that is found by its text: rules first, then ends of processes. */
const owners = [...lineRules.map(({ needles }) => needles), ...deathNeedles];
const needles = [...new Set(owners.flat())];
const ownersOfNeedle = needles.map((needle) => owners.flatMap((texts, index) => (texts.includes(needle) ? [index] : [])));
const finder = new NeedleFinder(needles);

/** Candidates of one line, in the order of their tables. */
export interface Candidates {
  readonly rules: readonly number[];
  readonly deaths: readonly number[];
}

const none: Candidates = { rules: [], deaths: [] };
const found = new Set<number>();

/** The rules and forms whose texts are in a line, found in one pass over it. */
export function candidatesOf(text: string): Candidates {
  finder.find(text, collect);
  if (found.size === 0) return none;
  const ordered = [...found].sort((a, b) => a - b);
  found.clear();
  return {
    rules: ordered.filter((index) => index < lineRules.length),
    deaths: ordered.filter((index) => index >= lineRules.length).map((index) => index - lineRules.length),
  };
}

function collect(needle: number): void {
  for (const owner of ownersOfNeedle[needle] ?? []) found.add(owner);
}
