import { InvalidArgumentError } from '../errors.js';

/** How a communicator works; a communicator made from another takes what it is not given from that. */
export interface CommunicatorConfig {
  /** Names it in errors. Not taken from the parent. */
  readonly name?: string;
  /** `false`: the blocking forms (…Sync) are refused, for programs whose event loop must go on. Default `true`. */
  readonly blocking?: boolean;
}

const LONGEST_NAME = 64;

/** Checks a config. Throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`. */
export function checkConfig({ name, blocking }: CommunicatorConfig): CommunicatorConfig {
  if (name !== undefined && (typeof name !== 'string' || name.length === 0 || name.length > LONGEST_NAME || /\p{Cc}/u.test(name))) {
    throw new InvalidArgumentError('ARGUMENT_TYPE', `a communicator's name is a string of 1 to ${LONGEST_NAME} printable characters, not ${JSON.stringify(name)}`);
  }
  if (blocking !== undefined && typeof blocking !== 'boolean') {
    throw new InvalidArgumentError('ARGUMENT_TYPE', `blocking is true or false, not ${JSON.stringify(blocking)}`);
  }
  return { ...(name === undefined ? {} : { name }), ...(blocking === undefined ? {} : { blocking }) };
}

/** What a child works with: the parent's settings but for its name, and what was given for it. */
export function inherit({ blocking }: CommunicatorConfig, given: CommunicatorConfig): CommunicatorConfig {
  return { ...(blocking === undefined ? {} : { blocking }), ...checkConfig(given) };
}
