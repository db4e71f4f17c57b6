import type { LogModel } from './model.js';

/** Findings that show a failed job, regardless of the end of its log. */
const ends = new Set(['fault', 'failure', 'symptom', 'outcome']);

/** True if the log has no sign of a failure: no rule of one, no call that returned an error. */
export function isUntroubled({ hits, warnings, timeouts }: LogModel): boolean {
  return (
    !hits.some(({ rule }) => ends.has(rule.kind)) &&
    !warnings.some(({ source }) => source === 'returned') &&
    timeouts.length === 0
  );
}

/** True if all ranks in the log completed init, and it has no sign of a failure. */
export function isInitialised(model: LogModel): boolean {
  if (model.finished) return true;
  const ranks = model.communicators.flatMap((communicator) => [...communicator.ranks.values()]);
  return (
    ranks.length > 0 &&
    ranks.every(({ completed }) => completed !== undefined) &&
    !model.hits.some(({ rule }) => ends.has(rule.kind))
  );
}

/** True if every communicator is known to be on one host. */
export function isOnOneHost({ communicators }: LogModel): boolean {
  return (
    communicators.length > 0 &&
    communicators.every(({ nNodes, nRanks, nRanksKnown, ranks }) => {
      if (nNodes !== undefined) return nNodes === 1;
      return nRanksKnown && ranks.size === nRanks && new Set([...ranks.values()].map(({ process }) => process.host)).size === 1;
    })
  );
}
