export {
  MessageChannel,
  Worker,
  getEnvironmentData,
  isMainThread,
  parentPort,
  setEnvironmentData,
  threadId,
  workerData,
} from 'node:worker_threads';
export type { MessagePort, Transferable, WorkerOptions } from 'node:worker_threads';
