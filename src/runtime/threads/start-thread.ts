import { isMainThread, Worker } from '#platform/threads';
import type { SegmentInThread } from '../device/segment.js';
import type { Team } from '../device/team.js';
import { SystemError } from '../../errors.js';
import { bundleAdvice } from '../launch/bundle-advice.js';
import { startWithFlags } from '../launch/worker-flags.js';
import { onExit } from '../exit.js';
import { graceMs } from '../failure/grace.js';
import { ownModule } from '../../own-module.js';
import { engineThreadBuffer, EngineThreadMemory } from './engine-thread-memory.js';

/** Memory that an engine thread gets from its rank. */
export interface EngineThreadData {
  readonly segment: SegmentInThread;
  readonly buffer: SharedArrayBuffer;
}

type Module = 'direct-thread.js' | 'network-thread.js';

/**
 * Starts an engine thread, which may allocate `bytes` bytes in the segment of its rank.
 * @throws SystemError `OUT_OF_MEMORY`
 */
export function startEngineThread<Data extends EngineThreadData>(
  module: Module,
  name: string,
  team: Team,
  nRanks: number,
  bytes: number,
  data: Omit<Data, keyof EngineThreadData>,
): { readonly memory: EngineThreadMemory; readonly worker: Worker } {
  const memory = new EngineThreadMemory(engineThreadBuffer(nRanks));
  const from = team.allocateBytes(bytes);
  const segment = team.segment.forThread(from, from + bytes);
  const workerData = { ...data, segment, buffer: memory.buffer };
  const worker = startWithFlags((execArgv) => new Worker(ownModule(`runtime/threads/${module}`), { workerData, execArgv, name }));
  const stopExit = onExit((code) => {
    if (isMainThread) return;
    // A thread that is terminated leaves its pipe and its epoll instance to the process.
    memory.rankEnds(code !== 0);
    team.segment.parkedRanks.wake();
    memory.waitUntilEnded(graceMs.engineThreadEnds);
  });
  worker.once('exit', () => {
    stopExit();
    team.segment.parkedRanks.giveBack(segment.line);
  });
  return { memory, worker };
}

/** Error of an engine thread that did not start. */
export function notStarted(cause: Error, module: Module): SystemError {
  return new SystemError('LAUNCH', `an engine thread cannot be started: ${cause.message}${bundleAdvice(cause, module)}`, {
    cause,
  });
}
