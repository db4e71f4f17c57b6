import { nearestName } from '../../suggest.js';
import { value, type Environment } from './environment.js';

const PREFIX = 'TCCL_';

/** Every variable that tccl reads, without `TCCL_`: so that a name that is none of them can be called a mistake. */
const names = [
  // What launchers set: place.ts
  'RANK',
  'NRANKS',
  'LOCAL_RANK',
  'LOCAL_NRANKS',
  'COMM_ID',
  'COMM_SECRET',
  // How ranks find each other: bootstrap/environment.ts
  'SOCKET_IFNAME',
  'SOCKET_FAMILY',
  'HOSTID',
  // How a communicator works: communicator/options.ts, profile.ts
  'ALGO',
  'PROTO',
  'PROFILE',
  'TIMEOUT',
  'WARN_AFTER',
  'HEARTBEAT',
  'SHM_DISABLE',
  'CMA_DISABLE',
  'MACHINE_CODE_DISABLE',
  'IGNORE_CPU_AFFINITY',
  // What it tells
  'DEBUG',
  'DEBUG_SUBSYS',
  'DEBUG_FILE',
  'TRACE',
];

export const variables: readonly string[] = names.map((name) => PREFIX + name);

/** A variable that begins as ours do but has no meaning, and the one that was perhaps meant. */
export interface UnknownVariable {
  readonly name: string;
  readonly meant: string | undefined;
  /** Both in a sentence. */
  readonly text: string;
}

/** The variables that are set and begin as ours, but are none of ours. */
export function unknownVariables(env: Environment): UnknownVariable[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !variables.includes(name) && value(env, name) !== undefined)
    .map((name) => {
      // What all have in common would make every name near to all others.
      const near = nearestName(name.slice(PREFIX.length), names);
      const meant = near === undefined ? undefined : PREFIX + near;
      return {
        name,
        meant,
        text: `${name} is set, but there is no such variable${meant === undefined ? '' : `; did you mean ${meant}?`}`,
      };
    });
}

/** Warnings about names in an environment that are close to ours. Others may be the program's. */
export function misspeltVariables(env: Environment): string[] {
  return unknownVariables(env)
    .filter(({ meant }) => meant !== undefined)
    .map(({ text }) => text);
}
