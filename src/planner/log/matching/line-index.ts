import { deathNeedles } from '../deaths/tracker.js';
import { sectionNeedles } from '../../readers/sections.js';
import { NeedleFinder } from './needles.js';
import { lineRules } from '../rules/all.js';

/** Everything that is found by its text: rules first, then ends of processes, then first lines of tools' outputs. */
const owners = [...lineRules.map(({ needles }) => needles), ...deathNeedles, ...sectionNeedles];
const DEATHS_AT = lineRules.length;
const TOOLS_AT = DEATHS_AT + deathNeedles.length;

interface Index {
  /** Finds the texts of all owners. */
  readonly finder: NeedleFinder;
  /** Adds the owners of a text to those that were found. */
  readonly collect: (needle: number) => void;
}

/** Made at the first line: plans, which load this file too, need none. */
let made: Index | undefined;

function makeIndex(): Index {
  const byNeedle = new Map<string, number[]>();
  owners.forEach((texts, owner) => {
    for (const text of new Set(texts)) {
      const known = byNeedle.get(text);
      if (known === undefined) byNeedle.set(text, [owner]);
      else known.push(owner);
    }
  });
  const ownersOfNeedle = [...byNeedle.values()];
  const collect = (needle: number) => {
    for (const owner of ownersOfNeedle[needle] ?? []) found.add(owner);
  };
  return { finder: new NeedleFinder([...byNeedle.keys()]), collect };
}

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
  made ??= makeIndex();
  made.finder.find(text, made.collect);
  if (found.size === 0) return none;
  const ordered = [...found].sort((a, b) => a - b);
  found.clear();
  return {
    rules: ordered.filter((index) => index < DEATHS_AT),
    deaths: ordered.filter((index) => index >= DEATHS_AT && index < TOOLS_AT).map((index) => index - DEATHS_AT),
    tools: ordered.filter((index) => index >= TOOLS_AT).map((index) => index - TOOLS_AT),
  };
}
