import { describe, expect, it } from 'vitest';
import { beforeFree, died, fakeGpus, forEach, nothingLeft, queuedOrder } from './device-ranks.js';

const gpus = fakeGpus();
const run = (nRanks: number, check: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  gpus.run(nRanks, check, { FAKE_GPUS: 'switch', ...env });
const threads = (nRanks: number, ...check: readonly string[]) => gpus.threads(nRanks, check, { FAKE_GPUS: 'switch' });

const nvls = { name: 'nvls', reason: 'each rank has a GPU of its own, and an NVSwitch combines the memory of all' };

describe('GPUs on a switch', () => {
  it.each([2, 3, 8])('exchange arrays of %i processes as arrays of the host are', (nRanks) => {
    expect(run(nRanks, ['collectives'])).toEqual(forEach(nRanks, () => ({ calls: 240, wrong: [] })));
  });

  it('exchange arrays of threads', () => {
    expect(threads(3, 'collectives')).toEqual(forEach(3, () => ({ calls: 240, wrong: [] })));
  });

  it('exchange memory of the program in place', () => {
    expect(run(2, ['wrapped'])).toEqual(forEach(2, () => ({ calls: 32, wrong: [] })));
  });

  it('add in any order, once, with the same bits on all ranks', () => {
    expect(run(3, ['switchSums'])).toEqual([[], [], []]);
  });

  it('combine what the switch does not as other GPUs do', () => {
    const seen = {
      allReduce: 'switch',
      reduceScatter: 'switch',
      allGather: 'switch',
      broadcast: 'switch',
      reduce: 'switch',
      'least of int32': 'switch',
      'greatest of float32': 'peers',
      'greatest of float16': 'peers',
      product: 'peers',
      gather: 'peers',
      allToAll: 'peers',
    };
    expect(run(2, ['switchCalls'])).toEqual([seen, seen]);
  });

  it.each([
    [2, 'all'],
    [3, 'some'],
  ] as const)('exchange arrays of %i processes by calls that are queued, on %s ranks', (nRanks, which) => {
    expect(run(nRanks, ['queued', which])).toEqual(forEach(nRanks, () => ({ calls: 32, wrong: [] })));
  });

  it('queue calls in the order of kernels of the program', () => {
    // Two arrays, and the records of calls on the switch.
    expect(run(3, ['queuedOrder'])).toEqual(queuedOrder(3));
  });

  it('leave nothing behind', () => {
    const left = { wasPinned: true, beforeFree, ...nothingLeft };
    expect(run(2, ['released', 'short'])).toEqual([left, left]);
  });

  it.each([
    ['killed', { again: expect.stringMatching(/^RANK_DIED/) as string, values: 'nothing', opened: 0, stays: true }],
    // Kernels that wait for it give up, so that streams go on.
    ['killedQueued', { hasEnded: true, again: 'nothing' }],
  ])('a rank that is killed in a call ends kernels that wait for it: %s', (check, others) => {
    const said = check === 'killed' ? died : [died, died, 'nothing', 'nothing'];
    expect(gpus.survivors(check, { FAKE_GPUS: 'switch' })).toEqual([0, 2].map(() => ({ said, ...others })));
  });

  it.each(['cuLaunchKernel,1', 'cuMemcpyHtoDAsync_v2,1', 'cuEventQuery,719'])('a %s that fails ends the communicators', (how) => {
    const [first, failed] = run(2, ['switchFailing', how]) as readonly (readonly string[])[];
    const name = how.replace(/(_v2)?,.*/, '');
    expect(failed?.[0]).toMatch(new RegExp(`^DEVICE_LOST: .*${name}: CUDA_ERROR_`));
    expect(first?.[1]).toMatch('ABORTED: rank 1 aborted the communicator');
  });
});

describe('without NVLS', () => {
  const peers = (reason: string, how = ' over NVLink') =>
    forEach(2, () => ({
      name: 'peers',
      reason: `the ranks are on one host, and their GPUs reach each other's memory${how}; no NVLS: ${reason}`,
      virtual: 0,
    }));

  it('the reason says what is missing, on all ranks', () => {
    const check = ['switchTransport'];
    expect(run(2, check)).toEqual(forEach(2, () => ({ ...nvls, virtual: expect.any(Number) as number })));
    expect(run(2, check, { FAKE_GPUS: 'each' })).toEqual(peers('rank 0: GPU 0 has no multicast memory (attribute 132 is 0)'));
    expect(run(2, check, { TCCL_NVLS_ENABLE: '0' })).toEqual(peers('rank 0: TCCL_NVLS_ENABLE=0'));
    expect(run(2, check, { FAKE_GPUS: 'one-switch' })).toEqual(peers('ranks 0 and 1 share a GPU', ' on one GPU'));
    expect(run(1, check)).toEqual(peers('there is one rank', '').slice(1));
  });

  it.each([
    ['cuMulticastCreate,801', 0],
    ['cuMemExportToShareableHandle,801', 0],
    ['cuMemImportFromShareableHandle,1', 1],
    ['cuMulticastAddDevice,801', 1],
    ['cuMemCreate,2', 1],
    ['cuMulticastBindMem,802', 0],
    ['cuMemMap,1', 1],
    ['cuMemSetAccess,1', 1],
    ['cuMemHostRegister_v2,800', 1],
  ] as const)('a %s that fails on rank %i leaves nothing, and blocks no other rank', (how, rank) => {
    const name = how.replace(/(_v2)?,.*/, '');
    const said = run(2, ['switchTransport', `${rank},${how}`]) as readonly { reason: string }[];
    expect(said).toEqual(forEach(2, () => ({ name: 'peers', reason: said[0]?.reason, virtual: 0 })));
    expect(said[0]?.reason).toMatch(new RegExp(`; no NVLS: rank ${rank}: ${name}: CUDA_ERROR_`));
  });
});
