#!/usr/bin/env node
import { complain } from './output.js';
import { plainRun } from './run/plain.js';

// The reader of our output may stop before its end, as `head` does, which is not a failure; a full disk is. A command with a
// listener of its own (`tccl run`) handles this itself.
let unwritable: Error | undefined;
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && unwritable === undefined) {
      unwritable = error;
      if (stream === process.stdout) complain('tccl', `the output cannot be written: ${error.message}`);
    }
    if (unwritable !== undefined) process.exitCode = 1;
    else if (stream === process.stdout) process.exitCode = 0;
    if (stream.listenerCount('error') === 1) process.exit();
  });
}

process.exitCode = await runArguments();
if (unwritable !== undefined && process.exitCode === 0) process.exitCode = 1;

async function runArguments(): Promise<number> {
  const plain = plainRun(process.argv.slice(2));
  if (plain === undefined) return (await import('./program.js')).runCommand(process.argv);
  try {
    const { run } = await import('./run/run.js');
    return await run(plain.command, plain.options);
  } catch (error) {
    return (await import('./exit-code.js')).reportFailure(error);
  }
}
