import { NETWORK_RANK, type ScheduledConnection, type Worker } from '../schedule/schedule.js';
import type { Protocol } from '../tuning/names.js';
import { type CallPlan, wireBytes } from './call-plan.js';
import { EAGER_BYTES, networkCosts } from './environment.js';
import { blockGBps, type Conditions } from './rates.js';
import type { Route } from './routes.js';
import { blockKey } from './shared-links.js';

/** Costs of an execution, by connection and by worker. Times in µs, rates in bytes per µs. */
export interface Timing {
  /** Rate at which a worker writes into a connection. */
  readonly writeRate: Float64Array;
  /** Rate at which a worker reads from a connection. */
  readonly readRate: Float64Array;
  /** Rate of the NIC behind a connection; infinite without one. */
  readonly wireRate: Float64Array;
  /** Rate at which a connection uses its share of a NIC or of PCI links; infinite where it uses neither. */
  readonly sharedRate: Float64Array;
  /** Additional time of a NIC for each message, by connection. */
  readonly stepUs: Float64Array;
  /** Additional time of a slice's sender, by connection: it notifies the proxy of a NIC. */
  readonly sendUs: Float64Array;
  /** Time from the last sent byte until the receiver sees it. */
  readonly latencyUs: Float64Array;
  /** Additional latency of a NIC's messages from so many bytes on. */
  readonly rendezvousUs: number;
  readonly rendezvousBytes: number;
  /** Time that a connection's sender waits for a credit after the receiver is done. */
  readonly creditUs: Float64Array;
  /** Rate at which each worker copies within its GPU, and reads received data. */
  readonly copyRate: Float64Array;
  /** Additional time of each slice for a worker; one that touches input or output, and one that only forwards data. */
  readonly copySliceUs: number;
  readonly sliceUs: number;
  /** Cost of each further operand of a move, relative to a copy. */
  readonly operandCost: number;
  /** The same for each sum, beyond what any operand costs. */
  readonly sumCost: number;
  /** True if a receiver may begin with the first bytes of a slice (LL, LL128); with Simple it waits for all of it. */
  readonly cutsThrough: boolean;
  /** Slices that a connection holds; a power of two. */
  readonly slots: number;
  readonly slicing: Slicing;
}

/** Number of slices of a chunk, and their least size in bytes. */
interface Slicing {
  readonly slices: number;
  readonly leastBytes: number;
}

/** Timing of all calls that use the same connections; `sumCost` and `copyRate` depend on the call. */
export interface ConnectionTiming extends Omit<Timing, 'copyRate' | 'sumCost'> {
  /** Rate that a connection would have on that NIC or on those links alone; 0 where it uses neither. */
  readonly aloneRate: Float64Array;
}

/** Connections, the route of each, and the number of ranks that are simulated. */
interface RoutedConnections {
  readonly connections: readonly ScheduledConnection[];
  readonly routes: readonly Route[];
  readonly ranks: number;
}

/**
 * Accesses to memory of the host for each slice of a message between pairs: all such messages share a proxy's buffer, so a
 * sender reads its place there before it notifies the proxy.
 */
const PAIRS_HOST_ACCESSES = 2;

/** Threads of a block with LL at most. */
const MOST_LL_THREADS = 512;

/** Costs of connections. @param rates fair rate of each, GB/s */
export function timingOf(
  routed: RoutedConnections,
  rates: Float64Array,
  plan: CallPlan,
  conditions: Conditions,
): ConnectionTiming {
  const { connections, routes, ranks } = routed;
  const { common } = conditions.physics;
  const network = networkCosts(conditions.environment.network, common);
  const messageUs = common.netStepUs + network.stepUs;
  const count = connections.length;
  const writeRate = new Float64Array(count);
  const readRate = new Float64Array(count).fill(Infinity);
  const wireRate = new Float64Array(count).fill(Infinity);
  const sharedRate = new Float64Array(count).fill(Infinity);
  const aloneRate = new Float64Array(count);
  const stepUs = new Float64Array(count);
  const sendUs = new Float64Array(count);
  const latencyUs = new Float64Array(count);
  const writers = plan.isPairs ? messagesOfBlock(connections, ranks, 'from') : undefined;
  const readers = plan.isPairs ? messagesOfBlock(connections, ranks, 'to') : undefined;
  const atNic = messagesOfNic(connections, routes);
  const hop = hopUs(plan, conditions);
  const wire = wireBytes(plan.protocol);
  const blockRate = 1000 * blockGBps(plan, conditions);
  const isSimpleRing = plan.kind === 'ring' && plan.protocol === 'Simple';
  const writersRate = isSimpleRing
    ? Math.min(blockRate, 1000 * conditions.physics.of[conditions.generation].netBlockGBps)
    : blockRate;
  connections.forEach((connection, number) => {
    const { medium, uses } = routes[number] ?? { medium: 'nvlink', uses: [] };
    const rate = (rates[number] ?? 0) * 1000;
    if (readers !== undefined) readRate[number] = blockRate / (readers[number] ?? 1);
    if (medium === 'net') {
      const nic = nicRateOf(uses, conditions);
      writeRate[number] = writersRate / (writers?.[number] ?? 1);
      wireRate[number] = sharedRate[number] = rate;
      aloneRate[number] = nic;
      // Messages of all connections, and their additional costs, take turns at a NIC.
      stepUs[number] = messageUs * (atNic[number] ?? 1);
      // With LL, the flags notify the proxy.
      sendUs[number] = plan.protocol === 'LL' ? 0 : common.netSendUs * (plan.isPairs ? PAIRS_HOST_ACCESSES : 1);
      latencyUs[number] = netLatencyUs(connection, plan, conditions);
    } else {
      writeRate[number] = rate;
      if (medium === 'pci' || medium === 'shm') {
        sharedRate[number] = rate;
        aloneRate[number] = Math.min(blockRate, (1000 * conditions.routes.narrowestGBps(uses, conditions.physics)) / wire);
      }
      latencyUs[number] =
        hop * (arrivalOf(plan) === 'Simple' ? 1 : 1 - common.flagShare) + (medium === 'shm' ? common.shmHopUs : 0);
    }
  });
  const sliceUs = sliceUsOf(plan, hop, conditions);
  return {
    ...{ writeRate, readRate, wireRate, sharedRate, aloneRate, stepUs, sendUs, latencyUs, creditUs: latencyUs, sliceUs },
    rendezvousUs: network.rendezvousUs,
    rendezvousBytes: EAGER_BYTES / wire,
    // Scatter and gather serve all heads in one slice.
    copySliceUs: sliceUs / plan.inTurn,
    operandCost: plan.isSwitch || plan.isPairs ? 0 : common.operandCost,
    cutsThrough: plan.protocol !== 'Simple',
    slots: plan.slots,
    slicing: { slices: plan.slices, leastBytes: plan.slices > 1 ? Math.ceil(plan.chunkBytes / plan.slices / 32) : 0 },
  };
}

/** The same costs for a call's workers. @param sumCost cost of each sum, relative to a copy */
export function timingOfWorkers(
  timing: Omit<Timing, 'copyRate' | 'sumCost'>,
  workers: readonly Worker[],
  blockRate: number,
  sumCost: number,
): Timing {
  // Networks that reduce and memory of other ranks are always fast enough.
  const isInstant = ({ rank, serves }: Worker) => rank === NETWORK_RANK || serves !== undefined;
  const copyRate = Float64Array.from(workers, (worker) => (isInstant(worker) ? Infinity : blockRate));
  return { ...timing, sumCost, copyRate };
}

/** The costs that change if each connection has NICs and PCI links of its own; undefined where none share one. */
export function aloneOnLinks(timing: ConnectionTiming): Pick<Timing, 'writeRate' | 'wireRate' | 'stepUs'> | undefined {
  const { writeRate, wireRate, sharedRate, aloneRate, stepUs } = timing;
  if (!sharedRate.some((rate, number) => (aloneRate[number] ?? 0) > 1.01 * rate)) return undefined;
  const share = (number: number) => {
    const [rate, whole] = [sharedRate[number] ?? Infinity, aloneRate[number] ?? 0];
    return whole <= rate ? 1 : rate / whole;
  };
  const hasNic = (number: number) => wireRate[number] !== Infinity;
  return {
    writeRate: writeRate.map((rate, number) => (hasNic(number) ? rate : rate / share(number))),
    wireRate: wireRate.map((rate, number) => rate / share(number)),
    stepUs: stepUs.map((us, number) => us * share(number)),
  };
}

/** Protocol by which a receiver sees that data are there: a counter in memory that it polls is as fast as a flag of LL. */
function arrivalOf({ isOneSided, protocol }: CallPlan): Protocol {
  return isOneSided ? 'LL' : protocol;
}

/** Time of a hop within a host: from the last written byte until the receiver sees it. */
function hopUs(plan: CallPlan, { physics, generation }: Conditions): number {
  const { isSwitch, choice } = plan;
  const own = physics.of[generation];
  if (isSwitch) return own.nvlsHopUs;
  const threads = (choice?.nThreads ?? MOST_LL_THREADS) / MOST_LL_THREADS;
  const llUs = own.llHopUs * (1 + physics.common.llThreadCost * threads);
  return { LL: llUs, LL128: own.ll128HopUs, Simple: own.simpleHopUs }[arrivalOf(plan)];
}

function netLatencyUs({ via }: ScheduledConnection, { protocol }: CallPlan, conditions: Conditions): number {
  const { physics, generation, environment } = conditions;
  // A network that reduces has one switch between two NICs.
  const half = via === 'net-in' || via === 'net-out' ? 0.5 : 1;
  const { netLlHopUs, netHopUs } = physics.common;
  const wireUs = protocol === 'LL' ? netLlHopUs : netHopUs;
  const receiverUs = protocol === 'Simple' ? physics.of[generation].simpleHopUs : 0;
  return half * (wireUs + networkCosts(environment.network, physics.common).hopUs) + receiverUs;
}

/** Time of a slice besides its bytes. */
function sliceUsOf(plan: CallPlan, hop: number, { physics, generation }: Conditions): number {
  const { common } = physics;
  const { simpleSliceUs, nvlsSliceUs } = physics.of[generation];
  const { isSwitch, isPairs } = plan;
  if (isSwitch) return nvlsSliceUs;
  if (arrivalOf(plan) !== 'Simple') return hop * common.flagShare;
  return isPairs ? common.pairsSliceRatio * simpleSliceUs : simpleSliceUs;
}

/** Rate of the slowest NIC on the way, bytes a µs. */
function nicRateOf(uses: Route['uses'], { routes, physics, environment }: Conditions): number {
  return 1000 * (routes.nicGBps(uses, physics) / environment.oversubscription);
}

/** Number of connections of a phase that send by a connection's NIC. */
function messagesOfNic(connections: readonly ScheduledConnection[], routes: readonly Route[]): Float64Array {
  const counts = new Map<number, number>();
  const keyOf = ({ phase }: ScheduledConnection, number: number) => {
    const [sender] = routes[number]?.ends ?? [];
    return sender === undefined ? -1 : (phase * 32_768 + sender.node) * 4096 + sender.nic;
  };
  const keys = connections.map(keyOf);
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return Float64Array.from(keys, (key) => (key < 0 ? 1 : (counts.get(key) ?? 1)));
}

/** Number of connections that the warps of each connection's thread block serve at the same time, at one end. */
function messagesOfBlock(connections: readonly ScheduledConnection[], ranks: number, end: 'from' | 'to'): Float64Array {
  const counts = new Map<number, number>();
  const keyOf = (connection: ScheduledConnection) => blockKey(connection, connection[end] % ranks);
  for (const connection of connections) {
    const key = keyOf(connection);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return Float64Array.from(connections, (connection) => counts.get(keyOf(connection)) ?? 1);
}
