import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { OracleInput } from '../../testing/oracle/oracle-case.js';
import { caseFolders, readCase } from '../../testing/oracle/read-cases.js';

/**
 * The cases in the repository, chosen by what they execute of the planner (testing/oracle/choose-corpus.ts), and all others
 * where they are there.
 */
const corpus = fileURLToPath(new URL('../../testing/corpus/oracle', import.meta.url));
const all = process.env['TCCL_ORACLE_DIR'] ?? fileURLToPath(new URL('../../../shared/oracle/cases', import.meta.url));

/** Folders of cases. */
export const oracleFolders: readonly string[] = [corpus, all].filter(existsSync);

/** All cases, each once. */
export function oracleCases(): OracleInput[] {
  const inputs = oracleFolders.flatMap((parent) => caseFolders(parent).map(readCase));
  return [...new Map(inputs.map((input) => [input.name, input])).values()];
}
