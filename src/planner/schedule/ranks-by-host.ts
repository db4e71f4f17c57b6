/** The ranks of each host. */
export type RanksByHost = readonly (readonly number[])[];

/** Number of shares that large calls of *hierarchical* are divided into. */
export function sharesOf(hosts: RanksByHost): number {
  return Math.max(...hosts.map(({ length }) => length));
}
