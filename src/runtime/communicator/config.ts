import { algorithms, type Algorithm } from '../algorithms/call.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';

/** Settings of a communicator; one made from another inherits those that it is not given. */
export interface CommunicatorConfig {
  /** Names it in errors. Not taken from the parent. */
  readonly name?: string | undefined;
  /**
   * Makes the blocking forms (…Sync) of collectives available. `true`: always; where the ranks do not all share
   * memory, a thread of its own carries out the calls. `false`: never, for programs whose event loop must go on. Left out:
   * where all ranks share memory. `true` on all ranks or on none.
   */
  readonly blocking?: boolean | undefined;
  /**
   * `thread`: calls are carried out by threads of their own, so that the event loop and computation of this one go on.
   * Default `inline`. Alike on all ranks.
   */
  readonly engine?: 'inline' | 'thread' | undefined;
  /**
   * Number of such threads that share a large call where all ranks share memory; elsewhere it is one. Default 1. Alike on all
   * ranks.
   */
  readonly channels?: number | undefined;
  /** Bounds for `channels`, as NCCL has them. */
  readonly minChannels?: number | undefined;
  /** The same from above. */
  readonly maxChannels?: number | undefined;
  /**
   * Carries out every call that it can, whatever the size: for measurements, and for those who know better than the
   * table. TCCL_ALGO goes before it. Alike on all ranks.
   */
  readonly algorithm?: Algorithm | undefined;
}

/** Options of a communicator made from another. */
export interface ChildOptions extends CommunicatorConfig {
  /** Time to wait for the other ranks, milliseconds. Default 60,000. */
  readonly timeoutMs?: number | undefined;
}

/** Options of every call that makes a communicator. */
const optionNames = Object.keys({
  name: true,
  blocking: true,
  engine: true,
  channels: true,
  minChannels: true,
  maxChannels: true,
  algorithm: true,
  timeoutMs: true,
} satisfies Record<keyof CommunicatorConfig | 'timeoutMs', true>);

/** Longest time-out: timers take no more. */
export const LONGEST_MS = 2 ** 31 - 1;

/**
 * Checks the options of a call that makes a communicator: that all exist (a misspelt one would be without effect), and
 * what they are. Throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `UNKNOWN_NAME`.
 *
 * @param more names of options that only this call has
 */
export function checkOptions(
  call: string,
  options: CommunicatorConfig & { readonly timeoutMs?: number | undefined },
  more: readonly string[] = [],
): CommunicatorConfig {
  checkOptionNames(call, options, [...optionNames, ...more], "{ name: 'row' }");
  const { timeoutMs } = options;
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0 && timeoutMs <= LONGEST_MS)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: timeoutMs is a number of milliseconds from 0 to 24 days, not ${describeValue(timeoutMs)}`,
    );
  }
  return checkConfig(options);
}

const LONGEST_NAME = 64;
/** NCCL's MAXCHANNELS. */
const MOST_CHANNELS = 64;

/** Checks a config. Throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`. */
export function checkConfig({
  name,
  blocking,
  engine,
  channels,
  minChannels,
  maxChannels,
  algorithm,
}: CommunicatorConfig): CommunicatorConfig {
  if (
    name !== undefined &&
    (typeof name !== 'string' || name.length === 0 || name.length > LONGEST_NAME || /\p{Cc}/u.test(name))
  ) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `a communicator's name is a string of 1 to ${LONGEST_NAME} printable characters, not ${JSON.stringify(name)}`,
    );
  }
  if (blocking !== undefined && typeof blocking !== 'boolean') {
    throw new InvalidArgumentError('ARGUMENT_TYPE', `blocking is true or false, not ${JSON.stringify(blocking)}`);
  }
  if (engine !== undefined && (engine as string) !== 'inline' && (engine as string) !== 'thread') {
    throw new InvalidArgumentError('UNKNOWN_NAME', `the engine is 'inline' or 'thread', not ${JSON.stringify(engine)}`);
  }
  if (algorithm !== undefined && !algorithms.includes(algorithm)) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `there is no algorithm ${JSON.stringify(algorithm)}; use one of ${algorithms.join(', ')}`,
    );
  }
  for (const [what, value] of Object.entries({ channels, minChannels, maxChannels })) {
    if (value !== undefined && !(Number.isInteger(value) && value >= 1 && value <= MOST_CHANNELS)) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${what} is a whole number from 1 to ${MOST_CHANNELS}, not ${describeValue(value)}`,
      );
    }
  }
  if ((minChannels ?? 1) > (maxChannels ?? MOST_CHANNELS)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `minChannels is ${String(minChannels)}, above maxChannels, ${String(maxChannels)}`,
    );
  }
  const config = { name, blocking, engine, channels, minChannels, maxChannels, algorithm };
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}

/** Number of threads that carry out a communicator's calls beside the rank's own. */
export interface EngineThreads {
  /** Where all ranks share memory, */
  readonly inMemory: number;
  /** and where they do not. */
  readonly overSockets: number;
}

export function engineThreads({
  engine,
  blocking,
  channels = 1,
  minChannels = 1,
  maxChannels = MOST_CHANNELS,
}: CommunicatorConfig): EngineThreads {
  return {
    inMemory: engine === 'thread' ? Math.min(maxChannels, Math.max(minChannels, channels)) : 0,
    overSockets: engine === 'thread' || blocking === true ? 1 : 0,
  };
}

/** The algorithm that is asked for, by TCCL_ALGO before the config, as NCCL's variables go before its config. */
export function forcedAlgorithm(
  settings: { readonly algorithm: Algorithm | undefined },
  { algorithm }: CommunicatorConfig,
): Algorithm | undefined {
  return settings.algorithm ?? algorithm;
}

/** Settings of a child: the parent's, except the name, overridden by those given for it. */
export function inherit(parent: CommunicatorConfig, given: CommunicatorConfig): CommunicatorConfig {
  const config: { name?: string | undefined } = { ...parent };
  delete config.name;
  return { ...config, ...checkConfig(given) };
}
