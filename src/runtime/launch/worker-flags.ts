import type { Worker } from '#platform/threads';

/** Flags of Node that pass a script on the command line, or set its type. */
const script = /^(?:-p?e|-p|--eval|--print|--input-type)(?:=|$)/;

/**
 * Node's flags for a worker that runs a file: this process's flags, without those of a script given on the command line (`node
 * --input-type=module -e …`). Node refuses the type beside a file, and `parseArgs` would treat the file as an argument.
 */
export function workerFlags(flags: readonly string[] = process.execArgv): string[] {
  return flags.filter(
    (flag, i) => !script.test(flag) && !(script.test(flags[i - 1] ?? '') && !(flags[i - 1] ?? '').includes('=')),
  );
}

/**
 * Starts a worker with this process's flags. Those that Node refuses for a worker are left out: V8's, such as
 * `--max-old-space-size`, which hold for the process.
 */
export function startWithFlags(start: (execArgv: string[]) => Worker, flags: string[] = workerFlags()): Worker {
  try {
    return start(flags);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_WORKER_INVALID_EXEC_ARGV') throw error;
    const refused = (error as Error).message.replace(/^.*?: /, '').split(', ');
    return start(flags.filter((flag) => !refused.includes(flag)));
  }
}
