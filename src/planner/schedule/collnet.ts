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

/** A chain through the ranks of each node; its first rank reaches a network that reduces. */
interface ChainInput {
  readonly nRanks: number;
  /** By channel and node: the ranks of the chain, head first. */
  readonly chains: readonly (readonly (readonly number[])[])[];
  readonly chunkBytes: number;
}

/** An all-reduce: sums go up the chains and into the network, the result comes back down. */
export function collnetChainSchedule(call: ScheduledCall, { nRanks, chains, chunkBytes }: ChainInput): Schedule {
  const table = new ConnectionTable();
  const workers = chains.flatMap((nodes, channel) => {
    const own = channelRange(call.bytes, chains.length, channel);
    const made: Worker[] = [];
    const into: number[] = [];
    const out: number[] = [];
    for (const chain of nodes) {
      const rising = chain.map((rank, depth) =>
        depth === 0 ? table.add(rank, NETWORK_RANK, channel, 'net-in') : table.add(rank, chain[depth - 1] ?? 0, channel),
      );
      const falling = chain.map((rank, depth) =>
        depth === 0 ? table.add(NETWORK_RANK, rank, channel, 'net-out') : table.add(chain[depth - 1] ?? 0, rank, channel),
      );
      into.push(rising[0] ?? 0);
      out.push(falling[0] ?? 0);
      chain.forEach((rank, depth) => {
        const isLast = depth === chain.length - 1;
        const up = { receive: isLast ? [] : [rising[depth + 1] ?? 0], send: [rising[depth] ?? 0] };
        const down = { receive: [falling[depth] ?? 0], send: isLast ? [] : [falling[depth + 1] ?? 0] };
        made.push({
          rank,
          channel,
          moves: () => each(own, chunkBytes, ({ offset, bytes }) => ({ ...up, input: offset, output: -1, bytes })),
        });
        made.push({
          rank,
          channel,
          moves: () => each(own, chunkBytes, ({ offset, bytes }) => ({ ...down, input: -1, output: offset, bytes })),
        });
      });
    }
    made.push({
      rank: NETWORK_RANK,
      channel,
      moves: () => each(own, chunkBytes, ({ bytes }) => ({ receive: into, input: -1, send: out, output: -1, bytes })),
    });
    return made;
  });
  return { call, nRanks, connections: table.all, workers };
}

/** Heads that all ranks of their node reach directly, and that reach a network that reduces. */
interface DirectInput {
  readonly nRanks: number;
  /** By node: its ranks, and those of them that are heads. */
  readonly nodes: readonly { readonly ranks: readonly number[]; readonly heads: readonly number[] }[];
  readonly nChannels: number;
  readonly chunkBytes: number;
}

/** Links of a head: with the network, and with each rank of its node by local rank; -1 with itself. */
interface HeadLinks {
  readonly rank: number;
  readonly up: number;
  readonly down: number;
  readonly into: readonly number[];
  readonly out: readonly number[];
}

/** A node's ranks, and the links of its heads. */
interface DirectNode {
  readonly ranks: readonly number[];
  readonly heads: readonly HeadLinks[];
}

/**
 * Each head serves its share of the data, the network that of all nodes.
 *
 *     AllReduce       ranks ─► head adds ─► network adds ─► head ─► ranks
 *     AllGather                head ─► network gathers ─► head ─► ranks            every rank is a head of its part
 *     ReduceScatter   ranks ─► head adds ─► network adds ─► head of the part
 */
export function collnetDirectSchedule(call: ScheduledCall, input: DirectInput): Schedule {
  const table = new ConnectionTable();
  const workers: Worker[] = [];
  for (let channel = 0; channel < input.nChannels; channel++) {
    const nodes = input.nodes.map(({ ranks, heads }): DirectNode => ({
      ranks,
      heads: heads.map((rank) => directLinks(table, channel, rank, ranks, call.collective)),
    }));
    workers.push(...directWorkers(call, input, channel, nodes).map((worker) => ({ ...worker, channel })));
  }
  return { call, nRanks: input.nRanks, connections: table.all, workers };
}

function directLinks(
  table: ConnectionTable,
  channel: number,
  rank: number,
  ranks: readonly number[],
  collective: ScheduledCall['collective'],
): HeadLinks {
  const toOthers = (used: boolean, add: (other: number) => number) =>
    ranks.map((other) => (used && other !== rank ? add(other) : -1));
  return {
    rank,
    up: table.add(rank, NETWORK_RANK, channel, 'net-in'),
    down: table.add(NETWORK_RANK, rank, channel, 'net-out'),
    into: toOthers(collective !== 'AllGather', (other) => table.add(other, rank, channel, 'to-head')),
    out: toOthers(collective !== 'ReduceScatter', (other) => table.add(rank, other, channel, 'from-head')),
  };
}

/** The part of the data that a head stands for, and the number of the head on its node. */
interface Part {
  readonly head: HeadLinks;
  readonly share: number;
}

type ChannelWorker = Omit<Worker, 'channel'>;

function directWorkers(call: ScheduledCall, input: DirectInput, channel: number, nodes: readonly DirectNode[]): ChannelWorker[] {
  const { nRanks, nChannels, chunkBytes } = input;
  switch (call.collective) {
    case 'AllReduce':
      return directAllReduce(channelRange(call.bytes, nChannels, channel), chunkBytes, nodes);
    case 'AllGather':
    case 'ReduceScatter': {
      const part = call.bytes / nRanks;
      const made = call.collective === 'AllGather' ? directAllGather : directReduceScatter;
      return made(channelRange(part, nChannels, channel), part, chunkBytes, nodes);
    }
    default:
      throw new RangeError(`CollNetDirect does no ${call.collective}`);
  }
}

function directAllReduce(own: Range, chunkBytes: number, nodes: readonly DirectNode[]): ChannelWorker[] {
  const nHeads = nodes[0]?.heads.length ?? 0;
  const worker = (rank: number, share: number, move: (chunk: Range) => Move): ChannelWorker => ({
    rank,
    *moves() {
      for (const round of roundsOf(own, nHeads, chunkBytes)) yield move(chunkOf(round, share));
    },
  });
  return [
    ...nodes.flatMap(({ ranks, heads }) =>
      ranks.flatMap((rank, local) => {
        const ofOthers = (move: (head: HeadLinks, chunk: Range) => Move): ChannelWorker => ({
          rank,
          *moves() {
            for (const round of roundsOf(own, nHeads, chunkBytes))
              for (const [share, head] of heads.entries()) if (head.rank !== rank) yield move(head, chunkOf(round, share));
          },
        });
        return [ofOthers((head, chunk) => scatter(head, local, chunk)), ofOthers((head, chunk) => gather(head, local, chunk))];
      }),
    ),
    ...nodes.flatMap(({ heads }) =>
      heads.flatMap((head, share) => [
        worker(head.rank, share, (chunk) => rise(head, chunk)),
        worker(head.rank, share, (chunk) => fall(head, chunk)),
      ]),
    ),
    ...Array.from({ length: nHeads }, (_, share) => {
      const rail = railOf(nodes, share);
      return worker(NETWORK_RANK, share, ({ bytes }) => exchange(rail, rail, bytes));
    }),
  ];
}

function directAllGather(own: Range, partBytes: number, chunkBytes: number, nodes: readonly DirectNode[]): ChannelWorker[] {
  const parts = (of: readonly Part[], move: (chunk: Range, part: Part) => Move) => eachPart(own, partBytes, chunkBytes, of, move);
  return ofHeads(
    nodes,
    (head, share, local, heads) => [
      () => each(own, chunkBytes, ({ offset, bytes }) => ({ receive: [], input: offset, send: [head.up], output: -1, bytes })),
      () => parts(ofShare(nodes, share), (chunk) => fall(head, chunk)),
      () => parts(ofOtherShares(nodes, share), (chunk, of) => gather(heads[of.share] ?? head, local, chunk)),
    ],
    (share, rail) => parts(ofShare(nodes, share), ({ bytes }, { head }) => exchange([head], rail, bytes)),
  );
}

function directReduceScatter(own: Range, partBytes: number, chunkBytes: number, nodes: readonly DirectNode[]): ChannelWorker[] {
  const parts = (of: readonly Part[], move: (chunk: Range, part: Part) => Move) => eachPart(own, partBytes, chunkBytes, of, move);
  return ofHeads(
    nodes,
    (head, share, local, heads) => [
      () => parts(ofOtherShares(nodes, share), (chunk, of) => scatter(heads[of.share] ?? head, local, chunk)),
      () => parts(ofShare(nodes, share), (chunk) => rise(head, chunk)),
      () => each(own, chunkBytes, ({ offset, bytes }) => ({ receive: [head.down], input: -1, send: [], output: offset, bytes })),
    ],
    (share, rail) => parts(ofShare(nodes, share), ({ bytes }, { head }) => exchange(rail, [head], bytes)),
  );
}

/**
 * Workers where every rank is a head.
 *
 * @param ofHead moves of each worker of a head, by its share and its place among the ranks of its node
 * @param ofNetwork moves of the network for a share, whose heads are `rail`
 */
function ofHeads(
  nodes: readonly DirectNode[],
  ofHead: (head: HeadLinks, share: number, local: number, heads: readonly HeadLinks[]) => readonly Worker['moves'][],
  ofNetwork: (share: number, rail: readonly HeadLinks[]) => Iterable<Move>,
): ChannelWorker[] {
  return [
    ...nodes.flatMap(({ ranks, heads }) =>
      heads.flatMap((head, share) =>
        ofHead(head, share, ranks.indexOf(head.rank), heads).map((moves) => ({ rank: head.rank, moves })),
      ),
    ),
    ...(nodes[0]?.heads ?? []).map((_, share): ChannelWorker => {
      const rail = railOf(nodes, share);
      return { rank: NETWORK_RANK, moves: () => ofNetwork(share, rail) };
    }),
  ];
}

/** The heads of one share, one on each node. */
function railOf(nodes: readonly DirectNode[], share: number): HeadLinks[] {
  return nodes.flatMap(({ heads }) => heads.slice(share, share + 1));
}

/** A rank sends a head the head's share of its input. */
function scatter({ into }: HeadLinks, local: number, { offset, bytes }: Range): Move {
  return { receive: [], input: offset, send: [into[local] ?? -1], output: -1, bytes };
}

/** A rank takes a head's result. */
function gather({ out }: HeadLinks, local: number, { offset, bytes }: Range): Move {
  return { receive: [out[local] ?? -1], input: -1, send: [], output: offset, bytes };
}

/** A head adds what the ranks of its node sent to its own input, for the network. */
function rise({ into, up }: HeadLinks, { offset, bytes }: Range): Move {
  return { receive: into.filter((number) => number >= 0), input: offset, send: [up], output: -1, bytes };
}

/** A head passes the network's result on to the ranks of its node. */
function fall({ out, down }: HeadLinks, { offset, bytes }: Range): Move {
  return { receive: [down], input: -1, send: out.filter((number) => number >= 0), output: offset, bytes };
}

/** The network adds messages of some heads, and sends the result to others. */
function exchange(from: readonly HeadLinks[], to: readonly HeadLinks[], bytes: number): Move {
  return { receive: from.map(({ up }) => up), input: -1, send: to.map(({ down }) => down), output: -1, bytes };
}

/** Parts of a share: those of its heads on all nodes. */
function ofShare(nodes: readonly DirectNode[], share: number): Part[] {
  return railOf(nodes, share).map((head) => ({ head, share }));
}

/** Parts of all other shares, node by node, so that all heads are busy. */
function ofOtherShares(nodes: readonly DirectNode[], share: number): Part[] {
  return nodes.flatMap(({ heads }) => heads.map((head, of) => ({ head, share: of })).filter(({ share: of }) => of !== share));
}

/** Moves of the same chunk of each part, chunk by chunk. */
function* eachPart(
  own: Range,
  partBytes: number,
  chunkBytes: number,
  parts: readonly Part[],
  move: (chunk: Range, part: Part) => Move,
): Generator<Move> {
  for (const { offset, bytes } of chunksOf(own, chunkBytes))
    for (const part of parts) yield move({ offset: part.head.rank * partBytes + offset, bytes }, part);
}

function* each(own: Range, chunkBytes: number, move: (chunk: Range) => Move): Generator<Move> {
  for (const chunk of chunksOf(own, chunkBytes)) yield move(chunk);
}
