import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { systemInterfaces } from '#seam/bootstrap/interfaces';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { secretOf } from '../bootstrap/unique-id.js';
import type { RanksByHost } from '../../planner/schedule/ranks-by-host.js';
import type { Algorithm } from '../algorithms/call.js';
import { ringInOrder, type Channels } from '../algorithms/connections/channels.js';
import { carriesOut, isOverConnections } from '../algorithms/traits.js';
import { Team } from '../device/team.js';
import { InvalidUsageError } from '../../errors.js';
import { unlessAborted } from '../abort-signals.js';
import { nicLines } from '#seam/channels/nic-lines';
import type { ChannelPlan } from '#seam/channels/plan-channels';
import { warn } from '../warn.js';
import { networkNamed, networkText } from '#seam/transport/networks';
import { inOneSegment, netOf, type RankFacts } from './agree.js';
import { smallBytesOf, type EngineContext } from './engine-context.js';
import { spinsFor } from '../progress/backoff.js';
import { algorithmsIn, defaultTable, isOfAggregators, type ChoiceContext } from '../algorithms/choose-algorithm.js';
import { CompositeEngine } from '../algorithms/composite-engine.js';
import { DirectEngine } from '../algorithms/memory/direct-engine.js';
import { startDirectThreads } from '#seam/threads/direct-threads';
import type { Engine } from '../algorithms/engine.js';
import { observersOf, type FeedbackContext } from '#seam/observe/feedback';
import { ObservedEngine } from '../observe/observed-engine.js';
import { dataHost, interfaceFor, ranksByHost } from '../algorithms/connections/data-host.js';
import { tableOf, timesFor } from '../algorithms/profile.js';
import { shorterLimit } from '../progress/wait-limits.js';
import { defined } from '../../defined.js';

/** The engine of a communicator. */
interface ChosenEngine {
  readonly engine: CompositeEngine;
  /** Channels of its algorithms over connections; undefined if it has none. */
  readonly channels: Channels | undefined;
  /** The facts, without NICs that turned out not to be connected. */
  readonly facts: readonly RankFacts[];
}

/**
 * Makes the engine of a communicator, with the algorithms that its calls may use: on one segment, those that work on shared
 * memory; otherwise those over connections, through the segment between ranks of one host and through sockets between hosts.
 * One algorithm may be forced.
 *
 * @throws InvalidUsageError `UNSUPPORTED` when direct or nvls is forced but the ranks do not share a segment
 */
export async function chooseEngine(context: EngineContext): Promise<ChosenEngine> {
  const { bootstrap, team, libc, nCores, settings, threads, forced } = context;
  const { nRanks } = bootstrap;
  let { facts } = context;
  const oneSegment = inOneSegment(bootstrap, facts);
  // Without system calls a rank that blocks cannot move its sockets.
  const overSockets = threads.connectsAll && libc === undefined ? 1 : threads.overSockets;
  const nThreads = oneSegment ? threads.inMemory : overSockets;
  const aggregators = defined(facts[0]).aggregators;
  const onlyDirect = oneSegment && nThreads > 0;
  const unsupported = whyUnsupported(context, oneSegment, onlyDirect);
  if (unsupported !== undefined) throw new InvalidUsageError('UNSUPPORTED', unsupported);
  const usual = defaultTable({
    nRanks,
    oneSegment,
    hosts: formOfTeams(teamsIn(bootstrap, facts)),
    aggregated: aggregators.length > 0,
    forced: onlyDirect ? 'direct' : forced,
  });
  // A profile is measured with ranks that share memory.
  const profile = forced === undefined && oneSegment && !onlyDirect ? facts[0]?.profile : undefined;
  const times = profile === undefined ? undefined : timesFor(profile, nRanks, nCores);
  const table =
    times === undefined
      ? usual
      : tableOf(times, usual, (algorithm, kind) => carriesOut(algorithm, kind, nRanks) && !isOfAggregators(algorithm));
  const used = algorithmsIn(table);
  const overNetwork = used.filter(isOverConnections);
  const engines: Partial<Record<Algorithm, Engine>> = {};
  let ring: FeedbackContext['ring'];
  if (used.includes('direct')) engines.direct = await directEngine(context, nThreads);
  if (used.includes('nvls'))
    engines.nvls = await (await import('../algorithms/memory/nvls-engine.js')).NvlsEngine.open(bootstrap, team, libc);
  let plan: ChannelPlan | undefined;
  if (overNetwork.length > 0) {
    const planned = await channelsOf(context);
    plan = { ...planned, channels: { ...planned.channels, aggregators, teams: teamsIn(bootstrap, facts) } };
    facts = facts.map((fact, rank) => withLocation(fact, planned.locations[rank]));
    const { networkEngine } = await import('./network-engine-of.js');
    const network = await networkEngine(context, plan.channels, overNetwork, oneSegment, nThreads);
    // A rank whose messages a neighbour relays has no connection with other hosts itself.
    const isRelayed = (number: number): boolean => planned.channels.rings[number]?.relays?.[bootstrap.rank] !== undefined;
    const far = networkNamed(netOf(facts).name).logName;
    ring = { ...plan, transports: network.transports.map((own, number) => (isRelayed(number) ? far : own)) };
    for (const algorithm of overNetwork) engines[algorithm] = network.engine;
  }
  const observers = observersOf({
    bootstrap,
    settings,
    table,
    ring,
    net: () => (oneSegment ? undefined : networkText(netOf(facts).name, settings.net)),
    shared: context.shared,
    name: context.name,
    ordinary: wayOfOrdinaryArrays(context),
    float16Sums: () => wayOfFloat16Sums(context),
    listensOn: () => interfaceFor(context.network, context.id),
    nics: () => (plan === undefined || networkNamed(netOf(facts).name).choosesNics ? [] : nicsInLog(context, facts, plan)),
    secret: secretOf(context.id),
  });
  const engine = observers.length === 0 ? new CompositeEngine(table, engines) : new ObservedEngine(table, engines, observers);
  return { engine, channels: plan?.channels, facts };
}

/** Text of why the ranks cannot do what is forced; undefined if they can. */
function whyUnsupported(
  { facts, settings, forced }: EngineContext,
  oneSegment: boolean,
  onlyDirect: boolean,
): string | undefined {
  if (onlyDirect && (forced ?? 'direct') !== 'direct')
    return `where all ranks share memory, engine threads carry out the direct algorithm only, not ${forced ?? ''}; leave out engine: 'thread' or the forced algorithm`;
  if (oneSegment) return undefined;
  if (forced !== undefined && !isOverConnections(forced)) {
    const reason = facts.find((fact) => !fact.sharedWithHost)?.reason ?? 'they are on several hosts';
    return (
      `the algorithm ${forced} (TCCL_ALGO) needs memory that all ranks share, but these do not: ${reason}` +
      (forced === 'nvls' ? '; nvlstree is its form between hosts' : '')
    );
  }
  if (isOfAggregators(forced) && defined(facts[0]).aggregators.length === 0)
    return `the algorithm ${forced ?? ''} (TCCL_ALGO) needs an aggregator: start the ranks with tccl run --collnet, or start tccl aggregator and pass its id to all ranks as TCCL_AGGREGATOR`;
  if (settings.protocol === 'll')
    return 'TCCL_PROTO=ll needs memory that all ranks share, because sockets have no protocol LL; leave it unset';
  return undefined;
}

/** The ranks of each host; ranks of a host that share no memory are each alone, as if on hosts of their own. */
function teamsIn(bootstrap: Bootstrap, facts: readonly RankFacts[]): RanksByHost {
  return ranksByHost(bootstrap).flatMap((ranks) =>
    ranks.every((rank) => facts[rank]?.sharedWithHost) ? [ranks] : ranks.map((rank) => [rank]),
  );
}

/** See ChoiceContext. */
function formOfTeams(teams: RanksByHost): ChoiceContext['hosts'] {
  if (teams.length === 1) return undefined;
  return teams.every(({ length }) => length === 1) ? 'of one rank' : 'of several ranks';
}

/** Text of the log: how arrays outside the segment are read, or why they are copied twice. */
function wayOfOrdinaryArrays({ bootstrap, shared, team, settings }: EngineContext): string | undefined {
  if (!shared || bootstrap.localRanks.length === 1) return undefined;
  const { peerMemory } = team.segment;
  if (peerMemory?.isOpen === true) return 'read in place by process_vm_readv';
  const reason = settings.peerMemory ? (peerMemory?.refusal ?? 'another rank cannot read there') : 'TCCL_CMA_DISABLE=1';
  return `copied through shared memory (${reason})`;
}

function wayOfFloat16Sums({
  team: {
    segment: { machineCode },
  },
  settings,
}: EngineContext): string {
  const reason =
    machineCode === undefined
      ? settings.machineCode
        ? 'the C library cannot be called'
        : 'TCCL_MACHINE_CODE_DISABLE=1'
      : machineCode.refusal;
  return reason === undefined ? 'by machine code' : `by WebAssembly (${reason})`;
}

async function directEngine({ bootstrap, team, libc, nCores, settings }: EngineContext, nThreads: number): Promise<Engine> {
  const { localRanks } = bootstrap;
  const smallBytes = smallBytesOf(localRanks.length, nCores);
  if (nThreads === 0) return new DirectEngine(team, localRanks, libc, smallBytes);
  return startDirectThreads({
    teams: [team, ...(await moreTeams(bootstrap, team, nThreads - 1))],
    localRanks,
    libc,
    smallBytes,
    spins: spinsFor(localRanks.length * nThreads, nCores),
    limitMs: shorterLimit(settings),
  });
}

/** Makes more teams with the members of `team`, in the first member's memory. */
async function moreTeams(bootstrap: Bootstrap, { segment, members }: Team, count: number): Promise<Team[]> {
  if (count === 0) return [];
  const mine = bootstrap.localRank === 0 ? Array.from({ length: count }, () => Team.reserve(segment, members.length)) : [];
  const sent = await bootstrap.broadcast(encodeJson(mine), defined(bootstrap.localRanks[0]), 'host');
  return (decodeJson(sent) as number[]).map((address, index) => new Team(segment, address, members, mine[index] !== undefined));
}

/** True after the warning of the first communicator of this process without a plan. */
let saidUnplanned = false;

/**
 * Channels of the algorithms over connections: planned where ranks are far from each other, on several hosts or NUMA nodes, and
 * where a topology is given. The planner is loaded only then, because it would double the time of init() on one host.
 */
async function channelsOf({ bootstrap, facts, topology, signal, onWarning }: EngineContext): Promise<ChannelPlan> {
  const { localRanks, nRanks, rank } = bootstrap;
  const locations = facts.map(({ location }) => location);
  if (localRanks.length === nRanks && topology.topology === undefined && new Set(locations.map((at) => at?.numaNode)).size === 1)
    return { channels: ringInOrder([localRanks], 'all ranks are near each other'), lines: [], locations };
  const { planChannels } = await import('#seam/channels/plan-channels');
  const triesNics = !networkNamed(netOf(facts).name).choosesNics;
  const plan = await unlessAborted(
    planChannels({
      bootstrap,
      locations,
      hosts: ranksByHost(bootstrap),
      files: topology,
      triesNics,
      aggregated: defined(facts[0]).aggregators.length > 0,
    }),
    signal,
  );
  const { unplanned } = plan.channels;
  if (unplanned !== undefined && rank === 0 && localRanks.length < nRanks && !saidUnplanned) {
    saidUnplanned = true;
    (onWarning ?? warn)(`the ranks form a ring in rank order over one NIC: ${unplanned}; TCCL_TOPO_FILE can name a topology`);
  }
  return plan;
}

/** Lines of the log about the network interfaces of this host. */
function nicsInLog({ bootstrap, network, id }: EngineContext, facts: readonly RankFacts[], { channels }: ChannelPlan): string[] {
  const { peers, rank, localRanks } = bootstrap;
  const others = ranksByHost(bootstrap).flatMap(([leader = 0, ...more]) =>
    [leader, ...more].includes(rank)
      ? []
      : [{ hostname: defined(peers[leader]).hostname, nics: facts[leader]?.location?.nics ?? [] }],
  );
  const own = localRanks.length === bootstrap.nRanks ? undefined : facts[rank]?.location;
  const host = dataHost(bootstrap, network, id);
  return nicLines({ interfaces: systemInterfaces(), network, id, channels, localRanks, host, own, others });
}

/** The facts of a rank with another location. */
function withLocation(fact: RankFacts, location: RankFacts['location']): RankFacts {
  return location === undefined ? fact : { ...fact, location };
}
