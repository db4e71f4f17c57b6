/**
 * Rank 0 computes while a large all-reduce is in flight; the others only take part in that.
 *     node overlap.mjs ENGINE CHANNELS BYTES ROUNDS
 * Each rank prints a line of JSON a round: milliseconds of communication alone, and of its work while rank 0
 * computed; rank 0 also those of its computation alone.
 *
 * @module
 */
import { init } from '../../dist/index.js';

const [engine = 'inline', ...numbers] = process.argv.slice(2);
const [channels = 1, bytes = 2 ** 24, rounds = 5] = numbers.map(Number);
const comm = await init(engine === 'thread' ? { engine, channels } : {});
const x = comm.alloc(Float32Array, bytes / 4).fill(1);
const state = new Float64Array(4096).fill(1.5);

for (let warm = 0; warm < 5; warm++) await allReduce();
const turns = Math.ceil((await timed(allReduce)) * turnsPerMs());

for (let round = 0; round < rounds; round++) {
  const communicationMs = await timed(allReduce);
  const computationMs = comm.rank === 0 ? await timed(compute) : await timed(() => undefined);
  const bothMs = await timed(async () => {
    const under = allReduce();
    if (comm.rank === 0) compute();
    await under;
  });
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 1);
  await allReduce();
  clearInterval(ticking);
  console.log(JSON.stringify({ rank: comm.rank, engine, channels, bytes, communicationMs, computationMs, bothMs, ticks }));
}
await comm.close();

function allReduce() {
  return comm.allReduce(x, x, 'max');
}

/** Multiplications and additions in the cache: nothing that waits for memory. */
function compute(n = turns) {
  for (let turn = 0; turn < n; turn++) for (let i = 0; i < state.length; i++) state[i] = (state[i] ?? 0) * 0.999 + 0.001;
}

/** Once the code is compiled. */
function turnsPerMs() {
  const [warmUp, measured] = [20_000, 5000];
  compute(warmUp);
  const start = performance.now();
  compute(measured);
  return measured / (performance.now() - start);
}

/** Milliseconds from a barrier of all ranks until this one is done. */
async function timed(/** @type {() => unknown} */ work) {
  await comm.barrier();
  const start = performance.now();
  await work();
  return performance.now() - start;
}
