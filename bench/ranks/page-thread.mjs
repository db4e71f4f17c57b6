import { parentPort, workerData } from 'node:worker_threads';
import { init } from 'tccl';
import { times } from './page.mjs';

const comm = await init();
const { sizes, seconds } = workerData;
const found = times(comm, sizes, seconds);
if (comm.rank === 0) parentPort?.postMessage(found);
await comm.close();
