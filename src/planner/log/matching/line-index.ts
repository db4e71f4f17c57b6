import { deathNeedles } from '../deaths/tracker.js';
import { sectionNeedles } from '../../readers/sections.js';
import { NeedleFinder } from './needles.js';
import { lineRules } from '../rules/all.js';

/** Everything that is found by its text: rules first, then ends of processes, then first lines of tools' outputs. */
const owners = [...lineRules.map(({ needles }) => needles), ...deathNeedles, ...sectionNeedles];
const DEATHS_AT = lineRules.length;
const TOOLS_AT = DEATHS_AT + deathNeedles.length;
const needles = [...new Set(owners.flat())];
const ownersOfNeedle = needles.map((needle) => owners.flatMap((texts, index) => (texts.includes(needle) ? [index] : [])));
const finder = new NeedleFinder(needles);

/** Candidates of one line, in the order of their tables. */
export interface Candidates {
  readonly rules: readonly number[];
  readonly deaths: readonly number[];
  readonly tools: readonly number[];
}

const none: Candidates = { rules: [], deaths: [], tools: [] };
const found = new Set<number>();

/** The rules, forms and tools whose texts are in a line, found in one pass over it. */
export function candidatesOf(text: string): Candidates {
  finder.find(text, collect);
  if (found.size === 0) return none;
  const ordered = [...found].sort((a, b) => a - b);
  found.clear();
  return {
    rules: ordered.filter((index) => index < DEATHS_AT),
    deaths: ordered.filter((index) => index >= DEATHS_AT && index < TOOLS_AT).map((index) => index - DEATHS_AT),
    tools: ordered.filter((index) => index >= TOOLS_AT).map((index) => index - TOOLS_AT),
  };
}

function collect(needle: number): void {
  for (const owner of ownersOfNeedle[needle] ?? []) found.add(owner);
}
