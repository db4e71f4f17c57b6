import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import type { OracleInput } from '../../src/planner/plan/oracle/oracle-case.js';

/** Where the cases are; tests that need them are skipped where they are not. */
export const casesFolder = process.env['TCCL_ORACLE_DIR'] ?? fileURLToPath(new URL('../../../shared/oracle/cases', import.meta.url));

/** All cases of the oracle, or none. */
export function oracleCases(): OracleInput[] {
  return existsSync(casesFolder) ? casesOf(casesFolder) : [];
}

/** The cases of a folder, in order of their names. */
export function casesOf(parent: string): OracleInput[] {
  return readdirSync(parent).filter((name) => existsSync(join(parent, name, 'case.json'))).sort().map((name) => {
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
