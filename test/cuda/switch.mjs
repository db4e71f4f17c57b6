// Checks of GPUs on a fake NVSwitch.
import { saidBy } from '../devices/compliance.mjs';

/** The way of collectives, and what a rank that did not come to NVLS has left. */
export function switchTransport(comm, gpu, { driver }) {
  const { name, reason } = gpu.transport;
  return { name, reason, virtual: driver.left.virtual };
}

const formats = { float16: [10, 15, 0x3400, 0x1400], bfloat16: [7, 127, 0x3e80, 0x280] };

/** A number of a narrow format, and the bits of the nearest one, of which ties are even. */
const value = (bits, [digits, bias]) => (1 + (bits & (2 ** digits - 1)) / 2 ** digits) * 2 ** ((bits >> digits) - bias);
function bitsOf(number, [digits, bias]) {
  const exponent = Math.floor(Math.log2(number));
  const scaled = (number / 2 ** exponent - 1) * 2 ** digits;
  const low = Math.floor(scaled);
  const rest = scaled - low;
  return ((exponent + bias) << digits) + low + (rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? 1 : 0);
}

function* orders(values, done = []) {
  if (values.length === 0) yield done;
  for (const [i, each] of values.entries()) yield* orders(values.toSpliced(i, 1), [...done, each]);
}

/** Sums that are rounded: the same bits on all ranks, those of some order in float32, rounded to the type once. */
export async function switchSums(comm, gpu) {
  const wrong = [];
  const n = 300;
  let state = 5 + comm.rank;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  for (const type of [undefined, 'float16', 'bfloat16']) {
    const format = formats[type];
    const Type = type === undefined ? Float32Array : Uint16Array;
    const own = new Type(n).map(() => (format === undefined ? random() * 3 - 1 : format[2] + random() * format[3]));
    const [x, part] = [await gpu.alloc(Type, n), await gpu.alloc(Type, n / comm.nRanks)];
    await x.upload(own);
    const inputs = new Type(n * comm.nRanks);
    await comm.allGather(own, inputs);
    await gpu.reduceScatter(x, part, 'sum', { type });
    await gpu.allReduce(x, x, 'sum', { type });
    const [sums, ofPart] = [await x.download(), await part.download()];
    const all = new Type(n * comm.nRanks);
    await comm.allGather(sums, all);
    const decode = (bits) => (format === undefined ? bits : value(bits, format));
    const isPossible = (sum, at) => {
      const values = Array.from({ length: comm.nRanks }, (_, rank) => decode(inputs[rank * n + at]));
      for (const order of orders(values)) {
        const total = order.reduce((a, b) => Math.fround(a + b));
        if (sum === (format === undefined ? total : bitsOf(total, format))) return true;
      }
      return false;
    };
    for (let i = 0; i < n; i++) {
      if (!isPossible(sums[i], i)) wrong.push(`${type}: ${sums[i]} at ${i} is the sum in no order`);
      for (let rank = 0; rank < comm.nRanks; rank++)
        if (all[rank * n + i] !== sums[i]) wrong.push(`${type}: ranks differ at ${i}`);
    }
    for (const [i, sum] of ofPart.entries())
      if (!isPossible(sum, comm.rank * part.length + i)) wrong.push(`${type}: part ${sum} at ${i}`);
    x.free();
    part.free();
  }
  return wrong.slice(0, 5);
}

/** Ways of calls: those on the switch copy the records of their steps to the GPU. */
export async function switchCalls(comm, gpu, { driver }) {
  const [x, y] = [await gpu.alloc(Float32Array, 12), await gpu.alloc(Float32Array, 12 * comm.nRanks)];
  const [half, whole] = [await gpu.alloc(Uint16Array, 64), await gpu.alloc(Int32Array, 8)];
  const count = (name) => driver.calls.get(name) ?? 0;
  const seen = {};
  const tried = {
    allReduce: () => gpu.allReduce(x),
    reduceScatter: () => gpu.reduceScatter(y, x),
    allGather: () => gpu.allGather(x, y),
    broadcast: () => gpu.broadcast(x, x, 1),
    reduce: () => gpu.reduce(x, x, 'avg', 1),
    'least of int32': () => gpu.allReduce(whole, whole, 'min'),
    'greatest of float32': () => gpu.allReduce(x, x, 'max'),
    'greatest of float16': () => gpu.allReduce(half, half, 'max', { type: 'float16' }),
    product: () => gpu.allReduce(x, x, 'prod'),
    gather: () => gpu.gather(x, y),
    allToAll: () => gpu.allToAll(y),
  };
  for (const [name, call] of Object.entries(tried)) {
    const copies = count('cuMemcpyHtoDAsync_v2');
    await call();
    seen[name] = count('cuMemcpyHtoDAsync_v2') > copies ? 'switch' : 'peers';
  }
  for (const array of [x, y, half, whole]) array.free();
  return seen;
}

/** Words of all ranks when rank 1 cannot make a call on the switch, or its kernel faults; then what the GPU still does. */
export async function switchFailing(comm, gpu, { driver }, how) {
  const [name, result, after = 0] = how.split(',');
  const x = await gpu.alloc(Float32Array, 1000);
  await gpu.allReduce(x);
  await comm.barrier();
  if (comm.rank === 1) driver.fail(name, Number(result), Number(after));
  const said = await saidBy(() => gpu.allReduce(x));
  return [said, await saidBy(() => gpu.allReduce(x))];
}
