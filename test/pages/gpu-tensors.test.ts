import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missing as missingBrowser, software } from '../browser/chromium.js';
import { IsolatedPages } from '../browser/isolated.js';

const library = fileURLToPath(new URL('../tensors/node_modules/onnxruntime-web/dist', import.meta.url));
const missing = existsSync(library) ? missingBrowser : ' (needs: npm ci --ignore-scripts --prefix test/tensors)';

/** A rank whose session has the model y = x + x, on its device. */
const start = `
  import { init } from '/dist/browser/index.js';
  import { dataParallel, onnxTensors, saveCheckpoint, tensorCalls } from '/dist/browser/ddp.js';
  import { webgpu } from '/dist/browser/webgpu.js';
  import * as ort from '/onnx/ort.webgpu.min.mjs';

  Object.assign(ort.env.wasm, { wasmPaths: '/onnx/', numThreads: 1 });
  const bytes = (text) => [...new TextEncoder().encode(text)];
  const field = (number, content) => [(number << 3) | 2, content.length, ...content];
  const value = (name) => [...field(1, bytes(name)), ...field(2, field(1, [8, 1, ...field(2, field(1, [8, 2]))]))];
  const node = [...field(1, bytes('x')), ...field(1, bytes('x')), ...field(2, bytes('y')), ...field(4, bytes('Add'))];
  const graph = [...field(1, node), ...field(2, bytes('g')), ...field(11, value('x')), ...field(12, value('y'))];
  const model = Uint8Array.from([8, 8, ...field(7, graph), ...field(8, [...field(1, []), 16, 13])]);
  const session = await ort.InferenceSession.create(model, {
    executionProviders: ['webgpu'],
    preferredOutputLocation: 'gpu-buffer',
  });
  const doubled = async (...values) => (await session.run({ x: new ort.Tensor('float32', values, [2]) })).y;
  const comm = await init();
  const device = await ort.env.webgpu.device;
  const gpu = await webgpu(comm, device);
  const tensors = onnxTensors(ort, gpu);
  /** A tensor of float16 whose bytes are no multiple of 4. */
  const halves = (...values) => {
    const buffer = device.createBuffer({ size: 8, usage: 128 | 4 | 8, mappedAtCreation: true });
    new Uint16Array(buffer.getMappedRange()).set(values);
    buffer.unmap();
    return ort.Tensor.fromGpuBuffer(buffer, { dataType: 'float16', dims: [values.length] });
  };
  const hex = async (tensor) => [...(await tensors.read(tensor))].map((each) => each.toString(16));
  const show = async (tensor) => [tensor.location, tensor.dims, [...(await tensor.getData())]];`;

let pages: IsolatedPages;
beforeAll(async () => {
  if (missing !== '') return;
  pages = await IsolatedPages.open(software);
  pages.folders.set('/onnx/', library);
});
afterAll(() => pages.close());

let number = 0;
/** Runs two ranks of a page. Returns what they posted, by rank. */
async function run(body: string): Promise<readonly unknown[]> {
  const path = `/rank-${++number}.js`;
  pages.files.set(path, `${start}\n${body}\nawait gpu.close();\nawait comm.close();`);
  const page = await pages.page();
  const messages = await page.evaluate<readonly unknown[]>(
    `(async () => {
      const { spawnRanks } = await import('/dist/browser/index.js');
      const messages = [];
      await spawnRanks(2, ${JSON.stringify(path)}, { onMessage: (message, rank) => (messages[rank] = message) });
      return messages;
    })().catch((error) => [error.message, error.cause?.stack])`,
  );
  await page.context().close();
  return messages;
}

const both = <T>(of: T): readonly T[] => [of, of];

describe.skipIf(missing)(`GPU tensors of onnxruntime-web${missing}`, () => {
  it('are reduced, gathered and given to the next session, without the host', async () => {
    const results = await run(`
      const calls = tensorCalls(comm, tensors);
      const sum = await calls.allReduce(await doubled(comm.rank, 1));
      const { y } = await session.run({ x: sum });
      const rows = await calls.allGather(await doubled(comm.rank, 3));
      const half = await calls.allReduce(halves(0x3c00, 0x4000, 0x4200), 'avg');
      const onHost = await calls.allReduce(new ort.Tensor('float32', [comm.rank, 1], [2]));
      const shown = [await show(sum), await show(y), await show(rows), await hex(half), half.dims, await show(onHost)];
      sum.dispose();
      const free = await calls.allReduce(sum).catch(({ message }) => message);
      postMessage([...shown, free]);`);
    expect(results).toEqual(
      both([
        ['gpu-buffer', [2], [2, 4]],
        ['gpu-buffer', [2], [4, 8]],
        ['gpu-buffer', [4], [0, 6, 2, 6]],
        ['3c00', '4000', '4200'],
        [3],
        ['cpu', [2], [1, 2]],
        'The tensor is disposed.',
      ]),
    );
  });

  it('are parameters and gradients of data-parallel training', async () => {
    const results = await run(`
      const weight = await doubled(comm.rank + 1, 5);
      const half = halves(0x3c00 + comm.rank, 0x4000, 0x4200);
      const ddp = await dataParallel(comm, { weight, half }, { tensors });
      const given = halves(0x3c00, comm.rank === 0 ? 0x3c00 : 0x4200, 0);
      ddp.ready('half', given);
      ddp.ready('weight', await doubled(comm.rank, 10));
      const gradients = await ddp.finish();
      const shown = [await hex(half), await show(weight), await hex(gradients.half), await show(gradients.weight)];
      ddp.close();
      const file = await saveCheckpoint(comm, 'model.safetensors', { weight }, { tensors }).catch(({ message }) => message);
      postMessage([...shown, file]);`);
    expect(results).toEqual(
      both([
        ['3c00', '4000', '4200'],
        ['gpu-buffer', [2], [2, 10]],
        ['3c00', '4000', '0'],
        ['gpu-buffer', [2], [1, 20]],
        'saveCheckpoint: model.safetensors cannot be written: rm needs Node.js: a page has neither files, processes nor sockets',
      ]),
    );
  });
});
