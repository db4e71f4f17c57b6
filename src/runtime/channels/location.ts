import type { Nic } from '../bootstrap/interfaces.js';

/** Reasons why NICs of a host carry no data, by name. */
export type LostNics = Readonly<Record<string, string>>;

/** Location of a rank on its host. */
export interface RankLocation {
  /** The kernel's number of the NUMA node that has the rank's memory. */
  readonly numaNode: number | undefined;
  /** The NICs that the rank could use; equal on all ranks of a host. */
  readonly nics: readonly Nic[];
  /** True if the user named each of these NICs: a beginning of names may also match interfaces that lead elsewhere. */
  readonly nicsNamed: boolean;
  /** NICs that were left out because they do not reach the other hosts. */
  readonly unconnected?: LostNics;
}
