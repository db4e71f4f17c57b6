// Checks of GPUs that reach each other's memory.
import { openCuda } from '../../dist/cuda/open.js';
import { collectives, saidBy } from '../devices/compliance.mjs';
import { kernelOf, launch } from './kit.mjs';

/** The way of collectives between the ranks. */
export function transport(comm, gpu) {
  return gpu.transport;
}

/** Numbers from 0 to 1, the same for a seed. */
function generator(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

const inexact = [
  [Float32Array, undefined],
  [Float64Array, undefined],
  [Uint16Array, 'float16'],
  [Uint16Array, 'bfloat16'],
  [Uint8Array, 'float8e4m3'],
  [BigUint64Array, undefined],
];

/** Reductions of numbers whose results depend on the order, beside those of the host, bit for bit. */
export async function bits(comm, gpu) {
  const random = generator(77 + comm.rank);
  const wrong = gpu.transport.name === 'peers' ? [] : [gpu.transport.reason];
  for (const [Type, type] of inexact) {
    for (const operator of ['sum', 'prod', 'avg', 'max', { premulSum: comm.rank + 2 }]) {
      const n = 53 * comm.nRanks;
      const host = new Type(n);
      for (let i = 0; i < n; i++) {
        if (Type === BigUint64Array) host[i] = BigInt(Math.floor(random() * 2 ** 50));
        // Of narrow floats: bits of numbers between 1/4 and 8.
        else if (type === 'float16') host[i] = 0x3400 + random() * 0x1400;
        else if (type === 'bfloat16') host[i] = 0x3e80 + random() * 0x280;
        else if (type === 'float8e4m3') host[i] = 0x28 + random() * 0x28;
        else host[i] = random() * 3 - 1;
      }
      for (const name of ['allReduce', 'reduce', 'reduceScatter']) {
        const length = name === 'reduceScatter' ? 53 : n;
        const [sent, received] = [await gpu.alloc(Type, n), await gpu.alloc(Type, length)];
        await sent.upload(host);
        const wanted = new Type(length);
        const rest = [...(name === 'reduce' ? [1] : []), { type }];
        await comm[name](host, wanted, operator, ...rest);
        await gpu[name](sent, received, operator, ...rest);
        const got = await received.download();
        if (name === 'reduce' && comm.rank !== 1) continue;
        const at = wanted.findIndex((value, i) => !Object.is(value, got[i]));
        if (at >= 0)
          wrong.push(`${name} ${type ?? Type.name} ${JSON.stringify(operator)}: ${got[at]}, not ${wanted[at]}, at ${at}`);
        sent.free();
        received.free();
      }
    }
  }
  return wrong;
}

/** The compliance suite's collectives in memory that the program allocated, which other ranks cannot open. */
export function wrapped(comm, gpu, { driver, context }) {
  const alloc = async (type, length) => {
    const bytes = length * type.BYTES_PER_ELEMENT;
    const out = new BigUint64Array(1);
    context.run((calls) => context.check('cuMemAlloc', calls.cuMemAlloc_v2(out, Math.max(bytes, 1))));
    if (bytes > 0) context.run((calls) => calls.cuMemsetD8Async(out[0], 0, bytes, 0n));
    const array = gpu.wrap({ pointer: out[0], bytes }, type);
    const [pointer] = out;
    const free = array.free.bind(array);
    array.free = () => {
      free();
      context.run((calls) => context.check('cuMemFree', calls.cuMemFree_v2(pointer)));
    };
    return array;
  };
  const own = { driver, alloc };
  const proxy = new Proxy(gpu, { get: (target, name) => own[name] ?? target[name].bind(target) });
  return collectives(comm, proxy, { counts: [1, 25], types: [[Float32Array, undefined, ['sum', 'max']]] });
}

/** Copies between arrays of several pieces, through memory that all ranks can open; the last piece is shorter. */
export async function pieces(comm, gpu, { context }) {
  const { rank, nRanks } = comm;
  const n = (9 << 20) + 3 * nRanks;
  const make = (length) => {
    const out = new BigUint64Array(1);
    context.run((calls) => context.check('cuMemAlloc', calls.cuMemAlloc_v2(out, length)));
    return gpu.wrap({ pointer: out[0], bytes: length }, Uint8Array);
  };
  const wrong = [];
  const x = make(n * nRanks);
  const valueOf = (from, to, i) => (from * 67 + to * 31 + i * 13 + (i >> 8)) & 255;
  const values = new Uint8Array(n * nRanks);
  for (let to = 0; to < nRanks; to++) for (let i = 0; i < n; i++) values[to * n + i] = valueOf(rank, to, i);
  await x.upload(values);
  await gpu.allToAll(x);
  const got = await x.download();
  for (let from = 0; from < nRanks; from++)
    for (let i = 0; i < n; i += 4099) if (got[from * n + i] !== valueOf(from, rank, i)) wrong.push(`allToAll ${from} ${i}`);
  for (let from = 0; from < nRanks; from++)
    if (got[from * n + n - 1] !== valueOf(from, rank, n - 1)) wrong.push(`allToAll ${from}, last`);
  await gpu.broadcast(x, x, 1);
  const all = await x.download();
  for (let from = 0; from < nRanks; from++)
    for (let i = 0; i < n; i += 4099) if (all[from * n + i] !== valueOf(from, 1, i)) wrong.push(`broadcast ${from} ${i}`);
  return wrong.slice(0, 5);
}

/** Numbers of allocations while arrays are freed: other ranks close them at the next call, and it is freed with the one after. */
export async function freed(comm, gpu, { driver }) {
  const seen = [];
  const note = () => seen.push([driver.left.allocations, driver.left.opened]);
  const x = await gpu.alloc(Float32Array, 64);
  note();
  for (let i = 0; i < 3; i++) {
    const y = await gpu.alloc(Float32Array, 64);
    await gpu.allReduce(x, y);
    y.free();
    note();
  }
  await gpu.allReduce(x);
  note();
  await gpu.allReduce(x);
  note();
  const never = await gpu.alloc(Float32Array, 64);
  never.free();
  note();
  // Rank 0 alone frees and allocates, more than one call names.
  if (comm.rank === 0) for (let i = 0; i < 20; i++) (await gpu.alloc(Int32Array, 4)).free();
  const many = await Promise.all(Array.from({ length: 20 }, () => gpu.alloc(Int32Array, 4)));
  for (const array of many) await gpu.broadcast(array, array);
  for (const array of many) array.free();
  for (let i = 0; i < 3; i++) await gpu.allReduce(x);
  note();
  x.free();
  return seen;
}

/** Words of the ranks that are left when rank 1 is killed while its kernel is queued, and what they have left. */
export async function killed(comm, gpu, { driver }) {
  process.on('SIGTERM', () => undefined);
  const x = await gpu.alloc(Float32Array, 100);
  await gpu.allReduce(x);
  // On a switch, other ranks may not have ended the call yet.
  await comm.barrier();
  if (comm.rank === 1) driver.cuLaunchKernel = () => process.kill(process.pid, 'SIGKILL');
  const said = await saidBy(() => gpu.allReduce(x));
  const again = await saidBy(() => gpu.allReduce(x));
  // Its own GPU works still.
  const values = (await saidBy(() => x.download())).slice(0, 9);
  await gpu.close();
  const { allocations, opened } = driver.left;
  // Another rank may have it open still.
  x.free();
  return { said, again, values, opened, stays: driver.left.allocations === allocations };
}

/**
 * Words of the ranks that are left when rank 1 is killed after calls that were queued, before it has done its part: nothing of
 * them waits for their streams, which never go on.
 */
export async function killedQueued(comm, gpu, { driver }) {
  process.on('SIGTERM', () => undefined);
  const [x, y] = [await gpu.alloc(Float32Array, 100), await gpu.alloc(Float32Array, 100)];
  await gpu.allReduce(x);
  if (comm.rank === 1) driver.halt();
  await gpu.allReduce(x, x, 'sum', { queued: true });
  await gpu.broadcast(x, y, 1, { queued: true });
  if (comm.rank === 1) process.kill(process.pid, 'SIGKILL');
  // No other rank has opened it.
  y.free();
  const said = [];
  for (const queued of [true, false]) said.push(await saidBy(() => gpu.allReduce(x, x, 'sum', { queued })));
  said.push(await saidBy(() => x.download()), await saidBy(() => x.upload(new Float32Array(100))));
  const z = await gpu.alloc(Float32Array, 100);
  z.free();
  await gpu.close();
  x.free();
  return { said, hasEnded: driver.calls.has('cuEventDestroy_v2') };
}

/** Results when rank 1's next call finds no other rank and ends the device's calls: work that was queued comes to its end. */
export async function endedQueued(comm, gpu, { driver }) {
  const x = await gpu.alloc(Float32Array, 100);
  await x.upload(new Float32Array(100).fill(1));
  const call = (options) => gpu.allReduce(x, x, 'sum', { queued: true, ...options });
  await call();
  if (comm.rank === 1) await saidBy(() => call({ timeoutMs: 1 }));
  await comm.barrier();
  const said = await saidBy(call);
  let values;
  for (let i = 0; i < 1000 && values === undefined; i++) values = await x.download().catch(() => undefined);
  await gpu.close();
  return { said: said.split(':')[0], values: [values?.[0], values?.[99]], opened: driver.left.opened };
}

/** Memory that no other rank has opened, freed while a call that was queued uses it. */
export async function freedQueued(comm, gpu) {
  const x = await gpu.alloc(Int32Array, 64);
  for (let i = 0; i < 20; i++) {
    const y = await gpu.alloc(Int32Array, 64);
    await gpu.broadcast(x, y, i % comm.nRanks, { queued: true });
    y.free();
  }
  await gpu.allReduce(x);
  return saidBy(() => x.download());
}

/** Words of the ranks when an operator of the program's throws on rank 1; the communicator goes on, and opens the GPU again. */
export async function throwing(comm, gpu, { driver, context }) {
  const x = await gpu.alloc(Float32Array, 4);
  const throws = (lower, higher) => {
    if (comm.rank === 1) throw new Error('no more');
    return lower + higher;
  };
  const first = await saidBy(() => gpu.allReduce(x, x, throws));
  const said = await saidBy(() => gpu.allReduce(x));
  await gpu.close();
  x.free();
  const sum = await comm.allReduce(1);
  const again = await openCuda(comm, { device: context.ordinal }, () => driver);
  const y = await again.alloc(Float32Array, 4);
  await y.upload(new Float32Array(4).fill(comm.rank + 1));
  await again.allReduce(y);
  const [value] = await y.download();
  await again.close();
  y.free();
  return { first: comm.rank === 1 ? first : said, said, sum, value };
}

/** Words of the ranks when a call of rank 1's driver fails in a call between peers, the first or the second one. */
export async function failing(comm, gpu, { driver }, how) {
  const [name, result] = how.split(',');
  const x = await gpu.alloc(Float32Array, 1000);
  if (comm.rank === 1) driver.fail(name, Number(result));
  return [await saidBy(() => gpu.allReduce(x)), await saidBy(() => gpu.allReduce(x))];
}

const names = ['allReduce', 'reduce', 'broadcast', 'allGather', 'reduceScatter', 'allToAll', 'gather', 'scatter'];

/** The compliance suite's collectives, each of which resolves when it is queued, on ranks that ask for it: `all`, or `some`. */
export function queued(comm, gpu, kit, how) {
  const isQueued = how === 'all' || comm.rank % 2 === 0;
  const proxy = new Proxy(gpu, {
    get(target, name) {
      if (!isQueued || !names.includes(name)) return target[name].bind(target);
      return (...given) => target[name](...given.slice(0, -1), { ...given.at(-1), queued: true });
    },
  });
  return collectives(comm, proxy, { counts: [1, 24], types: [[Float32Array, undefined, ['sum', 'max']]] });
}

/** Calls that are queued between kernels of the program; if some were not done when they resolved; arrays freed at once. */
export async function queuedOrder(comm, gpu, { driver, context }) {
  const [x, y] = [await gpu.alloc(Int32Array, 1), await gpu.alloc(Int32Array, 1)];
  await x.upload(Int32Array.of(comm.rank + 1));
  const out = new BigUint64Array(1);
  context.run((calls) => context.check('cuEventCreate', calls.cuEventCreate(out, 2)));
  const [event] = out;
  const text = `add.u32 %r0, %r0, ${comm.rank + 1};`;
  const adding = kernelOf('adding', 'ld.global.b32 %r0, [%d0];', text, 'st.global.b32 [%d0], %r0;');
  let pending = 0;
  for (let i = 0; i < 20; i++) {
    // Alternates, so that a rank may write what others still read.
    const [from, to] = i % 2 ? [y, x] : [x, y];
    launch(driver, context, adding, 'adding', BigUint64Array.of(from.buffer.pointer));
    await gpu.allReduce(from, to, 'sum', { queued: true });
    context.run((calls) => {
      calls.cuEventRecord(event, 0n);
      if (calls.cuEventQuery(event) === 600) pending++;
    });
    const short = await gpu.alloc(Int32Array, 64);
    await gpu.broadcast(short, short, i % comm.nRanks, { queued: true });
    short.free();
  }
  const values = [(await x.download())[0], (await y.download())[0]];
  for (let i = 0; i < 2; i++) await gpu.allReduce(x);
  const { allocations } = driver.left;
  context.inAnyCase((calls) => calls.cuEventDestroy_v2(event));
  x.free();
  y.free();
  return { values, hasReturnedEarly: pending > 0, allocations };
}
