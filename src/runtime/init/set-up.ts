import { onAbort } from '../abort-signals.js';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { rankStates } from '../device/rank-lines.js';
import type { Segment } from '../device/segment.js';
import { Team } from '../device/team.js';
import { isThrownByEveryRank } from '../failure/transfer.js';
import { TimeoutError } from '../../errors.js';
import { agree, type Contribution, type RankFacts } from '../resources/agree.js';
import { forcedAlgorithm, type CommunicatorConfig } from '../resources/config.js';
import type { Joined } from '../resources/join-segment.js';
import { abandon, SharedResources, type CommunicatorParts, type SharedFacts } from '../resources/shared-resources.js';

/** Steps of a set-up that differ between platforms. */
export interface SetUpSteps {
  /** Gives this rank its memory. */
  readonly join: () => Joined | Promise<Joined>;
  /** Opens the board of this rank; returns its own part of what ranks agree on. */
  readonly prepare: (segment: Segment, shared: boolean) => Pick<Contribution, 'libc' | 'profile' | 'location'>;
  /** Called when all ranks have agreed. */
  readonly agreed?: (facts: readonly RankFacts[]) => void;
  /** Called before the last wait, with the way to report it to ranks that are in their first calls by then. */
  readonly reportsBy?: (report: (words: readonly number[]) => void) => void;
}

/** Values of one init(). */
type Given = Omit<SharedFacts, 'segment' | 'shared' | 'libc'> & { readonly config: CommunicatorConfig };

/**
 * Makes the communicator of ranks that have met.
 * @param stop ends it with its reason, which other ranks get, too
 */
export async function setUp(
  bootstrap: Bootstrap,
  { config, ...given }: Given,
  { join, prepare, agreed, reportsBy }: SetUpSteps,
  stop: AbortSignal,
): Promise<CommunicatorParts> {
  const { settings, network } = given;
  let segment: Segment | undefined;
  let parts: CommunicatorParts | undefined;
  let isOver = false;
  /** Ends everything that waits for other ranks. */
  const end = (reason: unknown): void => {
    if (reason instanceof TimeoutError) bootstrap.fail(reason);
    bootstrap.abort(reason as Error);
  };
  const stopGivingUp = onAbort(stop, () => end(stop.reason));
  // Ranks that still meet give up for themselves; operations of one host would not end by that.
  const stopListening = bootstrap.onFailure((error) => {
    if (error instanceof TimeoutError) end(error);
  });
  try {
    const joined = await join();
    segment = joined.segment;
    const own = prepare(segment, joined.shared);
    const team = Team.ofAll(segment);
    const facts = await agree(bootstrap, { settings, config, joined, network, ...own });
    const resources = new SharedResources({ ...given, segment, shared: joined.shared, libc: own.libc }, bootstrap.rank);
    parts = await resources.assemble(bootstrap, team, facts, config, forcedAlgorithm(settings, config), stop);
    agreed?.(facts);
    reportsBy?.(reporter(parts, () => !isOver));
    segment.ranks.setState(rankStates.ready);
    // No rank may test liveness before all are marked as alive.
    await bootstrap.barrier();
    stop.throwIfAborted();
    return parts;
  } catch (error) {
    if (isThrownByEveryRank(error)) await bootstrap.close();
    else end(error);
    if (parts !== undefined) abandon(parts, error);
    segment?.close();
    throw error;
  } finally {
    isOver = true;
    stopListening();
    stopGivingUp();
  }
}

/** Reports a wait in a call over the bootstrap network in all ways in which calls of the new communicator look for reports. */
function reporter(
  { engine, pointToPoint, waitQueries }: CommunicatorParts,
  holds: () => boolean,
): (words: readonly number[]) => void {
  return (words) => {
    engine.forwardReport(words);
    pointToPoint.waits.forwardReport(words);
    waitQueries?.setAnswer(words, holds);
  };
}
