import type { Algorithm, CallKind } from '../algorithms/call.js';
import type { Channels } from '../algorithms/connections/channels.js';
import { sharesOf } from '../../planner/schedule/ranks-by-host.js';
import { collnetHeads } from '../algorithms/connections/collnet-trees.js';
import { ringParts } from '../algorithms/slices.js';
import { takesOnePhase } from '../algorithms/memory/direct-small.js';
import { counted } from '../../counted.js';
import { callKinds } from '../device/kernels/kernels.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { inOneSegment, netOf } from '../resources/agree.js';
import { nameRanks } from '../bootstrap/rank-list.js';
import { algorithmFor, isOfAggregators, type AlgorithmTable } from '../algorithms/choose-algorithm.js';
import { lowLatencyBytesOf, smallBytesOf } from '../resources/engine-context.js';
import { engineThreads } from '../resources/config.js';
import { defaultProfile } from '#seam/algorithms/default-profile';
import { wayOf } from '#seam/transport/networks';
import type { CommunicatorParts } from '../resources/shared-resources.js';
import { timeAt, timesFor, type Times } from '../algorithms/profile.js';
import { defined } from '../../defined.js';

/** The way in which a communicator carries out a call, and the expected time. */
export interface Explanation {
  /** Kind of the call. */
  readonly collective: CallKind;
  /** The call's count times its elements' size. */
  readonly bytes: number;
  /** Algorithm of the call. */
  readonly algorithm: Algorithm;
  /** LL: data travel with their flag, in one phase. Simple: data first, then the flag. */
  readonly protocol: 'LL' | 'Simple';
  /** Number of parts of a call that are worked on in parallel. */
  readonly channels: number;
  /** Microseconds; undefined if this algorithm was never measured for this kind of call. */
  readonly predictedUs: number | undefined;
  /**
   * Origin of the measurements: this host (`tccl tune`), or the machine of the built-in defaults. `nowhere` if this kind of
   * call was never measured, or the ranks do not all share memory.
   */
  readonly measured: 'here' | 'elsewhere' | 'nowhere';
  /** All algorithms that were measured, the fastest first. */
  readonly candidates: readonly { readonly algorithm: Algorithm; readonly predictedUs: number }[];
  /** The same in one sentence. */
  readonly text: string;
}

/** Inputs of an explanation. */
interface ExplainContext {
  readonly table: AlgorithmTable;
  /** Name of what carries data between hosts, such as sockets. */
  readonly network: string;
  /** Undefined if the ranks do not all share memory, because profiles are measured with shared memory. */
  readonly times: Times | undefined;
  readonly measured: 'here' | 'elsewhere';
  readonly forced: Algorithm | undefined;
  readonly nRanks: number;
  /** See takesOnePhase(). */
  readonly smallBytes: number;
  /** Largest call that uses a ring of the protocol LL; -1 without one. */
  readonly lowLatencyBytes: number;
  readonly channels: number;
  /** Rings over connections; undefined if there are none. */
  readonly rings: Channels | undefined;
  /** Addresses of the aggregators; left out, none. */
  readonly aggregators?: readonly string[];
}

/** Throws InvalidArgumentError `UNKNOWN_NAME`, `ARGUMENT_RANGE`. */
export function explainCall(collective: CallKind, bytes: number, context: ExplainContext): Explanation {
  const { table, times, measured, nRanks, smallBytes, lowLatencyBytes } = context;
  if (typeof collective !== 'string' || !Object.hasOwn(table, collective)) {
    const names = Object.keys(table);
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `explain: there is no collective ${describeValue(collective)}${(typeof collective === 'string' && didYouMean(collective, names)) || `; use one of ${names.join(', ')}`}`,
    );
  }
  if (!(Number.isInteger(bytes) && bytes >= 0)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `explain: the call's size is ${describeValue(bytes)}; pass a whole number of bytes from 0`,
    );
  }
  const algorithm = algorithmFor(table[collective], bytes);
  const candidates = (Object.entries(times?.[collective] ?? {}) as [Algorithm, Parameters<typeof timeAt>[0]][])
    .map(([name, points]) => ({ algorithm: name, predictedUs: timeAt(points, bytes) }))
    .sort((a, b) => a.predictedUs - b.predictedUs);
  const isQuick =
    algorithm === 'direct'
      ? takesOnePhase(callKinds[collective], bytes, nRanks, smallBytes)
      : algorithm === 'ring' && bytes <= lowLatencyBytes;
  const explanation = {
    collective,
    bytes,
    algorithm,
    protocol: isQuick ? ('LL' as const) : ('Simple' as const),
    channels: partsOf(collective, bytes, algorithm, context),
    predictedUs: candidates.find((candidate) => candidate.algorithm === algorithm)?.predictedUs,
    measured: candidates.length === 0 ? ('nowhere' as const) : measured,
    candidates,
  };
  return { ...explanation, text: textOf(explanation, context) };
}

function headsOf(algorithm: Algorithm, { rings }: ExplainContext): ReturnType<typeof collnetHeads> {
  return rings !== undefined && isOfAggregators(algorithm) ? collnetHeads(rings, algorithm) : [];
}

/** Number of parts into which a call is divided. */
function partsOf(collective: CallKind, bytes: number, algorithm: Algorithm, context: ExplainContext): number {
  const { rings, nRanks, channels } = context;
  if (rings === undefined) return channels;
  if (algorithm === 'ring') {
    const nBlocks = collective === 'allGather' || collective === 'reduceScatter' ? nRanks : 1;
    return ringParts(bytes * nBlocks, rings.rings.length);
  }
  if (algorithm === 'hierarchical') return Math.min(sharesOf(rings.hosts), rings.rings.length);
  return headsOf(algorithm, context).length || channels;
}

function textOf(
  { collective, bytes, algorithm, protocol, channels, predictedUs, candidates }: Omit<Explanation, 'text'>,
  context: ExplainContext,
): string {
  const { network, times, measured, forced, rings, aggregators = [] } = context;
  const others = candidates
    .filter((candidate) => candidate.algorithm !== algorithm)
    .map((candidate) => `${candidate.algorithm} ${formatUs(candidate.predictedUs)}`);
  const heads = headsOf(algorithm, context);
  return (
    `${collective} of ${bytes} bytes takes ${algorithm} (${protocol}, ${counted(channels, 'channel')})` +
    (forced === algorithm ? ', which is forced' : '') +
    (times === undefined
      ? `; how long calls take over ${network} was never measured`
      : predictedUs === undefined
        ? '; it was never measured'
        : `, about ${formatUs(predictedUs)} as measured ${measured === 'here' ? 'on this host' : 'on another machine (tccl tune measures this one)'}`) +
    (others.length === 0 ? '' : `; ${others.join(', ')}`) +
    (algorithm === 'ring' && rings !== undefined ? `; ${ringsText(rings)}` : '') +
    (algorithm === 'hierarchical' && rings !== undefined ? sharesText(rings, channels) : '') +
    (heads.length > 0 ? headsText(heads, aggregators) : '')
  );
}

/** @internal Context of a communicator. */
export function explainContextOf({
  resources,
  bootstrap,
  engine,
  channels,
  facts,
  nCores,
  config,
  forced,
}: CommunicatorParts): ExplainContext {
  const { nRanks, localRanks } = bootstrap;
  const { settings } = resources.facts;
  const { profile } = facts[0] ?? {};
  const here = profile === undefined ? undefined : timesFor(profile, nRanks, nCores);
  const oneSegment = inOneSegment(bootstrap, facts);
  const threads = engineThreads(config);
  return {
    table: engine.table,
    network: wayOf(netOf(facts).name),
    times: oneSegment ? (here ?? timesFor(defaultProfile, nRanks, nCores) ?? {}) : undefined,
    measured: here === undefined ? 'elsewhere' : 'here',
    forced,
    nRanks,
    smallBytes: smallBytesOf(localRanks.length, nCores),
    lowLatencyBytes: lowLatencyBytesOf(oneSegment, oneSegment ? threads.inMemory : threads.overSockets, settings),
    channels: oneSegment ? Math.max(1, threads.inMemory) : 1,
    rings: channels,
    aggregators: defined(facts[0]).aggregators,
  };
}

/** Text about the rings and their NICs, and why they are so. */
function ringsText({ rings, unplanned }: Channels): string {
  if (unplanned !== undefined) return `its ring is in rank order: ${unplanned}`;
  const each = rings.map(({ order, nics }) => {
    const names = [...new Set(nics.map(({ name }) => name))];
    return `${order.join(' ')} over ${names.join(', ')}`;
  });
  return `its rings are planned from the topology of the hosts: ${each.join('; ')}`;
}

/** Text about the NICs for the shares of *hierarchical*; empty on one host, and where hosts use their own addresses. */
function sharesText({ hosts, rings, unplanned }: Channels, parts: number): string {
  if (hosts.length === 1) return '';
  if (unplanned !== undefined) return `; its NICs are not planned: ${unplanned}`;
  const names = [...new Set(rings.slice(0, parts).flatMap(({ nics }) => nics.map(({ name }) => name)))];
  return names.length === 0 ? '' : `; between hosts over ${names.join(', ')}`;
}

/** Text about the heads of *collnet*, share by share, and what adds for them. */
function headsText(heads: readonly (readonly number[])[], aggregators: readonly string[]): string {
  const each = heads.map((ranks, share) => `${nameRanks(ranks)} at ${defined(aggregators[share % aggregators.length])}`);
  return `; aggregators add what ${each.join(', ')} send`;
}

const formatUs = (us: number): string => `${us < 10 ? us.toFixed(2) : us.toFixed(0)} µs`;
