import { absent } from './absent.js';

/** Browsers warn about no number of listeners. */
export const setMaxListeners = (): void => undefined;
export const once = absent('once');
