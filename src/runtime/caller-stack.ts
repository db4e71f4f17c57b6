import { process } from '#platform/process';
import { InternalError, TcclError, withRank } from '../errors.js';
import { ownFolder } from '#platform/own-module';

/**
 * Promise calls fail from the event loop, so an error's own stack shows nothing of the program. V8 shows the functions that await
 * a promise in the stack of an error made while that promise is being rejected, so successful calls need no record. Bun's engine
 * does not: there each call records its place, which takes 0.1 µs.
 */
const RECORDS_CALLS = process.versions['bun'] !== undefined;

/** Errors whose stacks begin in the program already: an error that ends a communicator goes to all its calls. */
const complete = new WeakSet<Error>();

const turn = Promise.resolve();

/** A value that rejects a call's promise with `error`, whose stack then begins where the promise is awaited. */
async function rejected(error: Error, call: Error | undefined): Promise<never> {
  // Two turns later the promise follows this one, and V8 finds the awaiting function from here.
  await turn;
  await turn;
  throw addCallerFrames(error, call);
}

/**
 * A function that settles a call's promise by its `resolve`: with a result, or with an error whose stack then begins where
 * the promise is awaited.
 */
export function settlerOf(resolve: (value?: Promise<never>) => void): (error?: Error) => void {
  const call = RECORDS_CALLS ? deepStack() : undefined;
  return (error) => resolve(error === undefined ? undefined : rejected(error, call));
}

/** Passes on the result of `promise`. The stack of an error begins where this is awaited. */
export async function withCallerFrames<T>(promise: Promise<T>): Promise<T> {
  const call = RECORDS_CALLS ? deepStack() : undefined;
  try {
    return await promise;
  } catch (error) {
    throw addCallerFrames(error, call);
  }
}

/**
 * Puts the program's functions that call or await this one in front of an error's stack. Errors are often made deeper than
 * the number of frames that V8 records, so their own stacks may not reach the program. Frames of this package are left out,
 * unless the error is a defect here: they are of no use to the program's author.
 *
 * @param call made when the program called, if this runs later
 */
export function addCallerFrames<E>(error: E, call?: Error): E {
  if (!(error instanceof Error) || typeof error.stack !== 'string' || complete.has(error)) return error;
  const callers = programFrames(call ?? deepStack());
  if (callers.length === 0) return error;
  complete.add(error);
  const tellsAll = !(error instanceof TcclError) || error instanceof InternalError;
  const own = framesOf(error.stack).filter((frame) => !callers.includes(frame));
  const frames = tellsAll
    ? [...callers, ...own]
    : [...callers.filter((frame) => !isOwn(frame)), ...own.filter((frame) => !isInternal(frame))];
  error.stack = [`${error.name}: ${error.message}`, ...(RECORDS_CALLS ? frames.map(named) : frames)].join('\n');
  return error;
}

/** The error of a call of `rank` that is refused immediately. */
export function errorOfCall<E>(error: E, rank: number): E {
  return addCallerFrames(withRank(error, rank));
}

/** Runs a check of a call of `rank`, whose errors then have its number. */
export function ofRank<T>(rank: number, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw errorOfCall(error, rank);
  }
}

/** Path of this package, whose frames, like those of Node.js in between, are left out. In a bundle in CommonJS, none is. */
const PACKAGE_PATH = ownFolder() ?? '\0';
const isOwn = (frame: string): boolean => frame.includes(PACKAGE_PATH);
const isInternal = (frame: string): boolean =>
  isOwn(frame) || / \(?node:/.test(frame) || / \(?(<anonymous>|native)\)?/.test(frame);
/** More frames than this package has between a public method and a check. */
const INTERNAL_FRAMES = 30;

/** An error whose stack reaches the program through this package. */
function deepStack(): Error {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = stackTraceLimit + INTERNAL_FRAMES;
  const error = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  return error;
}

/** The frames of a stack outside this package, as many as errors have. */
function programFrames({ stack }: { readonly stack?: unknown }): string[] {
  const frames = typeof stack === 'string' ? framesOf(stack) : [];
  const first = frames.findIndex((frame) => !isInternal(frame));
  return first < 0 ? [] : frames.slice(first, first + Error.stackTraceLimit);
}

/** A frame with a name, without which Bun shows the line that made the error in place of this one. */
function named(frame: string): string {
  return frame.replace(/^( {4}at (?:async )?)([^(]+:\d+:\d+)$/, '$1<anonymous> ($2)');
}

/** The lines of a stack after the message. */
function framesOf(stack: string): string[] {
  const begin = stack.search(/\n {4}at /);
  return begin < 0 ? [] : stack.slice(begin + 1).split('\n');
}
