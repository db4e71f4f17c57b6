import { markDead } from '../device/rank-lines.js';
import { spawnThreads, type SpawnedRanks, type SpawnRanksOptions } from '../launch/spawn-threads.js';
import { ofCall, TcclError } from '../../errors.js';
import { withCallerFrames } from '../caller-stack.js';
import { threadMemory } from './thread-memory.js';
import { checkOptionNames } from '../../option-names.js';
import type { PlatformURL } from '../platform/declarations.js';

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
 * Runs ranks as threads of this process, each on `module`, and resolves when all have ended without error. Ranks run the same
 * code as in processes: init() finds their placement. Unlike processes, threads share memory without FFI, and share one process's
 * limits and crashes.
 *
 * The promise has a port to each rank: `ranks[1].postMessage(value, transferList)`; `onMessage` receives what ranks send.
 *
 * @param module a path (relative ones to the working directory), a `file:` URL, or its text as `import.meta.resolve` returns it
 * @throws InvalidArgumentError `ARGUMENT_RANGE`, `ARGUMENT_TYPE`, `UNKNOWN_NAME` before anything runs; SystemError
 *   `OUT_OF_MEMORY`, `NETWORK`; RemoteError `RANK_DIED` when a rank threw or exited with a code other than 0: `rank` is its
 *   number, `cause` its error with its own stack; the other threads have ended by then (terminated after `graceMs`)
 *
 * @example
 * await spawnRanks(4, new URL('./rank.js', import.meta.url), { args: ['--epochs', '3'] });
 */
export function spawnRanks(nRanks: number, module: string | PlatformURL, options: SpawnRanksOptions = {}): SpawnedRanks {
  try {
    checkOptionNames('spawnRanks', options, optionNames, "{ args: ['--epochs', '3'] }");
    const { memory, end } = threadMemory(nRanks);
    const onEnd = (rank: number): void => markDead(memory, rank);
    const ended = spawnThreads(nRanks, module, { ...options, call: 'spawnRanks', memory, onEnd });
    return Object.assign(withCallerFrames(ended.finally(end)), { ranks: ended.ranks });
  } catch (error) {
    const named = error instanceof TcclError ? ofCall(error, 'spawnRanks') : error;
    return Object.assign(withCallerFrames(Promise.reject(named)), { ranks: [] });
  }
}
