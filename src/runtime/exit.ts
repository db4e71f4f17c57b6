/** Told of the process's (or thread's) end in order, with its exit code. */
export type ExitListener = (exitCode: number) => void;

const listeners = new Set<ExitListener>();

/**
 * Calls `listener` when this process or thread exits. One hook serves all: Node.js takes more than ten
 * for a leak. Returns a function that stops it.
 */
export function onExit(listener: ExitListener): () => void {
  if (listeners.size === 0) process.on('exit', tellAll);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) process.removeListener('exit', tellAll);
  };
}

/** The newest first: what was opened last is left first. */
function tellAll(exitCode: number): void {
  for (const listener of [...listeners].reverse()) listener(exitCode);
}
