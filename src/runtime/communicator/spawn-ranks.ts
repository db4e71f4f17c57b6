import { markDead } from '../device/rank-lines.js';
import { createMemory } from '../device/shared-memory.js';
import { spawnThreads, type SpawnRanksOptions } from '../launch/spawn-threads.js';
import { checkOptionNames } from '../../option-names.js';
import type { PlatformURL } from '../platform.js';

const optionNames = Object.keys({
  args: true,
  env: true,
  workerData: true,
  execArgv: true,
  onMessage: true,
  graceMs: true,
  signal: true,
} satisfies Record<keyof SpawnRanksOptions, true>);

/**
 * Runs ranks as threads of this process, each on `module`, and resolves when all have ended well. The code of a rank
 * is that of a process: init() finds its place. Threads share memory where processes need FFI for it; they also share
 * one process's limits and fate.
 *
 * @param module a path (relative ones to the working directory) or a `file:` URL, or its text as `import.meta.resolve` gives it
 * @throws InvalidArgumentError `ARGUMENT_RANGE`, `ARGUMENT_TYPE`, `UNKNOWN_NAME` before anything runs; RemoteError
 *   `RANK_DIED` when a
 *   rank threw or exited with another code than 0: `rank` says which, `cause` is its error with its own stack, and the
 *   other threads have ended (after `graceMs` they were terminated); SystemError `OUT_OF_MEMORY`, `NETWORK`
 *
 * @example
 * await spawnRanks(4, new URL('./rank.js', import.meta.url), { args: ['--epochs', '3'] });
 */
export async function spawnRanks(nRanks: number, module: string | PlatformURL, options: SpawnRanksOptions = {}): Promise<void> {
  checkOptionNames('spawnRanks', options, optionNames, "{ args: ['--epochs', '3'] }");
  const memory = createMemory();
  await spawnThreads(nRanks, module, { ...options, memory, onEnd: (rank) => markDead(memory, rank) });
}
