import { aggregatorAddresses } from '../aggregator/aggregators.js';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { BootstrapEnvironment } from '../bootstrap/environment.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { oddRanksOf } from '../bootstrap/rank-list.js';
import { counted } from '../../counted.js';
import { allowedCores } from '../detect/cores.js';
import type { Libc } from '../device/libc.js';
import { InvalidUsageError, namingCall } from '../../errors.js';
import { networkNamed, networks, SOCKET_NET, type ChosenNetwork } from '#seam/transport/networks';
import type { RankLocation } from '../channels/location.js';
import { engineThreads, forcedAlgorithm, type CommunicatorConfig, type EngineThreads } from './config.js';
import type { Joined } from './join-segment.js';
import type { RuntimeSettings } from './options.js';
import type { Profile } from '../algorithms/profile.js';
import { defined } from '../../defined.js';

/** Facts that every rank sends to the others after it has made its segment. */
export interface RankFacts {
  readonly algorithm: string;
  readonly protocol: string;
  readonly engineThreads: EngineThreads;
  readonly sharedWithHost: boolean;
  /** Largest number of ranks among which this one makes all connections in advance, unless its program decides. */
  readonly connectsUpTo: number;
  /** Networks that this rank would use, best first, and why it cannot use the one that TCCL_NET names. */
  readonly nets: readonly string[];
  readonly netRefusal?: string;
  /** Addresses of the aggregators. */
  readonly aggregators: readonly string[];
  /** Number of sockets of a connection. */
  readonly sockets: number;
  readonly reason?: string;
  readonly cores: readonly number[];
  /** Undefined if all ranks of init() are on one host. */
  readonly location?: RankLocation;
  /** Profile of rank 0's host, on every rank, so that all make the same choices. */
  readonly profile?: Profile;
}

/** Own part of what ranks agree on. */
export interface Contribution {
  readonly settings: RuntimeSettings;
  readonly config: CommunicatorConfig;
  readonly joined: Joined;
  /** With it, a rank can wait for its sockets without its event loop. */
  readonly libc?: Libc | undefined;
  /** Of this rank's host; all ranks use rank 0's. */
  readonly profile?: Profile | undefined;
  /** Of this rank, if the ranks are on several hosts. */
  readonly location?: RankLocation | undefined;
  readonly network: BootstrapEnvironment;
}

/** Exchanges facts among all ranks, and throws if ranks have different settings. */
export async function agree(
  bootstrap: Bootstrap,
  { settings, config, joined, libc, profile, location, network }: Contribution,
): Promise<RankFacts[]> {
  const mine: RankFacts = {
    algorithm: forcedAlgorithm(settings, config) ?? 'auto',
    protocol: settings.protocol ?? 'auto',
    engineThreads: engineThreads(config),
    sharedWithHost: joined.shared,
    connectsUpTo: libc === undefined ? 0 : settings.connectsUpTo,
    ...netsOf(settings.net, joined.shared && bootstrap.localRanks.length === bootstrap.nRanks),
    aggregators: await aggregatorAddresses({ ids: settings.aggregators, secret: network.commSecret }),
    sockets: settings.sockets,
    cores: allowedCores(),
    ...(location === undefined ? {} : { location }),
    ...(joined.reason === undefined ? {} : { reason: joined.reason }),
    ...(profile === undefined || bootstrap.rank !== 0 ? {} : { profile }),
  };
  const all = await bootstrap.allGather(encodeJson(mine));
  const facts = all.map((bytes) => decodeJson(bytes) as RankFacts);
  const alike: readonly (readonly [variable: string, valueOf: (fact: RankFacts) => string])[] = [
    ['TCCL_ALGO', ({ algorithm }) => algorithm],
    ['TCCL_PROTO', ({ protocol }) => protocol],
    ['TCCL_AGGREGATOR', ({ aggregators: ids }) => ids.join() || 'none'],
    ['TCCL_NSOCKS_PER_CONNECTION', ({ sockets }) => String(sockets)],
  ];
  for (const [variable, valueOf] of alike) checkAlike(variable, facts.map(valueOf));
  checkEngines(
    facts.map((fact) => fact.engineThreads),
    facts,
    inOneSegment(bootstrap, facts),
  );
  checkNets(facts);
  const agreed = facts[0]?.profile;
  return agreed === undefined ? facts : facts.map((fact) => ({ ...fact, profile: agreed }));
}

/** Networks of this rank. @param isShared true if all ranks share memory, so that none is needed */
function netsOf(wanted: string | undefined, isShared: boolean): Pick<RankFacts, 'nets' | 'netRefusal'> {
  if (isShared) return { nets: [] };
  if (wanted === undefined) return { nets: networks.filter((network) => network.doubt() === undefined).map(({ name }) => name) };
  const netRefusal = networkNamed(wanted).refusal();
  return { nets: [wanted], ...(netRefusal === undefined ? {} : { netRefusal }) };
}

/** Throws if a rank cannot use the network that TCCL_NET names, or if ranks were given different ones. */
function checkNets(facts: readonly RankFacts[]): void {
  const refusing = facts.findIndex(({ netRefusal }) => netRefusal !== undefined);
  if (refusing >= 0)
    throw namingCall(
      new InvalidUsageError(
        'UNSUPPORTED',
        `init: rank ${refusing} cannot use TCCL_NET=${defined(defined(facts[refusing]).nets[0])}: ${defined(defined(facts[refusing]).netRefusal)}`,
        { rank: refusing },
      ),
    );
  if (facts.some(({ nets }) => nets.length === 0) || commonNet(facts) !== undefined) return;
  checkAlike(
    'TCCL_NET',
    facts.map(({ nets }) => nets.join(' or ')),
  );
}

/** Network between ranks that share no memory. */
export function netOf(facts: readonly RankFacts[]): ChosenNetwork {
  return { name: commonNet(facts) ?? SOCKET_NET, sockets: facts[0]?.sockets ?? 1 };
}

/** The best network that all ranks would use. */
function commonNet(facts: readonly RankFacts[]): string | undefined {
  return facts[0]?.nets.find((name) => facts.every(({ nets }) => nets.includes(name)));
}

/** Throws if ranks were given different values. */
export function checkAlike(what: string, wanted: readonly string[]): void {
  const [first = ''] = wanted;
  const other = wanted.findIndex((one) => one !== first);
  if (other < 0) return;
  throw new InvalidUsageError(
    'ENVIRONMENT',
    `${what} differs between ranks: ${first} on rank 0, ${defined(wanted[other])} on rank ${other}; set the same value on all`,
    { ranks: oddRanksOf(wanted) },
  );
}

/** True if all ranks of a communicator share memory. */
export function inOneSegment({ localRanks, nRanks }: Bootstrap, facts: readonly RankFacts[]): boolean {
  return localRanks.length === nRanks && facts.every((fact) => fact.sharedWithHost);
}

/** True if the ranks with these facts make all connections over sockets in advance. */
export function connectsInAdvance({ connectsAll }: EngineThreads, facts: readonly RankFacts[]): boolean {
  return connectsAll ?? facts.every(({ connectsUpTo }) => facts.length <= connectsUpTo);
}

/** Throws if ranks differ in engine threads (shared memory), or in making connections in advance (sockets). */
export function checkEngines(each: readonly EngineThreads[], facts: readonly RankFacts[], oneSegment: boolean): void {
  const wishes = each.map((threads) => (oneSegment ? threads.inMemory : Number(connectsInAdvance(threads, facts))));
  const other = wishes.findIndex((wish) => wish !== wishes[0]);
  if (other < 0) return;
  const describe = (wish = 0): string => {
    if (!oneSegment && connectsInAdvance({ inMemory: 0, overSockets: 0 }, facts))
      return wish === 0 ? 'with blocking: false' : 'without blocking: false';
    if (!oneSegment) return wish === 0 ? 'without blocking: true' : "with blocking: true or engine: 'thread'";
    return wish === 0 ? 'no engine thread' : counted(wish, 'engine thread');
  };
  throw new InvalidUsageError(
    'CALL_MISMATCH',
    `${oneSegment ? 'engine and channels' : 'blocking and engine'} differ between ranks: ${describe(wishes[0])} on rank 0, ${describe(wishes[other])} on rank ${other}; give all ranks the same`,
    { ranks: oddRanksOf(wishes) },
  );
}
