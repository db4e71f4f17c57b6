/**
 * tccl: collective communication for TypeScript.
 *
 * @module tccl
 */
export { getUniqueId, type RootOptions } from './runtime/bootstrap/root.js';
export { UniqueId } from './runtime/bootstrap/unique-id.js';
export type { Algorithm, CallKind } from './runtime/algorithms/call.js';
export type { Communicator } from './runtime/communicator/communicator.js';
export type {
  ProbedMessage,
  ReceivedMessage,
  RecvOptions,
  SendOptions,
  TaggedLimits,
} from './runtime/communicator/message-exchange.js';
export type { AnyObject } from './runtime/objects/object-exchange.js';
export type { Agreement, ChildOptions, CommunicatorConfig, RecoverOptions, ShrinkOptions } from './runtime/resources/config.js';
export type { CallOptions, TimedCallOptions } from './runtime/algorithms/arguments.js';
export type { Explanation } from './runtime/communicator/explain.js';
export { group, groupSync } from './runtime/communicator/group.js';
export type { Graph, GraphNeighbours } from './runtime/communicator/graph.js';
export type { Grid, GridOptions, Halo } from './runtime/communicator/grid.js';
export { init } from './runtime/init/init.js';
export type { InitOptions } from './runtime/resources/init-options.js';
export type { Parts } from './runtime/communicator/parts.js';
export type { Window } from './runtime/windows/window.js';
export type { PutOptions, WindowOperator } from './runtime/windows/window-options.js';
export type { ArrayOperator, ElementOf, ElementOperator, OwnOperator } from './runtime/operators/operator.js';
export type { ProgramOperator, ProgramRunner, ScheduleMaker } from './runtime/programs/program.js';
export type { Scalar, ScalarOf, ScalarOperator } from './runtime/communicator/scalars.js';
export type { Registration } from './runtime/communicator/registration.js';
export {
  openPool,
  type MapOptions,
  type MapProgress,
  type Pool,
  type PoolFunction,
  type PoolOptions,
  type RankOutcome,
} from './runtime/pool/open-pool.js';
export { spawnRanks } from './runtime/init/spawn-ranks.js';
export {
  fromBfloat16,
  fromFloat16,
  fromFloat8e4m3,
  fromFloat8e5m2,
  toBfloat16,
  toFloat16,
  toFloat8e4m3,
  toFloat8e5m2,
} from './runtime/device/formats.js';
export type { MemoryUse, SegmentMemory } from './runtime/device/memory-use.js';
export type {
  AllocatedArray,
  DataTypeName,
  FurtherOperator,
  GivenArray,
  MovableArray,
  NumericArray,
  NumericArrayConstructor,
  PremulSum,
  ReductionOperator,
  TypedArray,
} from './runtime/device/types.js';
export {
  describeError,
  InputError,
  InternalError,
  InvalidArgumentError,
  InvalidUsageError,
  ncclResults,
  RemoteError,
  SystemError,
  TcclError,
  TimeoutError,
  type ErrorCode,
  type ErrorDetails,
} from './errors.js';
export type { RankPort } from './runtime/launch/rank-port.js';
export type { SpawnedRanks, SpawnRanksOptions } from './runtime/launch/spawn-threads.js';
export { version } from './version.js';
