import { writeFileSync } from '#platform/files';
import { join, parse } from '#platform/paths';
import { describeError, InputError, SystemError, TcclError } from '../../errors.js';
import { contributionFromJson, contributionToJson } from '../../planner/plan/plan-json.js';
import { defaultParameters, type Parameters } from '../../planner/parameters.js';
import type { RanksByHost } from '../../planner/schedule/ranks-by-host.js';
import type { HostContribution } from '../../planner/graph/merge/contribution.js';
import { descendants, type XmlElement } from '../../planner/topology/xml/tree.js';
import { writeXml } from '../../planner/topology/xml/write.js';
import { ringInOrder, type Channels, type ReachedNic } from '../algorithms/connections/channels.js';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { packError, thrownByEveryRank, unpackError, type TransferredError } from '../failure/transfer.js';
import type { Nic } from '../bootstrap/interfaces.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { nodeOf } from '../bootstrap/peer-info.js';
import { fileNamed } from '../observe/append-file.js';
import { connectedNics } from './connected-nics.js';
import { joinHosts, type PlannedHost } from './join-hosts.js';
import type { RankLocation } from './location.js';
import { detectedMachine, machineOfFile } from './machine.js';
import { railsOf } from './rails.js';
import { searchMachine, type HostGraphs } from './host-graphs.js';
import { hostname } from '../platform/platform.js';
import { defined } from '../../defined.js';

/** Files of the user: topology to begin with, and dumps to write. */
export interface TopologyFiles {
  /** TCCL_TOPO_FILE: the topology of this host, instead of detection; `%h` stands for the host's name. */
  readonly topology: string | undefined;
  /** TCCL_TOPO_DUMP_FILE and TCCL_GRAPH_DUMP_FILE; `%h` stands for the host's name. */
  readonly topologyDump: string | undefined;
  readonly graphDump: string | undefined;
}

interface PlanContext {
  readonly bootstrap: Bootstrap;
  /** By rank. */
  readonly locations: readonly (RankLocation | undefined)[];
  /** The ranks of each host, in the order of their lowest ranks. */
  readonly hosts: RanksByHost;
  readonly files: TopologyFiles;
  /** False: the network between the hosts chooses NICs itself, so none is tried. */
  readonly triesNics: boolean;
  /** True if aggregators stand for a network that reduces. */
  readonly aggregated?: boolean;
}

/** Channels, the decisions of this host for its log, and the locations with the NICs that are connected. */
export interface ChannelPlan {
  readonly channels: Channels;
  readonly lines: readonly string[];
  readonly locations: readonly (RankLocation | undefined)[];
}

/** Data that the lowest rank of a host sends to all ranks. */
type HostWord =
  | {
      readonly kind: 'graphs';
      readonly contribution: object;
      readonly ringNics: readonly (readonly ReachedNic[])[];
      readonly isFromFile: boolean;
    }
  | { readonly kind: 'nothing'; readonly reason: string }
  | { readonly kind: 'refused'; readonly error: TransferredError };

/** Data that rank 0 sends to all ranks after it has joined the hosts. */
type Verdict =
  { readonly kind: 'channels'; readonly channels: Channels } | { readonly kind: 'refused'; readonly error: TransferredError };

/**
 * Plans the channels of a communicator whose ranks are on several hosts: the lowest rank of each host detects the machine and
 * searches its graphs, and rank 0 joins all graphs, so all ranks have the same channels. Every rank calls it.
 *
 * Where a host cannot be detected or planned, there is one ring in rank order, and `channels.unplanned` gives the reason.
 *
 * @throws the same on every rank where TCCL_TOPO_FILE cannot be used or a dump cannot be written: InputError or SystemError on
 *   the rank that read or wrote it, RemoteError or SystemError on the others
 */
export async function planChannels(given: PlanContext): Promise<ChannelPlan> {
  const { bootstrap, hosts } = given;
  const locations = given.triesNics ? await connectedNics(bootstrap, given.locations, hosts) : given.locations;
  const context = { ...given, locations };
  const { rank, localRanks } = bootstrap;
  let own: TcclError | undefined;
  let lines: readonly string[] = [];
  const speak = (): HostWord => {
    const { word, graphs, error } = wordOfHost(context);
    own = error;
    lines = graphs?.lines ?? [];
    return word;
  };
  const word = localRanks[0] === rank ? encodeJson(speak()) : new Uint8Array();
  const words = await bootstrap.allGather(word);
  const verdict = await bootstrap.broadcast(
    rank === 0 ? encodeJson(judge(words, hosts, parametersOf(context))) : new Uint8Array(),
    0,
  );
  const judged = decodeJson(verdict) as Verdict;
  if (judged.kind === 'channels') return { channels: judged.channels, lines, locations };
  throw thrownByEveryRank(own ?? unpackError(judged.error));
}

interface Spoken {
  readonly word: HostWord;
  readonly graphs: HostGraphs | undefined;
  readonly error: TcclError | undefined;
}

/** Detects and searches this host. */
function wordOfHost(context: PlanContext): Spoken {
  const { bootstrap, files } = context;
  try {
    const graphs = graphsOfHost(context);
    const { contribution, ringNics } = graphs;
    return {
      word: {
        kind: 'graphs',
        contribution: contributionToJson(contribution),
        ringNics,
        isFromFile: files.topology !== undefined,
      },
      graphs,
      error: undefined,
    };
  } catch (error) {
    const isOfUser = error instanceof TcclError && error.file !== undefined;
    if (!isOfUser) {
      const reason = `host ${hostname()} cannot be planned: ${describeError(error)}`;
      return { word: { kind: 'nothing', reason }, graphs: undefined, error: undefined };
    }
    const { name, code } = error;
    const transferred = { name, code, message: describeError(error), rank: bootstrap.rank };
    return { word: { kind: 'refused', error: transferred }, graphs: undefined, error };
  }
}

function graphsOfHost(context: PlanContext): HostGraphs {
  const { bootstrap, locations, files } = context;
  const file = files.topology === undefined ? undefined : fileNamed(files.topology);
  const { peers, localRanks, nRanks } = bootstrap;
  const ranks = localRanks.map((rank) => ({ device: defined(peers[rank]).device, numaNode: locations[rank]?.numaNode }));
  const machine = file === undefined ? detectedMachine(ranks, nicsOfHost(context)) : machineOfFile(file, ranks);
  const graphs = searchMachine(machine, nRanks, file, { parameters: parametersOf(context) });
  dump('TCCL_TOPO_DUMP_FILE', files.topologyDump, bootstrap, () => writeXml(withRanks(machine, localRanks)));
  dump('TCCL_GRAPH_DUMP_FILE', files.graphDump, bootstrap, graphs.xml);
  return graphs;
}

function parametersOf({ aggregated = false }: PlanContext): Parameters {
  return aggregated ? { ...defaultParameters, collnetEnable: 1 } : defaultParameters;
}

/** The same machine, whose GPUs have the ranks of the communicator, as in NCCL's dump. */
function withRanks(machine: XmlElement, localRanks: readonly number[]): XmlElement {
  for (const { name, attributes } of descendants(machine))
    if (name === 'gpu') attributes.set('rank', String(localRanks[Number(attributes.get('rank'))] ?? ''));
  return machine;
}

/** The NICs of this host that channels may use. */
function nicsOfHost({ bootstrap, hosts: ranksByHost, locations }: PlanContext): Nic[] {
  const leaders = ranksByHost.map(([leader = 0]) => leader);
  const hosts = leaders.map((leader) => locations[leader]?.nics ?? []);
  const own = defined(bootstrap.localRanks[0]);
  return railsOf(hosts[leaders.indexOf(own)] ?? [], hosts, locations[own]?.nicsNamed ?? false);
}

/** Joins the graphs of all hosts; on rank 0. */
function judge(words: readonly Uint8Array[], hosts: RanksByHost, parameters: Parameters): Verdict {
  const spoken = hosts.map((ranks) => ({ ranks, word: decodeJson(words[defined(ranks[0])] ?? new Uint8Array()) as HostWord }));
  const refused = spoken.find(({ word }) => word.kind === 'refused')?.word;
  if (refused?.kind === 'refused') return refused;
  const silent = spoken.find(({ word }) => word.kind === 'nothing')?.word;
  if (silent?.kind === 'nothing') return { kind: 'channels', channels: ringInOrder(hosts, silent.reason) };
  const known = new Map<string, HostContribution>();
  try {
    const planned = spoken.flatMap(({ ranks, word }): PlannedHost[] => {
      if (word.kind !== 'graphs') return [];
      const key = JSON.stringify(word.contribution);
      const contribution = known.get(key) ?? contributionFromJson(word.contribution);
      known.set(key, contribution);
      return [{ ranks, contribution, ringNics: word.ringNics }];
    });
    return { kind: 'channels', channels: joinHosts(planned, parameters) };
  } catch (error) {
    const areFromFiles = spoken.some(({ word }) => word.kind === 'graphs' && word.isFromFile);
    if (error instanceof InputError && areFromFiles) return { kind: 'refused', error: packError(error) };
    return { kind: 'channels', channels: ringInOrder(hosts, `the hosts cannot be joined: ${describeError(error)}`) };
  }
}

/**
 * Writes this host's topology and graphs. Hosts may share a file system: all except that of rank 0 put their name before the
 * file's ending, unless the pattern has `%h`.
 *
 * @throws SystemError `FILE`
 */
function dump(variable: string, pattern: string | undefined, { peers, rank }: Bootstrap, text: () => string): void {
  if (pattern === undefined) return;
  const path = fileNamed(pattern);
  const { dir, name, ext } = parse(path);
  const isOwn = nodeOf(peers, rank).node === 0 || /(?<!%)(%%)*%h/.test(pattern);
  const file = isOwn ? path : join(dir, `${name}.${hostname()}${ext}`);
  try {
    writeFileSync(file, text());
  } catch (cause) {
    throw new SystemError('FILE', `${variable} cannot be written here: ${describeError(cause)}`, { file, cause });
  }
}
