import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runOracleCase, sectionNames } from '../../../../src/planner/plan/oracle/run-oracle.js';
import { comparedVersions, defaultVersion } from '../../../../src/planner/versions/version.js';

/** Three recorded answers of each version; test/oracle has about a hundred where they are at hand. */
const folder = 'test/unit/fixtures/versions';

describe('plans are what NCCL answered', () => {
  it.each(comparedVersions.filter((version) => version !== defaultVersion))('%s', (version) => {
    for (const name of readdirSync(join(folder, version))) {
      const read = (file: string) => readFileSync(join(folder, version, name, file), 'utf8');
      const files = new Map([['topo.xml', read('topo.xml')]]);
      const { outcomes } = runOracleCase(
        { name, case: JSON.parse(read('case.json')), expected: JSON.parse(read('expected.json')), files },
        sectionNames,
      );
      expect(
        [...outcomes].filter(([, { kind }]) => kind === 'failed'),
        name,
      ).toEqual([]);
    }
  });
});
