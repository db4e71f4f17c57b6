import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { CommitBarrier } from '../bootstrap/commit-barrier.js';
import { packError, unpackError } from '../failure/transfer.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import type { LostNics } from '../channels/location.js';
import { failedNics, withoutNics } from '#seam/channels/lost-nics';
import { checkLimits, checkPeer, isArray, type CallLimits } from '../algorithms/arguments.js';
import { Team } from '../device/team.js';
import { describeValue } from '../../describe-value.js';
import { describeError, InvalidArgumentError, RemoteError, SystemError, TcclError, TimeoutError } from '../../errors.js';
import { checkAlike, checkEngines, inOneSegment, type RankFacts } from '../resources/agree.js';
import {
  checkOptions,
  childAlgorithm,
  engineThreads,
  inherit,
  type RecoverOptions,
  type ShrinkOptions,
  type CommunicatorConfig,
  type EngineThreads,
  type Agreement,
} from '../resources/config.js';
import { abandon, type CommunicatorParts } from '../resources/shared-resources.js';
import { endReason } from '../failure/end-reason.js';
import { graceMs } from '../failure/grace.js';
import { gatherJson } from '../bootstrap/gather-json.js';
import type { Survivors, SurvivorWish } from '../bootstrap/survivors.js';
import { onAbort } from '../abort-signals.js';
import { defined } from '../../defined.js';

/** Data that each rank sends in a split. */
interface Choice {
  readonly color: number | null;
  readonly key: number;
  /** The ranks of its communicator in their order, in place of a color. */
  readonly ranks?: readonly number[];
  /** Number for the children's networks; the first rank's is used. Children of different colors have no rank in common. */
  readonly number: number;
}

/** A color, or the ranks of the communicator in their order; null for none. */
export type SplitColor = number | readonly number[] | null;

const LARGEST = 2 ** 31 - 1;

/** Checks the arguments of split(). Throws InvalidArgumentError `ARGUMENT_RANGE`. */
export function checkSplit(color: SplitColor, key: number, nRanks: number): void {
  if (isArray(color)) {
    for (const rank of color) checkPeer('split', rank, nRanks);
    if (new Set(color).size < color.length)
      throw new InvalidArgumentError('ARGUMENT_RANGE', `split: [${color.join(', ')}] has a rank twice; list each rank once`);
    if (key !== 0)
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `split: a list of ranks has their order, so its key is 0, not ${describeValue(key)}; options come after it, as in split([0, 1], 0, { name })`,
      );
    return;
  }
  if (color !== null && !(Number.isInteger(color) && color >= 0 && color <= LARGEST)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `split: the color is ${describeValue(color)}, but colors are whole numbers from 0 to ${LARGEST}, lists of ranks, or null for no communicator`,
    );
  }
  if (!(Number.isInteger(key) && Math.abs(key) <= LARGEST)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `split: the key is ${describeValue(key)}, but keys are whole numbers up to ${LARGEST}; options come after it, as in split(0, 0, { name })`,
    );
  }
}

/** Makes the parts of the communicator of this rank's color, or null without a color. Every rank of the parent calls it. */
export async function split(
  parent: CommunicatorParts,
  color: SplitColor,
  key: number,
  given: CommunicatorConfig,
  signal: AbortSignal,
): Promise<CommunicatorParts | null> {
  const { bootstrap } = parent;
  const ranks = isArray(color) ? color : undefined;
  // Lists have no rank in common, so the first one is a color.
  const choice: Choice = {
    ...(isArray(color) ? { color: color[0] ?? null, ranks: color, key: color.indexOf(bootstrap.rank) } : { color, key }),
    number: bootstrap.rank === 0 ? bootstrap.nextNumber() : 0,
  };
  const choices = await gatherJson(bootstrap, 'split', choice);
  checkLists(choices);
  if (choice.color === null || ranks?.includes(bootstrap.rank) === false) return null;
  const members = choices
    .map((other, rank) => ({ ...other, rank }))
    .filter((other) => (ranks === undefined ? other.ranks === undefined && other.color === color : ranks.includes(other.rank)))
    .sort((a, b) => a.key - b.key || a.rank - b.rank);
  return makeChild(
    parent,
    defined(choices[0]).number,
    members.map((member) => member.rank),
    given,
    signal,
  );
}

/**
 * Throws unless all ranks of a list pass the same list, also of one that lacks the rank that passes it.
 * @throws InvalidArgumentError `ARGUMENT_RANGE`, the same on all ranks
 */
function checkLists(choices: readonly Choice[]): void {
  const textOf = (list: Choice['ranks']): string => (list === undefined ? 'no list' : `[${list.join(', ')}]`);
  for (const [rank, { ranks }] of choices.entries()) {
    if (ranks === undefined) continue;
    const other = ranks.find((one) => textOf(choices[one]?.ranks) !== textOf(ranks));
    if (other === undefined) continue;
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `split: rank ${rank} passes the list ${textOf(ranks)}, but rank ${other} in it passes ${textOf(choices[other]?.ranks)}; all ranks of a list pass the same`,
      { rank: other, ranks: [rank, other].sort((a, b) => a - b) },
    );
  }
}

/** Checks the arguments of agree(). Throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`. */
export function checkFlag(flag: boolean, limits: CallLimits): void {
  checkLimits('agree', limits);
  if (typeof (flag as unknown) !== 'boolean')
    throw new InvalidArgumentError('ARGUMENT_TYPE', `agree: the flag is true or false, not ${describeValue(flag)}`);
}

/** Checks the arguments of shrink() or recover(). Throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`. */
export function checkShrink(
  call: 'shrink' | 'recover',
  excluded: readonly number[],
  options: ShrinkOptions & RecoverOptions,
  { rank, nRanks }: { readonly rank: number; readonly nRanks: number },
): void {
  const flags = call === 'shrink' ? (['abort', 'quorum'] as const) : (['quorum', 'replace'] as const);
  checkOptions(call, options, flags);
  for (const name of flags) {
    const value: unknown = options[name];
    if (value !== undefined && typeof value !== 'boolean')
      throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: ${name} is true or false, not ${describeValue(value)}`);
  }
  if (!isArray(excluded))
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: the excluded ranks are an array, as in ${call}([2]), not ${describeValue(excluded)}`,
    );
  const wrong = excluded.find((other) => !Number.isInteger(other) || other < 0 || other >= nRanks);
  if (wrong !== undefined)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: there is no rank ${describeValue(wrong)} to exclude; ranks go from 0 to ${nRanks - 1}`,
    );
  if (options.replace === true && excluded.length > 0)
    throw new InvalidArgumentError('ARGUMENT_RANGE', `${call}: replace excludes no rank: only dead ranks have successors`);
  if (excluded.includes(rank))
    throw new InvalidArgumentError('ARGUMENT_RANGE', `${call}: rank ${rank} excludes itself; only ranks that stay call ${call}`);
}

/**
 * Makes the parts of the communicator without excluded, dead and departed ranks. Every rank that stays calls it.
 *
 * @param over see {@link amongSurvivors}
 */
export function shrink(
  parent: CommunicatorParts,
  excluded: readonly number[],
  { quorum, ...given }: ShrinkOptions,
  signal: AbortSignal,
  over: AbortSignal,
): Promise<CommunicatorParts> {
  return amongSurvivors(parent, excluded, { quorum }, over, ({ number, ranks }) =>
    makeChild(parent, number, ranks, given, signal),
  );
}

/**
 * The survivors and their flag, the same on all of them: if a rank dies before all have the result, they agree anew.
 *
 * @param over see {@link amongSurvivors}
 */
export function agree(parent: CommunicatorParts, mine: boolean, signal: AbortSignal, over: AbortSignal): Promise<Agreement> {
  return amongSurvivors(parent, [], { call: 'agree', flag: mine }, over, async ({ number, ranks, flag }) => {
    const network = await together(parent.bootstrap, number, ranks, signal, async (bootstrap) => {
      await bootstrap.barrier();
      return bootstrap;
    });
    await network.close();
    return { flag, ranks };
  });
}

/**
 * Runs `work` with the ranks that go on, again without those that die in it.
 *
 * @param over aborted when the time is over: the ranks then still agree on the ranks that are missing
 */
async function amongSurvivors<T>(
  { bootstrap, team, resources }: CommunicatorParts,
  excluded: readonly number[],
  wish: SurvivorWish,
  over: AbortSignal,
  work: (survivors: Survivors) => Promise<T>,
): Promise<T> {
  const out = new Set(excluded);
  while (true) {
    // Shared memory shows departed ranks earlier than the network.
    (resources.facts.shared ? bootstrap.localRanks : []).forEach((rank, local) => {
      if (rank !== bootstrap.rank && team.isGone(local)) out.add(rank);
    });
    const survivors = await bootstrap.survivors([...out], over, wish);
    try {
      return await work(survivors);
    } catch (error) {
      if (!(error instanceof RemoteError && error.code === 'RANK_DIED' && error.rank !== undefined)) throw error;
      out.add(error.rank);
    }
  }
}

/**
 * Makes a communicator of some ranks of another, on the same segment and bootstrap connections. The first member of each host
 * provides the memory that the members there share.
 *
 * @param ranks of the parent, in the child's order
 * @param given settings that replace the parent's
 * @throws errors with the parent's rank numbers
 */
async function makeChild(
  parent: CommunicatorParts,
  number: number,
  ranks: readonly number[],
  given: CommunicatorConfig,
  signal: AbortSignal,
): Promise<CommunicatorParts> {
  const { resources } = parent;
  const { segment, shared, settings } = resources.facts;
  const config = inherit(parent.config, given);
  const facts: readonly RankFacts[] = ranks.map((rank) => defined(parent.facts[rank]));
  let reserved = 0;
  let team: Team | undefined;
  let child: CommunicatorParts | undefined;
  try {
    return await together(parent.bootstrap, number, ranks, signal, async (bootstrap) => {
      // If a host's ranks do not share memory, each is a team of its own.
      const local = shared ? bootstrap.localRanks : [bootstrap.rank];
      const oneSegment = inOneSegment(bootstrap, facts);
      const forced = childAlgorithm(settings, config, given, oneSegment);
      const wanted = { threads: engineThreads(config), algorithm: forced ?? 'auto', lost: lostNics(facts, bootstrap) };
      const { addresses, liveFacts } = await exchange(bootstrap, wanted, facts, oneSegment, () => {
        if (local[0] === bootstrap.rank) reserved = Team.reserve(segment, local.length);
        return reserved;
      });
      const members = local.map((rank) =>
        defined(parent.team.members[shared ? parent.bootstrap.localRanks.indexOf(defined(ranks[rank])) : 0]),
      );
      team = new Team(segment, defined(addresses[defined(local[0])]), members, reserved > 0);
      return (child = await resources.assemble(bootstrap, team, liveFacts, config, forced, signal));
    });
  } catch (error) {
    if (child !== undefined) abandon(child, error);
    if (team !== undefined) team.leave();
    else if (reserved > 0) segment.freeBytes(reserved);
    throw error;
  }
}

/**
 * Runs `work` on a network of some ranks of another, which all of them complete or none: its result counts once all have theirs.
 *
 * @throws errors with the parent's rank numbers
 */
async function together<T>(
  parent: Bootstrap,
  number: number,
  ranks: readonly number[],
  signal: AbortSignal,
  work: (bootstrap: Bootstrap) => Promise<T>,
): Promise<T> {
  const bootstrap = parent.derive(number, ranks);
  const commitBarrier = bootstrap.commitBarrier();
  const stopListening = onAbort(signal, () => {
    const { rank } = bootstrap;
    const reason: unknown = signal.reason;
    // The ranks that a time-out names are the parent's, on all members.
    if (reason instanceof TimeoutError) bootstrap.abort(reason);
    else
      bootstrap.abort(
        new RemoteError('CLOSED', `rank ${rank} failed to make this communicator: ${describeError(reason)}`, { rank }),
      );
  });
  try {
    const result = await work(bootstrap);
    await confirm(bootstrap, commitBarrier, signal);
    return result;
  } catch (error) {
    commitBarrier.giveUp();
    bootstrap.abort(error as Error);
    throw await reasonForParent(error, parent, ranks, signal);
  } finally {
    stopListening();
  }
}

/**
 * Waits until all members have their results. If a rank dies now, all members still decide the same: if all had arrived, the
 * results count, and the next call with the dead rank fails.
 */
async function confirm(bootstrap: Bootstrap, commitBarrier: CommitBarrier, signal: AbortSignal): Promise<void> {
  commitBarrier.reached();
  try {
    await bootstrap.barrier();
  } catch (error) {
    if (!(error instanceof RemoteError) || signal.aborted || !(await commitBarrier.commits(signal))) throw error;
  }
  commitBarrier.done();
}

/** Error of the parent's call if not all members have a result. */
async function reasonForParent(
  error: unknown,
  parent: Bootstrap,
  ranks: readonly number[],
  signal: AbortSignal,
): Promise<unknown> {
  if (signal.aborted) return signal.reason;
  if (!(error instanceof TcclError) || error.rank === undefined) return error;
  const rank = ranks[error.rank] ?? error.rank;
  const news = error.code === 'CLOSED' ? await endReason(parent.whyGone(rank), graceMs.endReason) : undefined;
  if (news !== undefined) return news;
  if (rank === error.rank) return error;
  return unpackError({
    ...packError(error),
    message: `rank ${rank} of this communicator; in the new one: ${error.message}`,
    rank,
  });
}

/** Settings of a communicator that must be the same on all ranks. */
interface Wanted {
  readonly threads: EngineThreads;
  readonly algorithm: string;
  /** NICs that this rank can no longer use. */
  readonly lost: LostNics;
}

/** NICs of this rank that have failed: one of several networks between the hosts may have. */
function lostNics(facts: readonly RankFacts[], { rank, localRanks }: Bootstrap): LostNics {
  const own = facts[rank]?.location;
  if (own === undefined) return {};
  return failedNics(
    own,
    facts.flatMap(({ location }, other) => (localRanks.includes(other) ? [] : (location ?? []))),
  );
}

/**
 * Runs `make` on every rank, and returns the results with the ranks' facts as of now; if it throws on one, all ranks throw the
 * error of the first.
 */
async function exchange(
  bootstrap: Bootstrap,
  wanted: Wanted,
  facts: readonly RankFacts[],
  oneSegment: boolean,
  make: () => number,
): Promise<{ readonly addresses: readonly number[]; readonly liveFacts: readonly RankFacts[] }> {
  let failure: unknown;
  let mine: (Wanted & { readonly address: number }) | { readonly error: string };
  try {
    mine = { address: make(), ...wanted };
  } catch (error) {
    failure = error;
    mine = { error: (error as Error).message };
  }
  const all = (await bootstrap.allGather(encodeJson(mine))).map((bytes) => decodeJson(bytes) as typeof mine);
  const addresses = all.map((one) => ('address' in one ? one.address : -1));
  const failed = addresses.indexOf(-1);
  if (failed < 0) {
    checkEngines(
      all.flatMap((one) => ('address' in one ? one.threads : [])),
      facts,
      oneSegment,
    );
    checkAlike(
      'the algorithm',
      all.map((one) => ('address' in one ? one.algorithm : '')),
    );
    const liveFacts = facts.map((fact, rank) => {
      const one = all[rank];
      if (fact.location === undefined || one === undefined || !('lost' in one)) return fact;
      return { ...fact, location: withoutNics(fact.location, one.lost) };
    });
    return { addresses, liveFacts };
  }
  if (failed === bootstrap.rank) throw failure;
  const one = all[failed];
  throw new SystemError(
    'OUT_OF_MEMORY',
    `rank ${failed} has no memory for the communicator: ${one !== undefined && 'error' in one ? one.error : ''}`,
    { rank: failed },
  );
}
