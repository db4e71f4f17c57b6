/**
 * The bootstrap network: ranks of a communicator find each other, and exchange small messages out of band.
 *
 *     const id = await getUniqueId();                       // in one process; give the id to all ranks
 *     const bootstrap = await connect({ id, rank, nRanks, timeoutMs: 60_000 });
 *     const parts = await bootstrap.allGather(Buffer.from(`rank ${rank}`));
 *     await bootstrap.close();
 */
export type { Bootstrap, PeerInfo, Scope } from './bootstrap.js';
export { connect } from './connect.js';
export type { ConnectOptions } from './connect.js';
export { readBootstrapEnvironment } from './environment.js';
export { systemInterfaces } from './interfaces.js';
export { getUniqueId, listenAt, startRoot } from './root.js';
export type { Root, RootOptions } from './root.js';
export { UniqueId, UNIQUE_ID_BYTES } from './unique-id.js';
