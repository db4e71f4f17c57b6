import { randomBytes, randomInt } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { connect, createServer } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Platform } from '../interface.js';

export { isIP, isIPv6 } from 'node:net';

/** Node.js. Bun and Deno have the same modules. */
export const platform: Platform = {
  clockMs: () => performance.now(),
  wallClockMs: () => Date.now(),
  hostClockNs: () => process.hrtime.bigint(),
  // Looked up at each call: tests put clocks of their own in the place of the global ones.
  setTimeout: (action, ms) => setTimeout(action, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  setInterval: (action, ms) => setInterval(action, ms),
  clearInterval: (timer) => clearInterval(timer as NodeJS.Timeout | undefined),
  setImmediate: (action) => void setImmediate(action),
  sleep: (ms, { signal, ref = true } = {}) =>
    sleep(ms, undefined, { ref, ...(signal === undefined ? {} : { signal }) }).catch((error: unknown) => {
      throw signal?.reason ?? error;
    }),
  random: () => Math.random(),
  randomBytes,
  randomInt: (from, end) => randomInt(from, end),
  connect: (options) => connect(options),
  createServer: (options, onConnection) => createServer(options ?? {}, onConnection),
  networkInterfaces,
  hostname,
  lookup: (name) => lookup(name, { all: true }),
};
