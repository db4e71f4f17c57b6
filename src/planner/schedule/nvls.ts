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

/** The connections of a head with the NVSwitch, by local rank of its node. */
interface HeadLinks {
  readonly head: number;
  /** Data of each rank for the head. */
  readonly into: readonly number[];
  /** Results of the head for each rank. */
  readonly out: readonly number[];
}

function allReduce(context: Channel): Worker[] {
  const { input, table, channel } = context;
  const { nodes, heads } = input;
  const nHeads = heads[0]?.length ?? 0;
  const links = nodes.map((ranks, node) =>
    (heads[node] ?? []).map((head): HeadLinks => ({
      head,
      into: ranks.map((rank) => table.add(rank, head, channel, 'switch-in')),
      out: ranks.map((rank) => table.add(head, rank, channel, 'switch-out')),
    })),
  );
  return [
    ...nodes.flatMap((ranks, node) => ranks.flatMap((rank, local) => scatterAndGather(context, rank, local, links[node] ?? []))),
    ...Array.from({ length: nHeads }, (_, head) =>
      reduceShare(
        context,
        head,
        links.flatMap((ofNode) => ofNode[head] ?? []),
      ),
    ).flat(),
  ];
}

/** A rank's workers that copy its input to the shares of all heads, and their results to its output. */
function scatterAndGather({ call, input, channel }: Channel, rank: number, local: number, heads: readonly HeadLinks[]): Worker[] {
  const { chunkBytes, nChannels } = input;
  const own = channelRange(call.bytes, nChannels, channel);
  const into = heads.map((head) => head.into[local] ?? 0);
  const out = heads.map((head) => head.out[local] ?? 0);
  const worker = (move: (head: number, chunk: Range) => Move): Worker => ({
    rank,
    channel,
    moves: () => eachShare(own, heads.length, chunkBytes, move),
  });
  return [
    worker((head, { offset, bytes }) => ({ receive: [], input: offset, send: [into[head] ?? 0], output: -1, bytes })),
    worker((head, { offset, bytes }) => ({ receive: [out[head] ?? 0], input: -1, send: [], output: offset, bytes })),
  ];
}

/** The workers of the heads of one share, one on each node: within nodes by the switch, between them by a tree or the network. */
function reduceShare({ call, input, table, channel }: Channel, head: number, links: readonly HeadLinks[]): Worker[] {
  const { heads, chunkBytes, nChannels, tree } = input;
  const own = channelRange(call.bytes, nChannels, channel);
  const worker = (rank: number, receive: readonly number[], send: readonly number[]): Worker => ({
    rank,
    channel,
    moves: () => ofShare(own, heads[0]?.length ?? 0, head, chunkBytes, receive, send),
  });
  if (tree === undefined && links.length > 1) {
    const ports = links.map((link) => ({
      ...link,
      up: table.add(link.head, NETWORK_RANK, channel, 'net-in'),
      down: table.add(NETWORK_RANK, link.head, channel, 'net-out'),
    }));
    return [
      ...ports.flatMap(({ head: rank, into, out, up, down }) => [worker(rank, into, [up]), worker(rank, [down], out)]),
      worker(
        NETWORK_RANK,
        ports.map(({ up }) => up),
        ports.map(({ down }) => down),
      ),
    ];
  }
  const parents = links.map((_, node) => tree?.(channel, node).parent ?? -1);
  const headOf = (node: number) => links[node]?.head ?? 0;
  const rising = parents.map((parent, node) => (parent < 0 ? -1 : table.add(headOf(node), headOf(parent), channel)));
  const falling = parents.map((parent, node) => (parent < 0 ? -1 : table.add(headOf(parent), headOf(node), channel)));
  return links.flatMap((link, node) => {
    const children = tree?.(channel, node).children.filter((child) => child >= 0) ?? [];
    const fromBelow = [...link.into, ...children.map((child) => rising[child] ?? 0)];
    const toBelow = [...link.out, ...children.map((child) => falling[child] ?? 0)];
    const up = rising[node] ?? -1;
    if (up < 0) return [worker(link.head, fromBelow, toBelow)];
    return [worker(link.head, fromBelow, [up]), worker(link.head, [falling[node] ?? -1], toBelow)];
  });
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
