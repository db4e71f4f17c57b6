import type { Merged } from '../graph/merge/merge.js';
import type { ConnectionKind, ScheduledConnection } from '../schedule/schedule.js';
import { type Collective, type DataTypeName, elementBytes } from '../tuning/names.js';
import { copyEngineStartUs } from '../tuning/symmetric/copy-engines.js';
import { type SymmetricKernel, traitsOf } from '../tuning/symmetric/kernels.js';
import type { CallWay } from '../tuning/symmetric/symmetric.js';
import { networkCosts } from './environment.js';
import type { Conditions } from './rates.js';
import { wireBytes } from './call-plan.js';

/** A way that NCCL does a call on symmetric windows with, other than a general kernel. */
export type WindowWay = Exclude<CallWay, { readonly kind: 'general' }>;

/** Inputs of a simulation besides the call. */
interface WindowCall {
  readonly merged: Merged;
  /** Ranks that load from and store to each other. */
  readonly domainRanks: number;
  readonly conditions: Conditions;
  readonly collective: Collective;
  /** As nccl-tests counts it. */
  readonly bytes: number;
  readonly dataType: DataTypeName;
}

/**
 * Time of a call on symmetric windows in µs, without its launch. Data go straight from input to output, so that there are no
 * chunks: ranks wait for each other before and after, and between the CTAs or the links, whichever take longer, move the data.
 *
 *     barrier ─► loads and stores of all CTAs ─► barrier          LL: stores with flags, and no barrier
 */
export function windowCallUs(way: WindowWay, call: WindowCall): number {
  const flows = flowsOf(way, call);
  const movingUs = Math.max(linkUs(flows, call), way.kind === 'symmetric' ? ctaUs(way, call) : 0);
  return waitingUs(way, call) + movingUs;
}

/** Data that one rank has for another, or the NVSwitch for both. */
interface Flow {
  readonly from: number;
  readonly to: number;
  readonly via: ConnectionKind;
  readonly bytes: number;
}

/** Data of a kernel within a domain, in parts of a rank. */
interface Pattern {
  readonly via: ConnectionKind;
  readonly parts: number;
}

function flowsOf(way: WindowWay, { merged, domainRanks, collective, bytes }: WindowCall): Flow[] {
  const { nRanks } = merged.nodes;
  const domains = nRanks / domainRanks;
  const part = bytes / nRanks;
  const patterns = way.kind === 'copy engines' ? [{ via: 'direct', parts: 1 } as const] : patternsOf(way.kernel, nRanks);
  const wire = way.kind === 'symmetric' && traitsOf(way.kernel).isLl ? wireBytes('LL') : 1;
  const flows: Flow[] = [];
  for (const domain of distinctDomains(merged, domainRanks)) {
    const first = domain * domainRanks;
    for (let from = first; from < first + domainRanks; from++) {
      for (let to = first; to < first + domainRanks; to++) {
        for (const { via, parts } of patterns)
          if (from !== to || via !== 'direct') flows.push({ from, to, via, bytes: wire * parts * domains * part });
      }
      if (domains === 1) continue;
      // A rail has the ranks of one place in each domain. AllGather goes around it, ReduceScatter straight to each.
      const onRail = (distance: number) => (from + distance * domainRanks) % nRanks;
      const jumps = collective === 'AllGather' ? [1] : Array.from({ length: domains - 1 }, (_, jump) => jump + 1);
      const each = (part * (domains - 1)) / jumps.length;
      for (const jump of jumps)
        flows.push(
          { from, to: onRail(jump), via: 'direct', bytes: each },
          { from: onRail(domains - jump), to: from, via: 'direct', bytes: each },
        );
    }
  }
  return flows;
}

function patternsOf(kernel: SymmetricKernel, nRanks: number): readonly Pattern[] {
  const { collective, isLl, multicast } = traitsOf(kernel);
  const gather: Pattern = { via: multicast === 'none' ? 'direct' : 'switch-out', parts: 1 };
  const scatter: Pattern = { via: multicast === 'none' ? 'direct' : 'switch-in', parts: 1 };
  if (collective === 'AllGather') return [gather];
  if (collective === 'ReduceScatter') return [scatter];
  // With LL each rank gets all data of all others, and reduces them itself.
  return isLl ? [{ ...gather, parts: nRanks }] : [scatter, { ...gather, via: multicast === 'none' ? 'direct' : 'switch-out' }];
}

/** One domain for each kind of node. */
function distinctDomains({ nodes }: Merged, domainRanks: number): number[] {
  const seen = new Map<number, number>();
  for (let domain = 0; domain * domainRanks < nodes.nRanks; domain++) {
    const kind = nodes.kindOfNode[nodes.rankToNode[domain * domainRanks] ?? 0] ?? 0;
    if (!seen.has(kind)) seen.set(kind, domain);
  }
  return [...seen.values()];
}

/** Time of the link with most to carry. */
function linkUs(flows: readonly Flow[], { conditions, domainRanks }: WindowCall): number {
  const { routes, physics, environment } = conditions;
  const loads = new Map<number, { readonly gbps: number; bytes: number }>();
  for (const { from, to, via, bytes } of flows) {
    const connection: ScheduledConnection = { from, to, channel: 0, via, phase: 0 };
    const { uses, medium } = routes.of(connection, 'pairs');
    const isNet = medium === 'net';
    for (const use of uses) {
      const key = use.node * 65_536 + use.link;
      const load = loads.get(key) ?? {
        gbps:
          routes.capacityGBps(use, physics, { isNet, isSpread: via === 'direct' && domainRanks > 2 }) /
          (isNet ? environment.oversubscription : 1),
        bytes: 0,
      };
      load.bytes += use.weight * bytes;
      loads.set(key, load);
    }
  }
  return Math.max(0, ...[...loads.values()].map(({ gbps, bytes }) => bytes / gbps / 1000));
}

function waitingUs(way: WindowWay, { merged, domainRanks, conditions, collective }: WindowCall): number {
  const { physics, generation, environment } = conditions;
  const own = physics.of[generation];
  const domains = merged.nodes.nRanks / domainRanks;
  const hops = domains === 1 ? 0 : collective === 'AllGather' ? domains - 1 : 1;
  const netUs = hops * (physics.common.netHopUs + networkCosts(environment.network, physics.common).hopUs);
  if (way.kind === 'copy engines') return netUs + copyEngineStartUs(generation === 'blackwell', domainRanks);
  return netUs + (traitsOf(way.kernel).isLl ? own.llHopUs * (1 + physics.common.llThreadCost) : 2 * own.simpleHopUs);
}

/** Data that a CTA has to have to be busy. */
const CELL_BYTES = 1024;

/** Time of the CTAs. They copy the data of each rank they load from or store to; with multicast the NVSwitch does that. */
function ctaUs({ kernel, ctas }: Extract<WindowWay, { kind: 'symmetric' }>, call: WindowCall): number {
  const { merged, collective, bytes, dataType } = call;
  const { nRanks } = merged.nodes;
  const { isLl, multicast } = traitsOf(kernel);
  const reduces = collective === 'AllReduce';
  const own = reduces ? bytes : bytes / nRanks;
  const copies = isLl ? nRanks : reduces ? (multicast === 'none' ? 2 : 2 / nRanks) : multicast === 'none' ? nRanks : 1;
  const { copyGBps, sumGBps } = ctaSpeed(kernel, elementBytes(dataType));
  const busy = call.conditions.physics.common.windowCtaRatio * Math.max(1, Math.min(ctas, own / CELL_BYTES));
  return (copies * own) / copyGBps / busy / 1000 + own / sumGBps / busy / 1000;
}

/**
 * GB/s of a CTA that copies, and of one that adds up what came with flags. NVIDIA's own fits to measurements of Blackwell (of
 * AllReduce, of Rubin), from files of NCCL after 2.32.3 (src/tuning/sym_model/lsa_a2a.cc); there are none of Hopper.
 */
function ctaSpeed(kernel: SymmetricKernel, typeBytes: number): { readonly copyGBps: number; readonly sumGBps: number } {
  const { collective, isLl, multicast, isTma } = traitsOf(kernel);
  const isMulticast = multicast !== 'none';
  const copying = (copyGBps: number, sumGBps = Infinity) => ({ copyGBps, sumGBps });
  switch (collective) {
    case 'AllGather':
      if (isLl) return isMulticast ? copying(27.46, 2.19) : copying(15.87, 2.32);
      return copying(isMulticast ? 50.83 : 64.2);
    case 'ReduceScatter': {
      if (isLl) return copying(8.65, 2.13);
      if (isMulticast) return copying(24.54);
      const [float, half, byte] = isTma ? [46.8, 41.2, 24.7] : [26, 17, 15.9];
      return copying(typeBytes >= 4 ? float : typeBytes >= 2 ? half : byte);
    }
    default:
      if (isLl) return isMulticast ? copying(63.66, 1.63) : copying(25.02, 1.67);
      return copying(isMulticast ? 35.74 : isTma ? 63.19 : 35.46);
  }
}
