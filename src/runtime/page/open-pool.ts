import { checkOptionNames } from '../../option-names.js';
import { withCallerFrames } from '../caller-stack.js';
import type { Pool, PoolFunction } from '../pool/open-pool.js';
import { ThreadPool, type PoolPort } from '../pool/thread-pool.js';
import type { PageModule, PageSpawnOptions } from './options.js';
import { makeChannel, type Port } from './port-connection.js';
import { Workers } from './spawn.js';

/** Options of openPool() in a page. */
export interface PagePoolOptions extends PageSpawnOptions {
  /** Number of ranks. */
  readonly ranks: number;
  /** Module of the ranks, which gives its functions to servePool(). */
  readonly module: PageModule;
}

const optionNames = Object.keys({
  ranks: true,
  module: true,
  env: true,
  onMessage: true,
  graceMs: true,
  signal: true,
} satisfies Record<keyof PagePoolOptions, true>);

/**
 * Starts ranks as workers of this page that load `module` once and then run its functions repeatedly.
 *
 * @throws as spawnRanks()
 *
 * @example
 * const pool = await openPool({ ranks: 4, module: () => new Worker(new URL('./job.js', import.meta.url), { type: 'module' }) });
 * const losses = await pool.run('train', { epochs: 3 });   // job.js: servePool({ async train(comm, { epochs }) { … } })
 * await pool.close();
 */
export function openPool<Module = Readonly<Record<string, PoolFunction>>>(options: PagePoolOptions): Promise<Pool<Module>> {
  return withCallerFrames(startPool(options) as Promise<unknown> as Promise<Pool<Module>>);
}

async function startPool(options: PagePoolOptions): Promise<ThreadPool> {
  checkOptionNames('openPool', options, optionNames, '{ ranks: 4, module: () => new Worker(…) }');
  const { ranks: nRanks, module, ...others } = options;
  const channels: ReturnType<typeof makeChannel>[] = [];
  const workers = new Workers('openPool', nRanks, module, others, {
    jobs: (rank) => (channels[rank] = makeChannel()).port2,
    mayEnd: () => pool.isClosing,
  });
  const ranks = workers.ports.map((port) => ({ ...port, keepAlive: () => undefined }));
  const pool: ThreadPool = new ThreadPool(
    Object.assign(workers.ended, { ranks }),
    channels.map(({ port1 }) => poolPort(port1)),
  );
  await pool.ready();
  return pool;
}

/** A port of a browser with the methods of Node's. A page needs nothing to stay alive. */
function poolPort(port: Port): PoolPort {
  return {
    on(event: 'message' | 'messageerror', listener: (message: never) => void) {
      if (event === 'message') port.onmessage = ({ data }) => listener(data as never);
    },
    postMessage: (message) => port.postMessage(message),
    close: () => port.close(),
    ref: () => undefined,
    unref: () => undefined,
  };
}
