import { spawn } from 'node:child_process';

/** Commands that print more are ended. */
const MOST_OUTPUT = 256 * 2 ** 20;

/** A word of a shell that stands for this text. */
export function quoted(text: string): string {
  return /^[\w@.:/-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Runs a command of a shell to its end. */
export function outputOf(
  command: string,
  signal: AbortSignal,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'], signal });
    const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    let bytes = 0;
    for (const stream of ['stdout', 'stderr'] as const)
      child[stream].on('data', (piece: Buffer) => {
        bytes += piece.length;
        if (bytes > MOST_OUTPUT) child.kill();
        else output[stream].push(piece);
      });
    child.once('error', reject);
    child.once('close', (code) =>
      resolve({ code, stdout: Buffer.concat(output.stdout).toString(), stderr: Buffer.concat(output.stderr).toString() }),
    );
  });
}
