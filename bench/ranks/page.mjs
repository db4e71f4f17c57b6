/**
 * Times of all-reduces on one rank, the same in a worker of a page and in a thread of Node.js.
 *
 * @module
 */

/** A page's clock has steps of 5 µs: a sample has so many calls that it takes about 20 of these. */
const SAMPLE_US = 100;
const LEAST_SAMPLES = 30;

/**
 * @param {import('tccl').Communicator | import('../../dist/browser/index.js').Communicator} comm
 * @param {readonly number[]} sizes in bytes
 * @param {number} seconds at one size
 * @returns {{ bytes: number, least: number, median: number }[]} µs of a call
 */
export function times(comm, sizes, seconds) {
  return sizes.map((bytes) => {
    const x = comm.alloc(Float32Array, bytes / 4);
    const sample = (/** @type {number} */ calls) => {
      comm.barrierSync();
      const begin = performance.now();
      for (let call = 0; call < calls; call++) comm.allReduceSync(x);
      return ((performance.now() - begin) * 1000) / calls;
    };
    for (let warm = 0; warm < 3; warm++) sample(bytes > 2 ** 18 ? 5 : 2000);
    // All ranks take the numbers of one.
    let calls = 1;
    let sampleUs = 0;
    while (sampleUs < SAMPLE_US) {
      calls *= 2;
      // One may be slow by chance.
      sampleUs = agreed(comm, calls * Math.min(sample(calls), sample(calls), sample(calls)));
    }
    const samples = Math.max(LEAST_SAMPLES, Math.min(3000, Math.floor((seconds * 1e6) / sampleUs)));
    const all = Array.from({ length: samples }, () => sample(calls)).sort((a, b) => a - b);
    comm.free(x);
    return { bytes, least: all[0] ?? NaN, median: all[samples >> 1] ?? NaN };
  });
}

/** @param {Parameters<typeof times>[0]} comm @param {number} value @returns {number} */
function agreed(comm, value) {
  const shared = Float64Array.of(value);
  comm.broadcastSync(shared);
  return shared[0] ?? value;
}
