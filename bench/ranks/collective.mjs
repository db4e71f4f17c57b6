/**
 * One rank of tccl in the benchmark: the same options, the same method and the same JSON lines as bench/peers/bench.c,
 * whose comments describe the method. Rank 0 prints.
 *
 *     BENCH_SHM=/dev/shm/x npx tccl run -n 2 -- node bench/ranks/collective.mjs -C all_reduce -s 8,1M -c
 *
 * -A sync (default), promise, or plain: the blocking API, the promise API, or the blocking one on ordinary arrays.
 * -m near or far: only while the cores are in that state and no other process runs, waiting up to -W seconds.
 */
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { init } from 'tccl';
import { clockCost } from '../../dist/perf/clock.js';
import { collectives } from '../../dist/perf/collectives.js';
import { countWrong, TestData } from '../../dist/perf/data.js';
import { Buffers } from '../../dist/perf/measure.js';
import { parseSize } from '../../dist/perf/sizes.js';
import { elementTypes } from '../../dist/perf/types.js';
import { stateOf } from '../lib/compare.mjs';
import { Meeting, pin, sleep } from './meeting.mjs';

/** @typedef {import('../../dist/perf/collectives.js').Collective} Collective */
/** @typedef {import('../../dist/perf/collectives.js').Arguments} Arguments */

const { values: option } = parseArgs({
  options: {
    collective: { short: 'C', type: 'string', default: 'all_reduce' },
    type: { short: 'd', type: 'string', default: 'float' },
    inplace: { short: 'i', type: 'string', default: '0' },
    sizes: { short: 's', type: 'string', default: '8,1K,32K,1M,16M,64M' },
    samples: { short: 'n', type: 'string', default: '100' },
    warm: { short: 'w', type: 'string', default: '5' },
    calls: { short: 'k', type: 'string', default: '1' },
    seconds: { short: 't', type: 'string', default: '1' },
    check: { short: 'c', type: 'boolean', default: false },
    pin: { short: 'p', type: 'boolean', default: false },
    api: { short: 'A', type: 'string', default: 'sync' },
    label: { short: 'L', type: 'string', default: '' },
    state: { short: 'm', type: 'string' },
    patience: { short: 'W', type: 'string', default: '20' },
  },
});
const path = process.env['BENCH_SHM'];
if (path === undefined) throw new Error('set BENCH_SHM to the path of a new file for all ranks');
const rankHere = Number(process.env['TCCL_LOCAL_RANK']);
if (option.pin) pin(rankHere % cpus().length);

const comm = await init({ blocking: true });
const meeting = new Meeting(comm.rank, comm.nRanks, path);
const collective = collectives.find(({ name }) => name === option.collective);
const type = elementTypes.find(({ name }) => name === (option.type === 'bf16' ? 'bfloat16' : option.type));
const sizes = option.sizes.split(',').map((size) => parseSize(size, '-s'));
const perSample = Number(option.calls);
const inPlace = option.inplace === '1';
const clock = clockCost();
/** A size at which nothing is done in one phase any more, whose calls warm the path of larger sizes. */
const WARM_BYTES = 128 * 1024;

if (collective === undefined || type === undefined) {
  if (comm.rank === 0) console.error(`tccl: no ${option.collective} of ${option.type} here`);
} else {
  const buffers = new Buffers(comm, option.api === 'plain' ? 'plain' : 'shared', Math.max(...sizes));
  for (const bytes of sizes) await measure(collective, type, buffers, bytes);
}
meeting.barrier();
meeting.close();
await comm.close();

/**
 * @param {Collective} which
 * @param {import('../../dist/perf/types.js').ElementType} elements
 * @param {Buffers} buffers
 * @param {number} size
 */
async function measure(which, elements, buffers, size) {
  const shape = which.shape(Math.floor(size / elements.bytes), comm.nRanks, elements.bytes);
  const bytes = Math.max(shape.sendCount, shape.recvCount) * elements.bytes;
  // One literal makes all calls' objects: V8 gives up compiled code that meets an object of another form.
  const callOf = (/** @type {import('../../dist/perf/collectives.js').Shape} */ of) => ({
    ...buffers.views(elements, of, inPlace),
    operator: /** @type {const} */ ('sum'),
    root: 0,
    options: { type: elements.type },
  });
  const call = callOf(shape);
  const { send, recv } = call;
  const data = new TestData(elements, which.reduces ? 'sum' : undefined, comm.nRanks, 0);
  recv.fill(/** @type {never} */ (elements.type.endsWith('int64') ? 1n : 1));
  data.fill(send, comm.rank, 0);
  if (option.check) {
    meeting.barrier();
    if (option.api === 'promise') await which.run(comm, call);
    else which.runSync(comm, call);
    meeting.report('wrong', countWrong(recv, which.expected(shape, { rank: comm.rank, nRanks: comm.nRanks, root: 0 }), data));
  }
  if (inPlace) recv.fill(/** @type {never} */ (elements.type.endsWith('int64') ? 0n : 0)); // sums in place must not overflow
  // V8 compiles code that has run some thousand times, this loop too: each size's path is warm before its first sample. Large
  // sizes take the path of smaller ones, which run often enough in short time; with several arrays, as the path of one seen
  // for the first time is to be compiled, too.
  // Where ranks share cores, each gets less of the time.
  const crowd = Math.max(1, comm.nRanks / availableParallelism());
  const sample = option.api === 'promise' ? samplePromise : sampleSync;
  if (bytes > WARM_BYTES) {
    const small = which.shape(WARM_BYTES / elements.bytes, comm.nRanks, elements.bytes);
    for (let turn = 0; turn < 20; turn++) await sample(which, callOf(small), 1500, 50 * crowd);
  }
  await sample(which, call, Math.max(2, Math.min(30_000, Math.floor(2 ** 31 / bytes))), 1500 * crowd);

  // All ranks get the result of the probe, so all repeat samples that lost the wanted state.
  let waits = Number(option.patience) * 20;
  let before, after, samples;
  do {
    while (!isWanted((before = meeting.probe())) && waits-- > 0) sleep(50);
    samples = await sample(which, call, Number(option.samples), Number(option.seconds) * 1e3);
    after = meeting.probe();
  } while (!isWanted(after) && waits-- > 0);
  if (comm.rank !== 0) return;

  samples.sort((a, b) => a - b);
  const median = samples[samples.length >> 1] ?? 0;
  const mean = samples.reduce((sum, time) => sum + time, 0) / samples.length;
  const GBps = bytes / median / 1e9;
  console.log(
    JSON.stringify({
      lib: 'tccl',
      cfg: option.label || option.api,
      coll: option.collective,
      type: option.type,
      ranks: comm.nRanks,
      bytes,
      inplace: inPlace ? 1 : 0,
      calls: perSample,
      samples: samples.length,
      link_ns: [Math.round(before.linkNs), Math.round(after.linkNs)],
      others: [before.others, after.others],
      clock_ns: Math.round(clock * 1e9),
      time_us: micros(median),
      min_us: micros(samples[0] ?? 0),
      mean_us: micros(mean),
      algbw_GBps: Number(GBps.toFixed(4)),
      busbw_GBps: Number((GBps * which.busFactor(comm.nRanks)).toFixed(4)),
      wrong: option.check ? meeting.reported('wrong').reduce((sum, count) => sum + count, 0) : null,
    }),
  );
}

/** True if the machine is in the state of -m. @param {{ linkNs: number, others: number }} probe */
function isWanted({ linkNs, others }) {
  return option.state === undefined || (others === 0 && stateOf({ link_ns: [linkNs, linkNs] }) === option.state);
}

function micros(/** @type {number} */ seconds) {
  return Number((seconds * 1e6).toFixed(3));
}

/** Lets all ranks begin samples together. Returns the time. */
function beginSamples() {
  meeting.barrier(); // all have seen the last stop
  if (comm.rank === 0) meeting.stop = false;
  return performance.now();
}

/**
 * The slowest rank's seconds for one call, of each sample.
 *
 * @param {Collective} which
 * @param {Arguments} call
 * @param {number} count of samples
 * @param {number} limitMs no more of them after this time
 */
function sampleSync(which, call, count, limitMs) {
  const samples = /** @type {number[]} */ ([]);
  const begin = beginSamples();
  for (let i = -Number(option.warm); i < count; i++) {
    meeting.barrier();
    if (meeting.stop) break;
    const start = performance.now();
    for (let j = 0; j < perSample; j++) which.runSync(comm, call);
    finishSample(samples, i, performance.now() - start, begin + limitMs);
  }
  return samples;
}

/**
 * As {@link sampleSync}, awaiting each call.
 *
 * @param {Collective} which
 * @param {Arguments} call
 * @param {number} count
 * @param {number} limitMs
 */
async function samplePromise(which, call, count, limitMs) {
  const samples = /** @type {number[]} */ ([]);
  const begin = beginSamples();
  for (let i = -Number(option.warm); i < count; i++) {
    meeting.barrier();
    if (meeting.stop) break;
    const start = performance.now();
    for (let j = 0; j < perSample; j++) await which.run(comm, call);
    finishSample(samples, i, performance.now() - start, begin + limitMs);
  }
  return samples;
}

/**
 * @param {number[]} samples
 * @param {number} index below zero while warming up
 * @param {number} tookMs
 * @param {number} end when sampling is to stop, on performance.now()'s clock
 */
function finishSample(samples, index, tookMs, end) {
  meeting.report('seconds', (tookMs / 1e3 - clock) / perSample);
  meeting.barrier();
  if (comm.rank !== 0) return;
  if (index >= 0) samples.push(Math.max(...meeting.reported('seconds')));
  if (samples.length > 0 && performance.now() > end) meeting.stop = true;
}
