import { CrossNic, type ChannelGraph, GraphId, graphNames, type HostGraphs, MAX_CHANNELS, Pattern } from '../graph/graph.js';
import type { Agreement } from '../graph/merge/agreement.js';
import type { GraphHeader, GraphName } from '../graph/graph.js';
import type { AlignedGraphs } from '../graph/merge/align.js';
import type { Collnet } from '../graph/merge/collnet.js';
import type { HostContribution, NodeContribution } from '../graph/merge/contribution.js';
import { type NodeTable, numberNodes } from '../graph/merge/nodes.js';
import { p2pSplit } from '../graph/merge/p2p.js';
import type { Nvls } from '../graph/merge/nvls.js';
import type { Rings } from '../graph/merge/rings.js';
import { TREE_ARITY, type Trees } from '../graph/merge/trees.js';
import { defaultParameters, type Parameters } from '../parameters.js';
import { uncomparedRules } from '../versions/certainty.js';
import { rulesOf } from '../versions/rules.js';
import { PathType } from '../topology/types.js';
import { usesWindows } from '../windows.js';
import { JsonReader } from '../json-reader.js';
import type { Plan, PlannedHosts } from './plan.js';

/** First field of a plan's JSON. */
const FORMAT = 'tccl plan';
const FORMAT_VERSION = 1;

/**
 * The plan as plain JSON. `kinds` are the different nodes, `hosts` refer to them by position. Rings, trees and chains are lists
 * by ring or tree, of ranks or by rank; `ringOfChannel` and `treeOfChannel` give that of a channel.
 */
export function planToJson(plan: Plan): object {
  const { nodes, rings, trees, collnet } = plan;
  const { nRanks } = nodes;
  return {
    format: FORMAT,
    formatVersion: FORMAT_VERSION,
    nccl: plan.parameters.ncclVersion,
    uncomparedRules: uncomparedRules(plan.parameters.ncclVersion, usesWindows(plan.parameters)),
    parameters: changedParameters(plan.parameters),
    hosts: plan.hosts.map(({ name, count, host }) => ({
      name,
      count,
      nRanks: host.nRanks,
      nodes: host.nodes.map((node) => nodes.kinds.indexOf(node)),
    })),
    kinds: nodes.kinds.map(nodeToJson),
    agreement: plan.agreement,
    graphs: plan.graphs,
    nChannels: plan.nChannels,
    collChannels: plan.collChannels,
    ringOfChannel: [...plan.ringOfChannel],
    treeOfChannel: [...plan.treeOfChannel],
    rings: rowsOf(rings.order, nRanks),
    trees: { depth: trees.depth, up: rowsOf(trees.up, nRanks), down: rowsOf(trees.down, nRanks * TREE_ARITY) },
    ...(collnet === undefined
      ? {}
      : { collnet: { ...collnet, chainUp: rowsOf(collnet.chainUp, nRanks), chainDown: rowsOf(collnet.chainDown, nRanks) } }),
    ...(plan.nvls === undefined ? {} : { nvls: plan.nvls }),
    buffers: plan.buffers,
    p2p: plan.p2p,
  };
}

/**
 * Reads such JSON.
 *
 * @param value what `JSON.parse` gives
 * @throws InputError `CONTENT` where it is not of that form; the message names the place
 */
export function planFromJson(value: unknown): Plan {
  const json = new JsonReader(value, 'plan');
  json.field('format').oneOf([FORMAT]);
  json.field('formatVersion').oneOf([FORMAT_VERSION]);
  const kinds = json.field('kinds').items().map(readKind);
  const hosts = json
    .field('hosts')
    .items()
    .map((host): PlannedHosts => ({
      name: host.field('name').text(),
      count: host.field('count').integer(1),
      host: {
        nRanks: host.field('nRanks').integer(1),
        nodes: host
          .field('nodes')
          .items()
          .map((number) => pick(kinds, number)),
      },
    }));
  const nodes = numberNodes(hosts);
  // Heads are listed by kind, in the order in which a plan numbers kinds.
  if (nodes.kinds.some((kind, number) => kind !== kinds[number]))
    throw json.field('kinds').wrong('in the order in which hosts name them');
  const channels = json.field('nChannels').integer(1, MAX_CHANNELS);
  const rings = readRings(json.field('rings'), nodes);
  const trees = readTrees(json.field('trees'), nodes);
  const collnet = json.optional('collnet');
  const nvls = json.optional('nvls');
  const parameters = readParameters(json.field('parameters'));
  return {
    hosts,
    parameters,
    nodes,
    agreement: readAgreement(json.field('agreement'), nodes),
    graphs: Object.fromEntries(graphNames.map((name) => [name, readHeader(json.field('graphs').field(name))])) as AlignedGraphs,
    nChannels: channels,
    collChannels: json.optional('collChannels')?.integer(1, channels) ?? channels,
    ringOfChannel: Uint8Array.from(json.field('ringOfChannel').integers(0, rings.count - 1, channels)),
    treeOfChannel: Uint8Array.from(json.field('treeOfChannel').integers(0, trees.count - 1, channels)),
    rings,
    trees,
    collnet: collnet && readCollnet(collnet, nodes),
    nvls: nvls && readNvls(nvls, nodes),
    buffers: readNumbers(json.field('buffers'), ['ll', 'll128', 'simple']),
    p2p: {
      ...readNumbers(json.field('p2p'), ['nChannels', 'channelsPerPeer', 'chunkBytes', 'maxPeers', 'scheduleGroupSize']),
      order: rulesOf(parameters).p2pOrder,
      split: p2pSplit(parameters),
    },
  };
}

/** One host's contribution to a merge, as plain JSON. */
export function contributionToJson({ nRanks, nodes }: HostContribution): object {
  return { nRanks, nodes: nodes.map(nodeToJson) };
}

/**
 * Reads such JSON.
 *
 * @throws InputError `CONTENT` where it is not of that form
 */
export function contributionFromJson(value: unknown): HostContribution {
  const json = new JsonReader(value, 'contribution');
  return { nRanks: json.field('nRanks').integer(1), nodes: json.field('nodes').items().map(readKind) };
}

function nodeToJson(node: NodeContribution): object {
  return { ...node, graphs: graphsToJson(node.graphs) };
}

/** Parameters that differ from their defaults. */
function changedParameters(parameters: Parameters): Partial<Parameters> {
  const defaults: Readonly<Record<string, unknown>> = defaultParameters;
  return Object.fromEntries(
    Object.entries(parameters).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name])),
  );
}

function readParameters(json: JsonReader): Parameters {
  const defaults: Readonly<Record<string, unknown>> = defaultParameters;
  for (const [name, value] of Object.entries(json.record)) {
    if (!(name in defaults)) throw json.field(name).wrong('missing: there is no such parameter');
    const allowed = defaults[name] === undefined ? ['number', 'string'] : [typeof defaults[name]];
    if (!allowed.includes(typeof value)) throw json.field(name).wrong(`a ${allowed.join(' or ')}`);
  }
  return { ...defaultParameters, ...json.record };
}

function graphsToJson(graphs: HostGraphs): object {
  return Object.fromEntries(
    Object.entries(graphs).flatMap(([name, graph]: [string, ChannelGraph | undefined]) =>
      graph === undefined
        ? []
        : [
            [
              name,
              {
                ...graph,
                intra: rowsOf(graph.intra, graph.gpuCount).slice(0, graph.nChannels),
                inter: [...graph.inter].map(String),
              },
            ],
          ],
    ),
  );
}

function rowsOf(array: Int32Array, length: number): number[][] {
  return Array.from({ length: length === 0 ? 0 : array.length / length }, (_, row) => [
    ...array.subarray(row * length, (row + 1) * length),
  ]);
}

function readKind(json: JsonReader): NodeContribution {
  const ranks = json.field('ranks').integers(0, Number.MAX_SAFE_INTEGER);
  const graphs = json.field('graphs');
  const graphOf = (name: GraphName) => {
    const graph = graphs.optional(name);
    return graph && readGraph(graph, ranks.length);
  };
  const numbers = readNumbers(json, ['cpuArch', 'cpuVendor', 'netDevices', 'collnetDevices']);
  return {
    ...numbers,
    ranks,
    nvls: json.field('nvls').flag(),
    nvSwitch: json.field('nvSwitch').flag(),
    allNvLink: json.field('allNvLink').flag(),
    allDirectNvLink: json.field('allDirectNvLink').flag(),
    allDirectP2p: json.field('allDirectP2p').flag(),
    byRank: json
      .field('byRank')
      .items(ranks.length)
      .map((rank) => readNumbers(rank, ['compCap', 'minNetGBps', 'netCount', 'p2pChannelsPerPeer'])),
    graphs: {
      ring: readGraph(graphs.field('ring'), ranks.length),
      tree: readGraph(graphs.field('tree'), ranks.length),
      collnetChain: graphOf('collnetChain'),
      collnetDirect: graphOf('collnetDirect'),
      nvls: graphOf('nvls'),
    },
  };
}

function readGraph(json: JsonReader, gpuCount: number): ChannelGraph {
  const header = readHeader(json);
  const inter = json.field('inter').items();
  return {
    ...header,
    gpuCount: json.field('gpuCount').integer(gpuCount, gpuCount),
    intra: json.field('intra').rows(0, Number.MAX_SAFE_INTEGER, header.nChannels, gpuCount),
    inter: BigInt64Array.from(inter, (net) => {
      const text = net.text();
      if (!/^-?[0-9]{1,19}$/.test(text)) throw net.wrong('the number of a NET, as text');
      return BigInt(text);
    }),
  };
}

function readHeader(json: JsonReader): GraphHeader {
  const pathTypes = Object.values(PathType);
  return {
    ...readNumbers(json, ['bwIntra', 'bwInter', 'latencyInter', 'nHops']),
    id: json.field('id').oneOf(Object.values(GraphId)),
    pattern: json.field('pattern').oneOf(Object.values(Pattern)),
    crossNic: json.field('crossNic').oneOf(Object.values(CrossNic)),
    collNet: json.field('collNet').flag(),
    minChannels: json.field('minChannels').integer(0, MAX_CHANNELS),
    maxChannels: json.field('maxChannels').integer(0, MAX_CHANNELS),
    nChannels: json.field('nChannels').integer(0, MAX_CHANNELS),
    typeIntra: json.field('typeIntra').oneOf(pathTypes),
    typeInter: json.field('typeInter').oneOf(pathTypes),
    sameChannels: json.field('sameChannels').flag(),
  };
}

function readAgreement(json: JsonReader, { nRanks, nNodes }: NodeTable): Agreement {
  json.field('nRanks').integer(nRanks, nRanks);
  json.field('nNodes').integer(nNodes, nNodes);
  return {
    ...readNumbers(json, [
      'nRanks',
      'nNodes',
      'minLocalRanks',
      'maxLocalRanks',
      'minCompCap',
      'maxCompCap',
      'cpuArch',
      'cpuVendor',
      'minNetGBps',
      'minNetCount',
      'maxTreePattern',
    ]),
    allNvLink: json.field('allNvLink').flag(),
    allDirectNvLink: json.field('allDirectNvLink').flag(),
    allDirectP2p: json.field('allDirectP2p').flag(),
  };
}

function readRings(json: JsonReader, { nRanks }: NodeTable): Rings {
  const count = json.items().length;
  const order = json.rows(0, nRanks - 1, count, nRanks);
  const position = new Int32Array(order.length).fill(-1);
  order.forEach((rank, index) => {
    const ring = Math.floor(index / nRanks);
    if (position[ring * nRanks + rank] !== -1)
      throw json.items()[ring]?.wrong(`a ring with each rank once, and rank ${rank} is there twice`) ?? json.wrong('rings');
    position[ring * nRanks + rank] = index - ring * nRanks;
  });
  return { count, order, position };
}

function readTrees(json: JsonReader, { nRanks }: NodeTable): Trees {
  const count = json.field('up').items().length;
  return {
    count,
    depth: json.field('depth').integer(0),
    up: json.field('up').rows(-1, nRanks - 1, count, nRanks),
    down: json.field('down').rows(-1, nRanks - 1, count, nRanks * TREE_ARITY),
  };
}

function readCollnet(json: JsonReader, { nRanks, kinds }: NodeTable): Collnet {
  const count = json.field('chainUp').items().length;
  return {
    chainUp: json.field('chainUp').rows(-1, nRanks, count, nRanks),
    chainDown: json.field('chainDown').rows(-1, nRanks - 1, count, nRanks),
    chainDepth: json.field('chainDepth').integer(0),
    heads: json
      .field('heads')
      .items(kinds.length)
      .map((heads) => heads.integers(0, nRanks - 1)),
    direct: json.field('direct').flag(),
    headCount: json.field('headCount').integer(0),
    chainSupport: json.field('chainSupport').flag(),
  };
}

function readNvls(json: JsonReader, { nRanks, kinds }: NodeTable): Nvls {
  const nHeads = json.field('nHeads').integer(0);
  return {
    ...readNumbers(json, ['nChannels', 'nChannelsBeforeBlackwell', 'chunkBytes', 'treeMaxChunkBytes']),
    nHeads,
    treeHeads: json.field('treeHeads').integer(0, nHeads),
    heads: json
      .field('heads')
      .items(kinds.length)
      .map((heads) => heads.integers(0, nRanks - 1, nHeads)),
  };
}

function readNumbers<const Name extends string>(json: JsonReader, names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, json.field(name).number()])) as Record<Name, number>;
}

function pick(kinds: readonly NodeContribution[], json: JsonReader): NodeContribution {
  const number = json.integer(0, kinds.length - 1);
  const kind = kinds[number];
  if (kind === undefined) throw json.wrong('the number of a kind');
  return kind;
}
