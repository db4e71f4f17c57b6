import { algorithms, type Algorithm } from '../collectives/call.js';
import { malformed, value, type Environment } from '../launch/environment.js';
import { didYouMean } from '../suggest.js';

/** What the environment says about a communicator's work. All ranks must say the same of `algorithm`. */
export interface RuntimeSettings {
  /** TCCL_ALGO: the algorithm of every operation, or undefined to choose by size and place. */
  readonly algorithm: Algorithm | undefined;
  /** TCCL_SHM_DISABLE=1: processes exchange data over sockets even on one host. */
  readonly sharedMemory: boolean;
  /** TCCL_TIMEOUT: seconds that an operation may wait for other ranks; 0 for ever. Default 600. */
  readonly timeoutMs: number;
}

const DEFAULT_TIMEOUT_SECONDS = 600;

/** Reads the settings from an environment. Throws `ENVIRONMENT`, naming the variable. */
export function runtimeSettings(env: Environment): RuntimeSettings {
  return {
    algorithm: algorithmSetting(env),
    sharedMemory: !flag(env, 'TCCL_SHM_DISABLE'),
    timeoutMs: seconds(env, 'TCCL_TIMEOUT', DEFAULT_TIMEOUT_SECONDS) * 1000,
  };
}

function algorithmSetting(env: Environment): Algorithm | undefined {
  const text = value(env, 'TCCL_ALGO');
  if (text === undefined) return undefined;
  const found = algorithms.find((name) => name === text.toLowerCase());
  if (found === undefined) throw malformed(env, 'TCCL_ALGO', `one of ${algorithms.join(', ')}${didYouMean(text, algorithms)}`);
  return found;
}

function flag(env: Environment, name: string): boolean {
  const text = value(env, name);
  if (text !== undefined && text !== '0' && text !== '1') throw malformed(env, name, '0 or 1');
  return text === '1';
}

function seconds(env: Environment, name: string, otherwise: number): number {
  const text = value(env, name);
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!Number.isFinite(number) || number < 0) throw malformed(env, name, 'a number of seconds from 0 (which means for ever)');
  return number;
}
