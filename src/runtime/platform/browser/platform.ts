import type { Platform, Timer } from '../interface.js';
import { absent } from './absent.js';

export const isIP = (): number => 0;
export const isIPv6 = (): boolean => false;

/** A timer of a page, which has no process to keep alive. */
class PageTimer implements Timer {
  constructor(readonly id: number) {}

  unref(): this {
    return this;
  }
}

type Set = (action: () => void, ms?: number) => number;
type Clear = (id: number | undefined) => void;
// Looked up at each call, as in Node.js: tests put clocks of their own in the place of the global ones.
const timers = globalThis as unknown as { setTimeout: Set; setInterval: Set; clearTimeout: Clear; clearInterval: Clear };

const turns: (() => void)[] = [];
const channel = new MessageChannel();
(channel.port1 as unknown as { onmessage: () => void }).onmessage = () => {
  // Those that these actions add run in the next turn.
  for (const action of turns.splice(0)) action();
};

/** A page, or a worker of one. */
export const platform: Platform = {
  clockMs: () => performance.now(),
  wallClockMs: () => performance.timeOrigin + performance.now(),
  // The time origins of workers differ.
  hostClockNs: () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6)),
  setTimeout: (action, ms) => new PageTimer(timers.setTimeout(action, ms)),
  clearTimeout: (timer) => timers.clearTimeout((timer as PageTimer | undefined)?.id),
  setInterval: (action, ms) => new PageTimer(timers.setInterval(action, ms)),
  clearInterval: (timer) => timers.clearInterval((timer as PageTimer | undefined)?.id),
  setImmediate: (action) => {
    if (turns.push(action) === 1) channel.port2.postMessage(0);
  },
  sleep: (ms, { signal } = {}) =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        timers.clearTimeout(id);
        reject(signal?.reason as Error);
      };
      const id = timers.setTimeout(() => {
        signal?.removeEventListener('abort', stop);
        resolve();
      }, ms);
      if (signal?.aborted === true) stop();
      else signal?.addEventListener('abort', stop);
    }),
  random: () => Math.random(),
  randomBytes: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)) as Buffer,
  randomInt: (from, end) => from + Math.floor(Math.random() * (end - from)),
  connect: absent('connect'),
  createServer: absent('createServer'),
  networkInterfaces: () => ({}),
  hostname: () => 'page',
  lookup: absent('lookup'),
};
