import { linkKindNames } from '../plan/overview/fullest-link.js';
import type { LinkKind } from '../plan/overview/fullest-link.js';
import { algorithms, protocols } from '../tuning/names.js';
import { scheduledCollectives } from '../schedule/schedule.js';

/** A thing of a plan that a text names, with its place in the text. */
export type Reference = { readonly from: number; readonly to: number } & (
  | { readonly kind: 'ring' | 'tree' | 'channel' | 'nic' | 'rank' | 'gpu'; readonly number: number }
  | { readonly kind: 'link'; readonly link: LinkKind }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'algorithm'; readonly algorithm: string; readonly protocol: string | undefined }
  | { readonly kind: 'collective'; readonly collective: string }
);

const numbered = { ring: 'ring', tree: 'tree', channel: 'channel', nic: 'nic', net: 'nic', rank: 'rank', gpu: 'gpu' } as const;
const linkKinds = Object.entries(linkKindNames) as [LinkKind, string][];

/** All references in a text, in the order of their places. */
export function referencesIn(text: string): Reference[] {
  const found: Reference[] = [];
  const add = (pattern: RegExp, make: (match: RegExpExecArray) => readonly Reference[]) => {
    for (const match of text.matchAll(pattern)) found.push(...make(match));
  };
  // `ring 0 1 2`, `NIC 3 and 5`: each number is one.
  add(
    /\b(ring|tree|channel|nic|net|rank|gpu)s? (\d+(?:(?:, | and | )\d+)*)(?![.\d]*\d| (?:x|GB|us|ms|MiB|KiB|GiB))/gi,
    (match) => {
      const [whole, word = '', list = ''] = match;
      const kind = numbered[word.toLowerCase() as keyof typeof numbered];
      const start = match.index + whole.length - list.length;
      return [...list.matchAll(/\d+/g)].map(({ 0: digits, index }) => ({
        kind,
        number: Number(digits),
        from: start + index,
        to: start + index + digits.length,
      }));
    },
  );
  add(/\bNCCL_[A-Z0-9_]+\b/g, ({ 0: name, index }) => [{ kind: 'variable', name, from: index, to: index + name.length }]);
  for (const [link, name] of linkKinds)
    add(new RegExp(`\\b${name}\\b`, 'g'), ({ 0: whole, index }) => [
      { kind: 'link', link, from: index, to: index + whole.length },
    ]);
  add(new RegExp(`\\b(${algorithms.join('|')})(?: (${protocols.join('|')}))?\\b`, 'g'), (match) => [
    { kind: 'algorithm', algorithm: match[1] ?? '', protocol: match[2], from: match.index, to: match.index + match[0].length },
  ]);
  add(new RegExp(`\\b(${scheduledCollectives.join('|')})\\b`, 'g'), ({ 0: collective, index }) => [
    { kind: 'collective', collective, from: index, to: index + collective.length },
  ]);
  return found.sort((a, b) => a.from - b.from);
}
