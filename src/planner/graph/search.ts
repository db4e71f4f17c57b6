import { InputError } from '../../errors.js';
import { NodeType, PathType } from '../topology/types.js';
import { type Bounds, Candidate } from './candidate.js';
import { total } from './compare.js';
import { type ChannelGraph, CrossNic, LAST_RESORT_GBPS, Pattern } from './graph.js';
import type { GivenGraph } from './graph-xml.js';
import type { SearchHost } from './host.js';
import { Relaxation } from './relax.js';
import { placeOfType } from './routes.js';
import type { GraphRequest } from './request.js';
import { fastest, speedsFor } from './speeds.js';
import type { SearchListener } from './trace.js';
import { PERFECT, Walk } from './walk.js';

/**
 * Searches the channels of one graph on one host, as NCCL does (docs/notes/search.md). A given graph with channels is the answer
 * itself; one without channels gives the initial settings.
 *
 * The host's links end with rounded bandwidths, so the order in which graphs are searched is part of the answer.
 *
 * @returns a graph without channels where none is possible for CollNet or NVLS; for rings and trees there always is one
 * @throws InputError where no GPU reaches a network although there are ranks on other hosts, or nothing was found and
 * there is no NIC to fall back on
 */
export function searchGraph(host: SearchHost, request: GraphRequest, given?: GivenGraph, trace?: SearchListener): ChannelGraph {
  const bounds = boundsOf(host, request);
  trace?.({
    kind: 'search',
    graph: request.id,
    pattern: request.pattern,
    inter: host.local.inter,
    speeds: [...bounds.speeds],
    maxGbps: host.local.maxGBps,
    totalGbps: host.local.totalGBps,
  });
  let graph: ChannelGraph;
  if (given !== undefined && given.nChannels > 0) {
    const { id, collNet, minChannels, maxChannels } = request;
    trace?.({ kind: 'from-file' });
    graph = { ...given, id, collNet, minChannels, maxChannels, nHops: 0 };
  } else {
    requireNetwork(host);
    graph = new Search(host, request, bounds, given, trace).run();
  }
  trace?.({ kind: 'result', graph });
  return graph;
}

/** Steps of one walk, and of one in which all channels are alike. */
const STEPS_OF_WALK = 1 << 14;
const STEPS_OF_ALIKE_WALK = 1 << 8;

class Search {
  readonly #host: SearchHost;
  readonly #request: GraphRequest;
  readonly #trace: SearchListener | undefined;
  readonly #bounds: Bounds;
  /** The best graph so far: the answer in the end. */
  readonly #best: Candidate;
  /** Settings that are being tried. */
  readonly #attempt: Candidate;
  readonly #walk: Walk;

  constructor(
    host: SearchHost,
    request: GraphRequest,
    bounds: Bounds,
    given: GivenGraph | undefined,
    trace: SearchListener | undefined,
  ) {
    this.#host = host;
    this.#trace = trace;
    this.#request = fitting(given === undefined ? request : { ...request, pattern: given.pattern }, host);
    this.#bounds = bounds;
    this.#best = new Candidate(this.#request, host.routes.gpuCount, bounds);
    if (given !== undefined) this.#best.adopt(given);
    this.#attempt = new Candidate(this.#request, host.routes.gpuCount, bounds);
    this.#attempt.copyFrom(this.#best);
    this.#walk = new Walk(host, this.#attempt, this.#best, trace);
  }

  run(): ChannelGraph {
    if (lacksNvls(this.#host, this.#request)) {
      this.#trace?.({ kind: 'no-hardware' });
    } else {
      this.#firstPass();
      if (this.#host.rules.fasterChannels === 'all') this.#duplicate();
      this.#secondPass();
      if (this.#host.rules.fasterChannels !== 'all') this.#duplicate();
      if (this.#best.nChannels === 0 && !this.#request.collNet && this.#best.pattern !== Pattern.NVLS) this.#simpleOrder();
    }
    return this.#best.finish(this.#host.local, this.#host.rules);
  }

  /** The first pass, from the fastest speed and the nearest paths on, until a solution cannot be improved much. */
  #firstPass(): void {
    const { maxGBps, totalGBps, system } = this.#host.local;
    const { speeds } = this.#bounds;
    // Only a ring has to return to its start; other patterns may use that bandwidth.
    const devs = system.hardware.length;
    const usable =
      devs > 1 && this.#request.pattern !== Pattern.RING
        ? Math.fround(totalGBps * (devs / (devs - 1)))
        : devs === 1 && !this.#host.rules.loneGpuIsLimited
          ? Infinity
          : totalGBps;
    const first = fastest(speeds, (gbps) => gbps <= maxGBps && total(this.#attempt.minChannels, gbps) <= usable);
    this.#attempt.bwIntra = this.#attempt.bwInter = speeds[first] ?? 0;

    const relaxation = new Relaxation(this.#host, this.#bounds, this.#attempt, this.#best, first, this.#trace);
    let stepsLeft: number = this.#host.rules.stepsOfSearch;
    const stopped = (why: 'perfect' | 'enough' | 'out of steps' | 'nothing left to relax') =>
      this.#trace?.({ kind: 'stopped', why });
    for (;;) {
      const steps = this.#stepsOfWalk();
      const left = this.#runWalk(1);
      if (left === PERFECT) return stopped('perfect');
      if (this.#usesAll()) return stopped('enough');

      stepsLeft -= steps;
      if (relaxation.ownChannels()) continue;
      // Of two walks with the same settings, only the steps left by the second are counted back.
      stepsLeft += left;
      if (stepsLeft < 0 && this.#best.nChannels > 0) return stopped('out of steps');
      if (!relaxation.rest()) return stopped('nothing left to relax');
    }
  }

  /** Splits fast channels into two each, so that more kernels work in parallel. */
  #duplicate(): void {
    const best = this.#best;
    if (best.nChannels === 0 || best.pattern === Pattern.NVLS || best.bwIntra < 25) return;
    if (this.#host.lowestSm > 80 && best.bwIntra < 50 && best.nChannels > 4) return;

    const from = best.nChannels;
    const to = Math.min(2 * from, best.maxChannels);
    best.gpus.copyWithin(from * best.gpuCount, 0, (to - from) * best.gpuCount);
    best.nics.copyWithin(from * 2, 0, (to - from) * 2);
    const parts = Math.ceil(to / from);
    best.bwIntra = Math.fround(best.bwIntra / parts);
    best.bwInter = Math.fround(best.bwInter / parts);
    best.nChannels = to;
    this.#trace?.({ kind: 'duplicated', from, to, bwIntra: best.bwIntra, bwInter: best.bwInter });
  }

  /** The second pass: more speed with the settings and number of channels of the best; for rings everywhere, for trees inside. */
  #secondPass(): void {
    const best = this.#best;
    const attempt = this.#attempt;
    const { speeds } = this.#bounds;
    const { fasterChannels } = this.#host.rules;
    attempt.copyFrom(best);
    let speed = fastest(speeds, (gbps) => gbps <= best.bwInter);
    attempt.bwIntra = attempt.bwInter = speeds[speed] ?? 0;
    attempt.minChannels = best.nChannels;
    for (let left = PERFECT; left !== 0 && speed > 0; left = this.#runWalk(2)) {
      const faster = speeds[--speed] ?? 0;
      const isNvls = best.pattern === Pattern.NVLS && fasterChannels !== 'trees';
      if (best.pattern === Pattern.RING) {
        if (fasterChannels !== 'all') break;
        attempt.bwIntra = attempt.bwInter = faster;
      } else if (isNvls && attempt.bwInter === best.bwInter && attempt.bwInter < attempt.bwIntra * 2) {
        attempt.minChannels = attempt.maxChannels = best.nChannels;
        attempt.bwInter = faster;
      } else if (
        !(isNvls && fasterChannels !== 'all') &&
        attempt.bwIntra === best.bwIntra &&
        attempt.bwIntra < attempt.bwInter * 2
      ) {
        attempt.bwIntra = faster;
      } else {
        break;
      }
    }
  }

  /** The fallback without a solution: one slow channel through the GPUs in the order of their numbers. */
  #simpleOrder(): void {
    const best = this.#best;
    const { nics, local, rules } = this.#host;
    this.#trace?.({ kind: 'simple-order' });
    if (rules.simpleOrderNics && local.system.nets.length === 0) throw this.#nothingFound();
    best.isSimpleOrder = true;
    best.namesNoNic = !rules.simpleOrderNics;
    best.nChannels = 1;
    for (let gpu = 0; gpu < best.gpuCount; gpu++) best.gpus[gpu] = gpu;
    best.nics[0] = rules.simpleOrderNics ? (nics.orderFor(0, -1)[0] ?? -1) : 0;
    best.nics[1] = rules.simpleOrderNics ? (nics.orderFor(best.gpuCount - 1, -1)[0] ?? -1) : 0;
    best.bwIntra = best.bwInter = LAST_RESORT_GBPS;
    best.typeIntra = best.typeInter = PathType.SYS;
  }

  #stepsOfWalk(): number {
    return this.#attempt.sameChannels ? STEPS_OF_ALIKE_WALK : STEPS_OF_WALK;
  }

  #runWalk(pass: 1 | 2): number {
    const attempt = this.#attempt;
    const steps = this.#stepsOfWalk();
    if (this.#trace !== undefined) {
      const { pattern, crossNic, sameChannels, bwIntra, bwInter, typeIntra, typeInter, minChannels, maxChannels } = attempt;
      this.#trace({
        kind: 'attempt',
        pass,
        steps,
        pattern,
        crossNic,
        sameChannels,
        bwIntra,
        bwInter,
        typeIntra,
        typeInter,
        minChannels,
        maxChannels,
      });
    }
    const stepsLeft = this.#walk.run(steps);
    this.#trace?.({
      kind: 'ended',
      stepsLeft,
      found: this.#best.nChannels,
      outcome: stepsLeft === PERFECT ? 'perfect' : stepsLeft === 0 ? 'out of steps' : 'all tried',
    });
    return stepsLeft;
  }

  #usesAll(): boolean {
    return total(this.#best.nChannels, this.#best.bwInter) >= this.#host.local.totalGBps;
  }

  /** Text of the two GPUs with the worst connection. */
  #nothingFound(): InputError {
    const { routes, local } = this.#host;
    const slowest = this.#bounds.speeds.at(-1) ?? 0;
    const gbps = ([from, to]: readonly [number, number]) => routes.gbps[routes.between(from, to)] ?? 0;
    const pairs = local.system.gpus.flatMap((from) => local.system.gpus.map((to) => [from.index, to.index] as const));
    const worst = pairs.reduce((least, pair) => (gbps(pair) < gbps(least) ? pair : least));
    const [from, to] = worst.map((gpu) => routes.nameOf(gpu));
    return new InputError(
      'NO_PATH',
      `no ring of at least ${slowest} GB/s goes through the ${routes.gpuCount} GPUs, and there is no network device to fall back on: NCCL fails with an internal error. The path from ${from} to ${to} carries ${Number(gbps(worst).toPrecision(4))} GB/s: correct its links, or leave one of the two out`,
      { ncclResult: 3, ranks: local.ranks },
    );
  }
}

/** @throws InputError where ranks must reach others by a network that is not there. */
function requireNetwork({ local: { inter, ranks, system } }: SearchHost): void {
  if (!inter || system.nets.length > 0) return;
  const who = ranks.length === 1 ? `rank ${ranks.join()} has` : `ranks ${ranks.join(', ')} have`;
  throw new InputError(
    'NO_PATH',
    `${who} to reach ranks on other hosts, or on this one where neither peer-to-peer nor shared memory leads, but there is no network device: NCCL fails with an internal error. Add a <net>, or plan for one host whose GPUs reach each other`,
    { ncclResult: 3, ranks },
  );
}

/** NVSwitches reduce for GPUs from this compute capability on. */
const NVLS_FROM_SM = 90;

function lacksNvls(host: SearchHost, request: GraphRequest): boolean {
  return request.pattern === Pattern.NVLS && (host.local.system.nvSwitches.length === 0 || host.lowestSm < NVLS_FROM_SM);
}

/** The request, limited by the kernels and the GPUs of the host. */
function fitting(request: GraphRequest, host: SearchHost): GraphRequest {
  if (lacksNvls(host, request)) return request;
  const {
    rules,
    local: { inter },
    routes: { gpuCount },
  } = host;
  let { pattern, minChannels, maxChannels } = request;
  if (pattern === Pattern.NVLS) {
    if (rules.mostNvlsHeads !== 'channels' || !inter)
      maxChannels = Math.min(rules.mostNvlsHeads === 'gpus, 32' ? 32 : Infinity, gpuCount);
    // Within one host all GPUs have to be heads.
    if (!inter) minChannels = maxChannels;
  }
  if (pattern === Pattern.COLLNET_DIRECT) maxChannels = Math.min(rules.mostDirectHeads, gpuCount);
  if (gpuCount === 1 && pattern !== Pattern.RING) pattern = Pattern.TREE;
  // Two NVLink islands: trees will be faster than rings, and need at least two channels; so rings need as many.
  if (pattern === Pattern.RING && rules.twoRingsForIslands && hasTwoIslands(host) && maxChannels >= 2 && minChannels === 1)
    minChannels = 2;
  return { ...request, pattern, minChannels, maxChannels };
}

function boundsOf(host: SearchHost, request: GraphRequest): Bounds {
  const { local, parameters, routes, rules } = host;
  const usesBothEnds =
    request.pattern === Pattern.RING || request.pattern === Pattern.BALANCED_TREE || request.pattern === Pattern.SPLIT_TREE;
  const crossNic = local.system.nets.length > 1 && usesBothEnds ? parameters.crossNic : 0;
  const firstCrossNic = (rules.crossNicOfAllGraphs ? parameters.crossNic : crossNic) === 1 ? CrossNic.ALLOWED : CrossNic.NEVER;
  const [minTypeIntra, maxOfGpus] = routes.gpuCount > 1 ? typeRange(host, NodeType.GPU) : [PathType.LOC, PathType.SYS];
  const [minTypeInter, maxOfNics] = local.inter ? typeRange(host, NodeType.NET) : wholeRange[NodeType.NET];
  return {
    minTypeIntra,
    maxTypeIntra: local.inter ? maxOfNics : maxOfGpus,
    minTypeInter,
    // Before sm 90 trees are balanced ones only, and these may have to come back from far.
    maxTypeInter: host.lowestSm < 90 && rules.balancedTreesFromFar ? PathType.SYS : maxOfNics,
    crossNic: firstCrossNic,
    crossNicLater: rules.crossNicOfAllGraphs ? CrossNic.NEVER : firstCrossNic,
    mayPairNics: crossNic === 2 || (rules.crossNicOfAllGraphs && crossNic !== 0),
    sameChannels: request.pattern !== Pattern.NVLS,
    speeds: speedsFor(host.lowestSm, local.inter, rules),
  };
}

/** Types of paths that older versions try on every machine. */
const wholeRange: Readonly<Record<typeof NodeType.GPU | typeof NodeType.NET, [PathType, PathType]>> = {
  [NodeType.GPU]: [PathType.NVL, PathType.SYS],
  [NodeType.NET]: [PathType.PIX, PathType.SYS],
};

/** The best and the worst type of path between GPUs, or from GPUs to NICs. */
function typeRange(
  { local: { system, paths }, rules }: SearchHost,
  target: typeof NodeType.GPU | typeof NodeType.NET,
): [PathType, PathType] {
  if (!rules.typesOfMachine) return wholeRange[target];
  let best: number = PathType.SYS;
  let worst: number = PathType.LOC;
  for (const gpu of system.gpus) {
    if (!paths.knows(gpu.vertex, target)) continue;
    for (const other of target === NodeType.GPU ? system.gpus : system.nets) {
      if (other === gpu) continue;
      const type = placeOfType(paths.type[paths.to(target, other.index) + gpu.vertex] ?? PathType.DIS, rules);
      best = Math.min(best, type);
      worst = Math.max(worst, type);
    }
  }
  return [best as PathType, worst as PathType];
}

/** True if exactly two groups of several GPUs are joined by NVLink each. */
function hasTwoIslands({ routes }: SearchHost): boolean {
  const island = Array.from({ length: routes.gpuCount }, (_, gpu) => gpu);
  for (let gpu = 0; gpu < routes.gpuCount; gpu++) {
    for (let other = gpu + 1; other < routes.gpuCount; other++) {
      if (routes.type[routes.between(gpu, other)] === PathType.NVL) island[other] = island[gpu] ?? gpu;
    }
  }
  const sizes = new Map<number, number>();
  for (const of of island) sizes.set(of, (sizes.get(of) ?? 0) + 1);
  return [...sizes.values()].filter((size) => size > 1).length === 2;
}
