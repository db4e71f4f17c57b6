import { createRequire } from 'node:module';
import type { Platform, Timer } from '../../src/runtime/platform/interface.js';
import { kernels, type RankGlobals } from './code.js';
import type { VirtualNetwork } from './network.js';
import type { Scheduled, World } from './world.js';

const nodeRequire = createRequire(import.meta.url);
/** Virtual ranks need no more addresses for their memory, in pages. */
const MOST_PAGES = 1024;
/** Time of a turn of the event loop. */
const TURN_MS = 0.02;

/** A machine with Node.js, with no library but Node's own, for one rank. */
export function machineOf(world: World, network: VirtualNetwork, rank: number, nRanks: number): RankGlobals {
  return {
    platform: platformOf(world, network, rank),
    process: processOf(world, rank),
    require: requireOf(world, network, rank, nRanks),
    WebAssembly: webAssembly,
    Atomics: atomics,
    FinalizationRegistry: NeverCollected,
  };
}

function platformOf(world: World, network: VirtualNetwork, rank: number): Platform {
  const later = (ms: number, action: () => void): Scheduled => world.after(ms, rank, action);
  const timer = (scheduled: Scheduled): Timer & Scheduled => ({
    cancel: () => scheduled.cancel(),
    unref() {
      return this;
    },
  });
  const cancel = (one: Timer | undefined): void => (one as (Timer & Scheduled) | undefined)?.cancel();
  return {
    clockMs: () => world.nowMs,
    wallClockMs: () => 1_700_000_000_000 + world.nowMs,
    hostClockNs: () => BigInt(Math.round(world.nowMs * 1e6)),
    setTimeout: (action, ms = 1) => timer(later(Math.max(1, ms), action)),
    clearTimeout: cancel,
    setInterval: (action, ms) => {
      let next: Scheduled;
      const again = (): void => {
        next = later(Math.max(1, ms), again);
        action();
      };
      next = later(Math.max(1, ms), again);
      return timer({ cancel: () => next.cancel() });
    },
    clearInterval: cancel,
    setImmediate: (action) => void later(TURN_MS * world.random.next(), action),
    sleep: (ms, { signal } = {}) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted === true) {
          reject(signal.reason as Error);
          return;
        }
        const stop = (): void => {
          wait.cancel();
          reject(signal?.reason as Error);
        };
        const wait = later(ms, () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        });
        signal?.addEventListener('abort', stop);
      }),
    random: () => world.random.next(),
    randomBytes: (bytes) => Buffer.from(Array.from({ length: bytes }, () => world.random.integer(0, 256))),
    randomInt: (from, end) => world.random.integer(from, end),
    connect: (options) => network.connect(rank, options as never) as never,
    createServer: (_, onConnection) => network.createServer(rank, onConnection as never) as never,
    networkInterfaces: () => ({
      eth0: [
        {
          address: network.addressOf(rank),
          netmask: '255.255.255.0',
          family: 'IPv4',
          mac: '00:00:00:00:00:00',
          internal: false,
          cidr: `${network.addressOf(rank)}/24`,
        },
      ],
    }),
    hostname: () => `host${rank}`,
    lookup: (name) => Promise.reject(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' })),
  };
}

function processOf(world: World, rank: number): object {
  return {
    pid: 1000 + rank,
    env: {},
    platform: 'linux',
    arch: 'x64',
    version: 'v20.0.0',
    versions: { node: '20.0.0' },
    execPath: '/usr/bin/node',
    execArgv: [],
    argv: [],
    exitCode: undefined,
    cwd: () => '/',
    on: () => undefined,
    removeListener: () => undefined,
    stderr: { write: (text: string) => world.note(rank, `says ${text.trim()}`) },
    stdout: { write: (text: string) => world.note(rank, `prints ${text.trim()}`) },
    nextTick: (action: () => void) => queueMicrotask(action),
    emitWarning: (text: string) => world.note(rank, `warns ${text}`),
  };
}

/** Modules of Node that a rank may reach, without files, threads and libraries. */
function requireOf(world: World, network: VirtualNetwork, rank: number, nRanks: number): (name: string) => unknown {
  const none = (path: string): never => {
    throw Object.assign(new Error(`ENOENT: no such file or directory, open '${path}'`), { code: 'ENOENT' });
  };
  const files = {
    readFileSync: (path: string) => (path === '/proc/self/net/tcp' ? network.tableOf(rank) : none(path)),
    readdirSync: none,
    readlinkSync: none,
    existsSync: () => false,
    statSync: none,
    fstatSync: none,
    openSync: () => 100,
    closeSync: () => undefined,
    writeSync: (_: number, text: string) => world.note(rank, `says ${text.trim()}`),
    writeFileSync: none,
    constants: {},
  };
  const modules: Readonly<Record<string, unknown>> = {
    'node:fs': files,
    'node:process': processOf(world, rank),
    'node:module': { createRequire: () => none },
    'node:worker_threads': {
      ...(nodeRequire('node:worker_threads') as object),
      isMainThread: true,
      threadId: 0,
      workerData: null,
    },
    'node:os': { ...(nodeRequire('node:os') as object), availableParallelism: () => nRanks, cpus: () => [] },
  };
  // Modules say `import x from 'node:…'` of some.
  return (name) => modules[name] ?? (nodeRequire(name) as unknown);
}

const webAssembly = {
  Module: function () {
    return kernels;
  },
  Instance: WebAssembly.Instance,
  Memory: function ({ shared, initial, maximum }: { shared: boolean; initial: number; maximum: number }) {
    const pages = Math.min(initial, MOST_PAGES);
    return new WebAssembly.Memory({ shared, initial: pages, maximum: Math.min(maximum, MOST_PAGES) });
  },
};

/** Waits return at once: only one rank runs at a time, so nothing changes meanwhile. */
const atomics = Object.create(Atomics, { wait: { value: () => 'timed-out' } }) as object;

/** Registry without callbacks: no seed decides when garbage is collected. */
class NeverCollected {
  register(): void {
    // Nothing is ever collected.
  }

  unregister(): void {
    // Nothing was registered.
  }
}
