import {
  channelRange,
  chunkOf,
  chunksOf,
  ConnectionTable,
  type Move,
  type Range,
  roundsOf,
  type Schedule,
  type ScheduledCall,
  type Worker,
} from './schedule.js';

/** Rings, and the sizes of pieces. */
interface RingInput {
  /** By channel: all ranks in the order of the ring. */
  readonly rings: readonly ArrayLike<number>[];
  readonly chunkBytes: number;
}

/** A rank's view of its ring. */
interface RingView {
  readonly order: ArrayLike<number>;
  readonly position: number;
  readonly nRanks: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Each rank passes data on to the next one. In an all-reduce every chunk goes around twice: first it is summed, then the result
 * is copied.
 */
export function ringSchedule(call: ScheduledCall, { rings, chunkBytes }: RingInput): Schedule {
  const nRanks = rings[0]?.length ?? 0;
  const table = new ConnectionTable();
  const workers = rings.flatMap((order, channel) => {
    const own = dataOfChannel(call, nRanks, rings.length, channel);
    const connections = Array.from(order, (rank, position) => table.add(rank, order[(position + 1) % nRanks] ?? 0, channel));
    return Array.from(order, (rank, position): Worker => {
      const place = {
        order,
        position,
        nRanks,
        from: connections[(position - 1 + nRanks) % nRanks] ?? 0,
        to: connections[position] ?? 0,
      };
      return { rank, channel, moves: () => movesOf(call, place, own, chunkBytes) };
    });
  });
  return { call, nRanks, connections: table.all, workers };
}

function dataOfChannel({ collective, bytes }: ScheduledCall, nRanks: number, nChannels: number, channel: number): Range {
  const isShared = collective === 'AllGather' || collective === 'ReduceScatter';
  return channelRange(isShared ? bytes / nRanks : bytes, nChannels, channel);
}

function movesOf(call: ScheduledCall, place: RingView, own: Range, chunkBytes: number): Iterable<Move> {
  const part = call.bytes / place.nRanks;
  switch (call.collective) {
    case 'AllReduce':
      return allReduce(place, own, chunkBytes);
    case 'AllGather':
      return allGather(place, own, part, chunkBytes);
    case 'ReduceScatter':
      return reduceScatter(place, own, part, chunkBytes);
    case 'Broadcast':
      return broadcast(place, own, call.root, chunkBytes);
    case 'Reduce':
      return reduce(place, own, call.root, chunkBytes);
    default:
      throw new RangeError(`rings do no ${call.collective}`);
  }
}

function* allReduce({ position, nRanks, from, to }: RingView, own: Range, chunkBytes: number): Generator<Move> {
  const receive = [from];
  const send = [to];
  for (const round of roundsOf(own, nRanks, chunkBytes)) {
    const at = (back: number) => chunkOf(round, (position - back + 2 * nRanks) % nRanks);
    const first = at(1);
    yield { receive: [], input: first.offset, send, output: -1, bytes: first.bytes };
    for (let step = 2; step < nRanks; step++) {
      const { offset, bytes } = at(step);
      yield { receive, input: offset, send, output: -1, bytes };
    }
    const sum = at(0);
    yield { receive, input: sum.offset, send, output: sum.offset, bytes: sum.bytes };
    for (let step = 1; step < nRanks - 1; step++) {
      const { offset, bytes } = at(step);
      yield { receive, input: -1, send, output: offset, bytes };
    }
    const last = at(nRanks - 1);
    yield { receive, input: -1, send: [], output: last.offset, bytes: last.bytes };
  }
}

function* allGather(
  { order, position, nRanks, from, to }: RingView,
  own: Range,
  part: number,
  chunkBytes: number,
): Generator<Move> {
  const receive = [from];
  const send = [to];
  for (const { offset, bytes } of chunksOf(own, chunkBytes)) {
    const at = (back: number) => (order[(position - back + nRanks) % nRanks] ?? 0) * part + offset;
    yield { receive: [], input: offset, send, output: at(0), bytes };
    for (let step = 1; step < nRanks - 1; step++) yield { receive, input: -1, send, output: at(step), bytes };
    yield { receive, input: -1, send: [], output: at(nRanks - 1), bytes };
  }
}

function* reduceScatter(
  { order, position, nRanks, from, to }: RingView,
  own: Range,
  part: number,
  chunkBytes: number,
): Generator<Move> {
  const receive = [from];
  const send = [to];
  for (const { offset, bytes } of chunksOf(own, chunkBytes)) {
    const at = (back: number) => (order[(position - back + nRanks) % nRanks] ?? 0) * part + offset;
    yield { receive: [], input: at(1), send, output: -1, bytes };
    for (let step = 2; step < nRanks; step++) yield { receive, input: at(step), send, output: -1, bytes };
    yield { receive, input: at(0), send: [], output: offset, bytes };
  }
}

function* broadcast(
  { order, position, nRanks, from, to }: RingView,
  own: Range,
  root: number,
  chunkBytes: number,
): Generator<Move> {
  const isRoot = order[position] === root;
  const isLast = order[(position + 1) % nRanks] === root;
  for (const { offset, bytes } of chunksOf(own, chunkBytes)) {
    yield { receive: isRoot ? [] : [from], input: isRoot ? offset : -1, send: isLast ? [] : [to], output: offset, bytes };
  }
}

function* reduce({ order, position, nRanks, from, to }: RingView, own: Range, root: number, chunkBytes: number): Generator<Move> {
  const isRoot = order[position] === root;
  const isFirst = order[(position - 1 + nRanks) % nRanks] === root;
  for (const { offset, bytes } of chunksOf(own, chunkBytes)) {
    yield { receive: isFirst ? [] : [from], input: offset, send: isRoot ? [] : [to], output: isRoot ? offset : -1, bytes };
  }
}
