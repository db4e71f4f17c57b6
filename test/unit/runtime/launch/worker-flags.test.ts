import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { startWithFlags, workerFlags } from '../../../../src/runtime/launch/worker-flags.js';

test.each([
  [['--expose-gc', '--input-type=module', '-e', 'await 1'], ['--expose-gc']],
  [['--input-type', 'module', '-pe', '1', '--max-old-space-size=100'], ['--max-old-space-size=100']],
  [
    ['--eval=1', '--require', './hook.cjs'],
    ['--require', './hook.cjs'],
  ],
  [
    ['--env-file=.env', '--experimental-vm-modules'],
    ['--env-file=.env', '--experimental-vm-modules'],
  ],
])('a worker gets the flags of %j without the script', (flags, expected) => {
  expect(workerFlags(flags)).toEqual(expected);
});

// `node --max-old-space-size=8192 train.mjs` could start neither threads of ranks nor engine threads.
test("a worker starts with the flags that Node takes for it, without V8's", async () => {
  const flags = ['--max-old-space-size=100', '--no-warnings', '--expose-gc'];
  const worker = startWithFlags(
    (execArgv) => new Worker("require('worker_threads').parentPort.postMessage(process.execArgv)", { eval: true, execArgv }),
    flags,
  );
  // A worker that has ended already hands out its last message and its end at once.
  const [message] = await Promise.all([once(worker, 'message'), once(worker, 'exit')]);
  expect(message).toEqual([['--no-warnings']]);
});

test('other errors of a start are thrown', () => {
  const start = (): Worker => {
    throw new Error('no memory');
  };
  expect(() => startWithFlags(start, ['--no-warnings'])).toThrow('no memory');
});
