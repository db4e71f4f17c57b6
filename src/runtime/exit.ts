import { process } from '#platform/process';
/** Called with the exit code when the process (or thread) ends in order. */
type ExitListener = (exitCode: number) => void;

const listeners = new Set<ExitListener>();

/**
 * Calls `listener` when this process or thread exits. One hook serves all, because Node.js warns about a leak above ten.
 * Returns a function that removes it.
 */
export function onExit(listener: ExitListener): () => void {
  if (listeners.size === 0) process.on('exit', callListeners);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) process.removeListener('exit', callListeners);
  };
}

/** The newest first: resources are closed in the reverse order of opening. */
function callListeners(exitCode: number): void {
  // The event of an await that nothing can end carries 0; Node.js sets the code 13 beside it.
  const code = Number(process.exitCode ?? exitCode);
  for (const listener of [...listeners].reverse()) listener(code);
}
