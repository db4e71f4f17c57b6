import { PoolJobs } from '../init/pool-jobs.js';
import type { FromPoolRank, ToPoolRank } from '../pool/pool-messages.js';
import { serveJobs } from '../pool/serve-jobs.js';
import { init } from './init.js';
import { placeOfPool } from './place.js';

/**
 * Makes this worker a rank of the pool that started it: it runs these functions for `pool.run` and `pool.map`. Resolves when all
 * ranks have joined.
 *
 * @throws as init(); InvalidUsageError `RANK_UNKNOWN` in a worker that no pool started
 */
export async function servePool(functions: Readonly<Record<string, (...args: never) => unknown>>): Promise<void> {
  const { jobs: port, ...place } = await placeOfPool();
  const world = await init();
  await serveJobs({
    exported: functions,
    jobs: new PoolJobs(place),
    world,
    send: (message: FromPoolRank) => port.postMessage(message),
    receive: (listener) => {
      port.onmessage = ({ data }) => listener(data as ToPoolRank);
    },
    end: () => port.close(),
  });
}
