import { channelRange, chunksOf, ConnectionTable, type Move, type Range, type Schedule, type ScheduledCall } from './schedule.js';

/**
 * Parallel trees (PAT): the part of each rank goes over a binomial tree that starts at that rank, far ranks first.
 * Ranks are connected at distances that are powers of two. The rank that is `away` ranks behind the start of a tree
 * gets its part from `away` less its lowest bit, and passes it on at each smaller power of two.
 *
 *     away 0 ─► 4 ─► 6 ─► 7         8 ranks: the tree of a part
 *          │    └──► 5
 *          ├──► 2 ─► 3
 *          └──► 1
 *
 * A rank serves its places in all trees in the order of `away`, so the nearest rank can always continue, with one slot for each
 * connection. A reduce-scatter is the same backwards.
 */
export function patSchedule(call: ScheduledCall, nRanks: number, nChannels: number, chunkBytes: number): Schedule {
  const table = new ConnectionTable();
  const part = call.bytes / nRanks;
  const distances = Array.from({ length: Math.ceil(Math.log2(nRanks)) }, (_, bit) => 2 ** bit);
  const isGather = call.collective === 'AllGather';
  const workers = Array.from({ length: nChannels }, (_, channel) => {
    const own = channelRange(part, nChannels, channel);
    const leaving = Array.from({ length: nRanks }, (_, rank) =>
      distances.map((distance) =>
        isGather ? table.add(rank, (rank + distance) % nRanks, channel) : table.add((rank + distance) % nRanks, rank, channel),
      ),
    );
    return leaving.map((near, rank) => {
      // Connections with ranks behind, and with those before.
      const far = distances.map((distance, bit) => leaving[(rank - distance + nRanks) % nRanks]?.[bit] ?? 0);
      return { rank, channel, moves: () => movesOf(isGather, rank, nRanks, near, far, own, part, chunkBytes) };
    });
  }).flat();
  return { call, nRanks, connections: table.all, workers };
}

function* movesOf(
  isGather: boolean,
  rank: number,
  nRanks: number,
  near: readonly number[],
  far: readonly number[],
  own: Range,
  part: number,
  chunkBytes: number,
): Generator<Move> {
  for (const { offset, bytes } of chunksOf(own, chunkBytes)) {
    for (let place = 0; place < nRanks; place++) {
      const away = isGather ? place : nRanks - 1 - place;
      const above = away === 0 ? [] : [far[lowestBit(away)] ?? 0];
      const below = near.filter((_, bit) => continues(away, bit, nRanks));
      const start = away === 0 ? offset : -1;
      const block = ((rank - away + nRanks) % nRanks) * part + offset;
      yield isGather
        ? { receive: above, input: start, send: below, output: block, bytes }
        : { receive: below, input: block, send: above, output: start, bytes };
    }
  }
}

/** True if a tree goes on from a place over the distance 2^bit. */
function continues(away: number, bit: number, nRanks: number): boolean {
  return (away === 0 || bit < lowestBit(away)) && away + 2 ** bit < nRanks;
}

function lowestBit(value: number): number {
  return 31 - Math.clz32(value & -value);
}
