import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import type { OracleInput } from '../../src/planner/plan/oracle/oracle-case.js';

/**
 * The cases in the repository, chosen by what they execute of the planner (scripts/choose-corpus.mjs), and all others
 * where they are there.
 */
const corpus = fileURLToPath(new URL('../../testing/corpus/oracle', import.meta.url));
const all = process.env['TCCL_ORACLE_DIR'] ?? fileURLToPath(new URL('../../../shared/oracle/cases', import.meta.url));

/** Folders of cases. */
export const oracleFolders: readonly string[] = [corpus, all].filter(existsSync);

/** All cases, each once. */
export function oracleCases(): OracleInput[] {
  return [...new Map(oracleFolders.flatMap(casesOf).map((input) => [input.name, input])).values()];
}

/** The cases of a folder, in order of their names. */
export function casesOf(parent: string): OracleInput[] {
  return readdirSync(parent)
    .filter((name) => existsSync(join(parent, name, 'case.json')))
    .sort()
    .map((name) => {
      const folder = join(parent, name);
      const json = (file: string): unknown => JSON.parse(readFileSync(join(folder, file), 'utf8'));
      const xmlFiles = readdirSync(folder).filter((file) => file.endsWith('.xml'));
      return {
        name,
        case: json('case.json'),
        expected: json('expected.json'),
        files: new Map(xmlFiles.map((file) => [file, readFileSync(join(folder, file), 'utf8')])),
      };
    });
}
