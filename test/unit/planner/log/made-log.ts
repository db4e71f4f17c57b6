import { ringNeighbours } from '../../../../src/planner/graph/merge/links.js';
import { kindOf } from '../../../../src/planner/graph/merge/nodes.js';
import { channelCountLine, nvlsHeadLines, ringLines, treesLine } from '../../../../src/planner/graph/merge/print.js';
import type { PlannedConnection } from '../../../../src/planner/graph/transports/connection.js';
import { Transports } from '../../../../src/planner/graph/transports/transports.js';
import { defaultParameters, type Parameters } from '../../../../src/planner/parameters.js';
import { type ClusterHosts, prepareCluster } from '../../../../src/planner/plan/cluster.js';
import { type Plan, planPrepared } from '../../../../src/planner/plan/plan.js';
import { findMachine } from '../../../../src/planner/topology/catalogue/machines.js';
import { pathTypeNames } from '../../../../src/planner/topology/types.js';
import { ringNeighbourLines } from '../graph/nccl-lines.js';

/** A plan with all that its transports need. */
export interface PlannedMachine {
  readonly plan: Plan;
  readonly transports: Transports;
}

/** So many machines of the catalogue. */
export function planMachines(name: string, count: number, parameters: Parameters = defaultParameters): PlannedMachine {
  return planHosts([{ machine: findMachine(name)!.build(), count, name }], parameters);
}

/** The plan for a cluster. */
export function planHosts(hosts: readonly ClusterHosts[], parameters: Parameters = defaultParameters): PlannedMachine {
  const prepared = prepareCluster({ hosts }, parameters);
  const plan = planPrepared(prepared, parameters);
  const machines = new Map(
    prepared.flatMap(({ host, systems }) => host.nodes.map((node, index) => [node, systems[index]!] as const)),
  );
  return { plan, transports: new Transports(plan, machines, parameters) };
}

/** A version of NCCL whose format is used, as 2.19 → 219. */
export type Release = 208 | 214 | 217 | 219 | 222 | 224 | 230;

export const releases: readonly Release[] = [208, 214, 217, 219, 222, 224, 230];

export interface MadeLogOptions {
  readonly release?: Release;
  readonly commId?: string;
  readonly graph?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
  /** The job ends well: each rank destroys its communicator. */
  readonly ends?: boolean;
  /** Changes a connection before it is written. */
  readonly connection?: (connection: PlannedConnection, rank: number) => string | undefined;
}

/** The log of NCCL of that version with this plan: by rank, its lines with their heads, in order. */
export function madeLog({ plan, transports }: PlannedMachine, options: MadeLogOptions = {}): string[][] {
  return Array.from({ length: plan.nodes.nRanks }, (_, rank) => {
    const local = plan.nodes.rankToLocalRank[rank]!;
    const host = `node${plan.nodes.rankToNode[rank]!}`;
    return rankLines(plan, transports, rank, options).map(
      (message) => `${host}:${4000 + local}:${5000 + local} [${local}] NCCL INFO ${message}`,
    );
  });
}

function rankLines(plan: Plan, transports: Transports, rank: number, options: MadeLogOptions): string[] {
  const { release = 230, commId = '0x5c3e1f2a9b8d7e60', graph = true, environment = {} } = options;
  const { nRanks, nNodes } = plan.nodes;
  const local = plan.nodes.rankToLocalRank[rank]!;
  const kind = kindOf(plan.nodes, plan.nodes.rankToNode[rank]!);
  const busId = `${(local + 1).toString(16)}8000`;
  const address = `0x55d0c${(rank * 64).toString(16).padStart(6, '0')}`;
  const comm =
    `${release >= 229 ? `[Rank ${rank}] ` : ''}${release >= 222 ? 'ncclCommInitRank ' : ''}comm ${address} rank ${rank} nranks ${nRanks} cudaDev ${local}` +
    `${release >= 217 ? ` nvmlDev ${local}` : ''} busId ${busId}${release >= 216 ? ` commId ${commId}` : ''}`;
  const { graphs } = kind;
  const shown = [graphs.ring, graphs.tree, ...(release >= 217 && graphs.nvls !== undefined ? [graphs.nvls] : [])];
  const nics = Array.from({ length: kind.netDevices }, (_, nic) => `[${nic}]mlx5_${nic}:1/IB`).join(' ');
  const isInter = nNodes > 1;
  return [
    ...(rank === 0 ? [`NCCL version ${versionText(release)}+cuda12.4`] : []),
    release >= 224 ? 'Bootstrap: Using eth0:10.0.0.1<0>' : 'Bootstrap : Using eth0:10.0.0.1<0>',
    ...Object.entries(environment).map(([name, value]) => `${name} set by environment to ${value}.`),
    ...(nics === '' ? [] : [`NET/IB : Using ${nics} [RO]; OOB eth0:10.0.0.1<0>`]),
    'Using network IB',
    ...(release >= 217 ? [`${comm} - Init START`] : []),
    ...(release >= 219
      ? [
          `comm ${address} rank ${rank} nRanks ${nRanks} nNodes ${nNodes} localRanks ${kind.ranks.length} localRank ${local} MNNVL 0`,
        ]
      : []),
    ...(graph
      ? shown.map(
          (each) =>
            `Pattern ${each.pattern}, crossNic ${each.crossNic}, nChannels ${each.nChannels}, ` +
            `${release >= 214 ? 'bw' : 'speed'} ${each.bwIntra.toFixed(6)}/${each.bwInter.toFixed(6)}, type ${pathTypeNames[each.typeIntra]}/${pathTypeNames[each.typeInter]}, sameChannels ${each.sameChannels ? 1 : 0}`,
        )
      : []),
    ...(rank === 0 ? ringLines(plan).map((line) => (release >= 223 ? line : spread(line))) : []),
    ...(graph ? ringNeighbourLines(plan, rank) : []),
    treesLine(plan, rank),
    ...(rank === 0 ? nvlsHeadLines(plan) : []),
    'P2P Chunksize set to 524288',
    ...connectionLines(plan, transports, rank, release, options.connection),
    `Connected all rings${release >= 224 ? `, use ring PXN ${isInter ? 1 : 0} GDR 1` : ''}`,
    'Connected all trees',
    countLine(plan, release),
    ...(release >= 222
      ? [
          `Init timings - ncclCommInitRank: rank ${rank} nranks ${nRanks} total 0.61 (kernels 0.10, alloc 0.10, bootstrap 0.10, allgathers 0.10, topo 0.10, graphs 0.01, connections 0.10, rest 0.00)`,
        ]
      : []),
    `${comm} - Init COMPLETE`,
    ...(options.ends === true
      ? [`comm ${address} rank ${rank} nranks ${nRanks} cudaDev ${local} busId ${busId} - Destroy COMPLETE`]
      : []),
  ];
}

function versionText(release: Release): string {
  return `${Math.floor(release / 100)}.${release % 100}.${release === 230 ? 7 : 3}`;
}

/** Through 2.22 ranks stand in columns of five. */
function spread(line: string): string {
  const [head = '', list = ''] = line.split(' :');
  return list.endsWith('...')
    ? line
    : `${head} :${list
        .trim()
        .split(/ +/)
        .map((rank) => ` ${rank.padStart(4)}`)
        .join('')}`;
}

function countLine(plan: Plan, release: Release): string {
  if (release >= 219) return channelCountLine(plan);
  const nvls = release >= 217 ? ` ${plan.nvls?.nChannels ?? 0} nvls channels,` : '';
  return `${plan.nChannels} coll channels,${nvls} ${plan.p2p.nChannels} p2p channels, ${plan.p2p.channelsPerPeer} p2p channels per peer`;
}

function connectionLines(
  plan: Plan,
  transports: Transports,
  rank: number,
  release: Release,
  change?: MadeLogOptions['connection'],
): string[] {
  const label = (channel: number) => `Channel ${String(channel).padStart(2, '0')}${release >= 214 ? '/0' : ''}`;
  const device = (other: number) => {
    const local = plan.nodes.rankToLocalRank[other]!;
    return release >= 219 ? String(local) : `${(local + 1).toString(16)}8000`;
  };
  const line = (channel: number, connection: PlannedConnection | undefined, end: 'send' | 'receive') => {
    if (connection === undefined) return [];
    const [from, to] = end === 'send' ? [rank, connection.peer] : [connection.peer, rank];
    const changed = change?.(connection, rank);
    const isNet = changed === undefined ? connection.via === 'NET' : changed.startsWith('NET');
    // Only the sender writes of P2P and shared memory.
    if (!isNet && end === 'receive') return [];
    const ends = `${from}[${device(from)}] -> ${to}[${device(to)}]`;
    const via = changed ?? transportText(connection, rank, end, release);
    return [
      `${via.startsWith('SHM') ? `Channel ${String(channel).padStart(2, '0')}` : label(channel)} : ${ends}${isNet ? ` [${end}]` : ''} via ${via}`,
    ];
  };
  const lines: string[] = [];
  for (let channel = 0; channel < plan.nChannels; channel++) {
    const { next } = ringNeighbours(plan, channel, rank);
    if (next === rank) continue;
    const { send, receive } = transports.ring(channel, rank);
    lines.push(...line(channel, receive, 'receive'), ...line(channel, send, 'send'));
  }
  for (let channel = 0; channel < plan.nChannels; channel++) {
    const receive = transports.tree(channel, rank, 'receive');
    const send = transports.tree(channel, rank, 'send');
    for (const connection of [receive.up, ...receive.down]) lines.push(...line(channel, connection, 'receive'));
    for (const connection of [send.up, ...send.down]) lines.push(...line(channel, connection, 'send'));
  }
  return lines;
}

function transportText(connection: PlannedConnection, rank: number, end: 'send' | 'receive', release: Release): string {
  switch (connection.via) {
    case 'P2P':
      return connection.relay === undefined
        ? `P2P/${release >= 219 ? 'CUMEM' : 'IPC'}${connection.read ? '/read' : ''}`
        : `P2P/indirect/${connection.relay}[0]`;
    case 'none':
      throw new Error(`NCCL finds no transport from rank ${rank} to ${connection.peer}`);
    case 'SHM':
      return release >= 230 ? 'SHM/direct' : 'SHM/direct/direct';
    case 'NET': {
      const proxy = end === 'send' && connection.proxyRank !== rank ? `(${connection.proxyRank})` : '';
      return `NET/IB/${connection.dev}${proxy}${connection.gdr === 0 ? '' : '/GDRDMA'}`;
    }
  }
}

/** A small generator of random numbers below 1, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The lines of all ranks as they come when all write at once: each rank's in its order. */
export function interleaved(byRank: readonly (readonly string[])[], random: () => number): string[] {
  const next = byRank.map(() => 0);
  const open = byRank.map((_, index) => index).filter((index) => byRank[index]!.length > 0);
  const lines: string[] = [];
  while (open.length > 0) {
    const place = Math.floor(random() * open.length);
    const rank = open[place]!;
    lines.push(byRank[rank]![next[rank]!++]!);
    if (next[rank] === byRank[rank]!.length) open.splice(place, 1);
  }
  return lines;
}
