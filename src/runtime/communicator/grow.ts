import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { endReason } from '../failure/end-reason.js';
import { oddRanksOf } from '../bootstrap/rank-list.js';
import { openText, sealText } from '../bootstrap/sealed-text.js';
import { secretOf, UniqueId } from '../bootstrap/unique-id.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, TcclError } from '../../errors.js';
import { inherit, type ChildOptions } from '../resources/config.js';
import type { CommunicatorParts } from '../resources/shared-resources.js';
import { gatherJson } from '../bootstrap/gather-json.js';
import { setTimeout } from '../platform/platform.js';
import { withAnySignal } from '../abort-signals.js';
import { graceMs } from '../failure/grace.js';
import { defined } from '../../defined.js';

/** Data that each rank sends in a grow. */
interface Wish {
  readonly nRanks: number;
  /** Encrypted, because it contains the secret of the new communicator. */
  readonly id: string | null;
}

/** Checks the arguments of grow(). Throws InvalidArgumentError `ARGUMENT_RANGE`. */
export function checkGrow(nRanks: number, present: number): void {
  if (!Number.isInteger(nRanks) || nRanks <= present)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `grow: the new communicator has ${describeValue(nRanks)} ranks, which must be a whole number above the present ${present}`,
    );
}

/**
 * Joins a communicator of `nRanks` ranks with this rank's number; ranks beyond the old ones are new. Everything is set up
 * anew; only the id comes through the old communicator.
 */
export async function grow(
  parent: CommunicatorParts,
  nRanks: number,
  { commId, timeoutMs, ...given }: ChildOptions & { readonly commId?: UniqueId | string | undefined },
  signal: AbortSignal,
): Promise<CommunicatorParts> {
  const { bootstrap, resources } = parent;
  const { join, options } = resources.facts;
  if (join === undefined) throw new InvalidUsageError('UNSUPPORTED', 'a page starts its ranks with spawnRanks, all at once');
  const config = inherit(parent.config, given);
  const secret = secretOf(resources.facts.id);
  const mine: Wish = { nRanks, id: commId === undefined ? null : sealText(commId.toString(), secret) };
  const wishes = (await gatherJson(bootstrap, 'grow', mine)).map((wish) => ({
    ...wish,
    id: wish.id === null ? null : openText(wish.id, secret),
  }));
  const id = wishes.find((one) => one.id !== null)?.id;
  const other = wishes.findIndex((one) => one.nRanks !== nRanks || (one.id !== null && one.id !== id));
  if (other >= 0) {
    throw new InvalidUsageError(
      'CALL_MISMATCH',
      `rank ${other} grows to ${defined(wishes[other]).nRanks} ranks, rank ${bootstrap.rank} to ${nRanks}, or with another id; all must pass the same`,
      { ranks: oddRanksOf(wishes.map((wish) => `${wish.nRanks} ${wish.id ?? id ?? ''}`)) },
    );
  }
  if (id === undefined || id === null) {
    throw new InvalidArgumentError(
      'UNIQUE_ID',
      'grow: no rank gave a commId; give the id of getUniqueId() to one of these ranks and to all new ones',
    );
  }
  const gone = new AbortController();
  for (const { rank } of bootstrap.peers) {
    if (rank !== bootstrap.rank)
      void bootstrap.whyGone(rank).then((reason) => setTimeout(() => gone.abort(reason), graceMs.leftInGrow).unref());
  }
  try {
    return await withAnySignal([signal, gone.signal], (either) =>
      join({
        ...config,
        commId: id,
        rank: bootstrap.rank,
        nRanks,
        signal: either,
        timeoutMs,
        env: options.env,
        device: options.device,
        onWarning: options.onWarning,
      }),
    );
  } catch (error) {
    throw (await oldNews(error, bootstrap)) ?? error;
  }
}

/**
 * Error with which a rank of the old communicator left the new one: the old network knows which rank it was, and whether it
 * exited or died. A new rank that aborts may do so because an old one has left.
 */
async function oldNews(error: unknown, bootstrap: Bootstrap): Promise<Error | undefined> {
  if (!(error instanceof TcclError) || !(error.code === 'RANK_DIED' || error.code === 'ABORTED') || error.rank === undefined)
    return undefined;
  const { rank, code } = error;
  const others = bootstrap.peers.map((peer) => peer.rank).filter((other) => other !== bootstrap.rank);
  const suspects = rank < bootstrap.nRanks ? others.filter((other) => other === rank) : code === 'ABORTED' ? others : [];
  const news = suspects.map(
    async (suspect) => (await endReason(bootstrap.whyGone(suspect), graceMs.endReason)) ?? Promise.reject(new Error('no news')),
  );
  return Promise.any(news).catch(() => undefined);
}
