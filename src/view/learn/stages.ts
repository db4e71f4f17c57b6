import { counted } from '../../counted.js';
import { graphNames } from '../../planner/graph/graph.js';
import { ringFrom, treeLinks } from '../../planner/graph/merge/links.js';
import { kindOf } from '../../planner/graph/merge/nodes.js';
import type { PreparedHosts } from '../../planner/plan/cluster.js';
import { transportsOf } from '../../planner/plan/overview/connections.js';
import { formatBytes, formatTime, formatWay } from '../../planner/plan/overview/format.js';
import type { Overview } from '../../planner/plan/overview/overview.js';
import type { Plan } from '../../planner/plan/plan.js';
import { formatGBps } from '../../planner/topology/format.js';
import type { System } from '../../planner/topology/system.js';
import { choose } from '../../planner/tuning/choose.js';
import type { Tuning } from '../../planner/tuning/tune.js';
import { clusterModel } from '../cluster/model.js';
import type { Drawing } from '../machine/boxes.js';
import { pathCountLines } from '../machine/text.js';

/** A stage of what NCCL does when a communicator is made and used. */
export interface Stage {
  readonly title: string;
  /** Three: what happens, on what it depends, what follows from it. */
  readonly sentences: readonly [string, string, string];
  /** Values of this cluster. */
  readonly values: readonly string[];
  /** A page of the documentation, from the folder of the package on. */
  readonly page: string;
  /** Command that prints this stage of a cluster or job. */
  readonly command: string;
  /** The view that shows it. */
  readonly view: 'machine' | 'matrix' | 'channels' | 'why' | 'cluster' | 'choice' | 'motion' | undefined;
}

/** A planned cluster; machine and drawing are those of its first host. */
export interface StagesInput {
  readonly plan: Plan;
  readonly prepared: readonly PreparedHosts[];
  readonly tuning: Tuning;
  readonly overview: Overview;
  readonly system: System;
  readonly drawing: Drawing;
}

/** NCCL's way from a unique id to data that move, with the values of a cluster. */
export function stagesOf(input: StagesInput): Stage[] {
  return [
    bootstrap(input),
    peers(input),
    graph(input),
    paths(input),
    search(input),
    heads(input),
    merge(input),
    trees(input),
    connections(input),
    tuningStage(input),
    fifos(input),
  ];
}

/** Ranks that are listed at most. */
const MOST_LISTED = 16;

function listed(ranks: Iterable<number>): string {
  const all = [...ranks];
  return all.length <= MOST_LISTED ? all.join(' ') : `${all.slice(0, MOST_LISTED).join(' ')} … (${all.length} in all)`;
}

function bootstrap({ plan: { nodes } }: StagesInput): Stage {
  const { nRanks } = nodes;
  const last = nRanks - 1;
  return {
    title: 'Bootstrap ring',
    sentences: [
      'Every rank connects to the root, whose address is in the unique id, and gets the address of the next rank.',
      'The ranks then connect to a ring in the order of their numbers, over TCP, on the interface that NCCL_SOCKET_IFNAME names.',
      'All that ranks have to know of each other goes around this ring; a rank that is missing stops all others here.',
    ],
    values: [
      `${counted(nRanks, 'rank')}: ${nRanks === 1 ? 'no ring is needed' : `rank 0 sends to rank 1, …, rank ${last} to rank 0`}`,
      `an all-gather takes ${counted(nRanks - 1, 'step')}`,
    ],
    page: 'docs/notes/bootstrap.md',
    command: 'tccl log FILE',
    view: undefined,
  };
}

function peers({ plan: { nodes }, system, overview }: StagesInput): Stage {
  const sms = [...new Set(system.hardware.map(({ sm }) => sm))];
  return {
    title: 'Peer information',
    sentences: [
      'Each rank sends all others its host, process, GPU and versions, and what its GPU can do.',
      'Ranks with the same host hash are on one host; two ranks with the same GPU are refused.',
      'From this every rank counts nodes and knows which ranks can share memory.',
    ],
    values: [
      `${counted(nodes.nNodes, 'node')}, ranks of node 0: ${listed([...nodes.rankToNode.keys()].filter((rank) => nodes.rankToNode[rank] === 0))}`,
      `compute capability ${sms.map((sm) => (sm / 10).toFixed(1)).join(', ')}, NCCL ${overview.nccl}`,
    ],
    page: 'docs/notes/topology-internals.md',
    command: 'tccl plan CLUSTER',
    view: 'cluster',
  };
}

function graph({ system, drawing }: StagesInput): Stage {
  const kinds = [
    [system.gpus, 'GPU'],
    [system.pcis, 'PCI switch', 'PCI switches'],
    [system.nvSwitches, 'NVSwitch', 'NVSwitches'],
    [system.cpus, 'CPU'],
    [system.nics, 'NIC'],
    [system.nets, 'network port'],
  ] as const;
  return {
    title: 'From XML to a graph',
    sentences: [
      'Each rank reads its part of the machine from the system and NVML into XML, and the ranks of a host join their parts.',
      'NCCL_TOPO_FILE replaces what is read, and NCCL_TOPO_DUMP_FILE writes the result.',
      'The XML becomes a graph of devices, whose links have a type and a bandwidth.',
    ],
    values: [
      `${drawing.title}: ${kinds.flatMap(([nodes, one, many]) => (nodes.length === 0 ? [] : [counted(nodes.length, one, many)])).join(', ')}`,
      `${counted(system.links.to.length, 'link')}, one for each direction`,
    ],
    page: 'docs/notes/topology-internals.md',
    command: 'tccl topo show FILE',
    view: 'machine',
  };
}

function paths({ drawing }: StagesInput): Stage {
  const lines = pathCountLines(drawing);
  return {
    title: 'Paths',
    sentences: [
      'Between every two devices NCCL computes the path of the most bandwidth, and of these the one with the fewest hops.',
      'The farthest element on it gives the path its type, from NVL and PIX to SYS.',
      'The types decide what is allowed: peer-to-peer, GPU Direct RDMA, and the way through another GPU (PXN).',
    ],
    values: [...lines.slice(0, 8), ...(lines.length > 8 ? [`and ${lines.length - 8} more kinds`] : [])],
    page: 'docs/notes/topology-internals.md',
    command: 'tccl topo show FILE --matrix',
    view: 'matrix',
  };
}

function search({ overview }: StagesInput): Stage {
  return {
    title: 'Search of channels',
    sentences: [
      'A channel is a way through all GPUs of a node, in at a network port and out at one.',
      'For each graph NCCL tries speeds from high to low, and takes as many channels as the links carry at once.',
      'If nothing fits, it allows farther paths and other ports, until there is a solution.',
    ],
    values: overview.graphs.map(
      ({ name, pattern, nChannels, bwIntra, bwInter, typeIntra, typeInter }) =>
        `${name} (${pattern}): ${counted(nChannels, 'channel')} of ${formatGBps(bwIntra)} GB/s${overview.nNodes > 1 ? `, ${formatGBps(bwInter)} to the network` : ''}; GPUs ${typeIntra}${overview.nNodes > 1 ? `, NICs ${typeInter}` : ''}`,
    ),
    page: 'docs/notes/search.md',
    command: 'tccl graph CLUSTER',
    view: 'why',
  };
}

function heads({ plan: { nvls }, overview }: StagesInput): Stage {
  return {
    title: 'NVLS heads',
    sentences: [
      'With NVLS the NVSwitch reduces: each GPU writes once, and reads the sum.',
      'A head is the GPU that is responsible for a share of the data; between nodes it sends this share on.',
      'NVLS takes NVSwitches and GPUs of compute capability 9.0, and the same number of heads on all nodes.',
    ],
    values:
      nvls === undefined
        ? [`not in use: ${overview.uses.find(({ name }) => name === 'NVLS')?.text ?? 'no NVSwitch'}`]
        : [
            `${counted(nvls.nHeads, 'head')}: ranks ${listed(nvls.heads[0] ?? [])} of the first node`,
            `${counted(nvls.nChannels, 'channel')}, chunks of ${formatBytes(nvls.chunkBytes)}`,
          ],
    page: 'docs/notes/merge.md',
    command: "tccl explain CLUSTER 'what would NVLS give'",
    view: 'channels',
  };
}

function merge({ plan, overview }: StagesInput): Stage {
  const searched = Math.max(0, ...plan.nodes.kinds.map(({ graphs }) => graphs.ring.nChannels));
  return {
    title: 'Merge of hosts',
    sentences: [
      'The ranks exchange their graphs, and agree on the least of all: one poor host decides for every host.',
      'The end of a channel on one node is joined to its beginning on the next one, to a ring through all ranks.',
      'Channels are then copied until there are as many as the GPUs and variables want.',
    ],
    values: [
      `${counted(searched, 'channel')} of the search, ${counted(plan.nChannels, 'channel')} of the communicator`,
      `ring of channel 0: ${listed(ringFrom(plan, 0, 0))}`,
      ...(overview.hosts.length > 1
        ? [`${counted(overview.hosts.length, 'kind')} of hosts agree on ${graphNames.join(', ')}`]
        : []),
    ],
    page: 'docs/notes/merge.md',
    command: 'tccl plan CLUSTER',
    view: 'channels',
  };
}

function trees({ plan }: StagesInput): Stage {
  const { nodes } = plan;
  const of = (rank: number) => {
    const { up, down } = treeLinks(plan, 0, rank);
    const children = down.filter((child) => child >= 0);
    return `rank ${rank}: ${up < 0 ? 'the root' : `parent ${up}`}, ${children.length === 0 ? 'no child' : `children ${children.join(' ')}`}`;
  };
  const shown = [...new Set([0, 1, Math.floor(nodes.nRanks / 2), nodes.nRanks - 1])].filter((rank) => rank < nodes.nRanks);
  return {
    title: 'Trees',
    sentences: [
      'Nodes form two binary trees, in which a node that has children in one is a leaf in the other.',
      'Half of the channels take each tree, so that every node sends and receives equally much.',
      'The time of a small call grows with the depth of the tree, and no longer with the number of ranks.',
    ],
    values: [`depth ${plan.trees.depth} in the model of time`, ...shown.map(of)],
    page: 'docs/notes/merge.md',
    command: 'tccl plan CLUSTER',
    view: 'cluster',
  };
}

function connections({ plan, prepared, overview }: StagesInput): Stage {
  const { connections: made } = overview;
  const transports = transportsOf(plan, prepared, plan.parameters);
  const { hops } = clusterModel('', plan, prepared, transports, { graph: 'ring', channel: 0 });
  const kinds = new Map(hops.map((hop) => [`${hop.via} ${hop.relay === undefined ? '' : 'relay'}`, hop.tip]));
  return {
    title: 'Connections',
    sentences: [
      'For each neighbour in a ring or tree, a rank takes the first transport that works: P2P, then SHM, then NET.',
      'Over the network it takes the port that the search gave to the channel, with GPU Direct RDMA where port and GPU are near.',
      'Connections are made at init, or at the first call that needs them (NCCL_RUNTIME_CONNECT).',
    ],
    values: [
      `of two nodes of each kind: ${made.p2p} P2P, ${made.shm} SHM, ${made.net} NET (${made.gdr} with GPU Direct RDMA, ${made.pxn} with PXN)`,
      ...kinds.values(),
    ],
    page: 'docs/notes/transports.md',
    command: 'tccl plan CLUSTER',
    view: 'cluster',
  };
}

const tunedSizes = [2 ** 10, 2 ** 16, 2 ** 20, 2 ** 24, 2 ** 28, 2 ** 32];

function tuningStage({ tuning }: StagesInput): Stage {
  return {
    title: 'Tuning',
    sentences: [
      'For every algorithm and protocol NCCL has a bandwidth and a latency, from the graphs and from tables.',
      'At each call it computes the time of each for the size, and takes the least.',
      'The model is not a measurement: where it is wrong, a tuner plugin or NCCL_ALGO helps.',
    ],
    values: tunedSizes.flatMap((bytes) => {
      const choice = choose(tuning, 'AllReduce', bytes);
      return choice === undefined
        ? []
        : [
            `AllReduce of ${formatBytes(bytes)}: ${formatWay(choice)}, ${counted(choice.nChannels, 'channel')}, ${formatTime(choice.timeUs)}`,
          ];
    }),
    page: 'docs/notes/tuning.md',
    command: "tccl explain CLUSTER 'why ring at 1 GB'",
    view: 'choice',
  };
}

/** Slots of a connection, as NCCL counts its steps. */
const SLOTS = 8;

function fifos({ plan: { buffers, nodes } }: StagesInput): Stage {
  const arch = { 1: 'x86', 2: 'POWER', 3: 'Arm', 4: 'several architectures' }[kindOf(nodes, 0).cpuArch];
  return {
    title: 'Data through FIFOs',
    sentences: [
      'Each connection has a buffer of eight slots at the receiver: the sender fills a slot, and the receiver frees it.',
      'A sender without a free slot waits, so a slow rank slows its neighbours and in the end all.',
      'LL and LL128 put flags between the data, which saves a wait but costs bandwidth; Simple waits for whole slots.',
    ],
    values: [
      ...(['simple', 'll128', 'll'] as const).map(
        (protocol) =>
          `${{ simple: 'Simple', ll128: 'LL128', ll: 'LL' }[protocol]}: ${formatBytes(buffers[protocol])} a connection and channel, ${formatBytes(buffers[protocol] / SLOTS)} a slot`,
      ),
      ...(arch === undefined ? [] : [`CPUs: ${arch}`]),
    ],
    page: 'docs/notes/transports.md',
    command: 'tccl trace CLUSTER',
    view: 'motion',
  };
}
