import { describeError, TcclError } from '../errors.js';
import type { Outcome } from '../planner/log/verdict/diagnosis.js';
import { complain } from './output.js';

/** Exit codes of `tccl log` and `tccl diagnose` by outcome. */
export const outcomeCodes: Readonly<Record<Outcome, number>> = { fault: 1, healthy: 0, undecided: 3 };

/**
 * Prints an error that ended a command, and returns the exit code: 2 for wrong use, else 1.
 *
 * @throws the same error if it is none of tccl's
 */
export function reportFailure(error: unknown): number {
  if (isOutOfFiles(error)) {
    complain('tccl', `this process may open no more files: raise the limit (ulimit -n); ${error.message}`);
    return 1;
  }
  if (!(error instanceof TcclError)) throw error;
  complain('tccl', describeError(error));
  // A file that is not XML is wrong use of the command, regardless of NCCL's result for it.
  const isWrongUse = error.ncclResult === 4 || error.ncclResult === 5 || error.code === 'SYNTAX' || error.code === 'TOO_LARGE';
  return isWrongUse ? 2 : 1;
}

/** Commands load their code when they need it. */
function isOutOfFiles(error: unknown): error is NodeJS.ErrnoException {
  return (
    error instanceof Error &&
    ((error as NodeJS.ErrnoException).code === 'EMFILE' || (error as NodeJS.ErrnoException).code === 'ENFILE')
  );
}
