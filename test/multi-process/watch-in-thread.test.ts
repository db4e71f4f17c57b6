import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const libcModule = new URL('../../dist/runtime/device/libc.js', import.meta.url).href;

/** Only the thread loads koffi, so that Node would unload its binary with the thread. */
const program = `
  import { Worker } from 'node:worker_threads';
  const source = \`
    import { parentPort } from 'node:worker_threads';
    import { loadLibc } from '${libcModule}';
    const { libc } = loadLibc();
    const { readEnd, writeEnd } = libc.pipe();
    const neverEnds = () => {
      parentPort.postMessage('is told');
      while (true);
    };
    globalThis.watch = libc.watchFd(readEnd, { readable: true }, neverEnds);
    if ('\${process.argv[1]}' === 'terminate while told') libc.writeFd(writeEnd);
    else parentPort.postMessage('watches');
    parentPort.on('message', () => process.exit());
  \`;
  const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(source)));
  await new Promise((resolve) => worker.once('message', resolve));
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  if (process.argv[1] !== 'exit') await worker.terminate();
  else worker.postMessage('exit');
  await ended;
  console.log('lives');
`;

test.each(['terminate', 'exit', 'terminate while told'])(
  'a thread that ends (%s) while it watches a descriptor leaves the process alive',
  (how) => {
    const { stdout, stderr, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', program, how], {
      encoding: 'utf8',
    });
    expect({ stdout, stderr, signal }).toEqual({ stdout: 'lives\n', stderr: '', signal: null });
  },
);
