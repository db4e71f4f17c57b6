import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { othersOf } from '../devices/expected.js';
import { webgpuRefusalsOf } from '../webgpu/expected.js';
import { missing, software } from '../browser/chromium.js';
import { IsolatedPages } from '../browser/isolated.js';

let pages: IsolatedPages;
beforeAll(async () => {
  if (missing !== '') return;
  pages = await IsolatedPages.open(software);
  for (const [name, file] of Object.entries({ compliance: '../devices/compliance.mjs', kit: '../webgpu/kit.mjs' }))
    pages.files.set(`/${name}.js`, readFileSync(new URL(file, import.meta.url), 'utf8'));
});
afterAll(() => pages.close());

let number = 0;
/** Runs ranks of a page, each with a device of its own: results by rank. */
async function run(nRanks: number, body: string): Promise<readonly unknown[]> {
  const path = `/rank-${++number}.js`;
  pages.files.set(
    path,
    `import { init } from '/dist/browser/index.js';
    import { webgpu } from '/dist/browser/webgpu.js';
    import * as checks from '/compliance.js';
    import { kitOf, lostBefore } from '/kit.js';
    const newDevice = async () => (await navigator.gpu.requestAdapter()).requestDevice();
    const comm = await init();
    ${body}
    await comm.close();`,
  );
  const page = await pages.page();
  const messages = await page.evaluate<readonly unknown[]>(
    `(async () => {
      const { spawnRanks } = await import('/dist/browser/index.js');
      const messages = [];
      await spawnRanks(${nRanks}, ${JSON.stringify(path)}, { onMessage: (message, rank) => (messages[rank] = message) });
      return messages;
    })().catch((error) => [error.message, error.cause?.stack])`,
  );
  await page.context().close();
  return messages;
}

const check = (name: string): string =>
  `const device = await newDevice();
  const gpu = await webgpu(comm, device);
  const kit = ${name === 'refusals' ? 'kitOf(gpu, device, await newDevice())' : 'undefined'};
  postMessage(await checks.${name}(comm, gpu, kit));
  await gpu.close();`;

describe.skipIf(missing)(`buffers of WebGPU in a page${missing}`, () => {
  it.each([2, 4])('are exchanged between %i workers as arrays of the host are', async (nRanks) => {
    const each = { calls: 240, wrong: [] };
    expect(await run(nRanks, check('collectives'))).toEqual(Array.from({ length: nRanks }, () => each));
  });

  it('are exchanged in chunks, by calls that keep their order', async () => {
    expect(await run(2, check('inChunks'))).toEqual([[], []]);
  });

  it('are sent, and grouped with messages', async () => {
    expect(await run(2, check('others'))).toEqual([othersOf(0, 2), othersOf(1, 2)]);
  });

  it('are refused with one line each, and calls go on', async () => {
    expect(await run(2, check('refusals'))).toEqual([webgpuRefusalsOf(2), webgpuRefusalsOf(2)]);
  });

  it('a lost device ends the communicators of all ranks with its reason', async () => {
    const results = await run(
      3,
      `const device = await newDevice();
      const gpu = await webgpu(comm, device);
      if (comm.rank === 1) device.destroy();
      const x = comm.rank === 1 ? undefined : await gpu.alloc(Float32Array, 8);
      const failed = comm.rank === 1 ? undefined : await gpu.allReduce(x).catch(({ code, rank }) => [code, rank]);
      postMessage([failed, (await comm.failed).message.replace(/(?<=was lost: ).*/, '…')]);
      await gpu.close();`,
    );
    const reason = 'rank 1 aborted the communicator: its WebGPU device was lost: …';
    expect(results).toEqual([
      [['ABORTED', 1], reason],
      [undefined, reason],
      [['ABORTED', 1], reason],
    ]);
  });

  it('a device that was lost before is refused on all ranks', async () => {
    expect(await run(2, 'postMessage(await lostBefore(comm, webgpu, newDevice));')).toEqual([
      [
        expect.stringMatching(
          /^ABORTED: webgpu: rank 1 could not open its WebGPU device: the GPUDevice was lost before: .*; pass a new one$/,
        ),
        1,
      ],
      [expect.stringMatching(/^DEVICE_LOST: webgpu: the GPUDevice was lost before: .*; pass a new one$/), 1],
    ]);
  });

  it('all ranks get the error of a rank without an adapter, and the communicator goes on', async () => {
    const reason =
      'WebGPU finds no adapter: install a driver of the GPU, or allow a software one (lavapipe, SwiftShader); Chromium on Linux needs --enable-unsafe-webgpu';
    const results = await run(
      2,
      `if (comm.rank === 1) navigator.gpu.requestAdapter = async () => null;
      const said = await webgpu(comm).catch(({ code, message }) => code + ': ' + message);
      postMessage([said, await comm.allReduce(1)]);`,
    );
    expect(results).toEqual([
      [`ABORTED: webgpu: rank 1 could not open its WebGPU device: ${reason}`, 2],
      [`UNSUPPORTED: webgpu: ${reason}`, 2],
    ]);
  });
});

describe.skipIf(missing)(`a browser without WebGPU${missing}`, () => {
  it('says how to have it', async () => {
    const [said] = await run(
      1,
      `Object.defineProperty(navigator, 'gpu', { value: undefined });
      postMessage(await webgpu(comm).catch(({ code, message }) => code + ': ' + message));`,
    );
    expect(said).toMatch(
      /^UNSUPPORTED: webgpu: there is no navigator.gpu here: browsers with WebGPU have it in pages of https or localhost/,
    );
  });
});
