import { absent } from '../../../platform/browser/absent.js';

// Ranks of a page share memory.
export const messageFifo = absent('messageFifo');
export const SocketOutlet = absent('SocketOutlet');
export const SocketInlet = absent('SocketInlet');
