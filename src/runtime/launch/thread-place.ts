import { getEnvironmentData, isMainThread, setEnvironmentData, Worker, type WorkerOptions } from 'node:worker_threads';
import type { Placement } from './place.js';

/** A thread's place among the ranks that spawnThreads() started. */
export interface ThreadPlacement extends Placement {
  /** The memory that all of them share, where they were given one. */
  readonly memory?: WebAssembly.Memory;
}

/** Under this name a thread finds its place. It is no part of `workerData`, which is the user's. */
const KEY = 'tccl:place';

let place: ThreadPlacement | undefined;

/** This thread's place among the ranks, or undefined when spawnThreads() did not start it. */
export function threadPlace(): ThreadPlacement | undefined {
  if (isMainThread) return undefined;
  const given = getEnvironmentData(KEY) as ThreadPlacement | undefined;
  if (given !== undefined) {
    place = given;
    // Threads inherit such data: one that this rank starts is not this rank.
    setEnvironmentData(KEY, undefined);
  }
  return place;
}

/** Starts a thread that finds `given` as its place. */
export function startThreadAt(given: ThreadPlacement, module: string | URL, options: WorkerOptions): Worker {
  const own = getEnvironmentData(KEY);
  // Copied into the new thread before its constructor returns.
  setEnvironmentData(KEY, { ...given });
  try {
    return new Worker(module, options);
  } finally {
    setEnvironmentData(KEY, own);
  }
}
