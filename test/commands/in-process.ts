import { vi } from 'vitest';
import { runCommand } from '../../dist/cli/program.js';
import { type Finished, inheritedEnvironment, type StartOptions, tccl as tcclProcess } from '../multi-process/cli.js';

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `tccl …` to its end in this process, one command after the other, which saves the start of Node. With input it is a
 * process of its own; tests of the process itself use `start` of ../multi-process/cli.ts.
 */
export function tccl(args: readonly string[], options: Pick<StartOptions, 'env' | 'input' | 'cwd'> = {}): Promise<Finished> {
  if (options.input !== undefined) return tcclProcess(args, options);
  const finished = last.then(() => run(args, options));
  last = finished.catch(() => undefined);
  return finished;
}

async function run(args: readonly string[], { env = {}, cwd }: Pick<StartOptions, 'env' | 'cwd'>): Promise<Finished> {
  const written = { stdout: '', stderr: '' };
  const before = { env: process.env, cwd: process.cwd(), exitCode: process.exitCode };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((piece) => {
      written[name] += typeof piece === 'string' ? piece : Buffer.from(piece).toString();
      return true;
    }),
  );
  try {
    process.env = { ...inheritedEnvironment(), ...env };
    process.exitCode = undefined;
    if (cwd !== undefined) process.chdir(cwd);
    const code = await runCommand([process.execPath, 'tccl', ...args]);
    return { code, signal: null, ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.chdir(before.cwd);
    process.exitCode = before.exitCode;
    process.env = before.env;
  }
}
