import { expect, test } from 'vitest';
import { workerFlags } from '../../../../src/runtime/launch/worker-flags.js';

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
