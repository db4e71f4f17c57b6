/**
 * Kinds of nodes, links and paths, with NCCL's numbers: paths are compared by them (a smaller type is a better path),
 * and links share the numbers of paths.
 */

/** Types of nodes of the system graph. The order is NCCL's, and the order in which nodes are stored. */
export const NodeType = {
  /** Device of a rank: a GPU, or a set of cores for a CPU rank. One node per rank. */
  GPU: 0,
  /** A PCI switch or bridge. */
  PCI: 1,
  /** All NVSwitches together. */
  NVS: 2,
  /** A NUMA domain. */
  CPU: 3,
  /** A network card. */
  NIC: 4,
  /** A port of a network plugin, usable for send and receive. */
  NET: 5,
  /** A device of a GPU-initiated networking plugin. */
  GIN: 6,
  /** A device of a remote memory access plugin. */
  RMA: 7,
  /** The hardware below one or several GPU nodes: it has the PCI link and the NVLinks. */
  DEV: 8,
  /** The C2C bus that the halves of a split GPU share. */
  CXB: 9,
} as const;
export type NodeType = (typeof NodeType)[keyof typeof NodeType];

/** Names of node types, by number. */
export const nodeTypeNames = ['GPU', 'PCI', 'NVS', 'CPU', 'NIC', 'NET', 'GIN', 'RMA', 'DEV', 'CXB'] as const;

/** Number of node types. */
export const NODE_TYPES = nodeTypeNames.length;

/** Types of links. The numbers are those of the path that the link alone makes. */
export const LinkType = { LOC: 0, NVL: 1, C2C: 3, PCI: 4, SYS: 9, NET: 10 } as const;
export type LinkType = (typeof LinkType)[keyof typeof LinkType];

const linkTypeNames = new Map<number, string>(Object.entries(LinkType).map(([name, type]) => [type, name]));

/** `PCI` for 4. */
export function linkTypeName(type: number): string {
  return linkTypeNames.get(type) ?? '';
}

/** Types of paths, nearest first. */
export const PathType = {
  /** The node itself. */
  LOC: 0,
  /** Over NVLink. */
  NVL: 1,
  /** Over NVLink through one other GPU. */
  NVB: 2,
  /** Over a chip-to-chip link (Grace). */
  C2C: 3,
  /** Through at most one PCI switch. */
  PIX: 4,
  /** Through several PCI switches, not through a host bridge. */
  PXB: 5,
  /** GPU to NIC: C2C to the CPU, then PCI. */
  P2C: 6,
  /** GPU to NIC through another GPU that is nearer to the NIC. */
  PXN: 7,
  /** Through the host bridge of a CPU. */
  PHB: 8,
  /** Across the interconnect between NUMA domains. */
  SYS: 9,
  /** Only through the network. */
  NET: 10,
  /** Not connected. */
  DIS: 11,
} as const;
export type PathType = (typeof PathType)[keyof typeof PathType];

/** Names of path types, by number. */
export const pathTypeNames = ['LOC', 'NVL', 'NVB', 'C2C', 'PIX', 'PXB', 'P2C', 'PXN', 'PHB', 'SYS', 'NET', 'DIS'] as const;

/**
 * Converts a path type to and from its place in the order of NCCL 2.27.3, in which PXN comes before P2C. Versions without P2C
 * never have such paths, so the usual order serves them.
 */
export function pxnFirst(type: number): number {
  if (type === PathType.P2C) return PathType.PXN;
  return type === PathType.PXN ? PathType.P2C : type;
}

/** Between two ports of one card: in merging of NICs, the level between LOC and PIX. */
export const PATH_TYPE_PORT = PathType.NVL;
