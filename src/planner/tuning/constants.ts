import type { Rules } from '../versions/rules.js';
import type { NcclAlgorithm, Protocol } from './names.js';

/**
 * NVIDIA's measured figures in NCCL (`ncclTunerConstants`), C doubles; the code that uses them rounds where NCCL stores a float.
 * Figures that changed with versions are rules.
 */

type Latencies = Readonly<Record<NcclAlgorithm, Readonly<Record<Protocol, number>>>>;

/** Kind of link for latencies. */
export type Medium = 'nvlink' | 'pci' | 'net';

/** Generations of GPUs that have figures of their own; older ones count as Volta. */
export const generations = ['volta', 'ampere', 'hopper', 'blackwell'] as const;
export type Generation = (typeof generations)[number];

export function generationOf(compCap: number): Generation {
  return compCap >= 100 ? 'blackwell' : compCap >= 90 ? 'hopper' : compCap >= 80 ? 'ampere' : 'volta';
}

/** Figures for one node, two nodes, and more. */
type ByNodes = readonly [number, number, number];
type Caps = Readonly<Record<Generation, ByNodes>>;

export function ofNodes(figures: ByNodes, nNodes: number): number {
  return nNodes === 1 ? figures[0] : nNodes === 2 ? figures[1] : figures[2];
}

/** µs that a call takes at least. */
export const baseLatenciesUs: Latencies = {
  Tree: us(6.8, 14.0, 8.4),
  Ring: us(6.6, 14.0, 8.4),
  CollNetDirect: us(0, 0, 0),
  CollNetChain: us(0, 0, 0),
  NVLS: us(0, 0, 0),
  NVLSTree: us(0, 0, 0),
  PAT: us(8.0, 8.0, 8.0),
};

/** µs of one step. */
export const stepLatenciesUs: Readonly<Record<Medium, Latencies>> = {
  nvlink: {
    Tree: us(0.6, 1.25, 4.0),
    Ring: us(0.6, 1.9, 3.4),
    CollNetDirect: us(0, 0, 3.7),
    CollNetChain: us(0, 0, 2.8),
    NVLS: us(0, 0, 25),
    NVLSTree: us(0, 0, 25),
    PAT: us(0, 0, 4.0),
  },
  pci: {
    Tree: us(1.0, 1.9, 4.0),
    Ring: us(1.0, 2.5, 5.7),
    CollNetDirect: us(0, 0, 3.7),
    CollNetChain: us(0, 0, 2.8),
    NVLS: us(0, 0, 0),
    NVLSTree: us(0, 0, 0),
    PAT: us(0, 0, 4.0),
  },
  net: {
    Tree: us(5.0, 8.5, 14),
    Ring: us(2.7, 4.0, 14.0),
    CollNetDirect: us(0, 0, 31),
    CollNetChain: us(0, 0, 30),
    NVLS: us(0, 0, 18),
    NVLSTree: us(0, 0, 20.9),
    PAT: us(0, 0, 14),
  },
};

function us(ll: number, ll128: number, simple: number): Record<Protocol, number> {
  return { LL: ll, LL128: ll128, Simple: simple };
}

/** The limit of LL on one node, by its GPUs; GB/s. */
const llOneNodeGBps = { volta: 39.0, ampere: 87.7 } as const;

/** The same between nodes, by their CPUs, for two nodes and for more: AMD and mixed, then all others. */
const llBetweenNodesGBps = { amd: [22.5, 19.0], other: [39.0, 20.4] } as const;

export function llCapGBps(nNodes: number, generation: Generation, amdOrMixed: boolean, rules: Rules): number {
  if (nNodes === 1) {
    if (generation === 'blackwell') return rules.llCapBlackwell;
    return generation === 'hopper' ? rules.llCapHopper : llOneNodeGBps[generation];
  }
  return llBetweenNodesGBps[amdOrMixed ? 'amd' : 'other'][nNodes === 2 ? 0 : 1];
}

/** The limit of one channel of a ring with LL128; GB/s. */
export const ringLl128Caps = (rules: Rules): Caps => ({
  volta: [20, 20, 20],
  ampere: [20, 20, 20],
  hopper: [36.7, 36.7, 36.7],
  blackwell: rules.ringLl128CapBlackwell,
});

/** The limit of one channel of a tree with LL128; GB/s. */
export const treeLl128Caps = (rules: Rules): Caps => ({
  volta: [20, 20, 20],
  ampere: [20, 20, 20],
  hopper: [36.7, 36.7, 29.0],
  blackwell: rules.treeLl128CapBlackwell,
});

/** The limit of one channel of a tree; GB/s. */
export const treeCaps = (rules: Rules): Caps => ({
  volta: [26.5, 18.5, 10.0],
  ampere: [24.0, 23.6, 17.8],
  hopper: [38.7, 41.4, 36.0],
  blackwell: rules.treeCapBlackwell,
});

/** The limit of one head of NVLink SHARP with trees between nodes; GB/s. */
export const nvlsTreeCaps = (rules: Rules): Caps => ({
  volta: [26.5, 18.5, 10.0],
  ampere: [24.0, 23.6, 17.8],
  hopper: [0, 57.7, 45.5],
  blackwell: [0, 96, rules.nvlsTreeCapBlackwell],
});

/** Share of its links' bandwidth that NVLink SHARP reaches; a C float. */
export const nvlsEfficiency: Readonly<Record<Generation, number>> = {
  volta: 0,
  ampere: 0,
  hopper: Math.fround(0.85),
  blackwell: Math.fround(0.74),
};

/** Trees are slower than the model at middle sizes: factors of bandwidth by power of two, from 64 B to 512 MiB; C floats. */
export const treeCorrections: Readonly<Record<Protocol, Float32Array>> = {
  LL: Float32Array.of(1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
  LL128: Float32Array.of(1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
  Simple: Float32Array.of(
    0.9,
    0.9,
    0.9,
    0.9,
    0.9,
    0.9,
    0.9,
    0.8,
    0.7,
    0.6,
    0.6,
    0.5,
    0.5,
    0.5,
    0.5,
    0.6,
    0.7,
    0.8,
    0.7,
    0.7,
    0.8,
    0.9,
    0.9,
    0.9,
  ),
};
