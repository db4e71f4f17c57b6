import type { Merged } from '../graph/merge/merge.js';
import type { Parameters } from '../parameters.js';
import { rulesOf } from '../versions/rules.js';
import { type TuningInput, tuningInput } from './input.js';
import type { Models } from './model.js';
import { tuningModelOf } from './models.js';
import type { ByCandidate } from './threads.js';

export type { Model } from './model.js';

/** NCCL's tuning model of one communicator: a plain value. `predict` and `choose` apply it to a call. */
export interface Tuning {
  readonly input: TuningInput;
  /** Most threads of a channel. */
  readonly maxThreads: ByCandidate;
  /** Bytes a thread and channel, below which there are fewer of both. */
  readonly threadThresholds: ByCandidate;
  readonly model: Models;
}

/**
 * The tuning model of a plan, as NCCL makes it at the end of making a communicator.
 *
 *     const made = plan(cluster, parameters);
 *     const tuning = tune(made, parameters);
 *     choose(tuning, 'AllReduce', 1 << 20)      // { algorithm: 'Tree', protocol: 'LL128', timeUs: …, … }
 *
 * Its cost does not depend on the number of ranks.
 *
 * @throws InvalidUsageError where `NCCL_ALGO` or `NCCL_PROTO` has an unknown name; NCCL then makes no communicator
 */
export function tune(merged: Merged, parameters: Parameters): Tuning {
  return tuneFor(tuningInput(merged, parameters), parameters);
}

/** The same from the model's inputs, so that one of them can be changed. */
export function tuneFor(input: TuningInput, parameters: Parameters): Tuning {
  const model = tuningModelOf(rulesOf(input));
  return {
    input,
    maxThreads: model.maxThreads(input, parameters),
    threadThresholds: model.threadThresholds(input, parameters),
    model: model.models(input, parameters),
  };
}
