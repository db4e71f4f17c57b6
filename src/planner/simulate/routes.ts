import type { NodeContribution } from '../graph/merge/contribution.js';
import type { Merged } from '../graph/merge/merge.js';
import { kindOf } from '../graph/merge/nodes.js';
import { Transports } from '../graph/transports/transports.js';
import type { Parameters } from '../parameters.js';
import { NETWORK_RANK, type ScheduledConnection } from '../schedule/schedule.js';
import { nvLinkGBps } from '../topology/bandwidths.js';
import type { LocalSystem } from '../topology/local-systems.js';
import { carriedGBps, nodeName } from '../topology/system.js';
import { Locality } from '../topology/paths/locality.js';
import { LinkType, NodeType, PathType } from '../topology/types.js';
import type { FabricEnd } from './fabric.js';
import type { Physics } from './physics.js';

/** Input of a simulation: a merged plan and the machines that it was made of. */
export interface SimulatedCluster {
  readonly merged: Merged;
  /** The machine that each of `merged.nodes.kinds` is about. */
  readonly machines: ReadonlyMap<NodeContribution, LocalSystem>;
  readonly parameters: Parameters;
}

/** Carriers of the data of a connection. */
export const media = ['nvlink', 'pci', 'shm', 'net', 'switch'] as const;
export type Medium = (typeof media)[number];

/** The links that a connection uses. Within a route, a link that several connections of a group share counts in part. */
export interface Route {
  readonly medium: Medium;
  readonly uses: readonly LinkUse[];
  /** The NICs at both ends of a route between nodes. */
  readonly ends?: readonly [FabricEnd, FabricEnd];
}

/** One directed link of one node. */
export interface LinkUse {
  readonly node: number;
  readonly link: number;
  readonly weight: number;
}

/** Data on a link, where its payload depends on them. */
export interface LinkTraffic {
  /** True if each rank sends to several others at once. */
  readonly isSpread?: boolean;
  /** True if a NIC reads or writes them. */
  readonly isNet?: boolean;
}

/** More than NCCL has channels. */
const MOST_CHANNELS = 128;

/** Kind of channel that a connection belongs to: their NICs differ. */
export type ChannelKind = 'ring' | 'tree' | 'pairs';

/** Finds the links of connections. */
export class Routes {
  readonly #cluster: SimulatedCluster;
  readonly #transports: Transports;
  readonly #localities = new Map<NodeContribution, Locality>();
  readonly #known = new Map<string, readonly [Medium, readonly number[]]>();
  /** Of messages between pairs, by rank and channel: the links to a NIC and from it, and the NIC. */
  readonly #sending = new Map<number, readonly LinkUse[]>();
  readonly #receiving = new Map<number, readonly LinkUse[]>();
  readonly #ends = new Map<number, FabricEnd>();

  constructor(cluster: SimulatedCluster) {
    this.#cluster = cluster;
    this.#transports = new Transports(cluster.merged, cluster.machines, cluster.parameters);
  }

  of({ from, to, channel, via }: ScheduledConnection, kind: ChannelKind): Route {
    const { nodes } = this.#cluster.merged;
    const fromNode = nodes.rankToNode[from] ?? 0;
    const toNode = nodes.rankToNode[to] ?? 0;
    const local = (rank: number, node: number) => rank - (nodes.rankBase[node] ?? 0);
    const on = (node: number, links: readonly number[], weight = 1) => links.map((link) => ({ node, link, weight }));
    if (via === 'switch-in' || via === 'switch-out') {
      const { ranks } = kindOf(nodes, fromNode);
      // The switch adds or copies: of the head's link, all connections of the group together take one share.
      const [out, into] = via === 'switch-in' ? [1, 1 / ranks.length] : [1 / ranks.length, 1];
      return {
        medium: 'switch',
        uses: [
          ...on(fromNode, this.#toSwitch(fromNode, local(from, fromNode)), out),
          ...on(fromNode, this.#fromSwitch(fromNode, local(to, fromNode)), into),
        ],
      };
    }
    if (from === NETWORK_RANK)
      return { medium: 'net', uses: on(toNode, this.#net(toNode, local(to, toNode), channel, 'receive')) };
    if (to === NETWORK_RANK)
      return { medium: 'net', uses: on(fromNode, this.#net(fromNode, local(from, fromNode), channel, 'send')) };
    if (fromNode === toNode) {
      const [medium, links] = this.#within(fromNode, local(from, fromNode), local(to, toNode));
      return { medium, uses: on(fromNode, links) };
    }
    if (kind === 'pairs') {
      const sends = this.#netUses(fromNode, local(from, fromNode), channel, 'send');
      const receives = this.#netUses(toNode, local(to, toNode), channel, 'receive');
      return { medium: 'net', ends: this.#pairEnds(from, to, channel), uses: [...sends, ...receives] };
    }
    const nicOf = (rank: number, peer: number, direction: 'send' | 'receive') => {
      const transport = this.#transports.between(rank, peer, kind, channel, direction);
      const node = nodes.rankToNode[rank] ?? 0;
      return { node, nic: transport.via === 'NET' ? this.#nicOfDevice(node, transport.dev) : 0 };
    };
    return {
      medium: 'net',
      ends: [nicOf(from, to, 'send'), nicOf(to, from, 'receive')],
      uses: [
        ...on(fromNode, this.#ofTransport(from, to, kind, channel, 'send')),
        ...on(toNode, this.#ofTransport(to, from, kind, channel, 'receive')),
      ],
    };
  }

  /** GB/s that all NICs of a node send, or one of them. */
  nicsGBps(node: number, nic: number | undefined, { common }: Physics): number {
    const { nets } = this.#machine(node).system;
    const chosen = nic === undefined ? nets : nets.slice(nic, nic + 1);
    return carriedGBps(chosen) * common.netPayload;
  }

  /** The NICs of a message between two ranks: with PXN it leaves by the sender's NIC on the receiver's rail. */
  #pairEnds(from: number, to: number, channel: number): [FabricEnd, FabricEnd] {
    const { nodes } = this.#cluster.merged;
    const nodeOf = (rank: number) => nodes.rankToNode[rank] ?? 0;
    const endOf = (rank: number): FabricEnd =>
      kept(this.#ends, rank * MOST_CHANNELS + channel, () => {
        const node = nodeOf(rank);
        const { system } = this.#machine(node);
        const gpu = this.#gpu(node, rank - (nodes.rankBase[node] ?? 0));
        return { node, nic: system.nets.length === 0 ? 0 : this.#locality(node).netOfGpu(gpu, channel) };
      });
    const [sender, receiver] = [endOf(from), endOf(to)];
    const usesPxn = this.#cluster.parameters.pxnDisable !== 1 && receiver.nic < this.#machine(sender.node).system.nets.length;
    return [usesPxn && receiver.nic !== sender.nic ? { node: sender.node, nic: receiver.nic } : sender, receiver];
  }

  /** The links between a GPU and its NIC. Kept, because messages of all ranks to all ask again and again. */
  #netUses(node: number, local: number, channel: number, direction: 'send' | 'receive'): readonly LinkUse[] {
    const rank = (this.#cluster.merged.nodes.rankBase[node] ?? 0) + local;
    return kept(direction === 'send' ? this.#sending : this.#receiving, rank * MOST_CHANNELS + channel, () =>
      this.#net(node, local, channel, direction).map((link) => ({ node, link, weight: 1 })),
    );
  }

  #nicOfDevice(node: number, device: number): number {
    return Math.max(
      0,
      this.#machine(node).system.nets.findIndex(({ dev }) => dev === device),
    );
  }

  /** GB/s of a link, and the share of it that is payload. */
  capacityGBps(
    { node, link }: Pick<LinkUse, 'node' | 'link'>,
    { common }: Physics,
    { isSpread = false, isNet = false }: LinkTraffic = {},
  ): number {
    const { system } = this.#machine(node);
    const gbps = system.links.bandwidthGBps[link] ?? 0;
    switch (system.links.type[link]) {
      case LinkType.LOC:
        return Infinity;
      case LinkType.NVL:
        return (
          (gbps / nvLinkGBps(this.#smOf(node))) *
          nvlinkWireGBps(this.#smOf(node)) *
          common.nvlinkPayload *
          (isSpread ? common.nvlinkSpread : 1)
        );
      case LinkType.PCI:
        return gbps * (isNet ? common.pciPayload : common.pciStorePayload);
      case LinkType.NET: {
        const net = [system.links.from[link], system.links.to[link]].map((vertex) => system.nodes[vertex ?? -1]);
        const port = net.find((end) => end?.type === NodeType.NET);
        return (port === undefined ? gbps : carriedGBps([port])) * common.netPayload;
      }
      default:
        return gbps;
    }
  }

  /** GB/s of the slowest NIC on the way; 0 where there is none. */
  nicGBps(uses: readonly LinkUse[], physics: Physics): number {
    const nics = uses.filter(({ node, link }) => this.#machine(node).system.links.type[link] === LinkType.NET);
    return nics.length === 0 ? 0 : Math.min(...nics.map((use) => this.capacityGBps(use, physics)));
  }

  /** GB/s of the slowest link on the way. */
  narrowestGBps(uses: readonly LinkUse[], physics: Physics): number {
    return Math.min(...uses.map((use) => this.capacityGBps(use, physics)));
  }

  /** `GPU 3 > NVSwitch`, `GPU 3 > PCI`: the ends of a link; numbers of GPUs and NICs are those of the machine. */
  linkName({ node, link }: Pick<LinkUse, 'node' | 'link'>): string {
    const { system } = this.#machine(node);
    const nameOf = (vertex: number) => {
      const end = system.nodes[vertex];
      if (end === undefined) return '?';
      switch (end.type) {
        case NodeType.GPU:
        case NodeType.DEV:
          return `GPU ${end.dev}`;
        case NodeType.NET:
          return `NIC ${end.dev}`;
        case NodeType.NVS:
          return 'NVSwitch';
        case NodeType.CPU:
          return `CPU ${end.localId}`;
        default:
          return nodeName(end);
      }
    };
    return `${nameOf(system.links.from[link] ?? 0)} > ${nameOf(system.links.to[link] ?? 0)}`;
  }

  #smOf(node: number): number {
    return this.#machine(node).system.gpus[0]?.sm ?? 80;
  }

  #machine(node: number): LocalSystem {
    const machine = this.#cluster.machines.get(kindOf(this.#cluster.merged.nodes, node));
    if (machine === undefined) throw new RangeError(`no machine is given for node ${node}`);
    return machine;
  }

  #gpu(node: number, local: number): number {
    return this.#machine(node).system.gpus.findIndex(({ rank }) => rank === local);
  }

  #toSwitch(node: number, local: number): readonly number[] {
    const { paths } = this.#machine(node);
    return this.#keptLinks(`up ${this.#kindNumber(node)} ${local}`, () =>
      paths.links(paths.between(NodeType.GPU, this.#gpu(node, local), NodeType.NVS, 0)),
    );
  }

  #fromSwitch(node: number, local: number): readonly number[] {
    const { paths } = this.#machine(node);
    return this.#keptLinks(`down ${this.#kindNumber(node)} ${local}`, () =>
      paths.links(paths.between(NodeType.NVS, 0, NodeType.GPU, this.#gpu(node, local))),
    );
  }

  #within(node: number, from: number, to: number): readonly [Medium, readonly number[]] {
    const { paths } = this.#machine(node);
    const key = `${this.#kindNumber(node)} ${from} ${to}`;
    const known = this.#known.get(key);
    if (known !== undefined) return [known[0], known[1]];
    const base = this.#cluster.merged.nodes.rankBase[node] ?? 0;
    const transport = this.#transports.between(base + from, base + to, 'ring', 0, 'send');
    const [a, b] = [this.#gpu(node, from), this.#gpu(node, to)];
    let medium: Medium = 'shm';
    let links: readonly number[];
    if (transport.via === 'P2P') {
      const path = paths.between(NodeType.GPU, a, NodeType.GPU, b);
      medium = transport.distance <= PathType.NVB ? 'nvlink' : 'pci';
      links = paths.links(path);
    } else {
      // Through memory of the CPU next to each.
      const cpus = [a, b].map((gpu) => this.#locality(node).cpuOfGpu(gpu));
      links = [
        ...paths.links(paths.between(NodeType.GPU, a, NodeType.CPU, cpus[0] ?? 0)),
        ...paths.links(paths.between(NodeType.CPU, cpus[0] ?? 0, NodeType.GPU, b)),
      ];
    }
    this.#known.set(key, [medium, links]);
    return [medium, links];
  }

  /** From a GPU to the NIC it uses for pairs and for networks that reduce, or back. */
  #net(node: number, local: number, channel: number, direction: 'send' | 'receive'): readonly number[] {
    const { paths, system } = this.#machine(node);
    const gpu = this.#gpu(node, local);
    if (system.nets.length === 0) return [];
    const net = this.#locality(node).netOfGpu(gpu, channel);
    return direction === 'send'
      ? paths.links(paths.between(NodeType.GPU, gpu, NodeType.NET, net))
      : paths.links(paths.between(NodeType.NET, net, NodeType.GPU, gpu));
  }

  /** Between the GPU of a rank and the NIC of its channel. */
  #ofTransport(
    rank: number,
    peer: number,
    kind: 'ring' | 'tree',
    channel: number,
    direction: 'send' | 'receive',
  ): readonly number[] {
    const { nodes } = this.#cluster.merged;
    const node = nodes.rankToNode[rank] ?? 0;
    const local = rank - (nodes.rankBase[node] ?? 0);
    const key = `net ${this.#kindNumber(node)} ${local} ${kind} ${channel} ${direction}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known[1];
    const { paths, system } = this.#machine(node);
    const transport = this.#transports.between(rank, peer, kind, channel, direction);
    const device = transport.via === 'NET' ? transport.dev : 0;
    const net = system.nets.findIndex(({ dev }) => dev === device);
    const gpu = this.#gpu(node, local);
    const links =
      net < 0
        ? []
        : direction === 'send'
          ? paths.links(paths.between(NodeType.GPU, gpu, NodeType.NET, net))
          : paths.links(paths.between(NodeType.NET, net, NodeType.GPU, gpu));
    this.#known.set(key, ['net', links]);
    return links;
  }

  #keptLinks(key: string, find: () => readonly number[]): readonly number[] {
    const known = this.#known.get(key);
    if (known !== undefined) return known[1];
    const links = find();
    this.#known.set(key, ['switch', links]);
    return links;
  }

  #kindNumber(node: number): number {
    return this.#cluster.merged.nodes.kindOfNode[node] ?? 0;
  }

  #locality(node: number): Locality {
    const kind = kindOf(this.#cluster.merged.nodes, node);
    let locality = this.#localities.get(kind);
    if (locality === undefined) {
      const { system, paths } = this.#machine(node);
      this.#localities.set(kind, (locality = new Locality(system, paths, this.#cluster.parameters)));
    }
    return locality;
  }
}

/** The value of a key, made at the first time. */
function kept<Value>(known: Map<number, Value>, key: number, make: () => Value): Value {
  let value = known.get(key);
  if (value === undefined) known.set(key, (value = make()));
  return value;
}

/** Bandwidth of one NVLink in one direction, GB/s, from NVIDIA's data sheets: 20 for NVLink 1, 25 for 2 to 4, 50 for 5. */
function nvlinkWireGBps(sm: number): number {
  if (sm >= 100) return 50;
  if (sm === 86) return 14;
  return sm >= 70 ? 25 : 20;
}
