/**
 * tccl/planner: what NCCL 2.30.7 decides for a machine or cluster. Pure code: it runs in a browser as in Node.
 *
 * @packageDocumentation
 */
export * from '../errors.js';
export {
  defaultParameters, type EnvironmentNote, type Level, type NetDevicesPolicy, type Parameters, parametersFromEnvironment, parameterTable,
} from '../parameters.js';
export { assignHost, buildSystem, type BuildOptions, type SystemNote } from '../topology/build/build-system.js';
export { fuseRanks, fuseTopologies } from '../topology/combine/fuse.js';
export { mergeNics } from '../topology/combine/merge-nics.js';
export { trimUnused } from '../topology/combine/trim-unused.js';
export { type LocalSystem, localSystems } from '../topology/local-systems.js';
export { computePaths, hopNames } from '../topology/paths/compute-paths.js';
export type { Paths } from '../topology/paths/paths.js';
export type { DriverFacts } from '../topology/paths/reach.js';
export * from '../topology/system.js';
export * from '../topology/types.js';
