import { withRank } from '../errors.js';

/**
 * Calls of the promise form fail from the event loop, so an error's own stack shows where the failure was noticed, and nothing of
 * the program. V8 knows what awaits a promise, and shows it in the stack of an error made while that promise is being
 * rejected. So nothing has to be remembered when a call begins, and calls that succeed pay nothing.
 */

/** Errors whose stacks begin in the program already: one that ends a communicator is given to all its calls. */
const led = new WeakSet<Error>();

const turn = Promise.resolve();

/**
 * Value that resolves a call's promise so that it rejects with `error`, whose stack then begins where the
 * promise is awaited.
 */
async function rejected(error: Error): Promise<never> {
  // Two turns later the promise has taken this one on, and V8 finds what awaits it from here.
  await turn;
  await turn;
  throw leadToCaller(error);
}

/**
 * Settles a call's promise by its `resolve`: with a result, or with an error, whose stack then begins where the
 * promise is awaited.
 */
export function settlerOf(resolve: (value?: Promise<never>) => void): (error?: Error) => void {
  return (error) => resolve(error === undefined ? undefined : rejected(error));
}

/** Passes on the result of `promise`. An error's stack begins where this is awaited. */
export async function ledToCaller<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw leadToCaller(error);
  }
}

/**
 * Lets the stack of an error begin with the program's functions that are being called or awaited here, before those in
 * which it was made. Errors are often made deeper than V8 shows frames: then the program's are in its stack by this
 * alone.
 */
export function leadToCaller<E>(error: E): E {
  if (!(error instanceof Error) || typeof error.stack !== 'string' || led.has(error)) return error;
  const callers = programFrames();
  if (callers.length === 0) return error;
  led.add(error);
  const own = framesOf(error.stack).filter((frame) => !callers.includes(frame));
  error.stack = [`${error.name}: ${error.message}`, ...callers, ...own].join('\n');
  return error;
}

/** The error of a call of `rank` that is refused where it is called. */
export function errorOfCall<E>(error: E, rank: number): E {
  return leadToCaller(withRank(error, rank));
}

/** Frames of this package, and of Node.js between them and the program. */
const PACKAGE_PATH = new URL('../', import.meta.url).pathname;
const isInternal = (frame: string): boolean =>
  frame.includes(PACKAGE_PATH) || / \(?node:/.test(frame) || / \(?(<anonymous>|native)\)?/.test(frame);
/** More than this package has frames between a public method and a check. */
const INTERNAL_FRAMES = 30;

/** The frames here that are not this package's, as many as errors have. */
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

/** The lines of a stack behind the message. */
function framesOf(stack: string): string[] {
  const begin = stack.search(/\n {4}at /);
  return begin < 0 ? [] : stack.slice(begin + 1).split('\n');
}
