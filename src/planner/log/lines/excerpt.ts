import { masked } from './mask.js';
import { ownText } from './own-text.js';

/** The beginning of a text, cut at a word and marked with `…` where more follows; secrets are masked. */
export function excerpt(text: string, length: number): string {
  const whole = masked(text.trim());
  if (whole.length <= length) return ownText(whole);
  const cut = whole.slice(0, length - 1);
  const space = cut.lastIndexOf(' ');
  // A word longer than a third of the text is cut, too.
  return `${ownText(space > (2 * length) / 3 ? cut.slice(0, space).trimEnd() : cut)}…`;
}
