/**
 * Messages between two ranks, for suite messages: as peers/messages.c, by blocking calls.
 *     node messages.mjs ROUNDS shared|ordinary
 *
 * @module
 */
import { execFileSync } from 'node:child_process';
import { init } from '../../dist/index.js';

const inFlight = 64;
const rounds = Number(process.argv[2] ?? 20);
const arrays = process.argv[3] ?? 'shared';
const comm = await init({ blocking: true });
// Open MPI binds its ranks to cores, too.
execFileSync('taskset', ['-acp', String(comm.rank), String(process.pid)]);
const other = 1 - comm.rank;
const make = (/** @type {number} */ bytes) => (arrays === 'shared' ? comm.alloc(Uint8Array, bytes) : new Uint8Array(bytes));

for (const bytes of [8, 1024, 32_768, 2 ** 20]) {
  const [mine, theirs] = [make(bytes), make(bytes)];
  measure('ping-pong', bytes, 2, () => {
    if (comm.rank === 0) comm.sendSync(mine, 1);
    comm.recvSync(theirs, other);
    if (comm.rank === 1) comm.sendSync(mine, 0);
  });
  measure('both ways', bytes, 1, () => comm.sendRecvSync(mine, other, theirs, other));
  measure('group', bytes, 1, () =>
    comm.groupSync(() => {
      void comm.recv(theirs, other);
      void comm.send(mine, other);
    }),
  );
  const window = await comm.window(comm.alloc(Uint8Array, bytes));
  measure('put', bytes, 1, () => {
    if (comm.rank === 0) window.putSync(mine, 1);
  });
  await window.close();
  if (bytes === 8) {
    const counters = await comm.window(comm.alloc(Int32Array, 2));
    const added = arrays === 'shared' ? comm.alloc(Int32Array, 2) : new Int32Array(2);
    const fromFirst = (/** @type {() => void} */ change) => () => {
      if (comm.rank === 0) change();
    };
    measure(
      'accumulate',
      8,
      1,
      fromFirst(() => counters.accumulateSync(added, 1)),
    );
    measure(
      'fetchAndOp',
      4,
      1,
      fromFirst(() => counters.fetchAndOpSync(1, 1)),
    );
    measure(
      'compareAndSwap',
      4,
      1,
      fromFirst(() => counters.compareAndSwapSync(0, 0, 1)),
    );
    await counters.close();
    const all = make(inFlight * bytes);
    const parts = Array.from({ length: inFlight }, (_, i) => all.subarray(i * bytes, (i + 1) * bytes));
    measure('rate', bytes, inFlight, () =>
      comm.groupSync(() => {
        for (const part of parts) void (comm.rank === 0 ? comm.send(part, 1) : comm.recv(part, 0));
      }),
    );
  }
}
await comm.close();

/**
 * Prints the least of the rounds.
 *
 * @param {string} what @param {number} bytes @param {number} messages of a call @param {() => void} call
 */
function measure(what, bytes, messages, call) {
  const calls = what === 'rate' ? 50 : bytes <= 1024 ? 2000 : bytes <= 32_768 ? 500 : 50;
  let least = Infinity;
  for (let round = 0; round < rounds; round++) {
    comm.barrierSync();
    const begin = performance.now();
    for (let i = 0; i < calls; i++) call();
    least = Math.min(least, ((performance.now() - begin) * 1000) / calls / messages);
  }
  if (comm.rank === 0) console.log(JSON.stringify({ messages: what, bytes, us: least }));
}
