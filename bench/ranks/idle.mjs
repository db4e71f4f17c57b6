/**
 * Ranks that wait for long: first, right after their start, for a timer of Node.js, which shows what V8 does by itself in an
 * idle process; then for rank 0, which calls MS milliseconds after the others, in each of several waits.
 *     node idle.mjs shared|sockets|hosts MS
 * Each rank but 0 prints a line of JSON a wait: the share of a core that its process took meanwhile, all threads together,
 * and the delay from rank 0's call until it continued.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { init } from '../../dist/index.js';

const [transport = 'shared', text = '10000'] = process.argv.slice(2);
const lateMs = Number(text);

/** A config, and a wait that ends when rank 0 calls, whose time it leaves in `x`. */
/**
 * @type {{ wait: string, config: import('../../dist/index.js').CommunicatorConfig, run: (comm:
 * import('../../dist/index.js').Communicator, x: Float64Array) => Promise<void> | void }[]}
 */
const waits = [
  { wait: 'recv', config: {}, run: receive },
  { wait: 'recvSync', config: { blocking: true }, run: (comm, x) => (comm.rank === 0 ? receive(comm, x) : comm.recvSync(x, 0)) },
  { wait: 'allReduce', config: {}, run: (comm, x) => comm.allReduce(x, x, 'max') },
  { wait: 'allReduceSync', config: { blocking: true }, run: (comm, x) => comm.allReduceSync(x, x, 'max') },
  { wait: 'allReduce, engine: thread', config: { engine: 'thread' }, run: (comm, x) => comm.allReduce(x, x, 'max') },
];

const job = await init();
await job.barrier();
if (job.rank !== 0) await timed(job, 'a timer', undefined, () => sleep(lateMs));
for (const { wait, config, run } of waits) {
  const comm = await job.split(0, 0, config);
  const x = comm.alloc(Float64Array, 1);
  await run(comm, x);
  await whileLate(comm, wait, x, () => run(comm, x));
  await comm.close();
}

const comm = await job.split(0);
const x = comm.alloc(Float64Array, 1);
const window = await comm.window(x);
await signal();
await whileLate(comm, 'waitSignal', x, signal);
await window.close();
await comm.close();
await job.close();

/** @param {import('../../dist/index.js').Communicator} comm @param {Float64Array} x */
async function receive(comm, x) {
  if (comm.rank !== 0) return comm.recv(x, 0);
  await Promise.all(Array.from({ length: comm.nRanks - 1 }, (_, i) => comm.send(x, i + 1)));
}

async function signal() {
  if (comm.rank === 0)
    for (let peer = 1; peer < comm.nRanks; peer++) await window.put(Float64Array.of(nowUs()), peer, 0, { signal: true });
  else await window.waitSignal(0);
}

/**
 * A wait of the other ranks for rank 0.
 *
 * @param {import('../../dist/index.js').Communicator} comm @param {string} wait
 * @param {Float64Array} x gets the time of rank 0's call
 * @param {() => Promise<void> | void} run
 */
async function whileLate(comm, wait, x, run) {
  x.fill(0);
  await comm.barrier();
  if (comm.rank === 0) {
    await sleep(lateMs);
    x.fill(nowUs());
    await run();
  } else await timed(comm, wait, x, run);
  await comm.barrier();
}

/**
 * Measures a wait of this rank.
 *
 * @param {import('../../dist/index.js').Communicator} comm @param {string} wait @param {Float64Array | undefined} x
 * @param {() => Promise<void> | void} run
 */
async function timed(comm, wait, x, run) {
  const before = process.cpuUsage();
  const startUs = nowUs();
  await run();
  const endUs = nowUs();
  const { user, system } = process.cpuUsage(before);
  const line = {
    idle: wait,
    transport,
    ranks: comm.nRanks,
    rank: comm.rank,
    waitedMs: (endUs - startUs) / 1000,
    cpuPercent: (100 * (user + system)) / (endUs - startUs),
    lateUs: x === undefined ? undefined : endUs - (x[0] ?? 0),
  };
  console.log(JSON.stringify(line));
}

/** Microseconds of the clock that all processes of the machine have. */
function nowUs() {
  return Number(process.hrtime.bigint()) / 1000;
}
