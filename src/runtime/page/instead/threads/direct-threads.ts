import { InvalidUsageError } from '../../../../errors.js';

/** Ranks of a page carry out their calls themselves. */
export function startDirectThreads(): never {
  throw new InvalidUsageError('UNSUPPORTED', "engine: 'thread' is for Node.js: ranks of a page have no engine threads");
}
