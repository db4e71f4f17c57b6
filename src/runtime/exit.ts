/** Called with the exit code when the process (or thread) ends in order. */
type ExitListener = (exitCode: number) => void;

const listeners = new Set<ExitListener>();

/**
 * Calls `listener` when this process or thread exits. One hook serves all, because Node.js warns about a leak above ten.
 * Returns a function that removes it.
 */
export function onExit(listener: ExitListener): () => void {
  if (listeners.size === 0) process.on('exit', gatherJson);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) process.removeListener('exit', gatherJson);
  };
}

/** The newest first: resources are closed in the reverse order of opening. */
function gatherJson(exitCode: number): void {
  for (const listener of [...listeners].reverse()) listener(exitCode);
}
