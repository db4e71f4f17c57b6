import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const command = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface Outcome {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Lines that are JSON, in the order in which they came. */
  readonly records: readonly Record<string, unknown>[];
}

/** Runs `fixtures/<fixture>` as `nRanks` processes under `tccl run`. */
export function runRanks(
  nRanks: number,
  fixture: string,
  args: readonly string[] = [],
  { env = {}, flags = [] }: { env?: Record<string, string>; flags?: readonly string[] } = {},
): Promise<Outcome> {
  const file = fileURLToPath(new URL(`fixtures/${fixture}`, import.meta.url));
  const child = spawn(
    process.execPath,
    [command, 'run', '-n', String(nRanks), '--no-prefix', ...flags, '--', process.execPath, file, ...args],
    { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode) => {
      const records = stdout.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Record<string, unknown>);
      resolve({ exitCode, stdout, stderr, records });
    });
  });
}
