import { expect, it } from 'vitest';
import { cuda } from '../../../src/cuda/index.js';
import { dataParallel, loadCheckpoint, saveCheckpoint } from '../../../src/ddp/index.js';
import { init } from '../../../src/index.js';
import { webgpu } from '../../../src/webgpu/index.js';

const weights = new Float32Array(4);

it.each([
  ['webgpu', webgpu],
  ['cuda', cuda],
  ['dataParallel', (comm) => dataParallel(comm, { weights })],
  ['saveCheckpoint', (comm) => saveCheckpoint(comm, '/nowhere/model', { weights })],
  ['loadCheckpoint', (comm) => loadCheckpoint(comm, '/nowhere/model', { weights })],
] as [string, (comm: Awaited<ReturnType<typeof init>>) => Promise<unknown>][])(
  '%s names itself on a communicator that is closed, and gives the reason of one that has failed',
  async (call, run) => {
    const closed = await init({ rank: 0, nRanks: 1 });
    await closed.close();
    await expect(run(closed)).rejects.toMatchObject({ code: 'CLOSED', message: `${call}: rank 0 has closed the communicator` });
    const failed = await init({ rank: 0, nRanks: 1 });
    failed.abort('a test');
    await expect(run(failed)).rejects.toMatchObject({ code: 'ABORTED', message: 'rank 0 aborted the communicator: a test' });
    await failed.close();
  },
);

it.each([
  ['webgpu', webgpu],
  ['cuda', cuda],
] as [string, (comm: unknown) => Promise<unknown>][])('%s says what to pass in place of other values', async (call, run) => {
  await expect(run({ device: 0 })).rejects.toMatchObject({
    code: 'ARGUMENT_TYPE',
    message: `${call}: pass a communicator of init() first, as in ${call}(comm), not an object of class Object`,
  });
});
