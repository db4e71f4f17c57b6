import { readFileSync, realpathSync } from '#platform/files';
import { join, relative, sep } from '#platform/paths';
import type { MachineFiles } from '../../planner/topology/detect/machine-files.js';
import { namesIn } from '../proc.js';

/** Files of /sys and /proc are short; longer ones are ignored. */
const LONGEST = 1 << 20;

/**
 * Reads the files below `root` as those of a machine: `/` is the running one, another folder a captured one. Links that lead
 * out of the folder are treated as missing.
 */
export function filesOfMachine(root = '/'): MachineFiles {
  const base = realpathOrUndefined(root) ?? root;
  return {
    readText(path) {
      try {
        return readFileSync(join(base, path)).subarray(0, LONGEST).toString('utf8').replace(/\n$/, '');
      } catch {
        // Unreadable files count as missing: /sys has files that only root may read, and some that fail.
        return undefined;
      }
    },
    list: (path) => namesIn(join(base, path)).sort(),
    resolve(path) {
      const real = realpathOrUndefined(join(base, path));
      if (real === undefined) return undefined;
      const inside = relative(base, real);
      return inside.startsWith('..') ? undefined : `/${inside.split(sep).join('/')}`;
    },
  };
}

function realpathOrUndefined(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
