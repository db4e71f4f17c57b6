/** One rank's part of a job, as Promise.allSettled() gives it. */
export type RankOutcome<Result> =
  { readonly status: 'fulfilled'; readonly value: Result } | { readonly status: 'rejected'; readonly reason: unknown };
