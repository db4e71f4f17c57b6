import { aggregatorIds } from '../aggregator/aggregators.js';
import { algorithms, type Algorithm } from '../algorithms/call.js';
import {
  DEFAULT_HEARTBEAT_SECONDS,
  DEFAULT_WARN_AFTER_SECONDS,
  flag,
  malformed,
  seconds,
  value,
  type Environment,
} from '../launch/environment.js';
import { launcherVariables, secretVariables, unknownVariables, variables, type UnknownVariable } from '../launch/variables.js';
import { didYouMean } from '../../suggest.js';
import { networks } from '#seam/transport/networks';
import { MOST_SOCKETS } from '../transport/network.js';
import { LONGEST_MS } from './config.js';
import type { TopologyFiles } from '../channels/plan-channels.js';
import { debugLevels, type DebugSettings, debugSubsystems, type DebugSubsystem } from '../observe/debug-settings.js';

/** Protocols of a ring: algorithms/connections/ring.ts. */
const protocols = ['simple', 'll'] as const;
export type Protocol = (typeof protocols)[number];

/** Settings of a communicator from the environment. `algorithm` must be the same on all ranks. */
export interface RuntimeSettings {
  /** TCCL_ALGO: the algorithm of every operation; undefined to choose by size and placement. */
  readonly algorithm: Algorithm | undefined;
  /** TCCL_PROTO: the protocol of every ring; undefined to choose by size. The same on all ranks. */
  readonly protocol: Protocol | undefined;
  /** TCCL_NET: the transport between ranks that share no memory; undefined to choose by hardware. The same on all ranks. */
  readonly net: string | undefined;
  /** TCCL_AGGREGATOR: ids of aggregators, which contain secrets; empty for none. As many and in the same order on all ranks. */
  readonly aggregators: readonly string[];
  /** TCCL_NSOCKS_PER_CONNECTION: number of sockets of a connection for data. The same on all ranks. */
  readonly sockets: number;
  /** TCCL_SHM_DISABLE=1: processes exchange data over sockets even on one host. */
  readonly sharedMemory: boolean;
  /**
   * TCCL_RUNTIME_CONNECT: the largest number of ranks among which all connections are made in advance. 1 is for none, 0 for
   * any number.
   */
  readonly connectsUpTo: number;
  /** TCCL_CMA_DISABLE=1: ranks of a host do not read each other's private memory; docs/notes/transports.md. */
  readonly peerMemory: boolean;
  /** TCCL_MACHINE_CODE_DISABLE=1: use no machine code of our own; docs/architecture.md. */
  readonly machineCode: boolean;
  /** TCCL_IGNORE_CPU_AFFINITY=1: take memory from the NUMA node regardless of this process's CPU affinity. */
  readonly ignoreAffinity: boolean;
  /**
   * TCCL_TIMEOUT: seconds that an operation may wait for other ranks, not counting time while this process is stopped
   * (watch-clock.ts); 0 means no limit. Default 600.
   */
  readonly timeoutMs: number;
  /** True if the program gave `timeoutMs` to init() instead. */
  readonly isOfProgram?: boolean | undefined;
  /**
   * TCCL_INIT_TIMEOUT: seconds that ranks wait for each other in init(), split() …; 0 means no limit. Default 60. The program's
   * `timeoutMs` of init() replaces it.
   */
  readonly initTimeoutMs: number;
  /**
   * TCCL_HEARTBEAT: seconds after which an unresponsive host counts as gone (bootstrap/liveness.ts); 0 means never. Default 10.
   */
  readonly heartbeatMs: number;
  /** TCCL_WARN_AFTER: seconds after which a rank that waits for others warns; 0 means never. Default 30. */
  readonly warnAfterMs: number;
  /** TCCL_REPORT_AT: see WaitLimits; of the launcher. */
  readonly reportAtMs: number | undefined;
  /** TCCL_TOPO_FILE, TCCL_TOPO_DUMP_FILE, TCCL_GRAPH_DUMP_FILE, for communicators whose ranks are on several hosts. */
  readonly topology: TopologyFiles;
  /** TCCL_TRACE: file for the trace of this host's ranks; `%h` stands for the host's name. docs/guides/feedback.md. */
  readonly tracePath: string | undefined;
  /** TCCL_RECORD: file for a rank's last calls, with `%r` for the rank. docs/guides/inspect.md. */
  readonly recordPath: string | undefined;
  /** TCCL_DEBUG, TCCL_DEBUG_SUBSYS, TCCL_DEBUG_FILE. */
  readonly debug: DebugSettings;
  /** All our variables that are set, except those of launchers and those with secrets. */
  readonly variables: Readonly<Record<string, string>>;
  /** Unknown variables with our prefix. */
  readonly unknown: readonly UnknownVariable[];
}

const DEFAULT_TIMEOUT_SECONDS = 600;
const DEFAULT_INIT_TIMEOUT_SECONDS = 60;
/** Among so many ranks, connecting each with each takes a rank little time and memory. */
const CONNECTED_RANKS = 16;

/** Reads the settings from an environment. Throws `ENVIRONMENT` with the variable's name. */
export function runtimeSettings(env: Environment): RuntimeSettings {
  return {
    algorithm: named(env, 'TCCL_ALGO', algorithms),
    protocol: named(env, 'TCCL_PROTO', protocols),
    net: named(
      env,
      'TCCL_NET',
      networks.map(({ name }) => name),
    ),
    aggregators: aggregatorIds(value(env, 'TCCL_AGGREGATOR') ?? ''),
    sockets: sockets(env),
    sharedMemory: !flag(env, 'TCCL_SHM_DISABLE'),
    connectsUpTo: connectsUpTo(env),
    peerMemory: !flag(env, 'TCCL_CMA_DISABLE'),
    machineCode: !flag(env, 'TCCL_MACHINE_CODE_DISABLE'),
    ignoreAffinity: flag(env, 'TCCL_IGNORE_CPU_AFFINITY'),
    timeoutMs: seconds(env, 'TCCL_TIMEOUT', DEFAULT_TIMEOUT_SECONDS) * 1000,
    initTimeoutMs: Math.min(seconds(env, 'TCCL_INIT_TIMEOUT', DEFAULT_INIT_TIMEOUT_SECONDS) * 1000 || LONGEST_MS, LONGEST_MS),
    heartbeatMs: seconds(env, 'TCCL_HEARTBEAT', DEFAULT_HEARTBEAT_SECONDS) * 1000,
    warnAfterMs: seconds(env, 'TCCL_WARN_AFTER', DEFAULT_WARN_AFTER_SECONDS) * 1000,
    reportAtMs: reportAt(env),
    topology: {
      topology: value(env, 'TCCL_TOPO_FILE'),
      topologyDump: value(env, 'TCCL_TOPO_DUMP_FILE'),
      graphDump: value(env, 'TCCL_GRAPH_DUMP_FILE'),
    },
    tracePath: value(env, 'TCCL_TRACE'),
    recordPath: recordPath(env),
    debug: debugSettings(env),
    variables: Object.fromEntries(
      Object.entries(env).flatMap(([name, text]) =>
        variables.includes(name) && !launcherVariables.includes(name) && !secretVariables.includes(name) && text !== undefined
          ? [[name, text]]
          : [],
      ),
    ),
    unknown: unknownVariables(env),
  };
}

function debugSettings(env: Environment): DebugSettings {
  const level = value(env, 'TCCL_DEBUG')?.toUpperCase() ?? 'NONE';
  const known = debugLevels.find((name) => name === level);
  if (known === undefined)
    throw malformed(env, 'TCCL_DEBUG', `one of ${debugLevels.join(', ')}${didYouMean(level, debugLevels)}`);
  return { level: known, subsystems: subsystems(env), file: value(env, 'TCCL_DEBUG_FILE') };
}

/** Parses a list as NCCL does: names; `ALL`; a leading `^` means all except these. */
function subsystems(env: Environment): Set<DebugSubsystem> {
  const text = value(env, 'TCCL_DEBUG_SUBSYS')?.toUpperCase() ?? 'INIT,GRAPH,TUNING,NET,ENV';
  const inverted = text.startsWith('^');
  const named = new Set(
    text
      .replace(/^\^/, '')
      .split(',')
      .flatMap((name): readonly DebugSubsystem[] => {
        if (name === 'ALL') return debugSubsystems;
        const known = debugSubsystems.find((one) => one === name);
        if (known !== undefined) return [known];
        throw malformed(
          env,
          'TCCL_DEBUG_SUBSYS',
          `a list of ${debugSubsystems.join(', ')}, ALL, or ^ and such a list${didYouMean(name, debugSubsystems)}`,
        );
      }),
  );
  return inverted ? new Set(debugSubsystems.filter((name) => !named.has(name))) : named;
}

function named<T extends string>(env: Environment, name: string, names: readonly T[]): T | undefined {
  const text = value(env, name);
  if (text === undefined) return undefined;
  const found = names.find((one) => one === text.toLowerCase());
  if (found === undefined) {
    const isList = /[,;^]/.test(text);
    throw malformed(
      env,
      name,
      `one of ${names.join(', ')}${isList ? '; lists and ^ are not supported' : didYouMean(text, names)}`,
    );
  }
  return found;
}

function recordPath(env: Environment): string | undefined {
  const path = value(env, 'TCCL_RECORD');
  if (path?.includes('%r') === false) throw malformed(env, 'TCCL_RECORD', 'a file name with %r, which becomes the rank');
  return path;
}

function connectsUpTo(env: Environment): number {
  const name = 'TCCL_RUNTIME_CONNECT';
  if (value(env, name) === undefined) return CONNECTED_RANKS;
  return flag(env, name) ? 0 : Number.MAX_SAFE_INTEGER;
}

function sockets(env: Environment): number {
  const name = 'TCCL_NSOCKS_PER_CONNECTION';
  const number = Number(value(env, name) ?? 1);
  if (!Number.isInteger(number) || number < 1 || number > MOST_SOCKETS)
    throw malformed(env, name, `a whole number from 1 to ${MOST_SOCKETS}`);
  return number;
}

function reportAt(env: Environment): number | undefined {
  const name = 'TCCL_REPORT_AT';
  const text = value(env, name);
  if (text !== undefined && !/^\d+$/.test(text)) throw malformed(env, name, 'a number of milliseconds since 1970');
  return text === undefined ? undefined : Number(text);
}
