export { availableParallelism, constants, cpus, homedir } from 'node:os';
export { getSystemErrorName, inspect, types } from 'node:util';
