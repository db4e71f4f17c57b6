import { collectiveSchedule, messagesSchedule, pairsWay } from '../schedule/from-plan.js';
import {
  type ScheduledConnection,
  NETWORK_RANK,
  type Schedule,
  type ScheduledCall,
  type ScheduledCollective,
  type Worker,
} from '../schedule/schedule.js';
import { llCap } from '../tuning/bandwidth.js';
import { type Choice, choose } from '../tuning/choose.js';
import { type Generation, generationOf } from '../tuning/constants.js';
import { type Collective, collectives, type DataTypeName, type Protocol } from '../tuning/names.js';
import type { PredictOptions } from '../tuning/predict.js';
import type { Tuning } from '../tuning/tune.js';
import { runClock, type SliceListener, type Timing } from './clock.js';
import { defaultEnvironment, type Environment, networkExtraUs } from './environment.js';
import { type Fabric, type FabricTier, fabricUses } from './fabric.js';
import { fairRates, type Flows } from './fair-share.js';
import { channelsThatDiffer, foldHosts, isDeepTree, timeOfDeepTree, withFirstHosts } from './fold.js';
import { measuredPhysics, type Physics } from './physics.js';
import { type ChannelKind, type LinkUse, type Route, Routes, type SimulatedCluster } from './routes.js';

/** Simulated time of a call. */
export interface Simulated {
  readonly timeUs: number;
  /** As NCCL chooses; undefined for messages between pairs, for which it has no model. */
  readonly choice: Choice | undefined;
  /** Protocol of the data. */
  readonly protocol: Protocol;
  readonly nChannels: number;
  /** Part of the time that is the start of kernels and ranks. */
  readonly launchUs: number;
}

/** Options of a simulation. */
export interface SimulateOptions extends PredictOptions {
  readonly environment?: Environment;
  readonly physics?: Physics;
  /** Simulates all hosts though they are alike; for tests of folding. */
  readonly unfolded?: boolean;
  /** Called with every slice. Then nothing is folded or extrapolated. */
  readonly onSlice?: (worker: Worker, slice: Parameters<SliceListener>[0], ways: ConnectionWays) => void;
  readonly root?: number;
  /** Replaces NCCL's choice. */
  readonly choice?: Choice;
}

/** The connections of a call, the links of each, and bytes on the wire by bytes of data. */
interface ConnectionWays {
  readonly connections: readonly ScheduledConnection[];
  readonly routes: readonly Route[];
  readonly wireBytes: number;
}

/** Slots of a connection to a memory: practically unlimited. */
const MEMORY_SLOTS = 256;

/** Simulates calls on one cluster: routes and rates are computed once. */
export class Simulator {
  readonly #cluster: SimulatedCluster;
  readonly #tuning: Tuning;
  readonly #routes: Routes;
  readonly #structures = new Map<string, Structure>();
  readonly #workers = new Map<string, readonly Worker[]>();
  readonly #generation: Generation;
  /** The plan of the first hosts, by their number. */
  readonly #fewHosts = new Map<number, SimulatedCluster['merged']>();
  /** Fabrics that calls were simulated on. */
  readonly #fabrics: Fabric[] = [];

  constructor(cluster: SimulatedCluster, tuning: Tuning) {
    this.#cluster = cluster;
    this.#tuning = tuning;
    this.#routes = new Routes(cluster);
    this.#generation = generationOf(tuning.input.minCompCap);
  }

  get nRanks(): number {
    return this.#cluster.merged.nodes.nRanks;
  }

  /** True if ranks are on several nodes. */
  get usesNetwork(): boolean {
    return this.#cluster.merged.nodes.nNodes > 1;
  }

  /** Name of a route's link, and GB/s that it carries; undefined where it has no limit. */
  describeLink({ node, link }: Pick<LinkUse, 'node' | 'link'>, physics = measuredPhysics): LinkDescription | undefined {
    const gbps = this.#routes.capacityGBps({ node, link }, physics);
    return gbps === Infinity ? undefined : { name: this.#routes.linkName({ node, link }), gbps };
  }

  /** The schedule of a call as NCCL does it; undefined where it has nothing to choose from, and for one rank. */
  scheduleOf(collective: ScheduledCollective, bytes: number, options: SimulateOptions = {}): Schedule | undefined {
    const { nRanks } = this.#cluster.merged.nodes;
    if (nRanks === 1) return undefined;
    const call = { collective, bytes: wholeParts(collective, bytes, nRanks), root: options.root ?? 0 };
    return this.#planOf(call, { ...options, unfolded: true })?.schedule(call);
  }

  /**
   * Executes a call's schedule in time.
   *
   * @param bytes size as nccl-tests counts it
   * @returns undefined if NCCL has no candidate, and for one rank, which exchanges nothing
   */
  simulate(collective: ScheduledCollective, bytes: number, options: SimulateOptions = {}): Simulated | undefined {
    const { nRanks } = this.#cluster.merged.nodes;
    if (nRanks === 1) return undefined;
    const { environment = defaultEnvironment, physics = measuredPhysics, root = 0 } = options;
    const call = { collective, bytes: wholeParts(collective, bytes, nRanks), root };
    const plan = this.#planOf(call, options);
    if (plan === undefined) return undefined;
    const startUs = this.#startUs(plan, physics, environment);
    const hosts = this.#deepHosts(plan, options);
    const run = (size: number) => {
      const sized = { ...call, bytes: wholeParts(collective, size, nRanks) };
      const execute = (of: CallPlan) => this.#execute(sized, of, physics, environment, options);
      return hosts === undefined ? execute(plan) : timeOfDeepTree(hosts, (few) => execute(this.#onFirstHosts(plan, few)));
    };
    const { whole, rest, period } = periods(call.bytes, plan.periodBytes);
    let inner: number;
    if (whole === 0 || options.onSlice !== undefined) {
      inner = run(call.bytes);
    } else {
      // Beyond the first rounds each takes as long as the one before.
      const long = run(rest);
      inner = long + (whole * (long - run(rest - SAMPLED_PERIODS * period))) / SAMPLED_PERIODS;
    }
    const timeUs = withLaunches(startUs + inner, physics, environment);
    return { timeUs, choice: plan.choice, protocol: plan.protocol, nChannels: plan.nChannels, launchUs: timeUs - inner };
  }

  /**
   * Executes any schedule in time: thread blocks, FIFOs and links are those of NCCL's kernels.
   *
   * @returns µs, with the launch
   */
  simulateSchedule(
    made: Schedule,
    protocol: Protocol,
    { environment = defaultEnvironment, physics = measuredPhysics }: Pick<SimulateOptions, 'environment' | 'physics'> = {},
  ): number {
    const isOneSided = made.workers.some(({ serves }) => serves !== undefined);
    const slices = protocol === 'Simple' && !isOneSided ? 2 : 1;
    const plan: CallPlan = {
      key: '',
      inTurn: 1,
      choice: undefined,
      protocol,
      nChannels: 1 + made.workers.reduce((most, { channel }) => Math.max(most, channel), 0),
      chunkBytes: 0,
      kind: 'pairs',
      isPairs: false,
      peers: 0,
      isSwitch: false,
      slices,
      // Memory is always ready.
      slots: isOneSided ? MEMORY_SLOTS : 8 / slices,
      periodBytes: Infinity,
      schedule: () => made,
      mayFold: false,
      isTree: false,
    };
    const structure = this.#structureOf(made, plan, environment.fabric, made.nRanks);
    const { copyRate, timing } = this.#rated(structure, plan, physics, environment);
    const { endUs } = runClock(made.workers, made.connections, {
      ...timing,
      copyRate: (worker) => (made.workers[worker]?.serves !== undefined ? Infinity : copyRate),
    });
    return withLaunches(this.#startUs(plan, physics, environment) + latestOf(endUs), physics, environment);
  }

  #planOf(call: ScheduledCall, options: SimulateOptions): CallPlan | undefined {
    const { merged } = this.#cluster;
    const { nRanks } = merged.nodes;
    if (!isCollective(call.collective)) {
      const way = pairsWay(merged, call);
      const isCircle = call.collective === 'SendRecv';
      return {
        key: `pairs ${call.collective} ${way.protocol} ${way.channelsPerMessage}`,
        inTurn: 1,
        choice: undefined,
        protocol: way.protocol,
        nChannels: way.nChannels,
        kind: 'pairs',
        isPairs: true,
        peers: isCircle ? 1 : nRanks - 1,
        isSwitch: false,
        slices: 1,
        slots: 8,
        chunkBytes: way.chunkBytes,
        periodBytes: way.channelsPerMessage * way.chunkBytes * (isCircle ? 1 : nRanks),
        schedule: (sized) =>
          messagesSchedule(merged, sized, way, isLopsided(call.collective) ? undefined : firstRanks(this.#foldedRanks(options))),
        mayFold: true,
        isTree: false,
      };
    }
    const choice = options.choice ?? choose(this.#tuning, call.collective, call.bytes, options);
    if (choice === undefined) return undefined;
    const { algorithm, protocol, nChannels, chunkBytes } = choice;
    const isSwitch = algorithm === 'NVLS' || algorithm === 'NVLSTree';
    const isShared = call.collective === 'AllGather' || call.collective === 'ReduceScatter';
    const goesAround = algorithm === 'Ring' && (isShared || call.collective === 'AllReduce');
    const parts =
      isShared || (algorithm === 'Ring' && call.collective === 'AllReduce')
        ? nRanks
        : isSwitch
          ? (this.#tuning.input.nvls?.nHeads ?? 1)
          : 1;
    const slices = goesAround && protocol === 'Simple' ? 2 : 1;
    return {
      key: `${algorithm} ${protocol} ${nChannels} ${choice.nThreads} ${chunkBytes} ${call.collective}`,
      inTurn: isSwitch ? (this.#tuning.input.nvls?.nHeads ?? 1) : 1,
      choice,
      protocol,
      nChannels,
      chunkBytes,
      isPairs: false,
      peers: 0,
      isSwitch,
      slices,
      slots: 8 / slices,
      kind: algorithm === 'Ring' ? 'ring' : isSwitch ? 'pairs' : 'tree',
      periodBytes: nChannels * chunkBytes * parts,
      schedule: (sized) => collectiveSchedule(merged, sized, choice),
      mayFold: algorithm === 'Ring' || algorithm === 'PAT',
      isTree: algorithm === 'Tree' || algorithm === 'NVLSTree',
    };
  }

  /** Number of hosts of a tree that smaller ones stand for; undefined where it is simulated itself. */
  #deepHosts({ isTree }: CallPlan, options: SimulateOptions): number | undefined {
    const { nNodes } = this.#cluster.merged.nodes;
    return isTree && isDeepTree(nNodes) && this.#areAlike(options) ? nNodes : undefined;
  }

  #onFirstHosts(plan: CallPlan, hosts: number): CallPlan {
    const { choice } = plan;
    if (choice === undefined) return plan;
    let few = this.#fewHosts.get(hosts);
    if (few === undefined) this.#fewHosts.set(hosts, (few = withFirstHosts(this.#cluster.merged, hosts)));
    const merged = few;
    return { ...plan, key: `${plan.key} of ${hosts} hosts`, schedule: (sized) => collectiveSchedule(merged, sized, choice) };
  }

  /** True if all hosts are alike, below the same switches, and may stand for each other. */
  #areAlike({ unfolded = false, onSlice, environment }: SimulateOptions): boolean {
    const { nodes } = this.#cluster.merged;
    const perHost = nodes.nRanks / nodes.nNodes;
    return (
      // The time of a host depends on its place below switches.
      environment?.fabric === undefined &&
      !unfolded &&
      onSlice === undefined &&
      nodes.kinds.length === 1 &&
      Number.isInteger(perHost) &&
      nodes.rankBase.every((base, node) => base === node * perHost)
    );
  }

  /**
   * Ranks of two hosts that stand for all: of crossed rails, hosts at odd places take the other. Undefined where hosts
   * differ.
   */
  #foldedRanks(options: SimulateOptions): number | undefined {
    const { nRanks, nNodes } = this.#cluster.merged.nodes;
    return nNodes > 2 && nNodes % 2 === 0 && this.#areAlike(options) ? (2 * nRanks) / nNodes : undefined;
  }

  #fabricNumber(fabric: Fabric | undefined): number {
    if (fabric === undefined) return -1;
    const known = this.#fabrics.indexOf(fabric);
    return known >= 0 ? known : this.#fabrics.push(fabric) - 1;
  }

  #execute(call: ScheduledCall, plan: CallPlan, physics: Physics, environment: Environment, options: SimulateOptions): number {
    const folded = plan.mayFold && !isLopsided(call.collective) ? this.#foldedRanks(options) : undefined;
    const key = `${plan.key} ${this.#fabricNumber(environment.fabric)} ${folded === undefined ? '' : 'folded'} ${isLopsided(call.collective) ? `${call.collective} ${call.root}` : ''}`;
    const { structure, workers } = this.#workersOf(key, call, plan, folded, options);
    const rated = this.#rated(structure, plan, physics, environment);
    const { onSlice } = options;
    const ways = { connections: structure.connections, routes: structure.routes, wireBytes: wireBytes(plan.protocol) };
    const timing = {
      ...rated.timing,
      sumCost: isByte(options.dataType) ? physics.common.byteSumCost : 0,
      copyRate: (worker: number) => (workers[worker]?.rank === NETWORK_RANK ? Infinity : rated.copyRate),
    };
    const { endUs, wireUs } = runClock(
      workers,
      structure.connections,
      timing,
      onSlice === undefined
        ? undefined
        : (slice) => {
            const worker = workers[slice.worker];
            if (worker !== undefined) onSlice(worker, slice, ways);
          },
    );
    const fairUs = latestOf(endUs);
    if (onSlice !== undefined || rated.alone === undefined) return fairUs;
    const aloneUs = latestOf(runClock(workers, structure.connections, { ...timing, ...rated.alone }).endUs);
    return Math.min(fairUs, togetherUs(latestOf(wireUs), aloneUs, physics));
  }

  /**
   * The workers that stand for all others, and the connections of all. Kept, because a fit asks for the same calls
   * again and again.
   */
  #workersOf(
    key: string,
    call: ScheduledCall,
    plan: CallPlan,
    folded: number | undefined,
    { onSlice, unfolded = false, environment: { fabric } = defaultEnvironment }: SimulateOptions,
  ): { readonly structure: Structure; readonly workers: readonly Worker[] } {
    const structure = this.#structures.get(key);
    const callKey = `${key} ${call.bytes} ${unfolded ? 'unfolded' : ''}`;
    const kept = this.#workers.get(callKey);
    if (structure !== undefined && kept !== undefined && onSlice === undefined) return { structure, workers: kept };
    const made = plan.schedule(call);
    const schedule = folded === undefined ? made : foldHosts(made, folded);
    const known = structure ?? this.#structureOf(schedule, plan, fabric, folded ?? schedule.nRanks);
    this.#structures.set(key, known);
    if (onSlice !== undefined) return { structure: known, workers: schedule.workers };
    // The last channel may have fewer data than the others.
    const last = plan.nChannels - 1;
    const workers = schedule.workers.filter(({ channel }) => known.representatives.has(channel) || channel === last);
    if (this.#workers.size < 4096) this.#workers.set(callKey, workers);
    return { structure: known, workers };
  }

  /** Connections and their links: the same for all sizes that are done in the same way. */
  #structureOf({ connections }: Schedule, plan: CallPlan, fabric: Fabric | undefined, ranks: number): Structure {
    const routes = connections.map((connection) => this.#routes.of(connection, plan.kind));
    const shared = sharedLinks(
      connections,
      routes,
      plan,
      (use) => this.#routes.capacityGBps(use, measuredPhysics) === Infinity,
      fabric,
      ranks,
    );
    const rates = fairRates(
      { ...shared, most: new Float64Array(connections.length).fill(1000) },
      Float64Array.from(shared.links, (link) => this.#capacity(link, 10, measuredPhysics, 1)),
    );
    const representatives = channelsThatDiffer(
      connections,
      (number) => `${(rates[number] ?? 0).toPrecision(5)}${routes[number]?.medium ?? ''}`,
    );
    return { connections, routes, shared, representatives, ranks, rated: undefined };
  }

  #rated(structure: Structure, plan: CallPlan, physics: Physics, environment: Environment): Rated {
    if (structure.rated?.physics === physics && structure.rated.environment === environment) return structure.rated;
    const { shared, routes, connections } = structure;
    const blockGBps = plan.isPairs
      ? pairsGBps(plan.protocol, physics, this.#generation)
      : blockRate(plan, physics, this.#generation);
    const capacity = Float64Array.from(shared.links, (link) =>
      this.#capacity(link, blockGBps, physics, environment.oversubscription, plan.peers > 1),
    );
    // Data for a NIC are written at the speed of blocks, then wait for the NIC.
    const netGBps = Math.min(10 * blockGBps, this.#llGBps(plan));
    const most = Float64Array.from(connections, (_, index) => (routes[index]?.medium === 'net' ? netGBps : blockGBps));
    const rates = fairRates({ ...shared, most }, capacity);
    const timing = this.#timing(structure, rates, plan, physics, environment);
    const isShared = timing.wireRate.some((rate, number) => rate !== Infinity && (timing.nicRate[number] ?? 0) > 1.01 * rate);
    return (structure.rated = {
      physics,
      environment,
      copyRate: 1000 * blockGBps,
      timing,
      alone: isShared && plan.kind === 'ring' ? aloneAtNic(timing) : undefined,
    });
  }

  /** Bandwidth limit of a channel to another node with LL, whose buffers lie in memory of the CPU, which checks all flags. */
  #llGBps({ protocol, isPairs, nChannels }: CallPlan): number {
    return protocol === 'LL' && !isPairs && this.usesNetwork ? llCap(this.#tuning.input) / nChannels : Infinity;
  }

  #capacity(link: SharedLink, blockGBps: number, physics: Physics, oversubscription: number, isSpread = false): number {
    if (link.fabric !== undefined) {
      const { tier, rail, node } = link.fabric;
      return (tier.hosts * this.#routes.nicsGBps(node, rail, physics)) / tier.oversubscription;
    }
    return link.use === undefined
      ? blockGBps
      : Math.min(1e6, this.#routes.capacityGBps(link.use, physics, isSpread) / (link.isNet ? oversubscription : 1));
  }

  #timing(
    { connections, routes, ranks }: Structure,
    rates: Float64Array,
    plan: CallPlan,
    physics: Physics,
    { network, oversubscription }: Environment,
  ): Omit<Timing, 'copyRate'> & { readonly nicRate: Float64Array } {
    const own = physics.of[this.#generation];
    const { common } = physics;
    const count = connections.length;
    const writeRate = new Float64Array(count);
    const wireRate = new Float64Array(count);
    const latencyUs = new Float64Array(count);
    const stepUs = new Float64Array(count);
    const nicRate = new Float64Array(count);
    const sendUs = new Float64Array(count);
    const readRate = new Float64Array(count);
    const writers = plan.isPairs ? messagesOfBlock(connections, ranks, 'from') : undefined;
    const readers = plan.isPairs ? messagesOfBlock(connections, ranks, 'to') : undefined;
    const threads = (plan.choice?.nThreads ?? MOST_LL_THREADS) / MOST_LL_THREADS;
    const hop = plan.isSwitch
      ? common.nvlsHopUs
      : { LL: own.llHopUs * (1 + common.llThreadCost * threads), LL128: own.ll128HopUs, Simple: own.simpleHopUs }[plan.protocol];
    const nicGBps = routes.map(({ medium, uses }) =>
      medium === 'net' ? this.#routes.nicGBps(uses, physics) / oversubscription : 0,
    );
    const block = plan.isPairs ? pairsGBps(plan.protocol, physics, this.#generation) : blockRate(plan, physics, this.#generation);
    for (let number = 0; number < count; number++) {
      const medium = routes[number]?.medium ?? 'nvlink';
      const rate = (rates[number] ?? 0) * 1000;
      const isNet = medium === 'net';
      const via = connections[number]?.via;
      // A network that reduces has one switch between two NICs.
      const half = via === 'net-in' || via === 'net-out' ? 0.5 : 1;
      writeRate[number] = isNet ? (block * 1000) / (writers?.[number] ?? 1) : rate;
      readRate[number] = readers === undefined ? Infinity : (block * 1000) / (readers[number] ?? 1);
      wireRate[number] = isNet ? rate : Infinity;
      if (isNet) {
        // Messages of all connections, and their additional costs, take turns at a NIC.
        nicRate[number] = 1000 * (nicGBps[number] ?? 0);
        stepUs[number] = common.netStepUs * Math.max(1, (1000 * (nicGBps[number] ?? 0)) / rate);
        // With LL, the flags notify the proxy.
        sendUs[number] = plan.protocol === 'LL' ? 0 : common.netSendUs * (plan.isPairs ? PAIRS_HOST_ACCESSES : 1);
      }
      latencyUs[number] = isNet
        ? half * (common.netHopUs + networkExtraUs[network]) + (plan.protocol === 'Simple' ? own.simpleHopUs : 0)
        : hop * (plan.protocol === 'Simple' ? 1 : 1 - common.flagShare) + (medium === 'shm' ? common.shmHopUs : 0);
    }
    const sliceUs = plan.isSwitch
      ? common.nvlsSliceUs
      : plan.protocol !== 'Simple'
        ? hop * common.flagShare
        : plan.isPairs
          ? common.pairsSliceRatio * own.simpleSliceUs
          : own.simpleSliceUs;
    return {
      writeRate,
      readRate,
      wireRate,
      stepUs,
      nicRate,
      sendUs,
      latencyUs,
      creditUs: latencyUs,
      sliceUs,
      // Scatter and gather serve all heads in one slice.
      copySliceUs: sliceUs / plan.inTurn,
      operandCost: plan.isSwitch || plan.isPairs ? 0 : common.operandCost,
      sumCost: 0,
      cutsThrough: plan.protocol !== 'Simple',
      slots: plan.slots,
      slicing: { slices: plan.slices, leastBytes: plan.slices > 1 ? Math.ceil(plan.chunkBytes / plan.slices / 32) : 0 },
    };
  }

  #startUs({ isPairs, peers, isSwitch }: CallPlan, physics: Physics, environment: Environment): number {
    const { launchUs } = physics.of[this.#generation];
    const { pairsSetupUs, pairsPeerUs, nvlsSetupUs } = physics.common;
    const pairsUs = isPairs ? pairsSetupUs + pairsPeerUs * (peers - 1) : 0;
    return launchUs + pairsUs + (isSwitch ? nvlsSetupUs : 0) + (environment.skewUs ?? 0);
  }
}

/** A link by name. */
interface LinkDescription {
  readonly name: string;
  readonly gbps: number;
}

/** Connections with their links, and the times of the last computation. */
interface Structure {
  readonly connections: readonly ScheduledConnection[];
  readonly routes: readonly Route[];
  readonly shared: SharedLinks;
  /** Channels that represent all equal ones. */
  readonly representatives: ReadonlySet<number>;
  /** Number of ranks that are simulated: of folded hosts, rank `ranks + r` stands for rank r. */
  readonly ranks: number;
  rated: Rated | undefined;
}

/** Resources that connections share: links, and the throughput of thread blocks. */
interface SharedLinks extends Omit<Flows, 'most'> {
  readonly links: readonly SharedLink[];
}

/** A link of a node, or a thread block where `use` is undefined. */
interface SharedLink {
  readonly use: LinkUse | undefined;
  readonly isNet: boolean;
  /** Links between switches, and a node below them. */
  readonly fabric?: { readonly tier: FabricTier; readonly rail: number | undefined; readonly node: number };
}

function sharedLinks(
  connections: readonly ScheduledConnection[],
  routes: readonly Route[],
  plan: CallPlan,
  isWide: (use: LinkUse) => boolean,
  fabric: Fabric | undefined,
  ranks: number,
): SharedLinks {
  const switches = new Map<string, number>();
  const numbers = new Map<number, number>();
  const links: SharedLink[] = [];
  const first = new Int32Array(connections.length + 1);
  const link: number[] = [];
  const weight: number[] = [];
  const take = (key: number, share: number, use: LinkUse | undefined, isNet: boolean) => {
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = links.push({ use, isNet }) - 1));
    link.push(number);
    weight.push(share);
  };
  connections.forEach(({ from, to, channel, phase, via }, index) => {
    const inTurn = via === 'direct' ? 1 : plan.inTurn;
    const isNet = routes[index]?.medium === 'net';
    for (const use of routes[index]?.uses ?? []) {
      if (!isWide(use))
        take(((phase * 4096 + use.link) * 32_768 + use.node) * 4, (use.weight * wireBytes(plan.protocol)) / inTurn, use, isNet);
    }
    const ends = routes[index]?.ends;
    if (fabric !== undefined && ends !== undefined) {
      for (const { key, tier, rail } of fabricUses(fabric, ...ends)) {
        const name = `${phase} ${key}`;
        const { node } = key.startsWith('up') ? ends[0] : ends[1];
        let number = switches.get(name);
        if (number === undefined)
          switches.set(name, (number = links.push({ use: undefined, isNet: true, fabric: { tier, rail, node } }) - 1));
        link.push(number);
        weight.push(wireBytes(plan.protocol) / inTurn);
      }
    }
    // The warps of a thread block share its throughput, those that send and those that receive each.
    for (const [side, rank] of plan.isPairs
      ? ([
          [1, from],
          [2, to],
        ] as const)
      : [])
      take(((phase * 1024 + channel) * 1_048_576 + (rank % ranks)) * 4 + side, 1, undefined, false);
    first[index + 1] = link.length;
  });
  return { first, link: Int32Array.from(link), weight: Float64Array.from(weight), links };
}

/** Costs by physics and environment. */
interface Rated {
  readonly physics: Physics;
  readonly environment: Environment;
  /** Bytes a µs. */
  readonly copyRate: number;
  readonly timing: Omit<Timing, 'copyRate'>;
  /** The same with a NIC for each connection; only for rings whose channels share NICs. */
  readonly alone: Pick<Timing, 'wireRate' | 'stepUs'> | undefined;
}

/** The timing with each NIC for one connection alone. */
function aloneAtNic({ wireRate, stepUs, nicRate }: Pick<Timing, 'wireRate' | 'stepUs'> & { readonly nicRate: Float64Array }) {
  const share = (number: number) => {
    const [rate, whole] = [wireRate[number] ?? Infinity, nicRate[number] ?? 0];
    return rate === Infinity || whole <= rate ? 1 : rate / whole;
  };
  return {
    wireRate: wireRate.map((rate, number) => rate / share(number)),
    stepUs: stepUs.map((us, number) => us * share(number)),
  };
}

/**
 * Channels of a ring use each other's share of a NIC while they wait. So a call takes the time of the NIC or of its steps,
 * whichever is longer, and a little more if both are similar. In trees a rank sends the same data to two others at the same time,
 * so they share the NIC.
 */
function togetherUs(wireUs: number, aloneUs: number, { common }: Physics): number {
  return joined(wireUs, aloneUs, common.netCrowding);
}

/** The longer of two times, and a little more where both are similar. */
function joined(a: number, b: number, exponent: number): number {
  const longer = Math.max(a, b);
  return longer === 0 ? 0 : longer * ((a / longer) ** exponent + (b / longer) ** exponent) ** (1 / exponent);
}
const LAUNCH_CROWDING = 4;

/** Calls that are shorter than their launches wait for these, and a little where both are similar. */
function withLaunches(timeUs: number, { common }: Physics, { launch, gpusPerThread = 1 }: Environment): number {
  if (launch === 'graph' || gpusPerThread === 1) return timeUs;
  return joined(timeUs, gpusPerThread * common.launchCallUs, LAUNCH_CROWDING);
}

/** Number of connections that the warps of each connection's thread block serve at the same time, at one end. */
function messagesOfBlock(connections: readonly ScheduledConnection[], ranks: number, end: 'from' | 'to'): Float64Array {
  const counts = new Map<number, number>();
  const keyOf = (connection: ScheduledConnection) =>
    (connection.phase * 1024 + connection.channel) * 1_048_576 + (connection[end] % ranks);
  for (const connection of connections) {
    const key = keyOf(connection);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return Float64Array.from(connections, (connection) => counts.get(keyOf(connection)) ?? 1);
}

function latestOf(times: Float64Array): number {
  return times.reduce((latest, time) => Math.max(latest, time), 0);
}

/** Properties of a call that its schedule and times depend on. */
interface CallPlan {
  /** Calls with the same key use the same connections in the same way. */
  readonly key: string;
  /** Number of connections that a worker serves in turn; one of them is busy. */
  readonly inTurn: number;
  readonly choice: Choice | undefined;
  readonly protocol: Protocol;
  readonly nChannels: number;
  readonly chunkBytes: number;
  readonly kind: ChannelKind;
  readonly isPairs: boolean;
  /** Ranks that a rank sends to or receives from one by one; 0 for collectives over channels. */
  readonly peers: number;
  /** NVLink SHARP. */
  readonly isSwitch: boolean;
  readonly slices: number;
  readonly slots: number;
  /** Bytes of the call that one round of chunks on all channels moves. */
  readonly periodBytes: number;
  readonly schedule: (call: ScheduledCall) => Schedule;
  /** True if every host does the same. */
  readonly mayFold: boolean;
  /** True if hosts form trees. */
  readonly isTree: boolean;
}

/**
 * Accesses to memory of the host for each slice of a message between pairs: all such messages share a proxy's buffer, so a
 * sender reads its place there before it notifies the proxy.
 */
const PAIRS_HOST_ACCESSES = 2;

/** Threads of a block with LL at most. */
const MOST_LL_THREADS = 512;

function firstRanks(count: number | undefined): number[] | undefined {
  return count === undefined ? undefined : Array.from({ length: count }, (_, rank) => rank);
}

/** True if a rank has another part in the call than the others. */
function isLopsided(collective: ScheduledCollective): boolean {
  return collective === 'Broadcast' || collective === 'Reduce' || collective === 'Gather' || collective === 'Scatter';
}

/** Rounds that are simulated before the steady state is measured, and rounds over which it is. */
const SETTLED_PERIODS = 4;
const SAMPLED_PERIODS = 2;

/** Splits a call into equal rounds and a rest that is simulated. */
function periods(bytes: number, period: number): { readonly whole: number; readonly rest: number; readonly period: number } {
  const count = Math.floor(bytes / period);
  const kept = SETTLED_PERIODS + SAMPLED_PERIODS;
  if (count <= kept + 1) return { whole: 0, rest: bytes, period };
  const whole = count - kept;
  return { whole, rest: bytes - whole * period, period };
}

/** LL sends a flag with every four bytes, LL128 one in 128. */
function wireBytes(protocol: Protocol): number {
  return { LL: 2, LL128: 128 / 120, Simple: 1 }[protocol];
}

function blockRate({ isSwitch, protocol }: CallPlan, physics: Physics, generation: Generation): number {
  const own = physics.of[generation];
  if (isSwitch) return physics.common.nvlsBlockGBps;
  return { LL: own.llBlockGBps, LL128: own.ll128BlockGBps, Simple: own.copyBlockGBps }[protocol];
}

/** Half of a block's warps send, half receive. */
function pairsGBps(protocol: Protocol, physics: Physics, generation: Generation): number {
  const own = physics.of[generation];
  return physics.common.pairsBlockRatio * (protocol === 'Simple' ? own.copyBlockGBps : own.llBlockGBps);
}

function isByte(type: DataTypeName | undefined): boolean {
  return type !== undefined && /8/.test(type);
}

function isCollective(name: ScheduledCollective): name is Collective {
  return (collectives as readonly string[]).includes(name);
}

/** Rounds the data of each rank to whole bytes. */
function wholeParts(collective: ScheduledCollective, bytes: number, nRanks: number): number {
  const isWhole =
    collective === 'AllReduce' || collective === 'Broadcast' || collective === 'Reduce' || collective === 'SendRecv';
  return isWhole ? bytes : Math.max(1, Math.round(bytes / nRanks)) * nRanks;
}
