/** A process's place among the ranks, as its launcher tells it through the environment. */
export interface Place {
  /** Which launcher told it: `tccl`, `openmpi`, `mpich`, `pmix`, `slurm`, `torchrun`. */
  readonly launcher: string;
  readonly rank: number;
  readonly nRanks: number;
  /** Undefined where the launcher doesn't say. */
  readonly localRank: number | undefined;
  readonly nLocalRanks: number | undefined;
  /** A printable unique id, or `host:port` of rank 0; undefined where nobody says (one rank, or an error later). */
  readonly commId: string | undefined;
}
