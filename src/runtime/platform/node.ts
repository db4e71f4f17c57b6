import type { Platform } from './interface.js';

/** Node.js. Bun and Deno have the same modules. */
export const platform: Platform = {
  clockMs: () => performance.now(),
  wallClockMs: () => Date.now(),
  hostClockNs: () => process.hrtime.bigint(),
};
