import type { VerifiableCall } from './schedule.js';

/** Size of a rank's input, bytes. */
export function inputBytes({ collective, bytes, root }: VerifiableCall, nRanks: number, rank: number): number {
  switch (collective) {
    case 'AllGather':
    case 'Gather':
      return bytes / nRanks;
    case 'Broadcast':
    case 'Scatter':
      return rank === root ? bytes : 0;
    default:
      return bytes;
  }
}

/** Size of a rank's output, bytes. */
export function outputBytes({ collective, bytes, root }: VerifiableCall, nRanks: number, rank: number): number {
  switch (collective) {
    case 'ReduceScatter':
    case 'Scatter':
      return bytes / nRanks;
    case 'Reduce':
    case 'Gather':
      return rank === root ? bytes : 0;
    case 'ExclusiveScan':
      return rank > 0 ? bytes : 0;
    default:
      return bytes;
  }
}
