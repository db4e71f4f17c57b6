import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { caseFolders, readCase } from '../../../../testing/oracle/read-cases.js';
import { runOracleCase, sectionNames } from '../../../../testing/oracle/run-oracle.js';
import { comparedVersions, defaultVersion } from '../../../../src/planner/versions/version.js';

/** Three recorded answers of each version; test/oracle has about a hundred where they are at hand. */
const folder = 'test/unit/fixtures/versions';

describe('plans are what NCCL answered', () => {
  it.each(comparedVersions.filter((version) => version !== defaultVersion))('%s', (version) => {
    for (const path of caseFolders(join(folder, version))) {
      const { name, outcomes } = runOracleCase(readCase(path), sectionNames);
      expect(
        [...outcomes].filter(([, { kind }]) => kind === 'failed'),
        name,
      ).toEqual([]);
    }
  });
});
