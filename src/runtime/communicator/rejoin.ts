import { defined } from '../../defined.js';
import { process } from '#platform/process';
import { InvalidUsageError, TcclError } from '../../errors.js';
import { value } from '../launch/environment.js';
import { findPlacement } from '../launch/placement.js';
import { inherit, type ChildOptions } from '../resources/config.js';
import type { CommunicatorParts } from '../resources/shared-resources.js';

/** Throws `UNSUPPORTED` unless dead ranks of this communicator have successors. */
export function checkReplace({ bootstrap, resources }: CommunicatorParts): void {
  const env = resources.facts.options.env ?? process.env;
  const place = value(env, 'TCCL_MAX_RESTARTS') === undefined ? undefined : findPlacement(env);
  if (place?.rank === bootstrap.rank && place.nRanks === bootstrap.nRanks) return;
  throw new InvalidUsageError(
    'UNSUPPORTED',
    place === undefined
      ? 'recover: nothing starts dead ranks again; start the job with tccl run --max-restarts N --restart rank, or leave out replace'
      : `recover: replace takes the communicator of init(), with all ${place.nRanks} ranks, as their successors join that`,
    { rank: bootstrap.rank },
  );
}

/**
 * Meets the other ranks again where init() did: those that are left, and the successors of the dead, which call init(). Where one
 * dies meanwhile, waits for the next. The launcher ends a job whose ranks die too often.
 */
export async function rejoin({ config, resources }: CommunicatorParts, given: ChildOptions): Promise<CommunicatorParts> {
  const { join, options } = resources.facts;
  const { signal, timeoutMs, ...others } = given;
  const all = { ...options, ...inherit(config, others), signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  for (;;) {
    try {
      return await defined(join)(all);
    } catch (error) {
      const hasDied = error instanceof TcclError && (error.code === 'RANK_DIED' || error.code === 'ABORTED');
      if (!hasDied || signal?.aborted === true) throw error;
    }
  }
}
