import { inFile, InputError, InvalidUsageError } from '../../errors.js';
import { parseXml } from '../../planner/topology/xml/parse.js';
import { descendants, type XmlElement } from '../../planner/topology/xml/tree.js';
import { validateTopology } from '../../planner/topology/xml/validate.js';
import type { Channels } from '../../runtime/algorithms/connections/channels.js';
import { searchMachine } from '../../runtime/channels/host-graphs.js';
import { joinHosts } from '../../runtime/channels/join-hosts.js';
import { connectionLines, ringLines, treesLine } from '../../runtime/observe/channel-lines.js';
import { nodeCount } from '../cluster-input.js';
import { print, printJson } from '../output.js';
import { readOneFile } from '../topo/input.js';

/** Files that ranks of tccl wrote, as `tccl plan --topology` gets them. */
export interface ChannelOptions {
  readonly topology: readonly string[];
  readonly json?: boolean;
  readonly nodes?: string;
}

/** A file with its root element. */
interface ReadFile {
  readonly fileName: string;
  readonly root: XmlElement;
}

/**
 * `tccl plan --topology`: the channels that ranks of tccl make on hosts of which TCCL_TOPO_DUMP_FILE, and if given
 * TCCL_GRAPH_DUMP_FILE, wrote these files; in the lines of TCCL_DEBUG=INFO.
 */
export function showChannels({ topology, json, nodes }: ChannelOptions): void {
  const { channels, graphLines } = channelsOfFiles(topology.map(readXml), nodes === undefined ? undefined : nodeCount(nodes));
  const { hosts, order, rings, ringOfChannel, trees, treeOfChannel } = channels;
  if (json === true) {
    printJson({
      format: 'tccl channels',
      formatVersion: 1,
      nRanks: order.length,
      hosts,
      rings,
      ringOfChannel,
      trees,
      treeOfChannel,
    });
    return;
  }
  const ranks = [...order].sort((a, b) => a - b);
  print(
    ...graphLines,
    ...ringLines(channels),
    ...ranks.map((rank) => treesLine(channels, rank)),
    ...ranks.flatMap((rank) => connectionLines(channels, rank, (_, isFar) => (isFar ? 'NET/Socket' : 'SHM'))),
  );
}

/** The channels of hosts, and the graphs of each kind of host as its log has them. */
function channelsOfFiles(
  files: readonly ReadFile[],
  count: number | undefined,
): { readonly channels: Channels; readonly graphLines: readonly string[] } {
  const machines = files.filter(({ root }) => root.name !== 'graphs');
  const graphs = files.filter(({ root }) => root.name === 'graphs');
  if (graphs.length > 0 && graphs.length !== machines.length)
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `--topology got ${machines.length} topologies and ${graphs.length} files of graphs: give one of each for each host, in the same order, or no graphs`,
    );
  if (count !== undefined && machines.length > 1)
    throw new InvalidUsageError('UNSUPPORTED', '--nodes goes with one topology: of several, give one for each host');
  if (machines.length * (count ?? 1) < 2)
    throw new InvalidUsageError(
      'UNSUPPORTED',
      'one host alone has no planned channels, its ranks share memory: give the topologies of all hosts, or --nodes if they are alike',
    );
  const given = machines.flatMap((machine, index) =>
    Array.from({ length: count ?? 1 }, () => ({ ...machine, graph: graphs[index], gpus: gpusOf(machine) })),
  );
  const numbered = numberRanks(given);
  const nRanks = numbered.reduce((sum, { ranks }) => sum + ranks.length, 0);
  const searched = numbered.map((host) => ({
    ranks: host.ranks,
    ...searchMachine(host.root, nRanks, host.fileName, host.graph === undefined ? {} : { graphFile: host.graph }),
  }));
  const lines = new Set(searched.map(({ lines: ofHost }) => ofHost.join('\n')));
  return {
    channels: joinHosts(searched),
    graphLines: [...lines].filter((text) => text !== '').flatMap((text) => text.split('\n')),
  };
}

function readXml(name: string): ReadFile {
  const { text, fileName } = readOneFile(name, 'what TCCL_TOPO_DUMP_FILE wrote, one file for each host');
  const { root } = parseXml(text, { fileName });
  if (root.name !== 'graphs') inFile(fileName, () => validateTopology(root));
  return { fileName, root };
}

/** The GPUs of a host in the order of their ranks. */
function gpusOf({ fileName, root }: ReadFile): XmlElement[] {
  const gpus = [...descendants(root)].filter(({ name }) => name === 'gpu');
  if (gpus.length === 0)
    throw new InputError('CONTENT', 'has no <gpu>, so no rank: give what TCCL_TOPO_DUMP_FILE wrote', { file: fileName });
  const rankOf = ({ attributes }: XmlElement): number => Number(attributes.get('rank') ?? NaN);
  const unranked = gpus.find((gpu) => !Number.isInteger(rankOf(gpu)));
  if (unranked !== undefined)
    throw new InputError('CONTENT', '<gpu> has no rank: give what TCCL_TOPO_DUMP_FILE wrote', {
      file: fileName,
      line: unranked.line,
    });
  return gpus.sort((a, b) => rankOf(a) - rankOf(b));
}

/**
 * Ranks of each host in the communicator, hosts in the order of their lowest ranks. Files that do not give each rank once, as
 * one file for several hosts, are numbered host by host. Within a file, ranks then begin at 0.
 */
function numberRanks<Host extends { readonly gpus: readonly XmlElement[] }>(
  hosts: readonly Host[],
): (Host & { readonly ranks: readonly number[] })[] {
  const told = hosts.map(({ gpus }) => gpus.map(({ attributes }) => Number(attributes.get('rank'))));
  const all = told.flat().sort((a, b) => a - b);
  const areWhole = all.every((rank, index) => rank === index);
  let next = 0;
  const numbered = hosts.map((host, index) => {
    const ranks = areWhole ? (told[index] ?? []) : host.gpus.map(() => next++);
    return { ...host, ranks };
  });
  for (const { gpus } of hosts) gpus.forEach((gpu, rank) => gpu.attributes.set('rank', String(rank)));
  return numbered.sort((a, b) => (a.ranks[0] ?? 0) - (b.ranks[0] ?? 0));
}
