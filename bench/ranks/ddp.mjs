/**
 * A simulated backward pass, data-parallel: each layer computes for as long as the network needs for its gradients, then hands
 * them over.
 *     node ddp.mjs ENGINE LAYERS BYTES ROUNDS
 * ENGINE is inline or thread, BYTES are the gradients of a layer. Each rank prints a line of JSON a round, with milliseconds
 * of the exchange alone, of the computation alone, of one after the other, and of both together: without an `await` in the
 * pass, and with one after each layer.
 *
 * @module
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { dataParallel } from '../../dist/ddp/index.js';
import { init } from '../../dist/index.js';

const [engine = 'inline', ...numbers] = process.argv.slice(2);
const [layers = 16, bytes = 2 ** 20, rounds = 5] = numbers.map(Number);
const comm = await init(engine === 'thread' ? { engine } : {});
const names = Array.from({ length: layers }, (_, layer) => `layer${layer}`);
const gradient = new Float32Array(bytes / 4).fill(1);
const parameters = Object.fromEntries(names.map((name) => [name, gradient.slice()]));
const ddp = await dataParallel(comm, parameters, { bucketBytes: 2 * bytes });
const backwards = [...names].reverse();
const state = new Float64Array(4096).fill(1.5);

for (let warm = 0; warm < 3; warm++) await exchange();
compute(100_000);
// All ranks compute the same amount, whatever the current speed of their cores.
const { communicationMs, turnsPerMs } = await ddp.average({
  communicationMs: await timed(exchange),
  turnsPerMs: 20_000 / (await timed(() => compute(20_000))),
});
const turns = Math.ceil((communicationMs / layers) * turnsPerMs);

for (let round = 0; round < rounds; round++) {
  const times = {
    communicationMs: await timed(exchange),
    computationMs: await timed(() => names.forEach(() => compute(turns))),
    afterMs: await timed(async () => {
      names.forEach(() => compute(turns));
      await exchange();
    }),
    togetherMs: await timed(async () => {
      for (const name of backwards) {
        compute(turns);
        ddp.ready(name, gradient);
      }
      await ddp.finish();
    }),
    awaitingMs: await timed(async () => {
      for (const name of backwards) {
        compute(turns);
        ddp.ready(name, gradient);
        await nextTurn();
      }
      await ddp.finish();
    }),
  };
  console.log(JSON.stringify({ rank: comm.rank, engine, layers, bytes, buckets: ddp.nBuckets, ...times }));
}
await comm.close();

/** All gradients in one exchange. */
async function exchange() {
  for (const name of backwards) ddp.ready(name, gradient);
  await ddp.finish();
}

/** One layer: multiplications and additions in the cache. */
function compute(/** @type {number} */ n) {
  for (let turn = 0; turn < n; turn++) for (let i = 0; i < state.length; i++) state[i] = (state[i] ?? 0) * 0.999 + 0.001;
}

/** Milliseconds from a barrier of all ranks until this one is done. */
async function timed(/** @type {() => unknown} */ work) {
  await comm.barrier();
  const start = performance.now();
  await work();
  return performance.now() - start;
}
