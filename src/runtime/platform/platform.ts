import { platform } from './node.js';

/** Functions of the platform, each a constant: a loop that polls calls it directly. */
export const { clockMs, hostClockNs, wallClockMs } = platform;
