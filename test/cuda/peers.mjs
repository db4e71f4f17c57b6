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
export async function killedQueued(comm, gpu, { driver, context }) {
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
  const rest = await comm.recover();
  const again = await saidBy(async () => (await openCuda(rest, { device: context.ordinal }, () => driver)).close());
  await rest.close();
  return { said, hasEnded: driver.calls.has('cuEventDestroy_v2'), again };
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
  // The work ends when the other ranks have come to the end of theirs.
  while (values === undefined) {
    values = await x.download().catch(() => undefined);
    await new Promise(setImmediate);
  }
  await gpu.close();
  // Of the call that failed, some ranks may have done their part.
  return { said: said.split(':')[0], isRead: values?.every((value) => value === 3 || value === 9), opened: driver.left.opened };
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

/**
 * Messages around a ring: short ones, long ones, of memory that others cannot open, of no elements, to the rank itself, by tags
 * in another order; alone and in groups. `how`: ranks that ask for messages that are queued. Counts copies of the GPU, and those
 * to the host.
 */
export async function messages(comm, gpu, { driver, context }, how) {
  const { rank, nRanks } = comm;
  const [right, left] = [(rank + 1) % nRanks, (rank + nRanks - 1) % nRanks];
  const queued = how === 'all' || (how === 'some' && rank % 2 === 0);
  const wrong = [];
  const valueOf = (from, i, k) => (from * 1000 + i * 7 + k) | 0;
  const filled = async (n, k, alloc = () => gpu.alloc(Int32Array, n)) => {
    const array = await alloc();
    await array.upload(Int32Array.from({ length: n }, (_, i) => valueOf(rank, i, k)));
    return array;
  };
  const expectFrom = async (array, from, k, what) => {
    const got = await array.download();
    const at = got.findIndex((value, i) => value !== valueOf(from, i, k));
    if (at >= 0) wrong.push(`${what}: ${got[at]} at ${at}`);
  };
  const wrapped = (n) => {
    const out = new BigUint64Array(1);
    context.run((calls) => context.check('cuMemAlloc', calls.cuMemAlloc_v2(out, 4 * n)));
    return gpu.wrap({ pointer: out[0], bytes: 4 * n }, Int32Array);
  };
  for (const n of [0, 8, 1024, 1025, 5000]) {
    const [x, y] = [await filled(n, n), await gpu.alloc(Int32Array, n)];
    const before = driver.calls.get('cuMemcpyDtoDAsync_v2') ?? 0;
    await Promise.all([gpu.send(x, right, { queued }), gpu.recv(y, left, { queued })]);
    const copies = (driver.calls.get('cuMemcpyDtoDAsync_v2') ?? 0) - before;
    if (copies !== (n > 1024 ? 1 : 0)) wrong.push(`${n}: ${copies} copies`);
    await expectFrom(y, left, n, `${n} elements`);
    x.free();
    y.free();
  }
  // A short message does not wait for its receiver.
  const short = await filled(8, 1);
  await gpu.send(short, right);
  await gpu.recv(short, left);
  await expectFrom(short, left, 1, 'short');
  const foreign = await filled(3000, 5, () => wrapped(3000));
  const into = wrapped(3000);
  await Promise.all([gpu.send(foreign, right, { queued }), gpu.recv(into, left, { queued })]);
  await expectFrom(into, left, 5, 'wrapped');
  const [own, self] = [await filled(2000, 6), await gpu.alloc(Int32Array, 2000)];
  await Promise.all([gpu.send(own, rank), gpu.recv(self, rank)]);
  await expectFrom(self, rank, 6, 'itself');
  // The n-th send is the n-th receive, whatever becomes ready first.
  const lengths = [5000, 10, 2000, 3000, 0, 1100];
  const sent = await Promise.all(lengths.map((n, k) => filled(n, k, k === 2 ? () => wrapped(n) : undefined)));
  const got = await Promise.all(lengths.map((n) => gpu.alloc(Int32Array, n)));
  await Promise.all([...sent.map((x) => gpu.send(x, right, { queued })), ...got.map((y) => gpu.recv(y, left, { queued }))]);
  for (const [k, y] of got.entries()) await expectFrom(y, left, k, `number ${k}`);
  await gpu.group(() => {
    for (const k of [0, 2, 3, 5]) void gpu.send(sent[k], right, { tag: k, queued });
    for (const k of [5, 3, 0, 2]) void gpu.recv(got[k], left, { tag: k, queued });
  });
  for (const k of [0, 2, 3, 5]) await expectFrom(got[k], left, k, `tag ${k}`);
  // With a reduction, which goes through the host there.
  const z = await filled(10, 0);
  await gpu.group(() => {
    void gpu.allReduce(z, z, 'max');
    void gpu.send(sent[0], right);
    void gpu.recv(got[0], left);
  });
  await expectFrom(got[0], left, 0, 'group');
  await expectFrom(z, nRanks - 1, 0, 'reduced');
  for (const array of [short, own, self, z, ...got, ...sent.filter((_, k) => k !== 2)]) array.free();
  return wrong;
}

/** A token that goes around between kernels of the program, which add to it; if some messages were not done then. */
export async function token(comm, gpu, { driver, context }, how) {
  const { rank, nRanks } = comm;
  const queued = how === 'queued';
  const x = await gpu.alloc(Int32Array, 2000);
  const out = new BigUint64Array(1);
  context.run((calls) => context.check('cuEventCreate', calls.cuEventCreate(out, 2)));
  const adding = kernelOf('adding', 'ld.global.b32 %r0, [%d0];', `add.u32 %r0, %r0, ${rank + 1};`, 'st.global.b32 [%d0], %r0;');
  let pending = 0;
  for (let round = 0; round < 10; round++) {
    if (rank > 0 || round > 0) await gpu.recv(x, (rank + nRanks - 1) % nRanks, { queued });
    launch(driver, context, adding, 'adding', BigUint64Array.of(x.buffer.pointer));
    await gpu.send(x, (rank + 1) % nRanks, { queued });
    context.run((calls) => {
      calls.cuEventRecord(out[0], 0n);
      if (calls.cuEventQuery(out[0]) === 600) pending++;
    });
    // Not before the receiver has read it.
    launch(driver, context, adding, 'adding', BigUint64Array.of(x.buffer.pointer));
  }
  if (rank === 0) await gpu.recv(x, nRanks - 1);
  const [value] = await x.download();
  context.inAnyCase((calls) => calls.cuEventDestroy_v2(out[0]));
  return { value: rank === 0 ? value : undefined, hasReturnedEarly: pending > 0 };
}

/** Words of the ranks when a message has another length than its receive, and when rank 1 sends none. */
export async function wrongMessages(comm, gpu, kit, how) {
  const x = await gpu.alloc(Float32Array, 5000);
  const last = comm.nRanks - 1;
  if (how === 'length') {
    if (comm.rank === 0) return [await saidBy(() => gpu.send(x, last))];
    if (comm.rank === last) return [await saidBy(() => gpu.recv(x.slice(0, 4000), 0))];
  }
  // The receiver never comes, or the sender.
  const said = [];
  if (how === 'no receiver' && comm.rank === 0) said.push(await saidBy(() => gpu.send(x, last, { timeoutMs: 100 })));
  if (how === 'no sender' && comm.rank === 0) said.push(await saidBy(() => gpu.recv(x, last, { timeoutMs: 100 })));
  said.push(await saidBy(() => gpu.allReduce(x)));
  return said;
}

/** Words of the ranks that are left when rank 1 is killed in a message, before its receiver or sender has come. */
/** Words of a rank whose group goes through the host while another one dies. */
export async function killedGroup(comm, gpu) {
  process.on('SIGTERM', () => undefined);
  const x = await gpu.alloc(Float32Array, 5000);
  await comm.barrier();
  if (comm.rank === 1) process.kill(process.pid, 'SIGKILL');
  const said = await saidBy(() => gpu.group(() => void gpu.allReduce(x)));
  await gpu.close();
  return { said };
}

/** Words when memory in which calls put arrays of the program has to grow while the call before, which was queued, uses it. */
export async function grown(comm, gpu, { context }) {
  const out = new BigUint64Array(1);
  const wrap = async (length) => {
    context.run((driver) => context.check('cuMemAlloc', driver.cuMemAlloc_v2(out, 4 * length)));
    const array = gpu.wrap({ pointer: out[0], bytes: 4 * length }, Int32Array);
    await array.upload(new Int32Array(length).fill(1));
    return array;
  };
  const arrays = [];
  for (const length of [1000, 2000, 4000, 8000]) arrays.push(await wrap(length));
  await comm.barrier();
  await Promise.all(arrays.map((array) => gpu.allReduce(array, array, 'sum', { queued: true })));
  const said = [];
  for (const array of arrays)
    said.push(await saidBy(async () => (await array.download()).forEach((v) => v === comm.nRanks || said.push(v))));
  return said;
}

/** Words of a receive that its signal withdraws, and of a send that nobody receives in time; after the first, calls go on. */
export async function withdrawn(comm, gpu) {
  const x = await gpu.alloc(Float32Array, 5000);
  const controller = new AbortController();
  const said = [];
  if (comm.rank === 1) {
    const received = saidBy(() => gpu.recv(x, 0, { signal: controller.signal }));
    controller.abort(new Error('no more'));
    said.push(await received);
  }
  said.push(await saidBy(() => gpu.allReduce(x)));
  if (comm.rank === 0) said.push(await saidBy(() => gpu.send(x, 1, { timeoutMs: 50 })));
  await comm.barrier().catch(() => undefined);
  return said;
}

export async function killedMessage(comm, gpu) {
  process.on('SIGTERM', () => undefined);
  const x = await gpu.alloc(Float32Array, 5000);
  await gpu.allReduce(x);
  const said = comm.rank === 0 ? saidBy(() => gpu.send(x, 1)) : comm.rank === 2 ? saidBy(() => gpu.recv(x, 1)) : undefined;
  // Headers are there, answers never.
  await comm.barrier();
  if (comm.rank === 1) process.kill(process.pid, 'SIGKILL');
  const words = await said;
  await gpu.close();
  return { said: words };
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

/** Words of the ranks that wait for rank 1, which makes no call until they have given up; of their next call, too. */
export async function late(comm, gpu) {
  const x = await gpu.alloc(Float32Array, 8);
  const said = [];
  if (comm.rank !== 1) for (let i = 0; i < 2; i++) said.push(await saidBy(() => gpu.allReduce(x, x, 'sum', { timeoutMs: 1 })));
  await comm.barrier();
  return said;
}

/** Words of the ranks when rank 1 makes another call than the others on its device, or closes it. */
export async function mismatched(comm, gpu, kit, how) {
  const x = await gpu.alloc(Float32Array, 8);
  const y = await gpu.alloc(Int32Array, 8);
  const other = { close: () => gpu.close(), broadcast: () => gpu.broadcast(x), type: () => gpu.allReduce(y) }[how];
  return saidBy(() => (comm.rank === 1 ? other() : gpu.allReduce(x)));
}

/**
 * Words of the ranks that are left when rank 1 is killed after a call that was queued, on another device that they have on the
 * same GPU without rank 1: calls of the driver that wait for the whole GPU are not made.
 */
export async function killedBeside(comm, gpu, { driver, context }) {
  process.on('SIGTERM', () => undefined);
  const x = await gpu.alloc(Float32Array, 100);
  const apart = await comm.split(comm.rank === 1 ? 1 : 0);
  const beside = await openCuda(apart, { device: context.ordinal }, () => driver);
  const arrays = [];
  for (let i = 0; i < 8; i++) arrays.push(await beside.alloc(Float32Array, 100));
  await beside.allReduce(arrays[0]);
  await gpu.allReduce(x);
  if (comm.rank === 1) driver.halt();
  await gpu.allReduce(x, x, 'sum', { queued: true });
  if (comm.rank === 1) process.kill(process.pid, 'SIGKILL');
  for (const array of arrays.slice(4)) array.free();
  await saidBy(() => gpu.allReduce(x));
  const [y] = arrays;
  const said = [await saidBy(() => beside.allReduce(y)), await saidBy(() => y.download())];
  for (const array of arrays.slice(0, 4)) array.free();
  await beside.close();
  await gpu.close();
  return { said };
}

/** Reasons of the ranks when both send, or both receive. */
export async function alike(comm, gpu, kit, how) {
  const x = await gpu.alloc(Float32Array, 5000);
  const error = await gpu[how](x, 1 - comm.rank, { tag: 7 }).catch((reason) => reason);
  return (error.cause ?? error).message;
}
