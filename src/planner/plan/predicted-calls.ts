/** Frequently measured calls. */
export const predictedCollectives = ['AllReduce', 'AllGather', 'ReduceScatter', 'AllToAll', 'SendRecv'] as const;

/** Those of them that are messages between pairs, for which NCCL has no model. */
export const pairCollectives = ['AllToAll', 'SendRecv'] as const;

/** Ranks times sizes whose simulation takes some two seconds. */
const MOST_QUICK = 1200;

/** True if simulating calls of so many sizes takes little time, so that commands do it without being asked for. */
export function isQuickToPredict(nRanks: number, nSizes: number): boolean {
  return nRanks * nSizes <= MOST_QUICK;
}
