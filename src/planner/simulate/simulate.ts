import { exchangeOf } from '../schedule/from-plan.js';
import type { PairMessage } from '../schedule/pairs.js';
import type { ScheduledCall, ScheduledCollective, ScheduledConnection, Schedule, Worker } from '../schedule/schedule.js';
import { llCap } from '../tuning/formulas.js';
import { type Choice, choose } from '../tuning/choose.js';
import { generationOf } from '../tuning/constants.js';
import { collectives, type DataTypeName, type Protocol } from '../tuning/names.js';
import type { PredictOptions } from '../tuning/predict.js';
import { traitsOf } from '../tuning/symmetric/kernels.js';
import { chooseWithWindows } from '../tuning/symmetric/symmetric.js';
import type { Tuning } from '../tuning/tune.js';
import { rulesOf } from '../versions/rules.js';
import {
  type CallPlan,
  isCollective,
  isLopsided,
  planOfCollective,
  planOfExchange,
  planOfPairs,
  planOfSchedule,
  wholeParts,
  wireBytes,
} from './call-plan.js';
import { runClock, type SliceListener } from './clock.js';
import { CallConnections } from './connections.js';
import { defaultEnvironment, type Environment } from './environment.js';
import type { Fabric } from './fabric.js';
import { areHostsAlike, FOLDED_HOSTS, foldHosts } from './fold.js';
import { type Interval, intervalOf, type Predicted } from './interval.js';
import type { MeasuredKinds } from './measured-calls.js';
import { predictedOf } from './predicted-on.js';
import { joined, kernelLaunchUs, startUs, withLaunches } from './launch.js';
import { timeByPeriods } from './periods.js';
import { measuredPhysics, type Physics } from './physics.js';
import type { Conditions } from './rates.js';
import { type LinkTraffic, type LinkUse, type Route, Routes, type SimulatedCluster } from './routes.js';
import { smallerClusters, smallerTrees, timeOfLarge, withHosts } from './smaller.js';
import { timingOfWorkers } from './timing.js';
import { windowCallUs } from './windows.js';

/** Simulated time of a call. */
export interface Simulated {
  readonly timeUs: number;
  /** As NCCL chooses; undefined for messages between pairs, for which it has no model, and on windows. */
  readonly choice: Choice | undefined;
  /** A symmetric kernel by its name, or `copy engines`, for buffers in symmetric windows. */
  readonly kernel?: string;
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
  /** Lets symmetric kernels and copy engines do calls where the windows of the plan's parameters give them some. */
  readonly onWindows?: boolean;
}

/** The connections of a call, the links of each, and bytes on the wire by bytes of data. */
interface ConnectionWays {
  readonly connections: readonly ScheduledConnection[];
  readonly routes: readonly Route[];
  readonly wireBytes: number;
}

/** Time of a call that does not exist. */
const none = { timeUs: 0, launchUs: 0 };

/** Calls whose workers are kept, and ranks of clusters whose calls are: an all-to-all of 256 ranks has some 50 MB of them. */
const MOST_KEPT_CALLS = 4096;
const MOST_KEPT_RANKS = 128;

/** Simulates calls on one cluster: routes and rates are computed once. */
export class Simulator {
  readonly #cluster: SimulatedCluster;
  readonly #tuning: Tuning;
  readonly #ofCluster: Pick<Conditions, 'routes' | 'generation' | 'compCap' | 'llNetGBps'>;
  /** Computed when first asked for. */
  #predicted: Omit<Predicted, 'launch' | 'network'> | undefined;
  readonly #connections = new Map<string, CallConnections>();
  readonly #workers = new Map<string, readonly Worker[]>();
  /** Times of moves by call, under the conditions of the last one. */
  #times: { readonly physics: Physics; readonly environment: Environment; readonly byCall: Map<string, number> } = {
    physics: measuredPhysics,
    environment: defaultEnvironment,
    byCall: new Map(),
  };
  /** Simulators of some of the hosts, by their number. */
  readonly #fewer = new Map<number, Simulator>();
  /** Fabrics that calls were simulated on. */
  readonly #fabrics: Fabric[] = [];

  constructor(cluster: SimulatedCluster, tuning: Tuning) {
    this.#cluster = cluster;
    this.#tuning = tuning;
    this.#ofCluster = {
      routes: new Routes(cluster),
      generation: generationOf(tuning.input.minCompCap),
      compCap: tuning.input.minCompCap,
      llNetGBps: this.usesNetwork ? llCap(tuning.input) : Infinity,
    };
  }

  get nRanks(): number {
    return this.#cluster.merged.nodes.nRanks;
  }

  /** True if ranks are on several nodes. */
  get usesNetwork(): boolean {
    return this.#cluster.merged.nodes.nNodes > 1;
  }

  /**
   * Part of a call's simulated time in which eight of ten measurements lie.
   *
   * @param isOnWindows true for a call that no general kernel does
   * @param kinds the calls that count as measured. Default: those of the fit
   */
  interval(
    collective: ScheduledCollective,
    bytes: number,
    { network = 'verbs', launch = 'queued' }: Partial<Environment> = {},
    isOnWindows = false,
    kinds?: MeasuredKinds,
  ): Interval {
    this.#predicted ??= predictedOf(this.#cluster, this.#tuning.input);
    return intervalOf(collective, bytes, { ...this.#predicted, network, launch }, isOnWindows, kinds);
  }

  /** Name of a route's link, and GB/s that it carries; undefined where it has no limit. */
  describeLink(use: Pick<LinkUse, 'node' | 'link'> & LinkTraffic, physics = measuredPhysics): LinkDescription | undefined {
    const { routes } = this.#ofCluster;
    const gbps = routes.capacityGBps(use, physics, use);
    return gbps === Infinity ? undefined : { name: routes.linkName(use), gbps };
  }

  /** The schedule of a call as NCCL does it; undefined where it has nothing to choose from, and for one rank. */
  scheduleOf(collective: ScheduledCollective, bytes: number, options: SimulateOptions = {}): Schedule | undefined {
    if (this.nRanks === 1) return undefined;
    const call = { collective, bytes: wholeParts(collective, bytes, this.nRanks), root: options.root ?? 0 };
    return this.#planOf(call, { ...options, unfolded: true })?.schedule(call);
  }

  /**
   * Executes a call's schedule in time.
   *
   * @param bytes size as nccl-tests counts it
   * @returns undefined if NCCL has no candidate, and for one rank, which exchanges nothing
   */
  simulate(collective: ScheduledCollective, bytes: number, options: SimulateOptions = {}): Simulated | undefined {
    if (this.nRanks === 1) return undefined;
    const wholeBytes = wholeParts(collective, bytes, this.nRanks);
    const isFree = options.onWindows === true && options.choice === undefined;
    const onWindows = isFree ? this.#simulateOnWindows(collective, wholeBytes, options) : undefined;
    if (onWindows !== undefined) return onWindows;
    const call = { collective, bytes: wholeBytes, root: options.root ?? 0 };
    const plan = this.#planOf(call, options);
    if (plan === undefined) return undefined;
    const conditions = this.#conditions(options);
    const execute = (size: number) =>
      this.#execute({ ...call, bytes: wholeParts(collective, size, this.nRanks) }, plan, conditions, options);
    const smaller = this.#smallerFor(plan, collective, options);
    const innerUs =
      options.onSlice !== undefined
        ? execute(wholeBytes)
        : smaller === undefined
          ? timeByPeriods(wholeBytes, plan.periodBytes, execute)
          : timeOfLarge(smaller, (hosts) => this.#timeOnFewer(hosts, collective, wholeBytes, plan, options));
    const timeUs = startedUs(plan, conditions, innerUs);
    const { choice, protocol, nChannels } = plan;
    return { timeUs, choice, protocol, nChannels, launchUs: timeUs - innerUs };
  }

  /** A call that no general kernel does. @returns undefined where one does it */
  #simulateOnWindows(name: ScheduledCollective, bytes: number, options: SimulateOptions): Simulated | undefined {
    const collective = collectives.find((each) => each === name);
    if (collective === undefined) return undefined;
    const way = chooseWithWindows(this.#tuning, collective, bytes, options);
    if (way.kind === 'general') return undefined;
    const conditions = this.#conditions(options);
    const { physics, environment } = conditions;
    const { domainRanks } = this.#tuning.input.symmetric;
    const { dataType = 'float32' } = options;
    const innerUs = windowCallUs(way, { merged: this.#cluster.merged, domainRanks, conditions, collective, bytes, dataType });
    // The start of copy engines is a part of theirs.
    const launchUs = (way.kind === 'symmetric' ? kernelLaunchUs(conditions) : 0) + (environment.skewUs ?? 0);
    const timeUs = withLaunches(launchUs + innerUs, physics, environment);
    return {
      timeUs,
      choice: undefined,
      kernel: way.kind === 'symmetric' ? way.kernel : 'copy engines',
      protocol: way.kind === 'symmetric' && traitsOf(way.kernel).isLl ? 'LL' : 'Simple',
      nChannels: way.kind === 'symmetric' ? way.ctas : 0,
      launchUs: timeUs - innerUs,
    };
  }

  /**
   * Executes any schedule in time: thread blocks, FIFOs and links are those of NCCL's kernels.
   *
   * @returns µs, with the launch
   */
  simulateSchedule(made: Schedule, protocol: Protocol, options: Pick<SimulateOptions, 'environment' | 'physics'> = {}): number {
    const plan = planOfSchedule(made, protocol);
    const conditions = this.#conditions(options);
    return startedUs(plan, conditions, this.#executeOnce(made, plan, conditions, undefined));
  }

  /**
   * Executes messages between ranks that one kernel of each rank carries: sends and receives of a group, or an all-to-all whose
   * parts differ in size.
   *
   * @returns undefined where no rank sends to another
   * @throws RangeError for a rank that the plan lacks
   */
  simulateMessages(messages: readonly PairMessage[], options: MessagesOptions = {}): Simulated | undefined {
    const exchange = exchangeOf(this.#cluster.merged, messages);
    if (exchange.peers === 0) return undefined;
    const plan = planOfExchange(exchange);
    const conditions = this.#conditions(options);
    const call = { collective: 'AllToAll', root: 0 } as const;
    const execute = (bytes: number) => this.#executeOnce(plan.schedule({ ...call, bytes }), plan, conditions, options.onSlice);
    const { largestBytes } = exchange;
    const innerUs =
      options.onSlice === undefined ? timeByPeriods(largestBytes, plan.periodBytes, execute) : execute(largestBytes);
    const timeUs = startedUs(plan, conditions, innerUs);
    const { choice, protocol, nChannels } = plan;
    return { timeUs, choice, protocol, nChannels, launchUs: timeUs - innerUs };
  }

  /** Time of the moves of a schedule that is not kept. */
  #executeOnce(made: Schedule, plan: CallPlan, conditions: Conditions, onSlice: SimulateOptions['onSlice']): number {
    const { workers, connections } = made;
    const known = new CallConnections(made, plan, made.nRanks, conditions);
    const { timing, blockRate } = known.costs(conditions);
    const listen = onSlice && listener(onSlice, workers, known, plan);
    return latestOf(runClock(workers, connections, timingOfWorkers(timing, workers, blockRate, 0), listen).endUs);
  }

  #conditions({
    environment = defaultEnvironment,
    physics = measuredPhysics,
  }: Pick<SimulateOptions, 'environment' | 'physics'>): Conditions {
    return { ...this.#ofCluster, environment, physics };
  }

  #planOf(call: ScheduledCall, options: SimulateOptions): CallPlan | undefined {
    const { merged } = this.#cluster;
    if (!isCollective(call.collective)) return planOfPairs(merged, call, this.#foldedRanks(call.collective, options));
    const choice = options.choice ?? choose(this.#tuning, call.collective, call.bytes, options);
    return choice && planOfCollective(merged, this.#tuning, call.collective, choice);
  }

  /** The smaller clusters from whose times that of a call follows; undefined where all hosts are simulated. */
  #smallerFor({ isTree, mayFold, nChannels, choice }: CallPlan, collective: ScheduledCollective, options: SimulateOptions) {
    const { nodes } = this.#cluster.merged;
    const fabric = options.environment?.fabric;
    if (options.unfolded === true || options.onSlice !== undefined) return undefined;
    if (isTree) return smallerTrees(nodes, fabric);
    // Rounds of PAT grow with the logarithm of the ranks.
    const isEven = mayFold && choice?.algorithm !== 'PAT' && !isLopsided(collective);
    return isEven ? smallerClusters(nodes, nChannels, fabric) : undefined;
  }

  /** Time of a call's moves on some of the hosts. */
  #timeOnFewer(
    hosts: readonly number[],
    collective: ScheduledCollective,
    bytes: number,
    { choice, isTree }: CallPlan,
    options: SimulateOptions,
  ): number {
    const { merged, parameters } = this.#cluster;
    let fewer = this.#fewer.get(hosts.length);
    if (fewer === undefined) {
      const some = withHosts(merged, hosts, rulesOf(parameters));
      this.#fewer.set(hosts.length, (fewer = new Simulator({ ...this.#cluster, merged: some }, this.#tuning)));
    }
    // In rings and all-to-alls each rank has as many data for each other one.
    const size = isTree || collective === 'SendRecv' ? bytes : (bytes / this.nRanks) * fewer.nRanks;
    const chosen = choice === undefined ? options : { ...options, choice };
    const { timeUs, launchUs } = fewer.simulate(collective, size, chosen) ?? none;
    return timeUs - launchUs;
  }

  /** True if all hosts are alike and may stand for each other. */
  #areAlike({ unfolded = false, onSlice }: SimulateOptions): boolean {
    return !unfolded && onSlice === undefined && areHostsAlike(this.#cluster.merged.nodes);
  }

  /**
   * Ranks of two hosts that stand for all: of crossed rails, hosts at odd places take the other. Undefined where hosts
   * or their parts in the call differ.
   */
  #foldedRanks(collective: ScheduledCollective, options: SimulateOptions): number | undefined {
    const { nRanks, nNodes } = this.#cluster.merged.nodes;
    const mayFold = !isLopsided(collective) && nNodes > FOLDED_HOSTS && nNodes % FOLDED_HOSTS === 0 && this.#areAlike(options);
    return mayFold ? (FOLDED_HOSTS * nRanks) / nNodes : undefined;
  }

  #fabricNumber(fabric: Fabric | undefined): number {
    if (fabric === undefined) return -1;
    const known = this.#fabrics.indexOf(fabric);
    return known >= 0 ? known : this.#fabrics.push(fabric) - 1;
  }

  /** Time of the moves of a call. */
  #execute(call: ScheduledCall, plan: CallPlan, conditions: Conditions, options: SimulateOptions): number {
    const { physics } = conditions;
    const { onSlice } = options;
    const key = `${this.#keyOf(call, plan, conditions, options).call} ${isByte(options.dataType)}`;
    const before = onSlice === undefined ? this.#timesUnder(conditions).get(key) : undefined;
    if (before !== undefined) return before;
    const { known, workers } = this.#workersOf(call, plan, conditions, options);
    const { connections } = known;
    const { timing: ofConnections, blockRate, alone } = known.costs(conditions);
    const sumCost = isByte(options.dataType) ? physics.common.byteSumCost : 0;
    const timing = timingOfWorkers(ofConnections, workers, blockRate, sumCost);
    if (onSlice !== undefined)
      return latestOf(runClock(workers, connections, timing, listener(onSlice, workers, known, plan)).endUs);
    const keep = (timeUs: number) => {
      this.#timesUnder(conditions).set(key, timeUs);
      return timeUs;
    };
    const fair = runClock(workers, connections, timing);
    const fairUs = latestOf(fair.endUs);
    if (alone === undefined) return keep(fairUs);
    // Channels of a ring use each other's share of a NIC or of PCI links while they wait. So a call takes their time or that of
    // its steps,
    // whichever is longer. In trees a rank sends the same data to two others at the same time, so they share the NIC.
    const aloneUs = latestOf(runClock(workers, connections, { ...timing, ...alone }).endUs);
    return keep(Math.min(fairUs, joined(latestOf(fair.wireUs), aloneUs, physics.common.netCrowding)));
  }

  /** Times of moves under these conditions, kept because large calls differ only in the number of equal rounds. */
  #timesUnder({ physics, environment }: Conditions): Map<string, number> {
    if (this.#times.physics !== physics || this.#times.environment !== environment || this.#times.byCall.size > MOST_KEPT_CALLS)
      this.#times = { physics, environment, byCall: new Map() };
    return this.#times.byCall;
  }

  /** Keys of a call: calls with the same `ways` use the same connections; those with the same `call` have the same moves. */
  #keyOf(call: ScheduledCall, plan: CallPlan, conditions: Conditions, options: SimulateOptions) {
    const folded = plan.mayFold ? this.#foldedRanks(call.collective, options) : undefined;
    const lopsided = isLopsided(call.collective) ? `${call.collective} ${call.root}` : '';
    const fabric = this.#fabricNumber(conditions.environment.fabric);
    const ways = `${plan.key} ${fabric} ${folded === undefined ? '' : 'folded'} ${lopsided}`;
    return { folded, ways, call: `${ways} ${call.bytes} ${options.unfolded === true ? 'unfolded' : ''}` };
  }

  /**
   * The workers that stand for all others, and the connections of all. Kept, because a fit asks for the same calls
   * again and again.
   */
  #workersOf(
    call: ScheduledCall,
    plan: CallPlan,
    conditions: Conditions,
    options: SimulateOptions,
  ): { readonly known: CallConnections; readonly workers: readonly Worker[] } {
    const { onSlice } = options;
    const { folded, ways, call: callKey } = this.#keyOf(call, plan, conditions, options);
    let known = this.#connections.get(ways);
    const kept = this.#workers.get(callKey);
    if (known !== undefined && kept !== undefined && onSlice === undefined) return { known, workers: kept };
    // The last channel may have fewer data than the others.
    const last = plan.nChannels - 1;
    const wanted = known === undefined || onSlice !== undefined ? undefined : new Set([...known.representatives, last]);
    const made = plan.schedule(call, wanted);
    const schedule = folded === undefined ? made : foldHosts(made, folded);
    known ??= new CallConnections(schedule, plan, folded ?? schedule.nRanks, conditions);
    this.#connections.set(ways, known);
    if (onSlice !== undefined) return { known, workers: schedule.workers };
    const workers = schedule.workers.filter(({ channel }) => known.representatives.has(channel) || channel === last);
    if (this.#workers.size < MOST_KEPT_CALLS && known.ranks <= MOST_KEPT_RANKS) this.#workers.set(callKey, workers);
    return { known, workers };
  }
}

/** A link by name. */
interface LinkDescription {
  readonly name: string;
  readonly gbps: number;
}

/** Options of a simulation of messages. */
export type MessagesOptions = Pick<SimulateOptions, 'environment' | 'physics' | 'onSlice'>;

/** Time of a call with the start of its kernels. */
function startedUs(plan: CallPlan, conditions: Conditions, innerUs: number): number {
  return withLaunches(startUs(plan, conditions) + innerUs, conditions.physics, conditions.environment);
}

function listener(
  onSlice: NonNullable<SimulateOptions['onSlice']>,
  workers: readonly Worker[],
  { connections, routes }: CallConnections,
  { protocol }: CallPlan,
): SliceListener {
  const ways = { connections, routes, wireBytes: wireBytes(protocol) };
  return (slice) => {
    const worker = workers[slice.worker];
    if (worker !== undefined) onSlice(worker, slice, ways);
  };
}

function latestOf(times: Float64Array): number {
  return times.reduce((latest, time) => Math.max(latest, time), 0);
}

function isByte(type: DataTypeName | undefined): boolean {
  return type !== undefined && /8/.test(type);
}
