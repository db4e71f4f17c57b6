/** Flags of Node that give a script on the command line, or its type. */
const script = /^(?:-p?e|-p|--eval|--print|--input-type)(?:=|$)/;

/**
 * Node's flags for a worker that runs a file: this process's own, but not those of a script given on the command line
 * (`node --input-type=module -e …`). Node refuses the type beside a file, and `parseArgs` would take the file for an argument.
 */
export function workerFlags(flags: readonly string[] = process.execArgv): string[] {
  return flags.filter(
    (flag, i) => !script.test(flag) && !(script.test(flags[i - 1] ?? '') && !(flags[i - 1] ?? '').includes('=')),
  );
}
