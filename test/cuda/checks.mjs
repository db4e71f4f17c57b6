// Checks of CUDA devices alone.
import { openCuda } from '../../dist/cuda/open.js';
import { saidBy } from '../devices/compliance.mjs';
import { kernelOf, launch } from './kit.mjs';

/** A kernel that multiplies a number by 2. */
const doubling = kernelOf('doubling', 'ld.global.b32 %r0, [%d0];', 'add.u32 %r0, %r0, %r0;', 'st.global.b32 [%d0], %r0;');

/** Calls between kernels of the program: each sees what was queued before it, and is seen by what comes after it. */
export async function ordered(comm, gpu, { driver, context }) {
  const x = await gpu.alloc(Int32Array, 1);
  await x.upload(Int32Array.of(comm.rank + 1));
  const seen = [];
  for (let i = 0; i < 20; i++) {
    launch(driver, context, doubling, 'doubling', BigUint64Array.of(x.buffer.pointer));
    await gpu.allReduce(x, x, i % 2 ? 'min' : 'max');
    launch(driver, context, doubling, 'doubling', BigUint64Array.of(x.buffer.pointer));
    if (i % 10 === 9) seen.push((await x.download())[0]);
    if (i % 10 === 9) await x.upload(Int32Array.of(comm.rank + 1));
  }
  return seen;
}

/** Memory that a call or `alloc` alone writes: after kernels that were queued before, and before calls that come after. */
export async function written(comm, gpu, { driver, context }) {
  const x = await gpu.alloc(Int32Array, 1);
  const wrong = [];
  for (let i = 0; i < 30; i++) {
    const fresh = await gpu.alloc(Int32Array, 64);
    if ((await fresh.download()).some((value) => value !== 0)) wrong.push(`alloc ${i}`);
    fresh.free();
    launch(driver, context, doubling, 'doubling', BigUint64Array.of(x.buffer.pointer));
    if (comm.rank === 0) await x.upload(Int32Array.of(i + 1));
    await gpu.broadcast(x, x);
    const [value] = await x.download();
    if (value !== i + 1) wrong.push(`broadcast ${i}: ${value}`);
  }
  return wrong;
}

/** A tensor of another library: the second row of two, of bfloat16. */
export async function tensors(comm, gpu, { context }) {
  const whole = await gpu.alloc(Uint16Array, 8);
  await whole.upload(Uint16Array.of(1, 2, 3, 4, 0x3f80, 0x4000, 0x4040, 0x4080));
  const row = gpu.fromPointer({
    data: whole.buffer.pointer,
    device: [2, context.ordinal],
    dtype: { code: 4, bits: 16, lanes: 1 },
    shape: [1, 4],
    strides: [4, 1],
    byteOffset: 8,
  });
  await gpu.allReduce(row, row, 'sum', { type: 'bfloat16' });
  row.free();
  return [...(await whole.download())];
}

/** Things of the driver that are left after close(), and after the last array was freed. */
export async function released(comm, gpu, { driver }, how) {
  const x = await gpu.alloc(Float32Array, how === 'short' ? 1000 : 2_000_000);
  await gpu.allReduce(x);
  const { locked } = driver.left;
  await gpu.close();
  const { allocations, contexts } = driver.left;
  x.free();
  return { wasPinned: locked > 0, beforeFree: { allocations, contexts }, ...driver.left };
}

/** The same results where the system page-locks nothing. */
export async function unpinned(comm, gpu, { driver }) {
  driver.host.lock = () => false;
  const x = await gpu.alloc(Float32Array, 3_000_000);
  await x.upload(new Float32Array(3_000_000).map((_, i) => (i % 100) + comm.rank));
  await gpu.allReduce(x, x, 'max');
  const values = await x.download();
  return values.findIndex((value, i) => value !== (i % 100) + comm.nRanks - 1);
}

/** Words of the ranks when calls of rank 1's driver fail. */
export async function drivers(comm, gpu, { driver }, how) {
  const x = await gpu.alloc(Float32Array, 1000);
  const [name, result, after] = how.split(',');
  if (comm.rank === 1) driver.fail(name, Number(result), Number(after));
  return [await saidBy(() => gpu.allReduce(x)), await saidBy(() => gpu.allReduce(x))];
}

/** Words of the ranks when rank 1's `alloc`, of which the others know nothing, fails; and what it leaves. */
export async function allocating(comm, gpu, { driver }) {
  const x = await gpu.alloc(Float32Array, 1000);
  const { allocations } = driver.left;
  const said = [];
  if (comm.rank === 1) {
    driver.fail('cuEventQuery', 400);
    said.push(await saidBy(() => gpu.alloc(Float32Array, 1000)));
  }
  said.push(await saidBy(() => gpu.recv(x, 1)));
  return { said, left: driver.left.allocations - allocations };
}

/** Words of the ranks when rank 1 cannot open a GPU, of a name that says why. */
export async function opening(comm, FakeDriver) {
  const isOdd = comm.rank === 1;
  const drivers = [];
  const fine = () => {
    const driver = new FakeDriver({ devices: 2 });
    drivers.push(driver);
    return driver;
  };
  const tried = async (make, given = {}) => saidBy(() => openCuda(comm, isOdd ? given : {}, isOdd ? make : fine));
  const failing = (name, result) => () => {
    const driver = fine();
    driver.fail(name, result);
    return driver;
  };
  const said = {
    'no GPU': await tried(() => new FakeDriver({ devices: 0 })),
    'no fabric manager': await tried(failing('cuInit', 802)),
    'no context': await tried(failing('cuDevicePrimaryCtxRetain', 2)),
    'no stream': await tried(failing('cuStreamCreate', 2)),
    'no identity': await tried(failing('cuDeviceGetUuid_v2', 999)),
    'no such GPU': await tried(fine, { device: 2 }),
    'no number': await tried(fine, { device: 'cuda:0' }),
    'no boolean': await tried(fine, { exclusive: 'yes' }),
    'no stream handle': await tried(fine, { stream: 0 }),
    'not a stream': await tried(fine, { stream: 77n }),
    'no such option': await tried(fine, { gpu: 0 }),
    shared: await saidBy(() => openCuda(comm, { device: 1, exclusive: isOdd }, fine)),
  };
  const gpu = await openCuda(comm, { exclusive: true }, fine);
  const x = await gpu.alloc(Float32Array, 1);
  await gpu.allReduce(x);
  await gpu.close();
  x.free();
  const left = drivers.map((driver) => Object.values(driver.left).reduce((sum, count) => sum + count, 0));
  return { ...said, left: left.filter((count) => count > 0), isUsable: (await comm.allReduce(1)) === comm.nRanks };
}
