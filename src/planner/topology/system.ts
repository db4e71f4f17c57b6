import { NodeType, nodeTypeNames } from './types.js';

/**
 * One machine (or one NVLink domain of several) as a graph, which never changes: the search keeps residual bandwidths itself.
 *
 *     GPU ─LOC─ DEV ─PCI─ PCI ─PCI─ CPU ─SYS─ CPU        nodes:  GPU GPU … PCI … NVS CPU … NIC … NET … DEV …
 *                │         │                                      0                               (vertex numbers)
 *               NVL       PCI                            links:  of vertex 0 │ of vertex 1 │ …
 *                │         │                                      in the order that NCCL stores and follows them
 *               NVS       NIC ─NET─ NET
 */
export interface System {
  /** All nodes, by type in the order of {@link NodeType}, within a type in the order in which NCCL stores them. */
  readonly nodes: readonly SystemNode[];
  readonly gpus: readonly GpuNode[];
  readonly pcis: readonly PciNode[];
  readonly nvSwitches: readonly PlainNode[];
  readonly cpus: readonly CpuNode[];
  readonly nics: readonly PlainNode[];
  readonly nets: readonly NetNode[];
  readonly gins: readonly PluginNode[];
  readonly rmas: readonly PluginNode[];
  /** Type of nodes with the links of GPUs: DEV nodes, or the GPU nodes themselves in versions without. */
  readonly hardware: readonly (DevNode | GpuNode)[];
  readonly bridges: readonly PlainNode[];
  /** `nodes` of type t are those from `first[t]` up to `first[t + 1]`. */
  readonly first: Int32Array;
  readonly links: Links;
  /** `host_hash` of the hosts in this system; a node's `systemId` is the position of its host here. */
  readonly hostHashes: readonly bigint[];
  /** Number of the host that this system was built for. */
  readonly systemId: number;
}

/** Fields of every node. */
interface NodeCommon<Type extends NodeType> {
  readonly type: Type;
  /** Position among all nodes of the system: the key of every array by node. */
  readonly vertex: number;
  /** Position among the nodes of its type. */
  readonly index: number;
  /** Number of the node's host in the system. */
  readonly systemId: number;
  /** Bus id, NUMA number or plugin device, 56 bits wide; -1 becomes 0xffffffffffffff. */
  readonly localId: bigint;
}

/** A GPU, or a CPU rank's device (compute capability 0). */
export interface GpuNode extends NodeCommon<typeof NodeType.GPU> {
  /** NVML's number of the GPU (`dev` in the XML). */
  readonly dev: number;
  readonly rank: number;
  /** Compute capability × 10. */
  readonly sm: number;
  readonly gdr: boolean;
  /** True if its driver refuses peer-to-peer copies over PCIe. */
  readonly refusesPciP2p: boolean;
  /** Number of the part of a split GPU, or -1. */
  readonly mloPart: number;
  /** Position of its hardware in `System.hardware`. */
  readonly parent: number;
}

/** The hardware of a GPU. */
export interface DevNode extends NodeCommon<typeof NodeType.DEV> {
  /** Vendor, device, subsystem vendor, subsystem device: 16 bits each. */
  readonly device: bigint;
  readonly dev: number;
  /** Compute capability × 10. */
  readonly sm: number;
  /** Number of GPU nodes made for it; trimming does not lower it. */
  readonly gpuCount: number;
}

/** A PCI switch or bridge. */
export interface PciNode extends NodeCommon<typeof NodeType.PCI> {
  /** Vendor, device, subsystem vendor, subsystem device: 16 bits each. */
  readonly device: bigint;
}

/** NCCL's numbers of CPU architectures. */
export const CpuArch = { X86: 1, POWER: 2, ARM: 3, MIXED: 4 } as const;
/** NCCL's numbers of CPU vendors. */
export const CpuVendor = { INTEL: 1, AMD: 2, ZHAOXIN: 3, MIXED: 4 } as const;
/** NCCL's numbers of CPU models: Intel's Broadwell, Skylake, Sapphire Rapids, Emerald Rapids; AMD's Zen; Zhaoxin's Yongfeng. */
export const CpuModel = {
  INTEL_BDW: 1,
  INTEL_SKL: 2,
  INTEL_SRP: 3,
  INTEL_ERP: 4,
  AMD_ZEN12: 1,
  AMD_ZEN34: 2,
  AMD_ZEN5: 3,
  YONGFENG: 1,
} as const;

/** A NUMA node. */
export interface CpuNode extends NodeCommon<typeof NodeType.CPU> {
  /** One of {@link CpuArch}, 0 for a name that NCCL does not know. */
  readonly arch: number;
  /** One of {@link CpuVendor}, 0 for a name that NCCL does not know, -1 for other architectures than x86. */
  readonly vendor: number;
  /** One of {@link CpuModel}, -1 where NCCL does not look. */
  readonly model: number;
  /** Numbers of its cores, ascending. */
  readonly affinity: readonly number[];
}

/** A network device: a port, or ports that NCCL has joined. */
export interface NetNode extends NodeCommon<typeof NodeType.NET> {
  /** Number of the device in its plugin. */
  readonly dev: number;
  /** GUID of the card, or the node's own id. */
  readonly asic: bigint;
  /** NCCL's hash of the bus id above it. */
  readonly pciId: bigint;
  /** True for a port of a ConnectX-8, by vendor and device of the PCI device above it. */
  readonly isConnectX8: boolean;
  readonly port: number;
  readonly bandwidthGBps: number;
  /** Data rate that it carries, where NCCL sees another: a bond. */
  readonly carriesGBps?: number;
  readonly latencyUs: number;
  readonly gdr: boolean;
  /** True if the network can reduce (SHARP). */
  readonly coll: boolean;
  readonly maxChannels: number;
  /** -1 where not set. */
  readonly rail: number;
  /** -1 where not set. */
  readonly plane: number;
}

/** A device of a GIN or RMA plugin. */
export interface PluginNode extends NodeCommon<typeof NodeType.GIN | typeof NodeType.RMA> {
  readonly dev: number;
  readonly bandwidthGBps: number;
}

/** A node without properties of its own, at which links meet. */
export type PlainNode = NodeCommon<typeof NodeType.NVS | typeof NodeType.NIC | typeof NodeType.CXB>;

/** A vertex of the system graph; `type` is its kind. */
export type SystemNode = GpuNode | PciNode | CpuNode | NetNode | PluginNode | DevNode | PlainNode;

/** All directed links; those of vertex v are `start[v]` up to `start[v + 1]`. */
export interface Links {
  readonly start: Int32Array;
  /** Vertex that the link leaves. */
  readonly from: Int32Array;
  /** Vertex that the link reaches. */
  readonly to: Int32Array;
  /** One of {@link LinkType}. */
  readonly type: Uint8Array;
  /** GB/s, in C floats. */
  readonly bandwidthGBps: Float32Array;
  /** The first link back with the same type, or -1. */
  readonly reverse: Int32Array;
}

/** The type of the nodes in `hardware`. */
export function hardwareType(system: System): typeof NodeType.DEV | typeof NodeType.GPU {
  return countOf(system, NodeType.DEV) > 0 ? NodeType.DEV : NodeType.GPU;
}

/** Number of nodes of a type. */
export function countOf(system: System, type: NodeType): number {
  return (system.first[type + 1] ?? 0) - (system.first[type] ?? 0);
}

/** `GPU/0-1b000`: type, system id and local id in hexadecimal, as in NCCL's log. */
export function nodeName(node: Pick<SystemNode, 'type' | 'systemId' | 'localId'>): string {
  return `${nodeTypeNames[node.type]}/${node.systemId.toString(16)}-${node.localId.toString(16)}`;
}

/** Bandwidth that network devices carry together, GB/s. */
export function carriedGBps(nets: readonly NetNode[]): number {
  return nets.reduce((sum, { bandwidthGBps, carriesGBps = bandwidthGBps }) => sum + carriesGBps, 0);
}

/** Position among the GPU nodes of the GPU with that rank, or -1. */
export function gpuOfRank(system: System, rank: number): number {
  return system.gpus.findIndex((gpu) => gpu.rank === rank);
}
