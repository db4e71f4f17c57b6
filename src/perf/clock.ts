/**
 * Cost of reading the clock, in seconds: the median difference of two readings in a row, in the best of several
 * series, since the first ones are interpreted.
 */
export function clockCost(): number {
  let best = Infinity;
  const apart = new Float64Array(2001);
  for (let series = 0; series < 10; series++) {
    for (let i = 0; i < apart.length; i++) {
      const before = performance.now();
      apart[i] = performance.now() - before;
    }
    best = Math.min(best, median(apart));
  }
  return best / 1e3;
}

/** The median; sorts the array. */
export function median(values: Float64Array): number {
  return values.sort()[values.length >> 1] ?? 0;
}
