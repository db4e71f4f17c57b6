/**
 * Calls of the promise form fail from the event loop, so an error's own stack shows where the failure was noticed, and nothing of
 * the program. What awaits a promise is known to V8, which shows it in the stack of an error made while that promise is being
 * rejected. So nothing has to be remembered when a call begins, and calls that succeed pay nothing.
 */

/** Errors that lead to a caller already: one that ends a communicator is given to all its calls. */
const led = new WeakSet<Error>();

const turn = Promise.resolve();

/** What a call's promise is to be resolved with so that it rejects with `error`, whose stack then begins where the promise is awaited. */
async function rejected(error: Error): Promise<never> {
  // Two turns later the promise has taken this one on, and V8 finds what awaits it from here.
  await turn;
  await turn;
  throw leadToCaller(error, rejected);
}

/** What settles a call's promise, whose `resolve` it is given: well, or with an error, whose stack then begins where the promise is awaited. */
export function settlerOf(resolve: (value?: Promise<never>) => void): (error?: Error) => void {
  return (error) => resolve(error === undefined ? undefined : rejected(error));
}

/** What `promise` gives. An error's stack begins where this is awaited. */
export async function ledToCaller<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw leadToCaller(error, ledToCaller);
  }
}

/**
 * Lets the stack of an error that was made elsewhere begin here.
 *
 * @param below the innermost function that is left out
 */
export function leadToCaller<E>(error: E, below: (...args: never[]) => unknown = leadToCaller): E {
  if (!(error instanceof Error) || typeof error.stack !== 'string' || led.has(error)) return error;
  const here: { stack?: unknown } = {};
  Error.captureStackTrace(here, below);
  const frames = typeof here.stack === 'string' ? framesOf(here.stack) : '';
  const outermost = frames.slice(frames.lastIndexOf('\n'));
  if (frames === '' || error.stack.includes(outermost)) return error;
  led.add(error);
  error.stack = `${error.name}: ${error.message}${frames}${framesOf(error.stack)}`;
  return error;
}

/** The lines of a stack behind the message. */
function framesOf(stack: string): string {
  const begin = stack.search(/\n {4}at /);
  return begin < 0 ? '' : stack.slice(begin);
}
