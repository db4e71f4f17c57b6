/**
 * tccl: collective communication for TypeScript.
 *
 * @packageDocumentation
 */
export { getUniqueId } from './bootstrap/root.js';
export { UniqueId } from './bootstrap/unique-id.js';
export type { Communicator } from './communicator/communicator.js';
export type { CallOptions } from './communicator/arguments.js';
export type { Parts } from './communicator/checked-call.js';
export { init, type InitOptions } from './communicator/init.js';
export { spawnRanks } from './communicator/spawn-ranks.js';
export type { NumericArray, NumericArrayConstructor, ReductionOperator } from './device/types.js';
export * from './errors.js';
export type { SpawnRanksOptions } from './launch/spawn-threads.js';
export { version } from './version.js';
