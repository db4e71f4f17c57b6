import { InputError } from '../../errors.js';
import { floatOrZero, lookUp, requiredInteger, requiredText } from '../topology/build/attributes.js';
import { parseBigInteger, parseFloat32, parseInteger } from '../topology/c-numbers.js';
import type { LocalSystem } from '../topology/local-systems.js';
import { nodeName } from '../topology/system.js';
import { PathType, pathTypeNames } from '../topology/types.js';
import { childrenNamed, createElement, describeElement, type XmlElement } from '../topology/xml/tree.js';
import { formatFloat, formatHex } from '../topology/xml/write.js';
import { type ChannelGraph, CrossNic, GraphId, type HostGraphs, MAX_CHANNELS, nodeId, Pattern } from './graph.js';
import { channelRanks, netName } from './graph-json.js';
import { defaultRules, type Rules } from '../versions/rules.js';
import { collnetDirectRequest, collnetChainRequest, nvlsRequest } from './request.js';

/**
 * Graphs in the XML of `NCCL_GRAPH_FILE` and `NCCL_GRAPH_DUMP_FILE`:
 *
 *     <graphs version="1">
 *       <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="20" … typeintra="NVL" typeinter="PIX" …>
 *         <channel>
 *           <net dev="0"/> <gpu dev="0" rank="0"/> <gpu dev="0x1" rank="1"/> … <net dev="0"/>
 */

/** A graph from a file. If it has no channels, the search begins with its settings. */
export type GivenGraph = Omit<ChannelGraph, 'id' | 'collNet' | 'minChannels' | 'maxChannels' | 'nHops'>;

/** Path types that files can name; NCCL reads any other name, C2C too, as LOC. */
const typeDictionary: readonly (readonly [string, PathType])[] = [
  'LOC',
  'NVL',
  'NVB',
  'PIX',
  'PXB',
  'P2C',
  'PXN',
  'PHB',
  'SYS',
].map((name) => [name, PathType[name as keyof typeof PathType]]);

/**
 * The graph with that id in a file: the last of several, undefined if there is none. Graphs that cross NICs are skipped when
 * `NCCL_CROSS_NIC=0`.
 *
 * @param root the `<graphs>` of the file
 * @throws InputError for what NCCL refuses, and for channels that it would misread or that could not be connected:
 * GPUs missing, twice, too many or unknown
 */
export function givenGraph(root: XmlElement, id: GraphId, local: LocalSystem, crossNicSetting: number): GivenGraph | undefined {
  if (root.name !== 'graphs') {
    throw wrong(root, 'a graph file begins with <graphs version="1">; NCCL would find no graph in this and search on its own', 5);
  }
  const version = requiredInteger(root, 'version');
  if (version !== 1) throw wrong(root, `version ${version} is not 1, the only one that NCCL reads`, 5);
  let given: GivenGraph | undefined;
  for (const element of childrenNamed(root, 'graph')) {
    if (requiredInteger(element, 'id') !== id) continue;
    const crossNic = oneOf(element, 'crossnic', Object.values(CrossNic));
    if (crossNicSetting === 0 && crossNic === CrossNic.ALLOWED) continue;
    given = readGraph(element, id, crossNic, local);
  }
  return given;
}

function readGraph(element: XmlElement, id: GraphId, crossNic: CrossNic, local: LocalSystem): GivenGraph {
  const { system } = local;
  const channels = childrenNamed(element, 'channel');
  const nChannels = requiredInteger(element, 'nchannels');
  if (nChannels < 0 || nChannels > MAX_CHANNELS) throw wrong(element, `nchannels="${nChannels}" is not 0 to ${MAX_CHANNELS}`);
  if (nChannels > channels.length) {
    throw wrong(
      element,
      `nchannels="${nChannels}", but there are ${channels.length} <channel> in it: NCCL would fill the rest with rank 0`,
    );
  }
  const gpuCount = system.gpus.length;
  const intra = new Int32Array(nChannels * gpuCount);
  const inter = new BigInt64Array(nChannels * 2);
  for (const [channel, channelElement] of channels.slice(0, nChannels).entries()) {
    intra.set(readRanks(channelElement, id, local), channel * gpuCount);
    if (local.inter) inter.set(readNets(channelElement, local), channel * 2);
  }
  return {
    pattern: oneOf(element, 'pattern', Object.values(Pattern)),
    crossNic,
    nChannels,
    bwIntra: readSpeed(element, 'speedintra', nChannels),
    bwInter: readSpeed(element, 'speedinter', nChannels),
    latencyInter: floatOrZero(element, 'latencyinter'),
    typeIntra: readType(element, 'typeintra'),
    typeInter: readType(element, 'typeinter'),
    sameChannels: requiredInteger(element, 'samechannels') !== 0,
    gpuCount,
    intra,
    inter,
  };
}

/** GB/s of a channel. Of a graph without channels it has no effect, so any value is accepted. */
function readSpeed(element: XmlElement, attribute: string, nChannels: number): number {
  const text = requiredText(element, attribute);
  const gbps = parseFloat32(text);
  if (nChannels === 0 || (gbps > 0 && gbps < Infinity)) return gbps;
  throw wrong(
    element,
    `${attribute}="${text}" is no number of GB/s above 0: NCCL would take its channels to move ${gbps || 0} GB/s, and its model of time would be wrong`,
  );
}

/**
 * The path type of a name. NCCL reads unknown names as LOC: accept those of paths that its dictionary lacks, refuse all others.
 */
function readType(element: XmlElement, attribute: string): PathType {
  const text = requiredText(element, attribute);
  const type = lookUp(text, typeDictionary, undefined);
  if (type !== undefined) return type;
  if (pathTypeNames.some((name) => name === text)) return PathType.LOC;
  throw wrong(
    element,
    `${attribute}="${text}" is no path type, and NCCL would take it for LOC: write one of ${typeDictionary.map(([name]) => name).join(', ')}`,
  );
}

/** The ranks of a channel: each of the host once, or for NVLS only the head. */
function readRanks(channel: XmlElement, id: GraphId, { system }: LocalSystem): number[] {
  const elements = childrenNamed(channel, 'gpu');
  const wanted = id === GraphId.NVLS ? 1 : system.gpus.length;
  if (elements.length > system.gpus.length) {
    throw wrong(
      channel,
      `${elements.length} <gpu> in it, but the machine has ${system.gpus.length}: NCCL would write over the next channel`,
    );
  }
  const ranks: number[] = [];
  for (const element of elements.slice(0, wanted)) {
    const rank = readRank(element, system);
    if (ranks.includes(rank))
      throw wrong(element, `rank ${rank} is in the channel twice: NCCL would fail when it connects the ring`);
    ranks.push(rank);
  }
  if (ranks.length === 0) throw wrong(channel, 'no <gpu> in it: NCCL would take rank 0 everywhere');
  if (ranks.length < wanted) {
    const missing = system.gpus.map(({ rank }) => rank).filter((rank) => !ranks.includes(rank));
    throw wrong(
      channel,
      `${missing.length === 1 ? `rank ${missing.join()} is` : `ranks ${missing.join(', ')} are`} not in it: NCCL would take rank 0 instead and fail when it connects the ring`,
    );
  }
  return ranks;
}

/** The rank of a GPU by the `rank` of its element, or else by its `dev`, in hexadecimal with the host in the top byte. */
function readRank(element: XmlElement, system: LocalSystem['system']): number {
  const dev = parseBigInteger(requiredText(element, 'dev'), 16);
  const rankText = element.attributes.get('rank');
  if (rankText !== undefined) {
    const rank = parseInteger(rankText);
    if (system.gpus.some((gpu) => gpu.rank === rank)) return rank;
    throw wrong(
      element,
      `the machine has no rank ${rank}, only ${system.gpus.map((gpu) => gpu.rank).join(', ')}: NCCL would fail when it connects the ring`,
    );
  }
  const found = system.gpus.findLast((gpu) => {
    const hardware = system.hardware[gpu.parent] ?? gpu;
    return nodeId({ systemId: hardware.systemId, localId: BigInt(gpu.dev) }) === dev;
  });
  if (found !== undefined) return found.rank;
  throw wrong(element, `the machine has no GPU with dev ${formatHex(dev)}, and NCCL fails with a system error`, 2);
}

/** The ids of the two NETs of a channel. */
function readNets(channel: XmlElement, { system }: LocalSystem): bigint[] {
  const elements = childrenNamed(channel, 'net');
  if (elements.length !== 2) {
    const consequence =
      elements.length < 2 ? 'NCCL would take NET/0-0 for what is missing' : 'NCCL would write over the next channel';
    throw wrong(
      channel,
      `${elements.length} <net> in it, but a channel between hosts has two, where it comes in and where it goes out: ${consequence}`,
    );
  }
  return elements.map((element) => {
    const id = parseBigInteger(requiredText(element, 'dev'), 16);
    if (system.nets.some((net) => nodeId(net) === id)) return id;
    throw wrong(
      element,
      `the machine has no ${netName(id)}, only ${system.nets.map(nodeName).join(', ')}: NCCL would fail when it connects the channel`,
    );
  });
}

function oneOf<Value extends number>(element: XmlElement, attribute: string, values: readonly Value[]): Value {
  const number = requiredInteger(element, attribute);
  const found = values.find((value) => value === number);
  if (found === undefined) throw wrong(element, `${attribute}="${number}" is none of ${values.join(', ')}`);
  return found;
}

function wrong(element: XmlElement, problem: string, ncclResult = 3): InputError {
  const place = element.line > 0 ? { line: element.line, column: element.column } : {};
  return new InputError('CONTENT', `${describeElement(element)}: ${problem}`, { ...place, ncclResult });
}

/**
 * The graphs of a host in the form of NCCL's dump; a graph that was not requested is empty.
 *
 * Path types C2C and beyond SYS, for which NCCL fails with an internal error because its dictionary lacks their names, are
 * written.
 */
export function graphsToXml(graphs: HostGraphs, local: LocalSystem, rules: Rules = defaultRules): XmlElement {
  const root = createElement('graphs', undefined, [['version', '1']]);
  addGraph(root, graphs.ring, local);
  addGraph(root, graphs.tree, local);
  if (rules.collnetHeadsSearched) addGraph(root, graphs.collnetDirect ?? emptyGraph(collnetDirectRequest(rules)), local);
  addGraph(root, graphs.collnetChain ?? emptyGraph(collnetChainRequest(0)), local);
  addGraph(root, graphs.nvls ?? emptyGraph(nvlsRequest(rules)), local);
  return root;
}

function emptyGraph({ id, pattern }: { readonly id: GraphId; readonly pattern: Pattern }): Pick<ChannelGraph, 'id'> & GivenGraph {
  return {
    id,
    pattern,
    crossNic: CrossNic.NEVER,
    nChannels: 0,
    bwIntra: 0,
    bwInter: 0,
    latencyInter: 0,
    typeIntra: PathType.LOC,
    typeInter: PathType.LOC,
    sameChannels: false,
    gpuCount: 0,
    intra: new Int32Array(),
    inter: new BigInt64Array(),
  };
}

function addGraph(root: XmlElement, graph: Pick<ChannelGraph, 'id'> & GivenGraph, { system, inter }: LocalSystem): void {
  const element = createElement('graph', root, [
    ['id', String(graph.id)],
    ['pattern', String(graph.pattern)],
    ['crossnic', String(graph.crossNic)],
    ['nchannels', String(graph.nChannels)],
    ['speedintra', formatFloat(graph.bwIntra)],
    ['speedinter', formatFloat(graph.bwInter)],
    ['latencyinter', formatFloat(graph.latencyInter)],
    ['typeintra', pathTypeNames[graph.typeIntra]],
    ['typeinter', pathTypeNames[graph.typeInter]],
    ['samechannels', graph.sameChannels ? '1' : '0'],
  ]);
  for (let channel = 0; channel < graph.nChannels; channel++) {
    const channelElement = createElement('channel', element);
    if (inter) createElement('net', channelElement, [['dev', formatHex(graph.inter[channel * 2] ?? -1n)]]);
    for (const rank of channelRanks(graph, channel)) {
      const gpu = system.gpus.find((candidate) => candidate.rank === rank);
      const dev = gpu === undefined ? -1n : nodeId({ systemId: gpu.systemId, localId: BigInt(gpu.dev) });
      createElement('gpu', channelElement, [
        ['dev', formatHex(dev)],
        ['rank', String(rank)],
      ]);
    }
    if (inter) createElement('net', channelElement, [['dev', formatHex(graph.inter[channel * 2 + 1] ?? -1n)]]);
  }
}
