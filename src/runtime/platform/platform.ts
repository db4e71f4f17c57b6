import { platform } from '#platform/platform';

export { isIP, isIPv6 } from '#platform/platform';
export type { AddressInfo, Server, Socket, Timer } from './interface.js';

/** Functions of the platform, each a constant: a loop that polls calls it directly. */
export const {
  clearInterval,
  clearTimeout,
  clockMs,
  connect,
  createServer,
  hostClockNs,
  hostname,
  lookup,
  networkInterfaces,
  random,
  randomBytes,
  randomInt,
  setImmediate,
  setInterval,
  setTimeout,
  sleep,
  wallClockMs,
} = platform;
