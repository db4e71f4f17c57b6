/**
 * tccl: collective communication for TypeScript.
 *
 * @packageDocumentation
 */
export { getUniqueId, type RootOptions } from './bootstrap/root.js';
export { UniqueId } from './bootstrap/unique-id.js';
export type { Algorithm, CallKind } from './collectives/call.js';
export type { ChildOptions, Communicator } from './communicator/communicator.js';
export type { CommunicatorConfig } from './communicator/config.js';
export type { CallOptions } from './communicator/arguments.js';
export type { Explanation } from './communicator/explain.js';
export { group, groupSync } from './communicator/group.js';
export { init, type InitOptions } from './communicator/init.js';
export type { Parts } from './communicator/parts.js';
export type { PutOptions, Window } from './communicator/window.js';
export type { Registration } from './communicator/registration.js';
export { spawnRanks } from './communicator/spawn-ranks.js';
export {
  fromBfloat16, fromFloat16, fromFloat8e4m3, fromFloat8e5m2, toBfloat16, toFloat16, toFloat8e4m3, toFloat8e5m2,
} from './device/formats.js';
export type { MemoryUse, SegmentMemory } from './device/memory-use.js';
export type { DataTypeName, NumericArray, NumericArrayConstructor, PremulSum, ReductionOperator } from './device/types.js';
export {
  describeError, InputError, InternalError, InvalidArgumentError, InvalidUsageError, ncclResults, RemoteError, SystemError, TcclError, TimeoutError,
  type ErrorCode, type ErrorDetails,
} from './errors.js';
export type { SpawnRanksOptions } from './launch/spawn-threads.js';
export { version } from './version.js';
