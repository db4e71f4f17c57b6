import { InternalError, TcclError, withRank } from '../errors.js';
import { ownFolder } from '../own-module.js';

/**
 * Promise calls fail from the event loop, so an error's own stack shows nothing of the program. V8 shows the functions that await
 * a promise in the stack of an error made while that promise is being rejected, so successful calls need no record.
 */

/** Errors whose stacks begin in the program already: an error that ends a communicator goes to all its calls. */
const complete = new WeakSet<Error>();

const turn = Promise.resolve();

/** A value that rejects a call's promise with `error`, whose stack then begins where the promise is awaited. */
async function rejected(error: Error): Promise<never> {
  // Two turns later the promise follows this one, and V8 finds the awaiting function from here.
  await turn;
  await turn;
  throw addCallerFrames(error);
}

/**
 * A function that settles a call's promise by its `resolve`: with a result, or with an error whose stack then begins where
 * the promise is awaited.
 */
export function settlerOf(resolve: (value?: Promise<never>) => void): (error?: Error) => void {
  return (error) => resolve(error === undefined ? undefined : rejected(error));
}

/** Passes on the result of `promise`. The stack of an error begins where this is awaited. */
export async function withCallerFrames<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw addCallerFrames(error);
  }
}

/**
 * Puts the program's functions that call or await this one in front of an error's stack. Errors are often made deeper than
 * the number of frames that V8 records, so their own stacks may not reach the program. Frames of this package are left out,
 * unless the error is a defect here: they tell the program's author nothing.
 */
export function addCallerFrames<E>(error: E): E {
  if (!(error instanceof Error) || typeof error.stack !== 'string' || complete.has(error)) return error;
  const callers = programFrames();
  if (callers.length === 0) return error;
  complete.add(error);
  const tellsAll = !(error instanceof TcclError) || error instanceof InternalError;
  const own = framesOf(error.stack).filter((frame) => !callers.includes(frame));
  const frames = tellsAll
    ? [...callers, ...own]
    : [...callers.filter((frame) => !isOwn(frame)), ...own.filter((frame) => !isInternal(frame))];
  error.stack = [`${error.name}: ${error.message}`, ...frames].join('\n');
  return error;
}

/** The error of a call of `rank` that is refused immediately. */
export function errorOfCall<E>(error: E, rank: number): E {
  return addCallerFrames(withRank(error, rank));
}

/** Path of this package, whose frames, like those of Node.js in between, are left out. In a bundle in CommonJS, none is. */
const PACKAGE_PATH = ownFolder() ?? '\0';
const isOwn = (frame: string): boolean => frame.includes(PACKAGE_PATH);
const isInternal = (frame: string): boolean =>
  isOwn(frame) || / \(?node:/.test(frame) || / \(?(<anonymous>|native)\)?/.test(frame);
/** More frames than this package has between a public method and a check. */
const INTERNAL_FRAMES = 30;

/** The frames here outside this package, as many as errors have. */
function programFrames(): string[] {
  const { stackTraceLimit } = Error;
  const here: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = stackTraceLimit + INTERNAL_FRAMES;
    Error.captureStackTrace(here, programFrames);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  const frames = typeof here.stack === 'string' ? framesOf(here.stack) : [];
  const first = frames.findIndex((frame) => !isInternal(frame));
  return first < 0 ? [] : frames.slice(first, first + stackTraceLimit);
}

/** The lines of a stack after the message. */
function framesOf(stack: string): string[] {
  const begin = stack.search(/\n {4}at /);
  return begin < 0 ? [] : stack.slice(begin + 1).split('\n');
}
