import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { caseFolders, readCase } from '../../testing/oracle/read-cases.js';
import { runOracleCase, sectionNames } from '../../testing/oracle/run-oracle.js';
import { comparedVersions, defaultVersion } from '../../src/planner/versions/version.js';

/** Recorded answers of other versions: a folder of cases each. */
const versionsFolder =
  process.env['TCCL_ORACLE_VERSIONS_DIR'] ?? fileURLToPath(new URL('../../../shared/oracle-versions/cases', import.meta.url));
const recorded = existsSync(versionsFolder)
  ? readdirSync(versionsFolder).filter(
      (version) => version !== defaultVersion && (comparedVersions as readonly string[]).includes(version),
    )
  : [];

describe.skipIf(recorded.length === 0)(`plans are what other versions of NCCL answered (cases in ${versionsFolder})`, () => {
  it.each(recorded)('%s', (version) => {
    const results = caseFolders(join(versionsFolder, version)).map((folder) => runOracleCase(readCase(folder), sectionNames));
    const failures = results.flatMap(({ name, outcomes }) =>
      [...outcomes].flatMap(([section, outcome]) =>
        outcome.kind === 'failed' ? [`${name} ${section}: ${outcome.difference}`] : [],
      ),
    );
    expect(failures).toEqual([]);
    expect(results.length).toBeGreaterThan(0);
  });
});
