import { describeValue } from './describe-value.js';
import { InvalidArgumentError } from './errors.js';
import type { Communicator } from './runtime/communicator/communicator.js';

/** Throws `ARGUMENT_TYPE` unless `comm` is a communicator; `example` is how to pass one. */
export function checkComm(call: string, comm: unknown, example: string): asserts comm is Communicator {
  if (typeof (comm as Partial<Communicator> | undefined | null)?.allGatherObject === 'function') return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: pass a communicator of init() first, as in ${example}, not ${describeValue(comm)}`,
  );
}
