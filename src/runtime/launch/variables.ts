import { nearestName } from '../../suggest.js';
import { value, type Environment } from './environment.js';

const PREFIX = 'TCCL_';

/** Names of all variables that tccl reads, without `TCCL_`, to detect misspelt names. */
const names = [
  // Set by launchers: placement.ts
  'RANK',
  'NRANKS',
  'LOCAL_RANK',
  'LOCAL_NRANKS',
  'COMM_ID',
  'COMM_SECRET',
  'JOB_ID',
  'JOB',
  'REPORT_AT',
  'RESTARTS',
  'MAX_RESTARTS',
  'SSH',
  // Bootstrap: bootstrap/environment.ts
  'SOCKET_IFNAME',
  'SOCKET_FAMILY',
  'HOSTID',
  // Options of a communicator: resources/options.ts, profile.ts
  'ALGO',
  'PROTO',
  'PROFILE',
  'TIMEOUT',
  'INIT_TIMEOUT',
  'WARN_AFTER',
  'HEARTBEAT',
  'NET',
  'AGGREGATOR',
  'NSOCKS_PER_CONNECTION',
  'RUNTIME_CONNECT',
  'SHM_DISABLE',
  'CMA_DISABLE',
  'P2P_DISABLE',
  'P2P_LEVEL',
  'NVLS_ENABLE',
  'MACHINE_CODE_DISABLE',
  'IGNORE_CPU_AFFINITY',
  'TOPO_FILE',
  // Output
  'DEBUG',
  'DEBUG_SUBSYS',
  'DEBUG_FILE',
  'TRACE',
  'RECORD',
  'TOPO_DUMP_FILE',
  'GRAPH_DUMP_FILE',
];

export const variables: readonly string[] = names.map((name) => PREFIX + name);

/** Variables of one job, which mean nothing in another. */
export const launcherVariables: readonly string[] = names.slice(0, names.indexOf('SSH') + 1).map((name) => PREFIX + name);

/** Variables that may hold a secret, so no log has them. */
export const secretVariables: readonly string[] = ['TCCL_AGGREGATOR'];

/** An unknown variable with our prefix, and the name that was probably meant. */
export interface UnknownVariable {
  readonly name: string;
  readonly meant: string | undefined;
  /** Both in a sentence. */
  readonly text: string;
}

/** Variables that are set and begin with our prefix, but do not exist. */
export function unknownVariables(env: Environment): UnknownVariable[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !variables.includes(name) && value(env, name) !== undefined)
    .map((name) => {
      // Compare without the prefix, which would make every name similar to all others.
      const near = nearestName(name.slice(PREFIX.length), names);
      const meant = near === undefined ? undefined : PREFIX + near;
      return {
        name,
        meant,
        text: `${name} is set, but there is no such variable${meant === undefined ? '' : `; did you mean ${meant}?`}`,
      };
    });
}

/** Warnings about unknown names similar to ours. Others may belong to the program. */
export function misspeltVariables(env: Environment): string[] {
  return unknownVariables(env)
    .filter(({ meant }) => meant !== undefined)
    .map(({ text }) => text);
}
