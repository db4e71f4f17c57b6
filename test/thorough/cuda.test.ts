import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { othersOf, refusalsOf } from '../devices/expected.js';
import { beforeFree, died, fakeGpus, forEach, nothingLeft, queuedOrder } from './device-ranks.js';

const gpus = fakeGpus();
const run = (nRanks: number, ...check: readonly string[]) => gpus.run(nRanks, check);
/** The same with GPUs that reach each other: `one` that all ranks share, or `each` rank one. */
const runPeers = (nRanks: number, which: 'one' | 'each', ...check: readonly string[]) =>
  gpus.run(nRanks, check, { FAKE_GPUS: which });
const threads = (nRanks: number, which: 'one' | 'each' | '', ...check: readonly string[]) =>
  // Threads of one process have one driver: that of the others here is not.
  gpus.threads(nRanks, check, { FAKE_GPUS: which, TCCL_P2P_DISABLE: which === '' ? '1' : '0' });

describe('arrays of GPUs of a fake driver', () => {
  it.each([2, 4])('are exchanged between %i processes as arrays of the host are', (nRanks) => {
    expect(run(nRanks, 'collectives')).toEqual(forEach(nRanks, () => ({ calls: 240, wrong: [] })));
  });

  it('are exchanged between threads', () => {
    expect(threads(2, '', 'collectives')).toEqual(forEach(2, () => ({ calls: 240, wrong: [] })));
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
    const left = { wasPinned: true, beforeFree, ...nothingLeft };
    expect(run(2, 'released')).toEqual([left, left]);
  });
});

describe('GPUs that reach each other', () => {
  const why = 'no NVLS: rank 0: GPU 0 has no multicast memory (attribute 132 is 0)';
  const ways = (name: string, reason: string, nRanks: number, of: (from: number, to: number) => string) =>
    forEach(nRanks, () => ({ name, reason, paths: forEach(nRanks, (from) => forEach(nRanks, (to) => of(from, to))) }));
  const peers = (how: string, ...rest: [number, (from: number, to: number) => string]) =>
    ways('peers', `the ranks are on one host, and their GPUs reach each other's memory ${how}; ${why}`, ...rest);
  const over = (path: string) => (from: number, to: number) => (from === to ? 'LOC' : path);

  it('are found, and otherwise the reason', () => {
    expect(runPeers(2, 'one', 'transport')).toEqual(peers('on one GPU', 2, over('LOC')));
    expect(threads(3, 'each', 'transport')).toEqual(peers('over NVLink', 3, over('NVL')));
    const host = (reason: string, path = 'NVL') => ways('host', `rank 0: ${reason}`, 2, over(path));
    expect(threads(2, 'each', 'transport', 'apart')).toEqual(host('GPU 0 does not reach the memory of GPU 1'));
    const unsupported =
      'cuIpcOpenMemHandle: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED (peer access is not supported between these two devices)';
    expect(runPeers(2, 'each', 'transport', 'apart')).toEqual(host(unsupported));
    const disabled = gpus.run(2, ['transport'], { FAKE_GPUS: 'one', TCCL_P2P_DISABLE: '1' });
    expect(disabled).toEqual(host('TCCL_P2P_DISABLE=1', 'LOC'));
  });

  it('go the way that the topology gives, and TCCL_P2P_LEVEL', () => {
    const onPcie = { FAKE_GPUS: 'each', TCCL_TOPO_FILE: gpus.topologyFile('pcie') };
    expect(gpus.run(2, ['transport'], onPcie)).toEqual(peers('over PCIe (PIX)', 2, over('PIX')));
    const far = (from: number, to: number) => (from === to ? 'LOC' : from === 2 || to === 2 ? 'SYS' : 'PIX');
    const reason =
      'the GPUs of ranks 0 and 2, 0000:10:00.0 and 0000:12:00.0, are as far apart as SYS, farther than PXB ' +
      '(as NCCL has it on this machine; TCCL_P2P_LEVEL=SYS allows it)';
    expect(gpus.run(3, ['transport'], onPcie)).toEqual(ways('host', reason, 3, far));
    expect(gpus.threads(3, ['transport'], { ...onPcie, TCCL_P2P_LEVEL: 'SYS' })).toEqual(peers('over PCIe (SYS)', 3, far));
    const nvlink = gpus.run(2, ['transport'], { ...onPcie, TCCL_P2P_LEVEL: 'NVL' }) as readonly { readonly reason: string }[];
    expect(nvlink[1]?.reason).toMatch('as far apart as PIX, farther than NVL (TCCL_P2P_LEVEL)');
    const unknown = gpus.run(2, ['transport'], { FAKE_GPUS: 'each', TCCL_TOPO_FILE: '/none.xml' });
    const failed = "over unknown paths (ENOENT: no such file or directory, open '/none.xml')";
    expect(unknown).toEqual(peers(failed, 2, over('')).map(({ name, reason }) => ({ name, reason })));
  });

  it('are in the log with their ways', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tccl-log-'));
    const env = {
      FAKE_GPUS: 'each',
      TCCL_TOPO_FILE: gpus.topologyFile('pcie'),
      TCCL_DEBUG: 'INFO',
      TCCL_DEBUG_FILE: `${folder}/%p`,
    };
    gpus.run(3, ['transport'], env);
    const logs = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    rmSync(folder, { recursive: true });
    const lines = logs.map((log) => /TCCL INFO GPU .*/.exec(log)?.[0]).sort();
    expect(lines).toEqual(
      ['LOC PIX SYS', 'PIX LOC SYS', 'SYS SYS LOC'].map((paths, gpu) => {
        const line = `^TCCL INFO GPU 0000:1${gpu}:00.0 : host, the GPUs of ranks 0 and 2, .*; paths to ranks 0 to 2 : ${paths}$`;
        return expect.stringMatching(new RegExp(line)) as string;
      }),
    );
  });

  it('exchange arrays alike where the topology has them far apart', () => {
    const env = { FAKE_GPUS: 'each', TCCL_TOPO_FILE: gpus.topologyFile('pcie') };
    expect(gpus.run(3, ['collectives'], env)).toEqual(forEach(3, () => ({ calls: 240, wrong: [] })));
  });

  it.each(['cuStreamCreate,2,2', 'cuEventCreate,2,6', 'cuDeviceGetAttribute,1,2'])(
    'are left alone where a rank cannot make what calls between them need: %s',
    (how) => {
      const reason = expect.stringMatching(new RegExp(`^rank 1: ${how.replace(/,.*/, '')}: CUDA_ERROR_`)) as string;
      expect(runPeers(2, 'each', 'switchTransport', `1,${how}`)).toEqual(
        forEach(2, () => ({ name: 'host', reason, virtual: 0 })),
      );
    },
  );

  it.each([
    [2, 'one'],
    [3, 'each'],
    [8, 'one'],
  ] as const)('exchange arrays of %i processes as arrays of the host are, with %s', (nRanks, gpus) => {
    expect(runPeers(nRanks, gpus, 'collectives')).toEqual(forEach(nRanks, () => ({ calls: 240, wrong: [] })));
  });

  it.each([
    [2, 'one'],
    [4, 'each'],
  ] as const)('exchange arrays of %i threads, with %s', (nRanks, gpus) => {
    expect(threads(nRanks, gpus, 'collectives')).toEqual(forEach(nRanks, () => ({ calls: 240, wrong: [] })));
  });

  it('combine with the bits of the host, in the order of ranks', () => {
    expect(runPeers(3, 'one', 'bits')).toEqual([[], [], []]);
    // More than NCCL's exchange has, and several on a GPU.
    expect(threads(12, 'each', 'bits')).toEqual(forEach(12, () => []));
  });

  it('exchange memory of the program through memory of their own, in pieces', () => {
    expect(runPeers(3, 'one', 'wrapped')).toEqual(forEach(3, () => ({ calls: 32, wrong: [] })));
    expect(runPeers(2, 'each', 'pieces')).toEqual([[], []]);
  });

  it('keep the order of messages, groups and kernels of the program', () => {
    expect(runPeers(3, 'one', 'others')).toEqual(forEach(3, (rank) => othersOf(rank, 3)));
    expect(runPeers(2, 'each', 'ordered')).toEqual(forEach(2, () => [2 * 4 ** 10, 2 * 4 ** 10]));
    expect(runPeers(2, 'one', 'written')).toEqual([[], []]);
  });

  it.each([
    [2, 'one', 'none'],
    [3, 'each', 'some'],
    [3, 'one', 'all'],
  ] as const)(
    'send messages of %i processes from memory to memory, with %s, queued on %s of the ranks',
    (nRanks, gpus, which) => {
      expect(runPeers(nRanks, gpus, 'messages', which)).toEqual(forEach(nRanks, () => []));
    },
  );

  it('send messages of threads', () => {
    expect(threads(3, 'each', 'messages', 'some')).toEqual([[], [], []]);
  });

  it('order messages between kernels of the program', () => {
    // Each rank adds its number before it passes the token on; what it adds afterwards nobody receives.
    const wanted = (hasReturnedEarly: unknown): readonly unknown[] =>
      forEach(3, (rank) => ({ ...(rank === 0 && { value: 10 * 6 }), hasReturnedEarly }));
    expect(runPeers(3, 'one', 'token', 'queued')).toEqual(wanted(true));
    expect(runPeers(3, 'each', 'token', 'queued')).toEqual(wanted(true));
    expect(runPeers(3, 'each', 'token', 'done')).toEqual(wanted(expect.any(Boolean)));
  });

  it('find messages that do not match, and those that nobody sends or receives', () => {
    const mismatch = 'rank 0 sent 5000 float32 to rank 1, which receives 4000 float32 there; ';
    const [sender, receiver] = runPeers(2, 'one', 'wrongMessages', 'length') as readonly (readonly string[])[];
    expect(receiver?.[0]).toMatch(`CALL_MISMATCH: ${mismatch}`);
    expect(sender?.[0]).toMatch(`ABORTED: rank 1 aborted the communicator: ${mismatch}`);
    const [[untaken, after] = [], [other] = []] = runPeers(2, 'each', 'wrongMessages', 'no receiver') as string[][];
    expect(untaken).toMatch(/^TIMEOUT: /);
    expect([after, other].every((said) => /^(TIMEOUT|ABORTED): /.test(said ?? ''))).toBe(true);
    // As on the host, a receive whose message has not begun to arrive ends alone.
    const [[missing, next] = [], last] = runPeers(2, 'each', 'wrongMessages', 'no sender') as string[][];
    expect(missing).toMatch(/^TIMEOUT: /);
    expect([next, last]).toEqual(['nothing', ['nothing']]);
  });

  it.each([
    [2, 'one', 'all'],
    [3, 'each', 'some'],
  ] as const)('exchange arrays of %i processes by calls that are queued, with %s, on %s ranks', (nRanks, gpus, which) => {
    expect(runPeers(nRanks, gpus, 'queued', which)).toEqual(forEach(nRanks, () => ({ calls: 32, wrong: [] })));
  });

  it('queue calls in the order of kernels of the program', () => {
    const wanted = queuedOrder(2);
    expect(runPeers(3, 'one', 'queuedOrder')).toEqual(wanted);
    expect(runPeers(3, 'each', 'queuedOrder')).toEqual(wanted);
  });

  it('free memory when all others have closed it, and leave nothing behind', () => {
    // Allocations of each rank, and arrays of others that it has open.
    const seen = [...[1, 0], ...[2, 4], ...[3, 4], ...[3, 4], ...[2, 2], ...[1, 2], ...[1, 2], ...[1, 2]];
    expect(runPeers(3, 'one', 'freed').map((rank) => (rank as number[][]).flat())).toEqual(forEach(3, () => seen));
    const left = { wasPinned: false, beforeFree, ...nothingLeft };
    expect(runPeers(2, 'one', 'released', 'short')).toEqual([left, left]);
  });

  const left = (which: 'one' | 'each', check: string) => gpus.survivors(check, { FAKE_GPUS: which });

  it('a rank that is killed in a call ends those of the others, whose GPUs work still', () => {
    const each = { said: died, again: died, values: 'nothing', opened: 0, stays: true };
    expect(left('one', 'killed')).toEqual([each, each]);
  });

  it.each(['one', 'each'] as const)('a rank that is killed after a queued call blocks no other one, with %s', (gpus) => {
    const again = expect.stringMatching(/^(?:DEVICE_LOST: cuda: work that was queued on GPU|ABORTED: )/) as string;
    const each = { said: [died, died, died, died], hasEnded: false, again };
    expect(left(gpus, 'killedQueued')).toEqual([each, each]);
  });

  it('a rank that is killed after a queued call blocks no other device on the GPUs', () => {
    const stuck = expect.stringMatching(
      /^(?:DEVICE_LOST: cuda: work that was queued on GPU \d waits for a rank that has died|ABORTED: )/,
    ) as string;
    const each = { said: [stuck, died] };
    expect(left('each', 'killedBeside')).toEqual([each, each]);
  });

  it('a rank that is killed ends groups that go through the host', () => {
    expect(left('each', 'killedGroup')).toEqual([{ said: died }, { said: died }]);
  });

  it('memory for arrays of the program grows while a queued call uses it', () => {
    for (const gpus of ['one', 'each'] as const)
      expect(runPeers(3, gpus, 'grown')).toEqual(forEach(3, () => ['nothing', 'nothing', 'nothing', 'nothing']));
  });

  it('a call that waits too long has its own name in the error, not that of the exchange within', () => {
    const said = expect.stringMatching(
      /^TIMEOUT: allReduce: rank 0 waited 0.001 s in allReduce of float32 on devices, call \d+, for rank 1/,
    ) as string;
    expect(runPeers(2, 'each', 'late')).toEqual([[said, said], []]);
  });

  it.each([
    ['close', 'rank 0 called allReduce of float32 on devices; rank 1 called close of a device', 'nothing'],
    ['broadcast', 'rank 0 called allReduce of float32 on devices; rank 1 called broadcast of float32 on devices', undefined],
    ['type', 'rank 0 called allReduce of float32 on devices; rank 1 called allReduce of int32 on devices', undefined],
  ])('other calls on devices are named in the error: %s', (how, calls, closed) => {
    const said = expect.stringMatching(
      new RegExp(`^CALL_MISMATCH: \\w+: ranks do not call the same operation: ${calls}\\. All ranks`),
    ) as string;
    expect(runPeers(2, 'each', 'mismatched', how)).toEqual([said, closed ?? said]);
  });

  it.each([
    ['send', 'send of 5000 float32 with tag 7 to'],
    ['recv', 'recv of 5000 float32 with tag 7 from'],
  ])('reports of waits name the message of the program, which the other rank never takes: %s', (how, what) => {
    const said = gpus.run(2, ['alike', how], { FAKE_GPUS: 'each', TCCL_TIMEOUT: '1' });
    expect(said).toContainEqual(expect.stringMatching(new RegExp(`rank (\\d) waited 1 s in ${what} rank \\d, for `)));
  });

  it('a signal withdraws a receive alone; a send that nobody receives says so', () => {
    const [sender, receiver] = runPeers(2, 'each', 'withdrawn') as [string[], string[]];
    expect(sender).toEqual(['nothing', 'TIMEOUT: send: rank 1 did not take the message of rank 0 in time']);
    expect(receiver).toEqual([expect.stringContaining('no more'), 'nothing']);
  });

  it('a rank that is killed ends messages to it and from it', () => {
    expect(left('each', 'killedMessage')).toEqual([{ said: died }, { said: died }]);
  });

  it('queued calls come to their end after the communicator has', () => {
    expect(runPeers(3, 'each', 'endedQueued')).toEqual(forEach(3, () => ({ said: 'TIMEOUT', isRead: true, opened: 0 })));
  });

  it('memory is not freed while a queued call uses it', () => {
    expect(runPeers(3, 'one', 'freedQueued')).toEqual(forEach(3, () => 'nothing'));
  });

  it('an own operator that throws ends the calls of the device, and the communicator goes on', () => {
    const said = 'OPERATOR_FAILED: allReduce: the operator threw on rank 1: no more (communicator "cuda")';
    expect(runPeers(3, 'one', 'throwing')).toEqual(forEach(3, () => ({ first: said, said, sum: 3, value: 6 })));
  });

  it('a kernel that faults ends the communicators of all ranks', () => {
    const lines = runPeers(3, 'one', 'failures', 'lost') as readonly (readonly string[])[];
    const fault = /its CUDA device was lost: cu\w+: CUDA_ERROR_ILLEGAL_ADDRESS/;
    expect(lines[1]?.[0]).toMatch(/^DEVICE_LOST: rank 1 lost its CUDA device: cu\w+: CUDA_ERROR_ILLEGAL_ADDRESS/);
    for (const line of [lines[0]?.[0], lines[2]?.[1], lines[0]?.[2], lines[1]?.[2]]) expect(line).toMatch(fault);
  });

  it.each(['cuLaunchKernel,1', 'cuIpcOpenMemHandle_v2,2', 'cuIpcGetMemHandle,1', 'cuEventRecord,400', 'cuModuleLoadDataEx,2'])(
    'a %s that fails ends the communicators with the name of the result',
    (how) => {
      const [first, failed] = runPeers(2, 'one', 'failing', how) as readonly (readonly string[])[];
      const name = how.replace(/(_v2)?,.*/, '');
      expect(failed?.[0]).toMatch(new RegExp(`^(DEVICE_LOST|OUT_OF_MEMORY): ${name}: CUDA_ERROR_`));
      expect(first?.[1]).toMatch('ABORTED: rank 1 aborted the communicator');
    },
  );

  it('refuse wrong arguments as others do, and find lengths that differ', () => {
    const said = runPeers(2, 'one', 'refusals') as readonly Record<string, string>[];
    const wanted = refusalsOf(2);
    for (const words of said)
      for (const [name, word] of Object.entries(wanted)) expect([name, words[name]]).toEqual([name, word]);
    for (const lines of runPeers(2, 'each', 'failures', 'short') as readonly (readonly string[])[])
      expect(lines[0]).toMatch(/^CALL_MISMATCH: allReduce: ranks pass different lengths, from 1200000 to 2400000/);
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
        'fewer than none': `ARGUMENT_TYPE: wrap: ${example} Object`,
        unaligned: expect.stringMatching(
          /^ARGUMENT_RANGE: wrap: elements of 4 bytes begin at multiples of 4, and 0x\w+ is none; pass a copy$/,
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
        'negative data': `${tensor}data is an address, not -4n`,
        'no device': `${tensor}device is [2, number] for a GPU of CUDA, not 2`,
        'device of bigints': `${tensor}device is [2, number] for a GPU of CUDA, not ["2n","0n"]`,
        'strides of bigints': 'ARGUMENT_RANGE: fromPointer: the tensor has gaps (strides ["1n","4n"]); pass a contiguous copy',
        'too many': 'ARGUMENT_RANGE: fromPointer: no memory has the bytes of a shape of [1099511627776,1099511627776]',
        'of no elements': 'nothing',
        'of the host': `${tensor}device is [2, number] for a GPU of CUDA, not [1,0]`,
        'of another GPU': `${tensor}the tensor is on GPU 1, and this device is GPU 0`,
        complex: `${tensor}no typed array has elements of the type {"code":5,"bits":64,"lanes":1}`,
        vectors: `${tensor}no typed array has elements of the type {"code":2,"bits":32,"lanes":4}`,
        shape: 'ARGUMENT_RANGE: fromPointer: shape is a list of whole numbers',
        transposed: 'ARGUMENT_RANGE: fromPointer: the tensor has gaps (strides [1,4]); pass a contiguous copy',
        beyond: expect.stringMatching(/^ARGUMENT_RANGE: fromPointer: there are 60 bytes at 0x\w+, not 64;/) as string,
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
      'no identity':
        'DEVICE_LOST: cuDeviceGetUuid: the unknown CUresult 999: restart the host, or load the module nvidia_uvm again',
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
    // It fails when all have opened theirs.
    const identity = `ABORTED: rank 1 aborted the communicator: it could not open its CUDA device: ${reasonOf(own['no identity'])} (communicator "cuda")`;
    const all = Object.fromEntries(others) as Record<string, string>;
    expect(said).toEqual({ ...all, 'no identity': identity, shared: own.shared, left: [], isUsable: true });
  });

  it('an allocation that the driver ends with a failure leaves nothing, and ends the communicators', () => {
    const failure = 'cuEventQuery: CUDA_ERROR_INVALID_HANDLE (invalid resource handle)';
    const aborted = `ABORTED: rank 1 aborted the communicator: ${failure}`;
    expect(runPeers(2, 'each', 'allocating')).toEqual([
      { said: [`${aborted} (communicator "cuda")`], left: 0 },
      { said: [`DEVICE_LOST: ${failure}`, aborted], left: 0 },
    ]);
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
    // A copy that was queued before it was freed faults.
    const unknown = /^BUFFER_DETACHED: allReduce: a copy: the driver knows no memory at 0x\w+; it was freed/.exec(
      failed?.[0] ?? '',
    );
    const faulted = /^DEVICE_LOST: rank 1 lost its CUDA device: \w+: CUDA_ERROR_ILLEGAL_ADDRESS/.exec(failed?.[0] ?? '');
    expect((unknown ?? faulted)?.index).toBe(0);
    expect(first?.[1]).toMatch(
      /^ABORTED: rank 1 aborted the communicator: (allReduce: a copy: the driver knows no memory at 0x|its CUDA device was lost: )/,
    );
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
