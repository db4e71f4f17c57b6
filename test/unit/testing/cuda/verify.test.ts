import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { countDevices } from '../../../../src/runtime/device/cuda/context.js';
import { kernelFor, moduleText } from '../../../../src/runtime/device/ptx/kernels.js';
import { runChild } from '../../../../testing/cuda/child.js';
import { FakeDriver, FakeMachine } from '../../../../testing/cuda/fake-driver.js';
import { Gpu } from '../../../../testing/cuda/gpu.js';
import { countViolations, weakened } from '../../../../testing/cuda/litmus.js';
import { ID_BYTES, openNccl, timeOfNccl } from '../../../../testing/cuda/nccl.js';
import { check, useShared, ways } from '../../../../testing/cuda/shared-memory.js';
import { parts, type PartName } from '../../../../testing/cuda/parts.js';
import { runs } from '../../../runs.js';

const only = runs(1, 2) === 1 ? 'sum_float16' : '';

/** Lines of a part. */
async function linesOf(part: PartName, driver = new FakeDriver(), kernels = only): Promise<string[]> {
  countDevices(driver);
  const lines: string[] = [];
  const setting = { driver, ordinal: 0, only: kernels, isFake: true };
  for await (const { name, text, verdict = 'right' } of parts[part].run(setting))
    lines.push(`${verdict} ${name}: ${text.replace(/\d+\.\d+|\d+ (?=GB|%)/g, 'N ')}`);
  return lines;
}

/** A driver one of whose functions does something else. */
function broken<Name extends keyof FakeDriver>(name: Name, make: (own: FakeDriver[Name]) => FakeDriver[Name]): FakeDriver {
  const driver = new FakeDriver();
  return Object.assign(driver, { [name]: make(driver[name]) });
}

it('says what a driver has', async () => {
  const lines = await linesOf('basics');
  expect(lines.map((line) => line.replace(/:.*/, ''))).toEqual([
    'right driver',
    'right GPU 0',
    'right addresses',
    'right page-locking',
    'right paths between GPUs',
  ]);
  // The only GPU.
  expect(lines.at(-1)).toMatch(/^right paths between GPUs: .* LOC; on one GPU$/);
  const addresses = await linesOf(
    'basics',
    broken('cuPointerGetAttribute', (own) => (out, attribute, pointer) => own(out, attribute === 9 ? 2 : attribute, pointer)),
  );
  expect(addresses).toContainEqual(expect.stringMatching(/^wrong addresses: attributes \[2,9,11,12\] give .*"device":2/));
});

it('finds kernels that compute something else', async () => {
  const [first] = await linesOf('kernels');
  if (only !== '') expect(first).toMatch(/^right kernels: 6 of 6 give the interpreter's bits in 1 cases each/);
  const driver = broken('cuModuleLoadDataEx', (own) => (out, image, ...rest) => {
    const text = new TextDecoder().decode(image as Uint8Array);
    const other = text.includes('_stream') ? text.replace(/add\.rn\.f32/g, 'mul.rn.f32') : text;
    return own(out, new TextEncoder().encode(other), ...rest);
  });
  const lines = await linesOf('kernels', driver, 'reduce_sum_float32_');
  expect(lines).toContainEqual(expect.stringMatching(/^wrong kernels: 2 of 3 give/));
  expect(lines).toContainEqual(
    expect.stringMatching(/^wrong kernel: reduce_sum_float32_stream for sm_75, seed 1: element \d+ is /),
  );
});

describe('speeds', () => {
  it('are shares of what the card does', async () => {
    const lines = await linesOf('speed');
    expect(lines.map((line) => line.replace(/,.*;/, ';'))).toEqual([
      'right copies: 1 MiB: host to GPU N  GB/s; the bytes are right',
      'right copy of the card: N GB/s read and written',
      'right copy_4_stream: N GB/s read and written; the values are right',
      'right reduce_sum_float32_stream: N GB/s read and written; the values are right',
    ]);
    expect(await linesOf('launches')).toEqual([expect.stringMatching(/^right launches: N  µs each of 50 on a stream/)]);
  });

  it('of copies and kernels that do nothing are wrong', async () => {
    const copies = await linesOf(
      'speed',
      broken('cuMemcpyDtoDAsync_v2', () => () => 0),
    );
    expect(copies[0]).toMatch(/^wrong copies: .* \d+ pages are wrong$/);
    const nothing = broken('cuLaunchKernel', () => () => 0);
    expect((await linesOf('speed', nothing)).slice(2)).toEqual([
      expect.stringMatching(/^wrong copy_4_stream: .*; element 1 is wrong$/),
      expect.stringMatching(/^wrong reduce_sum_float32_stream: .*; element 1 is wrong$/),
    ]);
    expect(await linesOf('launches', nothing)).toEqual([expect.stringMatching(/^wrong launches: /)]);
    expect(await linesOf('streams', nothing)).toEqual([expect.stringMatching(/2 of 2 sums are wrong$/)]);
  });
});

it('exchanges data with a kernel over memory of the host', async () => {
  expect(await linesOf('latency')).toEqual(['right flags in host memory: one message; the data are right']);
  // A kernel that posts, and copies nothing.
  const driver = broken('cuModuleLoadDataEx', (own) => (out, image, ...rest) => {
    const text = new TextDecoder().decode(image as Uint8Array);
    return own(out, new TextEncoder().encode(text.replace(/^ *st\.global\.(v2\.)?b64 .*$/gm, '')), ...rest);
  });
  expect(await linesOf('latency', driver)).toEqual([expect.stringMatching(/^wrong .*other data than the counter said 1 times$/)]);
});

it('runs chains on two streams', async () => {
  expect(await linesOf('streams')).toEqual([expect.stringMatching(/^right two streams: .*the sums are right$/)]);
});

describe('the litmus', () => {
  const text = moduleText([kernelFor('flags', { bytes: 8 })], 75);
  const size = { pairs: 2, rounds: 3, launches: 1 };
  const gpuOf = (driver = new FakeDriver()): Gpu => {
    countDevices(driver);
    return new Gpu(driver, 0);
  };

  it('finds no other data, by flags and by lines', async () => {
    const none = '0 of 12 messages between blocks were other data, N  µs each';
    expect((await linesOf('litmus')).slice(0, 2)).toEqual([`right litmus of flags: ${none}`, `right litmus of lines: ${none}`]);
  });

  it('counts messages with other data', () => {
    const driver = broken('cuMemcpyDtoHAsync_v2', (own) => (view, ...rest) => {
      const result = own(view, ...rest);
      // A byte of the second round, and one of the fifth.
      const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
      for (const at of [256, 1030]) bytes[at] = (bytes[at] ?? 0) ^ 1;
      return result;
    });
    expect(countViolations(gpuOf(driver), text, 'flags', size)).toBe(2);
  });

  it('has a control in which nothing orders data and flags', () => {
    const control = weakened(text);
    expect(control).toContain('ld.relaxed.sys.global.b64');
    expect(control).not.toMatch(/acquire|release/);
    expect(() => countViolations(gpuOf(), control, 'flags', size)).toThrow('CUDA_ERROR_LAUNCH_FAILED');
  });
});

describe('multicast memory', () => {
  const refused = 'CUDA_ERROR_NOT_SUPPORTED (operation not supported)';
  const ofOne = `right multicast of one GPU: the attribute says 0; cuMulticastGetGranularity: ${refused}; cuMulticastCreate: ${refused}`;

  it('of one GPU gives errors, which are shown', async () => {
    expect(await linesOf('multicast')).toEqual([ofOne, 'skipped multicast of two GPUs: there is 1 GPU']);
    const two = 'skipped multicast of two GPUs: GPU 0 has no multicast memory';
    expect(await linesOf('multicast', new FakeDriver({ devices: 2 }))).toEqual([ofOne, two]);
  });

  it('of two GPUs combines and multiplies, and is given back', async () => {
    const driver = new FakeDriver({ devices: 2, hasMulticast: true });
    const [, two] = await linesOf('multicast', driver);
    expect(two).toMatch(/^right multicast of two GPUs: all-reduce of 1024 float32, N {2}GB\/s: right$/);
    expect(driver.left.virtual).toBe(0);
  });

  it('that combines something else is wrong', async () => {
    const driver = new FakeDriver({ devices: 2, hasMulticast: true });
    const own = driver.cuModuleLoadDataEx;
    const other = Object.assign(driver, {
      cuModuleLoadDataEx: (out: BigUint64Array, image: Uint8Array, ...rest: [number, Uint32Array, BigUint64Array]) => {
        const text = new TextDecoder().decode(image).replace(/multimem\.st/g, '// multimem.st');
        return own(out, new TextEncoder().encode(text), ...rest);
      },
    });
    expect((await linesOf('multicast', other))[1]).toMatch(/^wrong multicast of two GPUs: .*element \d+ of GPU 0 is /);
  });
});

describe('two processes on one GPU', () => {
  const machine = new Uint8Array(new SharedArrayBuffer(1 << 24));
  const processOf = (pid: number, changes: (driver: FakeDriver) => Partial<FakeDriver> = () => ({})) => {
    const driver = new FakeDriver({ machine: new FakeMachine(machine, pid) });
    countDevices(driver);
    return new Gpu(Object.assign(driver, changes(driver)), 0);
  };

  it('share memory and an event by handles', () => {
    const [own, other] = [processOf(process.pid), processOf(1)];
    const { pointer, words } = ways.ipc.share(own);
    expect(() => check(own, pointer, 3)).toThrow('byte 1 of what the other process wrote is 1, not 3');
    useShared(other, 'ipc', words, -1);
    check(own, pointer, 3);
  });

  it('share memory by file descriptors', () => {
    const [own, other] = [processOf(process.pid), processOf(1)];
    const { pointer, fd = -1 } = ways.fds.share(own);
    useShared(other, 'fds', '', fd);
    check(own, pointer, 3);
    expect(() => useShared(other, 'fds', '', fd)).toThrow(/byte 1 of what the other process wrote is 3, not 1/);
    closeSync(fd);
    const without = processOf(1, (driver) => ({
      cuDeviceGetAttribute: (out, name, device) =>
        name === 102 || name === 103 ? (((out as Int32Array)[0] = 0), 0) : driver.cuDeviceGetAttribute(out, name, device),
    }));
    expect(() => ways.fds.share(without)).toThrow('the GPU has none: attributes 102 and 103 are 0 and 0');
  });
});

describe('a part in a process', () => {
  const never = new AbortController().signal;

  it('that hangs is ended with all that it started', async () => {
    // Its output is open until both have ended.
    const program = `require('child_process').spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => {}, 1e6)'], { stdio: 'inherit' });
      setInterval(() => {}, 1e6)`;
    const limit = new AbortController();
    const end = await runChild([process.execPath, '-e', program], limit.signal, () => limit.abort(), { hasGroup: true });
    expect(end).toEqual({ status: null, reason: 'time limit', stderr: '' });
  });

  it('gets a file descriptor', async () => {
    const lines: string[] = [];
    const program = [process.execPath, '-e', "console.log(require('fs').readFileSync(3, 'utf8'))"];
    const fd = openSync(join(import.meta.dirname, '../../../runs.ts'), 'r');
    const end = await runChild(program, never, (line) => lines.push(line), { fd });
    closeSync(fd);
    expect([end.status, lines.length > 5]).toEqual([0, true]);
  });

  it('that ends by itself gives its code, its signal, its errors, or the reason why it did not begin', async () => {
    const run = (code: string) => runChild([process.execPath, '-e', code], never, () => undefined);
    expect(await run('console.error("why"); process.exitCode = 4')).toEqual({ status: 4, reason: undefined, stderr: 'why\n' });
    expect((await run('process.kill(process.pid, "SIGSEGV")')).reason).toBe('SIGSEGV');
    expect((await runChild(['/no/such/program'], never, () => undefined)).reason).toContain('ENOENT');
  });
});

describe('NCCL beside it', () => {
  it('is left out where it is not', async () => {
    process.env['TCCL_NCCL'] = '/no/such/libnccl.so.2';
    expect(await linesOf('nccl')).toEqual([expect.stringMatching(/^skipped NCCL: is not here: .*TCCL_NCCL names a file$/)]);
    delete process.env['TCCL_NCCL'];
  });

  it.skipIf(spawnSync('cc', ['--version']).status !== 0)('gets its arguments, and gives its errors (needs: cc)', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tccl-nccl-'));
    const [source, library] = [join(folder, 'nccl.c'), join(folder, 'libnccl.so.2')];
    writeFileSync(
      source,
      `#include <stddef.h>
      #include <string.h>
      typedef struct { char internal[${ID_BYTES}]; } Id;
      const char *ncclGetErrorString(int r) { return r == 5 ? "invalid usage" : "no text"; }
      int ncclGetVersion(int *version) { *version = 23007; return 0; }
      int ncclGetUniqueId(Id *id) { memset(id->internal, 7, sizeof *id); return 0; }
      int ncclCommInitRank(void **comm, int n, Id id, int rank) {
        *comm = (void *)0x123456789abcdef;
        return n == 2 && rank == 1 && id.internal[0] == 7 && id.internal[${ID_BYTES - 1}] == 7 ? 0 : 5;
      }
      int ncclAllReduce(void *send, void *recv, size_t count, int type, int op, void *comm, void *stream) {
        return send != recv && count == 16 && type == 7 && op == 0 && comm == (void *)0x123456789abcdef && stream ? 0 : 5;
      }`,
    );
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, source]);
    const nccl = openNccl(library);
    const id = nccl.makeId();
    expect([nccl.version, id]).toEqual(['2.30.7', new Uint8Array(ID_BYTES).fill(7)]);
    const driver = new FakeDriver();
    countDevices(driver);
    expect(timeOfNccl(nccl, new Gpu(driver, 0), 64, { nRanks: 2, id, rank: 1 }).ms).toBeLessThan(Infinity);
    const other = { nRanks: 2, id: new Uint8Array(ID_BYTES), rank: 1 };
    expect(() => timeOfNccl(nccl, new Gpu(driver, 0), 64, other)).toThrow('ncclCommInitRank: invalid usage');
    rmSync(folder, { recursive: true });
  });
});
