import type { RunOptions } from './run.js';

/** Values of options that are not given. */
export const runDefaults = { bindTo: 'none', grace: 1, prefix: true, connectTimeout: 30 } as const;

/**
 * Reads `run -n 4 --no-prefix -- command …`. A command line with anything else is undefined: commander reads it
 * (../commands/run.ts), whose loading alone takes a tenth of the time of starting a job.
 */
export function plainRun(
  args: readonly string[],
): { readonly command: [string, ...string[]]; readonly options: RunOptions } | undefined {
  if (args[0] !== 'run') return undefined;
  let options: RunOptions = runDefaults;
  let next = 1;
  for (; ; next++) {
    const word = args[next];
    if (word === '--no-prefix') options = { ...options, prefix: false };
    else if (word === '-n' || word === '--ranks') {
      const count = args[++next] ?? '';
      if (!/^[1-9]\d{0,3}$/.test(count)) return undefined;
      options = { ...options, ranks: [Number(count)] };
    } else break;
  }
  if (args[next] === '--') next++;
  const [command = '-', ...rest] = args.slice(next);
  return command.startsWith('-') ? undefined : { command: [command, ...rest], options };
}
