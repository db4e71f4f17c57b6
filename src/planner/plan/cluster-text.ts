import { ncclVariables } from '../nccl-variables.js';
import { unknownAmong } from './unknown-variable.js';

/** Texts and checks that command lines and cluster files share. */

/** The most hosts that a cluster can have. */
export const MOST_HOSTS = 1_000_000;

/** `dgx-h100:4` is four of dgx-h100. */
export function splitCount(text: string): { readonly name: string; readonly count: number | undefined } {
  const [, name, digits] = /^(.+):(\d{1,7})$/.exec(text) ?? [];
  const count = Number(digits);
  return name === undefined || count < 1 || count > MOST_HOSTS ? { name: text, count: undefined } : { name, count };
}

/** Problem with the name of a variable that is set for a plan, or undefined if NCCL knows it. */
export function unknownVariable(variable: string): string | undefined {
  return unknownAmong(variable, ncclVariables);
}
