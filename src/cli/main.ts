#!/usr/bin/env node
import { complain } from './output.js';
import { runCommand } from './program.js';

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

process.exitCode = await runCommand(process.argv);
if (unwritable !== undefined && process.exitCode === 0) process.exitCode = 1;
