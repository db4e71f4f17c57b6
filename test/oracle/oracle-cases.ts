import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { OracleInput } from '../../testing/oracle/oracle-case.js';
import { caseFolders, readCase } from '../../testing/oracle/read-cases.js';
import { isThorough } from '../runs.js';

/**
 * The cases in the repository, chosen by the code of the planner that they execute (testing/oracle/choose-corpus.ts).
 * `npm run test:all` adds all others where they exist, as does TCCL_ORACLE_DIR.
 */
const corpus = fileURLToPath(new URL('../../testing/corpus/oracle', import.meta.url));
const shared = fileURLToPath(new URL('../../../shared/oracle/cases', import.meta.url));
const others = process.env['TCCL_ORACLE_DIR'] ?? (isThorough ? shared : undefined);

/** Folders of cases. */
export const oracleFolders: readonly string[] = [corpus, ...(others === undefined ? [] : [others])].filter(existsSync);

/** All cases, each once. */
export function oracleCases(): OracleInput[] {
  const inputs = oracleFolders.flatMap((parent) => caseFolders(parent).map(readCase));
  return [...new Map(inputs.map((input) => [input.name, input])).values()];
}
