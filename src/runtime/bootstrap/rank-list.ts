/** Ranks in the form `1` or `1,3-5`: ascending, without duplicates. */
export function formatRanks(ranks: Iterable<number>): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const runs: [first: number, last: number][] = [];
  for (const rank of sorted) {
    const run = runs.at(-1);
    if (run !== undefined && run[1] === rank - 1) run[1] = rank;
    else runs.push([rank, rank]);
  }
  return runs
    .map(([first, last]) => (first === last ? `${first}` : last === first + 1 ? `${first},${last}` : `${first}-${last}`))
    .join(',');
}

/** Such as `rank 1` or `ranks 1,3-5`. */
export function nameRanks(ranks: Iterable<number>): string {
  const text = formatRanks(ranks);
  return /^\d+$/.test(text) ? `rank ${text}` : `ranks ${text}`;
}

/**
 * The ranks that a mismatch is about: those that differ from most of the ranks that were compared, or all of these where none is
 * like most. The same whichever rank finds it.
 * @param alike lists of ranks that do the same
 */
export function oddRanks(alike: readonly (readonly number[])[]): number[] {
  const all = alike.flat();
  const most = alike.find((ranks) => ranks.length > all.length / 2);
  return all.filter((rank) => most?.includes(rank) !== true).sort((a, b) => a - b);
}

/** The same of values by rank. */
export function oddRanksOf(values: readonly unknown[]): number[] {
  return oddRanks([...new Set(values)].map((value) => values.flatMap((other, rank) => (other === value ? [rank] : []))));
}

/** The first `most` of these hosts, and the number of the others: `a`, `b`, `3 more hosts`. */
export function firstHosts(hosts: readonly string[], most: number): string[] {
  const more = hosts.length > most ? [`${hosts.length - most} more hosts`] : [];
  return [...hosts.slice(0, most), ...more];
}

/** The ranks below `nRanks` that a text names in these forms, in its order. */
export function ranksIn(text: string, nRanks: number): number[] {
  return [...text.matchAll(/\branks? (\d+(?:[-,]\d+)*)/g)].flatMap(([, list = '']) =>
    list.split(',').flatMap((run) => {
      const [first = 0, last = first] = run.split('-').map(Number);
      const count = Math.min(last, nRanks - 1) - first + 1;
      return Array.from({ length: Math.max(0, count) }, (_, i) => first + i);
    }),
  );
}
