/** Calls by which the list of one rank may begin later than that of another. */
const MOST_SHIFT = 64;

/** The number of entries by which a list begins later than another, so that most are alike; the smallest of several. */
export function shiftOf<Entry>(
  list: readonly Entry[],
  reference: readonly Entry[],
  isAlike: (entry: Entry, other: Entry) => boolean,
): number {
  const alike = (shift: number) =>
    list.filter((entry, place) => {
      const other = reference[place + shift];
      return other !== undefined && isAlike(entry, other);
    }).length;
  let best = { shift: 0, alike: alike(0) };
  for (let shift = 1; shift <= MOST_SHIFT && best.alike < list.length; shift++)
    for (const each of [shift, -shift]) {
      const count = alike(each);
      if (count > best.alike) best = { shift: each, alike: count };
    }
  return best.shift;
}
