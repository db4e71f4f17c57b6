/**
 * All-reduces over sockets, of suite transport: a rank times them in the given form, and rank 0 writes the times
 * as lines of JSON.
 *
 *     node sockets.mjs inline|thread promise|sync SIZE,SIZE,… REPEATS
 *
 * @module
 */
import { init } from '../../dist/index.js';

const [engine, form, sizes = '', most] = process.argv.slice(2);
const comm = await init({
  onWarning: () => undefined,
  ...(engine === 'thread' ? { engine } : form === 'sync' ? { blocking: true } : {}),
});
for (const bytes of sizes.split(',').map(Number)) {
  const arrays = { alloc: comm.alloc(Float32Array, bytes / 4), ordinary: new Float32Array(bytes / 4) };
  for (const [memory, array] of Object.entries(arrays)) {
    const repeats = Math.max(10, Math.min(Number(most), 2 ** 28 / bytes));
    const times = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const start = process.hrtime.bigint();
      if (form === 'sync') comm.allReduceSync(array);
      else await comm.allReduce(array);
      times.push(Number(process.hrtime.bigint() - start) / 1000);
    }
    times.sort((a, b) => a - b);
    if (comm.rank === 0)
      console.log(JSON.stringify({ engine, form, memory, bytes, us: times[times.length >> 1], lowestUs: times[0] }));
  }
}
await comm.close();
