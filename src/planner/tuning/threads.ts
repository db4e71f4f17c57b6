import type { Parameters } from '../parameters.js';
import { type NcclAlgorithm, byName, type Protocol, protocols } from './names.js';

/** Threads of a channel, or bytes a thread, by algorithm and protocol. */
export type ByCandidate = Readonly<Record<NcclAlgorithm, Readonly<Record<Protocol, number>>>>;

/** Maximum number of threads of a kernel; LL128, Tree, PAT, NVLS and CollNet use all. */
export const MOST_THREADS = 640;
const MOST_SIMPLE_THREADS = 512;
const MOST_LL_THREADS = 512;

/** Maximum number of threads of a channel; 0 without one (PAT, whose kernel always has all). */
export function threadsOf(parameters: Parameters, simpleRing = MOST_SIMPLE_THREADS): ByCandidate {
  const ll = parameters.maxThreads ?? MOST_LL_THREADS;
  const ll128 = parameters.ll128Threads ?? MOST_THREADS;
  const simpleOnly = { LL: 0, LL128: 0, Simple: MOST_THREADS };
  return {
    Tree: { LL: ll, LL128: ll128, Simple: parameters.maxThreads ?? MOST_SIMPLE_THREADS },
    Ring: { LL: ll, LL128: ll128, Simple: parameters.maxThreads ?? simpleRing },
    CollNetDirect: simpleOnly,
    CollNetChain: simpleOnly,
    NVLS: simpleOnly,
    NVLSTree: simpleOnly,
    PAT: { LL: 0, LL128: 0, Simple: 0 },
  };
}

/** Bytes a thread and channel below which NCCL takes fewer channels, then fewer threads. */
export function thresholdsOf(nRanks: number, parameters: Parameters): ByCandidate {
  const usual = { LL: 8, LL128: 8, Simple: 64 };
  const collnet = { ...usual, Simple: 512 };
  const asked = askedThresholds(parameters.threadThresholds ?? '');
  const withAsked = (thresholds: Record<Protocol, number>, first: number) =>
    byName(protocols, (protocol) => asked[first + protocols.indexOf(protocol)] ?? thresholds[protocol]);
  return {
    Tree: withAsked(usual, 0),
    Ring: withAsked({ ...usual, LL: usual.LL * nRanks }, protocols.length),
    CollNetDirect: collnet,
    CollNetChain: collnet,
    NVLS: usual,
    NVLSTree: usual,
    PAT: usual,
  };
}

/**
 * Up to six whole numbers between blanks, as C's sscanf reads them: the first that is none ends the list; a negative
 * one changes nothing.
 */
function askedThresholds(text: string): (number | undefined)[] {
  const list = /^(?:\s*[+-]?[0-9]+(?![0-9]))*/.exec(text)?.[0] ?? '';
  const numbers = list.match(/[+-]?[0-9]+/g) ?? [];
  return numbers.slice(0, 2 * protocols.length).map((number) => (Number(number) >= 0 ? Number(number) : undefined));
}
