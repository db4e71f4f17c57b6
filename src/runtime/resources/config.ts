import { checkSignal, checkTimeout } from '../algorithms/arguments.js';
import { algorithms, type Algorithm } from '../algorithms/call.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import type { PlatformAbortSignal } from '../platform/declarations.js';

/** Settings of a communicator; a child inherits those that it is not given. */
export interface CommunicatorConfig {
  /** Names it in errors. Not taken from the parent. */
  readonly name?: string | undefined;
  /**
   * Allows the blocking forms (…Sync). `true`: always; if the ranks do not all share memory, all connections that calls may
   * need are made with the communicator. `false`: never, for programs whose event loop must not stop. Default: `true` if the
   * ranks share memory, or are at most 16. The same on all ranks.
   */
  readonly blocking?: boolean | undefined;
  /**
   * `thread`: separate threads carry out the calls, while this thread runs its event loop and computes. Default `inline`. The
   * same on all ranks.
   */
  readonly engine?: 'inline' | 'thread' | undefined;
  /**
   * Number of engine threads that share a large call if all ranks share memory; otherwise there is one. Default 1. The same
   * on all ranks.
   */
  readonly channels?: number | undefined;
  /** Lower bound for `channels`, as in NCCL. */
  readonly minChannels?: number | undefined;
  /** Upper bound for `channels`. */
  readonly maxChannels?: number | undefined;
  /**
   * Algorithm for every call that it supports, at any size: for measurements, and to overrule the table. TCCL_ALGO has
   * priority. The same on all ranks.
   */
  readonly algorithm?: Algorithm | undefined;
}

/** Options of a communicator made from another. */
export interface ChildOptions extends CommunicatorConfig {
  /** Time to wait for the other ranks, milliseconds. Default: that of init(). */
  readonly timeoutMs?: number | undefined;
  /** Cancels the call, as it cancels a collective; `shrink` alone ends by itself. docs/guides/cancel.md has the rule. */
  readonly signal?: PlatformAbortSignal | undefined;
}

/** Options of `shrink`. */
export interface ShrinkOptions extends ChildOptions {
  /** Ends calls in flight first. Default false: they complete. */
  readonly abort?: boolean | undefined;
  /**
   * Refuses to continue without a majority of this communicator's ranks, so that of two halves of a cut network only one
   * continues; of exact halves, the one with rank 0. On one rank, it holds for all. Default false.
   */
  readonly quorum?: boolean | undefined;
}

/** Options of `recover`. */
export interface RecoverOptions extends Omit<ShrinkOptions, 'abort'> {
  /**
   * Waits for successors of the dead ranks, which the launcher starts and which have their numbers. Default false: the new
   * communicator is smaller.
   */
  readonly replace?: boolean | undefined;
}

/** Result of `agree()`, the same on all ranks that have it. */
export interface Agreement {
  /** True if all these ranks gave true. */
  readonly flag: boolean;
  /** The ranks that agree, ascending: all that live and have not closed the communicator. */
  readonly ranks: readonly number[];
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
  signal: true,
} satisfies Record<keyof ChildOptions, true>);

/** Longest timeout: the limit of timers. */
export const LONGEST_MS = 2 ** 31 - 1;

/**
 * Checks the options of a call that makes a communicator: names (a misspelt option would have no effect) and values. Throws
 * InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `UNKNOWN_NAME`.
 *
 * @param more names of further options of this call
 */
export function checkOptions(call: string, options: ChildOptions, more: readonly string[] = []): CommunicatorConfig {
  checkOptionNames(call, options, [...optionNames, ...more], "{ name: 'row' }");
  const { timeoutMs, signal } = options;
  if (signal !== undefined) checkSignal(call, signal);
  if (timeoutMs !== undefined) checkTimeout(call, timeoutMs);
  return checkConfig(call, options);
}

const LONGEST_NAME = 64;
/** NCCL's MAXCHANNELS. */
const MOST_CHANNELS = 64;

/** Checks a config. Throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`. */
export function checkConfig(
  call: string,
  { name, blocking, engine, channels, minChannels, maxChannels, algorithm }: CommunicatorConfig,
): CommunicatorConfig {
  if (
    name !== undefined &&
    (typeof name !== 'string' || name.length === 0 || name.length > LONGEST_NAME || /\p{Cc}/u.test(name))
  ) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: a communicator's name is a string of 1 to ${LONGEST_NAME} printable characters, not ${JSON.stringify(name)}`,
    );
  }
  if (blocking !== undefined && typeof blocking !== 'boolean') {
    throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: blocking is true or false, not ${JSON.stringify(blocking)}`);
  }
  if (engine !== undefined && (engine as string) !== 'inline' && (engine as string) !== 'thread') {
    throw new InvalidArgumentError('UNKNOWN_NAME', `${call}: the engine is 'inline' or 'thread', not ${JSON.stringify(engine)}`);
  }
  if (algorithm !== undefined && !algorithms.includes(algorithm)) {
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `${call}: there is no algorithm ${JSON.stringify(algorithm)}; use one of ${algorithms.join(', ')}`,
    );
  }
  for (const [what, value] of Object.entries({ channels, minChannels, maxChannels })) {
    if (value !== undefined && !(Number.isInteger(value) && value >= 1 && value <= MOST_CHANNELS)) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${call}: ${what} is a whole number from 1 to ${MOST_CHANNELS}, not ${describeValue(value)}`,
      );
    }
  }
  if ((minChannels ?? 1) > (maxChannels ?? MOST_CHANNELS)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: minChannels is ${String(minChannels)}, above maxChannels, ${String(maxChannels)}`,
    );
  }
  const config = { name, blocking, engine, channels, minChannels, maxChannels, algorithm };
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}

/** Number of engine threads of a communicator. */
export interface EngineThreads {
  /** If all ranks share memory. */
  readonly inMemory: number;
  /** Otherwise. */
  readonly overSockets: number;
  /**
   * True if all connections over sockets are made in advance, since a call that blocks cannot make them. Undefined if the
   * number of ranks decides: agree.ts.
   */
  readonly connectsAll?: boolean | undefined;
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
    overSockets: engine === 'thread' ? 1 : 0,
    connectsAll: engine === 'thread' ? true : blocking,
  };
}

/** The forced algorithm: TCCL_ALGO has priority over the config, as in NCCL. */
export function forcedAlgorithm(
  settings: { readonly algorithm: Algorithm | undefined },
  { algorithm }: CommunicatorConfig,
): Algorithm | undefined {
  return settings.algorithm ?? algorithm;
}

/**
 * The forced algorithm of a child. One that it inherits is left out where its engine threads cannot carry it out: if all its
 * ranks share memory, they have *direct* only.
 *
 * @param given settings for the child alone
 */
export function childAlgorithm(
  settings: { readonly algorithm: Algorithm | undefined },
  config: CommunicatorConfig,
  given: CommunicatorConfig,
  oneSegment: boolean,
): Algorithm | undefined {
  const isInherited = given.algorithm === undefined;
  if (isInherited && oneSegment && engineThreads(config).inMemory > 0) return undefined;
  return forcedAlgorithm(settings, config);
}

/** Settings of a child: the parent's except the name, replaced by those given for the child. */
export function inherit(parent: CommunicatorConfig, given: CommunicatorConfig): CommunicatorConfig {
  const config: { name?: string | undefined } = { ...parent };
  delete config.name;
  return { ...config, ...checkConfig('split', given) };
}
