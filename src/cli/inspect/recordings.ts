import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeError, SystemError } from '../../errors.js';
import type { InspectedRank } from './host-report.js';

/** Writes a file for each rank that shows its calls. Returns their paths. @throws SystemError `FILE` */
export function writeRecordings(folder: string, ranks: readonly InspectedRank[]): string[] {
  try {
    mkdirSync(folder, { recursive: true });
    return ranks.flatMap(({ rank, recording }) => {
      if (recording === undefined) return [];
      const path = join(folder, `rank_${rank}.json`);
      writeFileSync(path, JSON.stringify(recording));
      return [path];
    });
  } catch (cause) {
    throw new SystemError('FILE', `the calls of ranks cannot be written: ${describeError(cause)}`, { file: folder, cause });
  }
}
