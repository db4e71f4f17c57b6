import { didYouMean } from '../../suggest.js';

/** Problem with the name of a variable that is not among the known ones, or undefined. */
export function unknownAmong(variable: string, known: ReadonlySet<string>): string | undefined {
  if (known.has(variable)) return undefined;
  const named = variable.startsWith('NCCL_') ? variable : `NCCL_${variable}`;
  return `NCCL has no variable ${variable}${known.has(named) ? `; did you mean ${named}?` : didYouMean(variable, known)}`;
}
