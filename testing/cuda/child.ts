import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** End of a process: its exit code, or the reason why it has none. */
export interface ChildEnd {
  readonly status: number | null;
  /** `SIGSEGV`, or `time limit` */
  readonly reason: string | undefined;
  readonly stderr: string;
}

/**
 * Runs a process, which is ended when the limit aborts.
 * @param onLine takes lines of its output
 * @param fd that it gets as file descriptor 3
 * @param hasGroup ends what the process has started, too: it gets a group of its own
 */
export function runChild(
  words: readonly string[],
  limit: AbortSignal,
  onLine: (line: string) => void,
  { hasGroup = false, environment = process.env, fd }: { hasGroup?: boolean; environment?: NodeJS.ProcessEnv; fd?: number } = {},
): Promise<ChildEnd> {
  const [program = '', ...rest] = words;
  const child = spawn(program, rest, {
    detached: hasGroup,
    stdio: ['ignore', 'pipe', 'pipe', ...(fd === undefined ? [] : [fd])],
    env: environment,
  });
  const end = (): void => {
    try {
      if (child.pid !== undefined) process.kill(hasGroup ? -child.pid : child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  limit.addEventListener('abort', end);
  process.once('exit', end);
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', onLine);
  return new Promise((resolve) => {
    const finish = (status: number | null, reason: string | undefined): void => {
      limit.removeEventListener('abort', end);
      process.off('exit', end);
      resolve({ status, reason: limit.aborted ? 'time limit' : reason, stderr });
    };
    child.on('error', (error) => finish(null, error.message));
    child.on('close', (status, signal) => finish(status, signal ?? undefined));
  });
}
