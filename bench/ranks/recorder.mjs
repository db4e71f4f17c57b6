/**
 * Cost of the board, on which each rank records its last calls: small calls on communicators with and without it, in turn.
 *     node recorder.mjs ROUNDS
 * Rank 0 prints a line of JSON a call: nanoseconds without the board, and how many more it takes with it.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';
import { init } from '../../dist/index.js';
import { Board, CallRecorder } from '../../dist/runtime/device/board.js';

/** Records nothing. */
const silent = /** @type {Record<string, unknown>} */ (Object.create(CallRecorder.prototype));
for (const method of ['begin', 'wait', 'end', 'addMessage', 'beginMessage', 'endApart', 'report', 'resolve'])
  silent[method] = () => 0;

const { show } = Board.prototype;
Board.prototype.show = function (/** @type {Parameters<Board["show"]>[0]} */ shown) {
  const recorder = show.call(this, shown);
  return shown.name === 'without' ? /** @type {CallRecorder} */ (Object.setPrototypeOf(recorder, silent)) : recorder;
};

/** @typedef {import('../../dist/index.js').Communicator} Communicator */

/** So few that most rounds end before another process takes the core. */
const callsARound = 100;
const rounds = Number(process.argv[2] ?? 2000);
const job = await init({ blocking: true });
// Ranks on one core hand it to each other, which takes 6 µs.
execFileSync('taskset', ['-acp', String(job.rank), String(process.pid)]);

/** Several of each: the place of a communicator in memory has an effect, too. */
/** @type {{ name: string, comm: Communicator, x: Float32Array, ns: number[] }[]} */
const tried = [];
for (const name of ['with', 'without', 'without', 'with', 'with', 'without', 'without', 'with']) {
  const comm = await job.split(0, 0, { name, blocking: true });
  tried.push({ name, comm, x: comm.alloc(Float32Array, 2), ns: [] });
}

/** @type {Record<string, (comm: Communicator, x: Float32Array) => void>} */
const calls = {
  'allReduce, 8 bytes': (comm, x) => comm.allReduceSync(x, x, 'sum'),
  barrier: (comm) => comm.barrierSync(),
  'send and recv, 8 bytes': (comm, x) => {
    if (comm.rank === 0) comm.sendSync(x, 1);
    comm.recvSync(x, 1 - comm.rank);
    if (comm.rank === 1) comm.sendSync(x, 0);
  },
};
if (job.nRanks === 1) delete calls['send and recv, 8 bytes'];

for (const [call, run] of Object.entries(calls)) {
  for (const one of tried) one.ns = [];
  // The first tenth is not counted: V8 compiles.
  const warmUp = Math.ceil(rounds / 10);
  for (let round = -warmUp; round < rounds; round++) {
    for (const { comm, x, ns } of round % 2 === 0 ? tried : tried.toReversed()) {
      x.fill(0);
      comm.barrierSync();
      const start = process.hrtime.bigint();
      for (let i = 0; i < callsARound; i++) run(comm, x);
      const took = Number(process.hrtime.bigint() - start) / callsARound;
      if (round >= 0) ns.push(took);
    }
  }
  if (job.rank === 0) console.log(JSON.stringify({ recorded: call, ranks: job.nRanks, ...compared() }));
}
await job.close();

/** Medians of the rounds in which no other process took a core. */
function compared() {
  const limit =
    1.5 *
    quantile(
      tried.flatMap(({ ns }) => ns),
      0.1,
    );
  const undisturbed = Array.from({ length: rounds }, (_, i) => i).filter((i) => tried.every(({ ns }) => (ns[i] ?? 0) < limit));
  const mean = (/** @type {string} */ way, /** @type {number} */ i) => {
    const times = tried.flatMap(({ name, ns }) => (name === way ? [ns[i] ?? 0] : []));
    return times.reduce((sum, time) => sum + time, 0) / times.length;
  };
  const without = undisturbed.map((i) => mean('without', i));
  const more = undisturbed.map((i) => mean('with', i) - mean('without', i));
  return { rounds: undisturbed.length, withoutNs: quantile(without, 0.5), moreNs: quantile(more, 0.5) };
}

/** @param {number[]} values @param {number} share */
function quantile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
}
