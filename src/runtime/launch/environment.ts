import { InvalidUsageError } from '../../errors.js';

/** Variables of a process's environment; `process.env` is one. An empty value counts as absent. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The value of a variable; undefined when it is absent or empty. */
export function value(env: Environment, name: string): string | undefined {
  return env[name] === '' ? undefined : env[name];
}

/** Parses a whole number: decimal digits only, at most nine. Undefined for `0x10`, `1e3`, ` 1` and `-1`. */
export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** Error about a wrong value in the environment. */
export function environmentError(message: string): InvalidUsageError {
  return new InvalidUsageError('ENVIRONMENT', message);
}

/** Error with the wrong value and the expected form. */
export function malformed(env: Environment, name: string, expected: string): InvalidUsageError {
  return environmentError(`${name}=${env[name] ?? ''} is not ${expected}`);
}

/** A variable that is 1, not 0; absent, it is what `otherwise` says. */
export function flag(env: Environment, name: string, otherwise = false): boolean {
  const text = value(env, name);
  if (text !== undefined && text !== '0' && text !== '1') throw malformed(env, name, '0 or 1');
  return text === undefined ? otherwise : text === '1';
}

export function seconds(env: Environment, name: string, otherwise: number): number {
  const text = value(env, name);
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!Number.isFinite(number) || number < 0) throw malformed(env, name, 'a number of seconds from 0 (which means no limit)');
  return number;
}

/** Default of TCCL_HEARTBEAT. */
export const DEFAULT_HEARTBEAT_SECONDS = 10;
/** Default of TCCL_WARN_AFTER. */
export const DEFAULT_WARN_AFTER_SECONDS = 30;
