import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { comparedVersions, defaultVersion } from '../../src/planner/versions/version.js';
import { caseFolders, readCase } from '../../testing/oracle/read-cases.js';
import { runOracleCase, sectionNames } from '../../testing/oracle/run-oracle.js';
import { isThorough } from '../runs.js';

/** Recorded answers of other versions of NCCL, a folder of cases each; oracle-cases.ts selects those that run. */
const corpus = fileURLToPath(new URL('../../testing/corpus/versions', import.meta.url));
const shared = fileURLToPath(new URL('../../../shared/oracle-versions/cases', import.meta.url));
const others = process.env['TCCL_ORACLE_VERSIONS_DIR'] ?? (isThorough ? shared : undefined);
const parents = [corpus, ...(others === undefined ? [] : [others])].filter(existsSync);

/**
 * Versions whose cases were recorded from sources put together by hand: the branch before the release, with the files of the
 * release that could be read. The planner equals them, but does not claim to equal the release.
 */
const reconstructed: readonly string[] = ['2.31.2'];

describe.each(parents)('plans are as recorded of other versions of NCCL (cases in %s)', (parent) => {
  const versions: readonly string[] = [...comparedVersions, ...reconstructed];
  it.each(readdirSync(parent).filter((version) => version !== defaultVersion && versions.includes(version)))('%s', (version) => {
    const results = caseFolders(join(parent, version)).map((folder) => runOracleCase(readCase(folder), sectionNames));
    const failures = results.flatMap(({ name, outcomes }) =>
      [...outcomes].flatMap(([section, outcome]) =>
        outcome.kind === 'failed' ? [`${name} ${section}: ${outcome.difference}`] : [],
      ),
    );
    expect(failures).toEqual([]);
    expect(results.length).toBeGreaterThan(0);
  });
});

it('the repository has cases of every version that is compared', () => {
  const released = comparedVersions.filter((version) => version !== defaultVersion);
  expect(readdirSync(corpus).sort()).toEqual([...released, ...reconstructed].sort());
});
