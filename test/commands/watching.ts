import { vi } from 'vitest';
import { watchJobs, type WatchOptions } from '../../src/cli/watch/show.js';
import { TcclError } from '../../src/errors.js';

let shown = '';

/** The output of the last `watch` so far. */
export function shownSoFar(): string {
  return shown;
}

/** `tccl watch` with reports as fast as they come, which the command line does not allow. */
export async function watch(
  targets: readonly string[],
  options: Partial<WatchOptions> = {},
): Promise<{ readonly code: number; readonly stdout: string }> {
  shown = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((piece) => {
    shown += String(piece);
    return true;
  });
  try {
    const code = await watchJobs(targets, { every: 20, samples: 2, stuckAfter: 1, timeout: 5000, ...options });
    return { code, stdout: shown };
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    return { code: 2, stdout: error.message };
  } finally {
    spy.mockRestore();
  }
}
