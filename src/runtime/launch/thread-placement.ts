import { getEnvironmentData, isMainThread, setEnvironmentData, Worker, type WorkerOptions } from '#platform/threads';
import type { Placement } from './placement.js';

/** Placement of a thread that spawnThreads() started. */
export interface ThreadPlacement extends Placement {
  /** Memory shared by all ranks, if they were given one. */
  readonly memory?: WebAssembly.Memory;
}

/** Key of the environment data with a thread's placement. It is not in `workerData`, which belongs to the user. */
const KEY = 'tccl:place';

let place: ThreadPlacement | undefined;

/** The placement of this thread, or undefined when spawnThreads() did not start it. */
export function threadPlacement(): ThreadPlacement | undefined {
  if (isMainThread) return undefined;
  const given = getEnvironmentData(KEY) as ThreadPlacement | undefined;
  if (given !== undefined) {
    place = given;
    // Threads inherit environment data; a thread that this rank starts is not this rank.
    setEnvironmentData(KEY, undefined);
  }
  return place;
}

/** Starts a thread with the placement `given`. */
export function startThreadAt(given: ThreadPlacement, module: string | URL, options: WorkerOptions): Worker {
  const own = getEnvironmentData(KEY);
  // Copied into the new thread before the constructor returns.
  setEnvironmentData(KEY, { ...given });
  try {
    return new Worker(module, options);
  } finally {
    setEnvironmentData(KEY, own);
  }
}
