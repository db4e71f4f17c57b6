/**
 * The name among `names` that is nearest to `word`, or undefined without a near one: at most two or a third of its letters
 * differ, and never all (Levenshtein distance, case ignored).
 */
export function nearestName(word: string, names: Iterable<string>): string | undefined {
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.min(lower.length, Math.max(2, Math.floor(lower.length / 3)) + 1);
  for (const name of names) {
    const other = name.toLowerCase();
    const distance = editDistance(lower, other, bestDistance);
    // Of names as near, the first that contains the word.
    const isFuller =
      best !== undefined &&
      !best.toLowerCase().includes(lower) &&
      other.includes(lower) &&
      other.length - lower.length === bestDistance;
    if (distance < bestDistance || isFuller) {
      bestDistance = distance;
      best = name;
    }
  }
  return best;
}

/** `; did you mean x?`, or the empty string. */
export function didYouMean(word: string, names: Iterable<string>): string {
  const name = nearestName(word, names);
  return name === undefined ? '' : `; did you mean ${name}?`;
}

/** Levenshtein distance of two words, or `limit` as soon as it cannot be below. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? limit;
}
