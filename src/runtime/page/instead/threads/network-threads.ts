export { startDirectThreads as startNetworkThread } from './direct-threads.js';
