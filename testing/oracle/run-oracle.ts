import { TcclError } from '../../src/errors.js';
import { describeDifference } from './difference.js';
import { OracleCase, type OracleInput } from './oracle-case.js';
import { type Section, sections } from './sections.js';

/** Result of one section of one case. */
export type Outcome =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly difference: string }
  /** Not compared: the case lacks the section, or NCCL failed in another one. */
  | { readonly kind: 'skipped' };

export interface CaseResult {
  readonly name: string;
  /** The version of NCCL that answered; empty where the case cannot be read. */
  readonly nccl: string;
  readonly outcomes: ReadonlyMap<string, Outcome>;
}

/** Names of all sections, in the order in which NCCL works them out. */
export const sectionNames: readonly string[] = sections.map(({ name }) => name);

/** Compares sections of one case. An error of the planner is a failed section, never thrown. */
export function runOracleCase(input: OracleInput, names: readonly string[]): CaseResult {
  const wanted = sections.filter(({ name }) => names.includes(name));
  let oracleCase: OracleCase;
  try {
    oracleCase = new OracleCase(input);
  } catch (error) {
    const outcome: Outcome = { kind: 'failed', difference: messageOf(error) };
    return { name: input.name, nccl: '', outcomes: new Map(wanted.map(({ name }) => [name, outcome])) };
  }
  return compareCase(oracleCase, names);
}

/** The same of a case that was read before. */
export function compareCase(oracleCase: OracleCase, names: readonly string[]): CaseResult {
  const wanted = sections.filter(({ name }) => names.includes(name));
  return {
    name: oracleCase.name,
    nccl: oracleCase.file.nccl,
    outcomes: new Map(wanted.map((section) => [section.name, outcomeOf(section, oracleCase)])),
  };
}

function outcomeOf(section: Section, oracleCase: OracleCase): Outcome {
  const { compare, failsIn = [] } = section;
  const { expectedError } = oracleCase;
  if (expectedError !== undefined && !failsIn.some((call) => expectedError.call.startsWith(call))) return { kind: 'skipped' };
  if (expectedError === undefined && oracleCase.file.omitted.includes(section.name)) return { kind: 'skipped' };

  try {
    const difference = compare(oracleCase);
    if (expectedError !== undefined) {
      return {
        kind: 'failed',
        difference: `NCCL fails in ${expectedError.call} with ${expectedError.ncclResult}; here nothing fails`,
      };
    }
    return difference === undefined ? { kind: 'passed' } : { kind: 'failed', difference: describeDifference(difference) };
  } catch (error) {
    if (error instanceof TcclError && error.ncclResult === expectedError?.ncclResult) return { kind: 'passed' };
    return { kind: 'failed', difference: messageOf(error) };
  }
}

function messageOf(error: unknown): string {
  if (error instanceof TcclError) return `fails with ${error.name} (${error.ncclResult}): ${error.message}`;
  return `fails with ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
