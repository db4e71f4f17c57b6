import { platform } from './node.js';

/** Functions of the platform, each a constant: a loop that polls calls it directly. */
export const { clearInterval, clearTimeout, clockMs, hostClockNs, setImmediate, setInterval, setTimeout, sleep, wallClockMs } =
  platform;
export type { Timer } from './interface.js';
