import { process } from '#platform/process';
import { isMainThread, Worker } from '#platform/threads';
import type { SegmentInThread } from '../device/segment.js';
import type { Team } from '../device/team.js';
import { SystemError } from '../../errors.js';
import { bundleAdvice } from '../launch/bundle-advice.js';
import { startWithFlags } from '../launch/worker-flags.js';
import { onExit } from '../exit.js';
import { graceMs } from '../failure/grace.js';
import { ownModule } from '../../own-module.js';
import { DIE, engineThreadBuffer, EngineThreadMemory } from './engine-thread-memory.js';

/** Memory that an engine thread gets from its rank. */
export interface EngineThreadData {
  readonly segment: SegmentInThread;
  readonly buffer: SharedArrayBuffer;
}

type Module = 'direct-thread.js' | 'network-thread.js';

/**
 * By major version, the first minor version of Node.js in which a thread may end while the thread that started it exits: earlier
 * ones abort the process (nodejs/node#56191).
 */
const MAY_END_BESIDE_EXIT: Readonly<Record<number, number>> = { 20: 19, 21: Infinity, 22: 13, 23: 5 };

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
    if (!isMainThread && mayEndBesideExit()) endIdle(memory, code);
  });
  worker.once('exit', () => {
    stopExit();
    team.segment.parkedRanks.giveBack(segment.line);
  });
  return { memory, worker };
}

/**
 * Lets the engine thread of a rank that is a thread itself end before it, unless a call is under way: a thread that is terminated
 * leaves its pipe and its epoll instance to the process.
 */
function endIdle(memory: EngineThreadMemory, exitCode: number): void {
  if (exitCode !== 0 && memory.isDone(0) && memory.reason() === undefined) memory.end(DIE);
  memory.waitUntilEnded(graceMs.idleThread);
}

function mayEndBesideExit(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return minor >= (MAY_END_BESIDE_EXIT[major] ?? 0);
}

/** Error of an engine thread that did not start. */
export function notStarted(cause: Error, module: Module): SystemError {
  return new SystemError('LAUNCH', `an engine thread cannot be started: ${cause.message}${bundleAdvice(cause, module)}`, {
    cause,
  });
}
