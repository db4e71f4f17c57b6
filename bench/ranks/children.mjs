/**
 * Opens children of one communicator and prints the cost of each for this rank.
 *     node --expose-gc children.mjs COUNT LARGE KIND
 * KIND is how they are made: split, or stream with engine threads (thread). LARGE of the COUNT children also make a large
 * call, a large message and a window. Each rank prints a line of JSON a stage: the additional cost of a child.
 *
 * @module
 */
import { readdirSync, readFileSync } from 'node:fs';
import { init } from '../../dist/index.js';

const [count = 100, large = 10] = process.argv.slice(2, 4).map(Number);
const kind = process.argv[4] ?? 'split';
const world = await init();
const { rank, nRanks } = world;
const outside = new Float32Array(2 ** 20).fill(1);
const small = new Float32Array(1).fill(1);

// Code is compiled, and connections of the bootstrap network are made.
const first = await open();
await first.allReduce(small);
await first.close();

/** @type {import('../../dist/index.js').Communicator[]} */
const children = [];
await stage('made', count, async () => {
  while (children.length < count) children.push(await open());
});
await stage('first call, 4 B', count, () => each(count, (child) => child.allReduce(small)));
await stage('all calls, 1 KiB', count, () => each(count, allCalls(outside.subarray(0, 256))));
await stage('message, 4 B', count, () => each(count, (child) => toNext(child, 1)));
await stage('message, 1 KiB', count, () => each(count, (child) => toNext(child, 256)));
await stage('call, 4 MiB', large, () => each(large, (child) => child.allReduce(outside)));
await stage('message, 4 MiB', large, () => each(large, (child) => toNext(child, outside.length)));
const x = world.alloc(Float32Array, 64);
/** @type {import('../../dist/index.js').Window[]} */
const windows = [];
await stage('window', large, () =>
  each(large, async (child) => {
    windows.push(await child.window(x));
  }),
);
for (const window of windows) await window.close();
await stage('closed', count, () => each(count, (child) => child.close()));
await world.close();

function open() {
  return kind === 'thread' ? world.stream({ engine: 'thread' }) : world.split(0);
}

/** @param {number} n @param {(child: import('../../dist/index.js').Communicator) => Promise<unknown>} work */
async function each(n, work) {
  for (const child of children.slice(0, n)) await work(child);
}

/** @param {Float32Array} array */
function allCalls(array) {
  const all = new Float32Array(nRanks * array.length);
  return async (/** @type {import('../../dist/index.js').Communicator} */ child) => {
    await child.allReduce(array);
    await child.broadcast(array);
    await child.reduce(array);
    await child.allGather(array, all);
    await child.reduceScatter(all, array);
    await child.allToAll(all, new Float32Array(all.length));
  };
}

/** @param {import('../../dist/index.js').Communicator} child @param {number} length */
async function toNext(child, length) {
  await Promise.all([
    child.send(outside.subarray(0, length), (rank + 1) % nRanks),
    child.recv(new Float32Array(length), (rank + nRanks - 1) % nRanks),
  ]);
}

/** @param {string} name @param {number} n @param {() => Promise<unknown>} work */
async function stage(name, n, work) {
  const before = await state();
  const start = performance.now();
  await work();
  const ms = (performance.now() - start) / n;
  const after = await state();
  const taken = Object.fromEntries(Object.entries(after).map(([key, value]) => [key, (value - (before[key] ?? 0)) / n]));
  console.log(JSON.stringify({ children: kind, count: n, ranks: nRanks, rank, stage: name, ms, ...taken }));
}

/** @returns {Promise<Record<string, number>>} */
async function state() {
  // Twice: memory that all have left is freed at the second look.
  for (let look = 0; look < 2; look++) {
    await world.barrier();
    world.memStats();
  }
  await world.barrier();
  globalThis.gc?.();
  const { used } = world.memStats();
  const anonymous = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return {
    sharedBytes: used.staging + used.control,
    privateBytes: Number(anonymous) * 1024,
    descriptors: readdirSync('/proc/self/fd').length,
    threads: readdirSync('/proc/self/task').length,
  };
}
