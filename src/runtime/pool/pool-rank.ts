/** A rank of a pool: the module of its thread. It loads the user's module, joins the others, and runs jobs. */
import { process } from '#platform/process';
import { parentPort, workerData } from '#platform/threads';
import { init } from '../init/init.js';
import { PoolJobs } from '../init/pool-jobs.js';
import type { PoolRankData, ToPoolRank } from './pool-messages.js';
import { serveJobs } from './serve-jobs.js';
import { setTimeout } from '../platform/platform.js';

const { port, module, graceMs } = workerData as PoolRankData;
const exported = (await import(/* webpackIgnore: true */ /* @vite-ignore */ module)) as Readonly<Record<string, unknown>>;
const jobs = new PoolJobs();
await serveJobs({
  exported,
  jobs,
  world: await init(),
  send: (message) => port.postMessage(message),
  receive: (listener) => port.on('message', (message: ToPoolRank) => listener(message)),
  end() {
    port.close();
    parentPort?.unref();
    setTimeout(() => process.exit(0), graceMs).unref();
  },
});
