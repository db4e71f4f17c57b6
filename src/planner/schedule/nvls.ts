import {
  channelRange,
  chunkOf,
  chunksOf,
  ConnectionTable,
  type Move,
  NETWORK_RANK,
  type Range,
  roundsOf,
  type Schedule,
  type ScheduledCall,
  type Worker,
} from './schedule.js';

/**
 * Heads of NVLink SHARP: on each node the same number of ranks, each of which has the NVSwitch add and copy a share of
 * the data.
 */
interface NvlsInput {
  readonly nRanks: number;
  /** By node: its ranks. */
  readonly nodes: readonly (readonly number[])[];
  /** By node: its heads. */
  readonly heads: readonly (readonly number[])[];
  readonly nChannels: number;
  readonly chunkBytes: number;
  /** Tree of nodes by channel; undefined where the network reduces, or there is one node. */
  readonly tree:
    ((channel: number, node: number) => { readonly parent: number; readonly children: readonly number[] }) | undefined;
}

/** Input of a schedule of one channel. */
interface Channel {
  readonly call: ScheduledCall;
  readonly input: NvlsInput;
  readonly table: ConnectionTable;
  readonly channel: number;
}

/**
 * The NVSwitch adds the data of all ranks of a node at one address, and writes a head's stores to all of them. Each warp of a
 * block has one task:
 *
 *     scatter   input of the rank ─► a share for each head, in its own memory
 *     reduce    a head loads the sum of its share from the switch, and stores it for all (between nodes: by way of
 * other nodes' heads)
 *     gather    shares of all heads ─► output
 */
export function nvlsSchedule(call: ScheduledCall, input: NvlsInput): Schedule {
  const table = new ConnectionTable();
  const workers: Worker[] = [];
  for (let channel = 0; channel < input.nChannels; channel++) {
    const context = { call, input, table, channel };
    switch (call.collective) {
      case 'AllReduce':
        workers.push(...allReduce(context));
        break;
      case 'AllGather':
        workers.push(...allGather(context));
        break;
      case 'ReduceScatter':
        workers.push(...reduceScatter(context));
        break;
      default:
        throw new RangeError(`NVLink SHARP does no ${call.collective}`);
    }
  }
  return { call, nRanks: input.nRanks, connections: table.all, workers };
}

function allReduce({ call, input, table, channel }: Channel): Worker[] {
  const { nodes, heads, chunkBytes, tree, nChannels } = input;
  const nHeads = heads[0]?.length ?? 0;
  const own = channelRange(call.bytes, nChannels, channel);
  const workers: Worker[] = [];
  const sums: number[][] = [];
  const results: number[][] = [];
  const switches = nodes.map((ranks, node) =>
    (heads[node] ?? []).map((head) => ({
      head,
      into: ranks.map((rank) => table.add(rank, head, channel, 'switch-in')),
      out: ranks.map((rank) => table.add(head, rank, channel, 'switch-out')),
    })),
  );
  nodes.forEach((ranks, node) =>
    ranks.forEach((rank, local) => {
      const into = switches[node]?.map((share) => share.into[local] ?? 0) ?? [];
      const out = switches[node]?.map((share) => share.out[local] ?? 0) ?? [];
      workers.push({
        rank,
        channel,
        moves: () =>
          eachShare(own, nHeads, chunkBytes, (head, { offset, bytes }) => ({
            receive: [],
            input: offset,
            send: [into[head] ?? 0],
            output: -1,
            bytes,
          })),
      });
      workers.push({
        rank,
        channel,
        moves: () =>
          eachShare(own, nHeads, chunkBytes, (head, { offset, bytes }) => ({
            receive: [out[head] ?? 0],
            input: -1,
            send: [],
            output: offset,
            bytes,
          })),
      });
    }),
  );
  for (let head = 0; head < nHeads; head++) {
    const at = (node: number) => switches[node]?.[head]?.head ?? 0;
    const rising = nodes.map((_, node) => {
      const parent = tree?.(channel, node).parent ?? -1;
      return parent < 0 ? -1 : table.add(at(node), at(parent), channel);
    });
    const falling = nodes.map((_, node) => {
      const parent = tree?.(channel, node).parent ?? -1;
      return parent < 0 ? -1 : table.add(at(parent), at(node), channel);
    });
    const reducing = nodes.length > 1 && tree === undefined;
    nodes.forEach((_, node) => {
      const share = switches[node]?.[head];
      if (share === undefined) return;
      const children = tree === undefined ? [] : tree(channel, node).children.filter((child) => child >= 0);
      const up = reducing ? table.add(share.head, NETWORK_RANK, channel, 'net-in') : (rising[node] ?? -1);
      const down = reducing ? table.add(NETWORK_RANK, share.head, channel, 'net-out') : (falling[node] ?? -1);
      if (reducing) {
        (sums[head] ??= []).push(up);
        (results[head] ??= []).push(down);
      }
      const fromBelow = [...share.into, ...children.map((child) => rising[child] ?? 0)];
      const toBelow = [...share.out, ...children.map((child) => falling[child] ?? 0)];
      const pass = (receive: readonly number[], send: readonly number[]) =>
        workers.push({ rank: share.head, channel, moves: () => ofShare(own, nHeads, head, chunkBytes, receive, send) });
      if (up < 0) {
        pass(fromBelow, toBelow);
      } else {
        pass(fromBelow, [up]);
        pass([down], toBelow);
      }
    });
    if (reducing)
      workers.push({
        rank: NETWORK_RANK,
        channel,
        moves: () => ofShare(own, nHeads, head, chunkBytes, sums[head] ?? [], results[head] ?? []),
      });
  }
  return workers;
}

function* eachShare(own: Range, nHeads: number, chunkBytes: number, move: (head: number, chunk: Range) => Move): Generator<Move> {
  for (const round of roundsOf(own, nHeads, chunkBytes)) {
    for (let head = 0; head < nHeads; head++) yield move(head, chunkOf(round, head));
  }
}

function* ofShare(
  own: Range,
  nHeads: number,
  head: number,
  chunkBytes: number,
  receive: readonly number[],
  send: readonly number[],
): Generator<Move> {
  for (const round of roundsOf(own, nHeads, chunkBytes))
    yield { receive, input: -1, send, output: -1, bytes: chunkOf(round, head).bytes };
}

/** Every rank is a head of its own part; one node, or a network that gathers. */
function allGather({ call, input, table, channel }: Channel): Worker[] {
  const { nRanks, nodes, chunkBytes, nChannels } = input;
  const part = call.bytes / nRanks;
  const own = channelRange(part, nChannels, channel);
  return nodes.flatMap((ranks) => {
    const out = ranks.map((head) => ranks.map((rank) => table.add(head, rank, channel, 'switch-out')));
    return ranks.flatMap((rank, local): Worker[] => [
      {
        rank,
        channel,
        moves: () =>
          copies(own, chunkBytes, ({ offset, bytes }) => [
            { receive: [], input: offset, send: out[local] ?? [], output: -1, bytes },
          ]),
      },
      {
        rank,
        channel,
        moves: () =>
          copies(own, chunkBytes, ({ offset, bytes }) =>
            ranks.map((head, index) => ({
              receive: [out[index]?.[local] ?? 0],
              input: -1,
              send: [],
              output: head * part + offset,
              bytes,
            })),
          ),
      },
    ]);
  });
}

/** The mirror image of the all-gather. */
function reduceScatter({ call, input, table, channel }: Channel): Worker[] {
  const { nRanks, nodes, chunkBytes, nChannels } = input;
  const part = call.bytes / nRanks;
  const own = channelRange(part, nChannels, channel);
  return nodes.flatMap((ranks) => {
    const into = ranks.map((head) => ranks.map((rank) => table.add(rank, head, channel, 'switch-in')));
    return ranks.flatMap((rank, local): Worker[] => [
      {
        rank,
        channel,
        moves: () =>
          copies(own, chunkBytes, ({ offset, bytes }) =>
            ranks.map((head, index) => ({
              receive: [],
              input: head * part + offset,
              send: [into[index]?.[local] ?? 0],
              output: -1,
              bytes,
            })),
          ),
      },
      {
        rank,
        channel,
        moves: () =>
          copies(own, chunkBytes, ({ offset, bytes }) => [
            { receive: into[local] ?? [], input: -1, send: [], output: offset, bytes },
          ]),
      },
    ]);
  });
}

function* copies(own: Range, chunkBytes: number, moves: (chunk: Range) => readonly Move[]): Generator<Move> {
  for (const chunk of chunksOf(own, chunkBytes)) yield* moves(chunk);
}
