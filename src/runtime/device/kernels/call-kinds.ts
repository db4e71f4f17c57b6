/** Kinds of call, in the lowest four bits of a call's code: append only. */
export const callKinds = {
  allReduce: 1,
  broadcast: 2,
  barrier: 3,
  reduce: 4,
  allGather: 5,
  reduceScatter: 6,
  allToAll: 7,
  gather: 8,
  scatter: 9,
  allGatherV: 10,
  reduceScatterV: 11,
  allToAllV: 12,
  scan: 13,
  exscan: 14,
} as const;
