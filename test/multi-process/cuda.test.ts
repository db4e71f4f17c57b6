import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { othersOf, refusalsOf } from '../devices/expected.js';
import { forEach, ranksOf, started } from './device-ranks.js';

const folder = fileURLToPath(new URL('../cuda', import.meta.url));
const built = mkdtempSync(join(tmpdir(), 'tccl-cuda-'));
/** The fake driver as one module, which ranks import. */
const fake = join(built, 'fake-driver.mjs');

beforeAll(async () => {
  const bundle = await rolldown({ input: fileURLToPath(new URL('../../testing/cuda/fake-driver.ts', import.meta.url)) });
  await bundle.write({ file: fake, format: 'esm' });
  await bundle.close();
});
afterAll(() => rmSync(built, { recursive: true, force: true }));

const run = (nRanks: number, ...check: readonly string[]): readonly unknown[] =>
  started(ranksOf(nRanks, ['node', `${folder}/rank.mjs`, fake, ...check]));

describe('arrays of GPUs of a fake driver', () => {
  it.each([2, 4])('are exchanged between %i processes as arrays of the host are', (nRanks) => {
    expect(run(nRanks, 'collectives')).toEqual(forEach(nRanks, () => ({ calls: 240, wrong: [] })));
  });

  it('are exchanged between threads', () => {
    const results = started([`${folder}/threads.mjs`, '2', fake, 'collectives']);
    expect(results).toEqual(forEach(2, () => ({ calls: 240, wrong: [] })));
  });

  it('are exchanged in chunks, by calls that keep their order', () => {
    expect(run(3, 'inChunks')).toEqual([[], [], []]);
  });

  it('are exchanged alike where no memory can be page-locked', () => {
    expect(run(2, 'unpinned')).toEqual([-1, -1]);
  });

  it('are sent, and grouped with messages', () => {
    expect(run(3, 'others')).toEqual(forEach(3, (rank) => othersOf(rank, 3)));
  });

  it('are read after kernels that were queued before, and written before those that come after', () => {
    expect(run(2, 'ordered')).toEqual(forEach(2, () => [2 * 4 ** 10, 2 * 4 ** 10]));
    expect(run(2, 'written')).toEqual([[], []]);
  });

  it('of other libraries are used where they are', () => {
    // 1, 2, 3 and 4, twice as much for each.
    expect(run(2, 'tensors')).toEqual(forEach(2, () => [1, 2, 3, 4, 0x4000, 0x4080, 0x40c0, 0x4100]));
  });

  it('leave nothing behind', () => {
    // The check's own two contexts are left; an array keeps that of its device.
    const beforeFree = { allocations: 1, contexts: 2 };
    const left = { wasPinned: true, beforeFree, allocations: 0, opened: 0, locked: 0, handles: 0, contexts: 2, current: 0 };
    expect(run(2, 'released')).toEqual([left, left]);
  });
});

describe('wrong input of CUDA devices', () => {
  it('is refused with one line each, and calls go on', () => {
    const place = expect.stringMatching(/0x[0-9a-f]+/) as string;
    const tensor = 'ARGUMENT_TYPE: fromPointer: ';
    const example = 'pass memory as { pointer: 0x7f0000000000n, bytes: 4096 }, not an object of class';
    expect(run(2, 'refusals')).toEqual(
      forEach(2, () => ({
        ...refusalsOf(2),
        'no memory': `ARGUMENT_TYPE: wrap: ${example} Float32Array`,
        'no address': `ARGUMENT_TYPE: wrap: ${example} Object`,
        unknown: 'BUFFER_DETACHED: wrap: the driver knows no memory at 0x123000; it was freed, or is not of a GPU',
        'too long': expect.stringMatching(
          /^ARGUMENT_RANGE: wrap: there are 16 bytes at 0x\w+, not 32; the memory was freed, or is shorter$/,
        ) as string,
        foreign: expect.stringMatching(
          /^ARGUMENT_TYPE: wrap: 0x\w+ is memory of GPU 1, and this device is GPU 0; pass memory of GPU 0$/,
        ) as string,
        'freed by the program': place,
        'out of memory':
          'OUT_OF_MEMORY: alloc: cuMemAlloc of 4398046511104 bytes: CUDA_ERROR_OUT_OF_MEMORY (out of memory): free arrays, or use ' +
          'smaller ones; `nvidia-smi` shows which processes have the memory',
        'no tensor': expect.stringMatching(/^ARGUMENT_TYPE: fromPointer: pass the fields of a DLTensor, not \d+n$/) as string,
        'no data': `${tensor}data is an address, not "0x1000"`,
        'of the host': `${tensor}device is [2, number] for a GPU of CUDA, not [1,0]`,
        'of another GPU': `${tensor}the tensor is on GPU 1, and this device is GPU 0`,
        complex: `${tensor}no typed array has elements of the type {"code":5,"bits":64,"lanes":1}`,
        vectors: `${tensor}no typed array has elements of the type {"code":2,"bits":32,"lanes":4}`,
        shape: 'ARGUMENT_RANGE: fromPointer: shape is a list of whole numbers',
        transposed: 'ARGUMENT_RANGE: fromPointer: the tensor has gaps (strides [1,4]); pass a contiguous copy',
        beyond: expect.stringMatching(/^ARGUMENT_RANGE: wrap: there are 60 bytes at 0x\w+, not 64;/) as string,
      })),
    );
  });

  it('of opening reaches all ranks, and the communicator goes on', () => {
    const shared = 'DEVICE_DUPLICATE: cuda: ranks 0 and 1 have the same GPU of ';
    const own = {
      'no GPU':
        'UNSUPPORTED: cuda: cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected): `nvidia-smi -L` lists GPUs; ' +
        'CUDA_VISIBLE_DEVICES hides them, and a container needs `--gpus all`',
      'no fabric manager':
        'UNSUPPORTED: cuda: cuInit: CUDA_ERROR_SYSTEM_NOT_READY (system not yet initialized): start the service ' +
        'nvidia-fabricmanager, which NVSwitches need',
      'no context':
        'OUT_OF_MEMORY: cuda: cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (out of memory): free arrays, or use smaller ' +
        'ones; `nvidia-smi` shows which processes have the memory',
      'no stream': expect.stringMatching(/^OUT_OF_MEMORY: cuStreamCreate: CUDA_ERROR_OUT_OF_MEMORY/) as string,
      'no such GPU':
        'UNSUPPORTED: cuda: there is no GPU 2; the process has 2, from 0 to 1: CUDA_VISIBLE_DEVICES chooses and numbers them',
      'no number': 'ARGUMENT_TYPE: cuda: device is the number of a GPU, such as 0, not "cuda:0"',
      'no boolean': 'ARGUMENT_TYPE: cuda: exclusive is true or false, not "yes"',
      'no stream handle': 'ARGUMENT_TYPE: cuda: stream is the handle of a CUstream as a bigint, not 0',
      'not a stream':
        'ARGUMENT_TYPE: cuda: 0x4d is no stream of the GPU: cuEventRecord: CUDA_ERROR_INVALID_HANDLE (invalid resource handle)',
      'no such option': 'UNKNOWN_NAME: cuda: there is no option "gpu"; there are device, stream, exclusive',
      shared: expect.stringContaining(shared) as string,
      left: [],
      isUsable: true,
    };
    const [said, itself] = run(2, 'opening') as Record<string, string>[];
    expect(itself).toEqual(own);
    const reasonOf = (error: unknown): string => String(error).replace(/^[A-Z_]+: (cuda: )?/, '');
    const others = Object.entries(itself ?? {}).map(([name, error]) => [
      name,
      `ABORTED: cuda: rank 1 could not open its CUDA device: ${reasonOf(error)}`,
    ]);
    expect(said).toEqual({ ...Object.fromEntries(others), shared: own.shared, left: [], isUsable: true });
  });

  it('a kernel that faults ends the communicators of all ranks with its reason', () => {
    const fault =
      'cuEventQuery: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered): a kernel that the program started ' +
      'faulted; compute-sanitizer names it';
    const own = `DEVICE_LOST: rank 1 lost its CUDA device: ${fault}`;
    const reason = `rank 1 aborted the communicator: its CUDA device was lost: ${fault}`;
    const others = `ABORTED: ${reason} (communicator "cuda")`;
    expect(run(3, 'failures', 'lost')).toEqual([
      [others, others, reason],
      [own, own, reason],
      [others, others, reason],
    ]);
  });

  it('memory that is freed during a call ends the communicators', () => {
    const [first, failed] = run(2, 'failures', 'destroyed') as readonly (readonly string[])[];
    expect(failed?.[0]).toMatch(/^BUFFER_DETACHED: allReduce: a copy: the driver knows no memory at 0x\w+; it was freed/);
    expect(first?.[1]).toMatch(/^ABORTED: rank 1 aborted the communicator: allReduce: a copy: the driver knows no memory at 0x/);
  });

  it('lengths that differ in the number of chunks are found by all ranks', () => {
    expect(run(2, 'failures', 'short').map((lines) => (lines as readonly string[])[0])).toEqual(
      forEach(
        2,
        () => expect.stringMatching(/^CALL_MISMATCH: allReduce: ranks pass different lengths, from 1200000 to 2400000/) as string,
      ),
    );
  });

  it.each(['cuMemcpyDtoHAsync_v2', 'cuMemcpyHtoDAsync_v2', 'cuEventRecord', 'cuCtxPushCurrent_v2'])(
    'a %s that fails ends the communicators with the name of the result',
    (name) => {
      const [first, failed] = run(2, 'drivers', `${name},400,0`) as readonly (readonly string[])[];
      const said = `${name.replace(/_v2$/, '')}: CUDA_ERROR_INVALID_HANDLE (invalid resource handle)`;
      expect(failed?.[0]).toContain(`DEVICE_LOST: ${said}`);
      expect(first?.[1]).toMatch('ABORTED: rank 1 aborted the communicator');
    },
  );
});
