/**
 * Connections between two ranks, as threads: a message there and back, a stream of full slots copied in and out, beside
 * what one thread copies and what node:net moves, over sockets of node:net and by system calls; and the ring by length of slice:
 * times are the lowest. All-reduces of two processes over sockets, in the rank's thread and on another, as promises and in place:
 * times are medians.
 *
 * @module
 */
import { Worker } from 'node:worker_threads';
import { runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { formatUs, table } from '../lib/table.mjs';
import { countsRoom, HEADER_BYTES } from '../../dist/runtime/algorithms/connections/exchange.js';
import { ringFifo } from '../../dist/runtime/algorithms/connections/ring.js';
import { Segment } from '../../dist/runtime/device/segment.js';
import { createMemory } from '../../dist/runtime/device/shared-memory.js';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'transport: connections of two ranks, and slices of a ring';

/** Bytes of a slot besides data in a ring of two ranks. */
const besideData = HEADER_BYTES + countsRoom(2);
const streamBytes = 64 * 2 ** 20;
/** The threads that carry out calls over sockets, and the rank's way to wait for them. */
const forms = [
  ['inline', 'promise'],
  ['inline', 'sync'],
  ['thread', 'promise'],
  ['thread', 'sync'],
];
const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../ranks/sockets.mjs', import.meta.url).pathname;
const sliceBytes = [32, 64, 128, 256, 512].map((kib) => kib * 1024);

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const { slotBytes } = ringFifo(2);
  const bytes = Math.floor(streamBytes / slotBytes) * slotBytes;
  for (let round = 0; round < options.rounds; round++) {
    progress(`transport ${round + 1}/${options.rounds}`);
    record({ transport: 'one thread', mode: 'copy', bytes, us: copyUs(bytes) });
    record({
      transport: 'socket',
      mode: 'node:net',
      bytes,
      us: await measure({ transport: 'socket', mode: 'node:net', bytes, slotBytes, repeats: 3 }),
    });
    for (const transport of ['shm', 'socket', 'system calls']) {
      record({
        transport,
        mode: 'round trip',
        bytes: 8,
        us: await measure({ transport, mode: 'round trip', bytes: 8, slotBytes, repeats: 2000 }),
      });
      record({
        transport,
        mode: 'stream',
        bytes,
        us: await measure({ transport, mode: 'stream', bytes, slotBytes, repeats: 10 }),
      });
      for (const size of options.sizes) {
        for (const slice of transport === 'shm' ? sliceBytes : [slotBytes - besideData]) {
          progress(`ring of ${size} bytes over ${transport} in slices of ${slice}`);
          const repeats = Math.max(5, Math.min(1000, 2 ** 26 / size));
          record({
            transport,
            mode: 'all-reduce',
            bytes: size,
            slice,
            us: await measure({ transport, mode: 'all-reduce', bytes: size, slotBytes: slice + besideData, repeats }),
          });
        }
      }
    }
    for (const [engine = '', form = ''] of forms) {
      progress(`all-reduces of processes over sockets, engine ${engine}, ${form}`);
      const args = [
        cli,
        'run',
        '-n',
        '2',
        '--no-prefix',
        '--',
        process.execPath,
        program,
        engine,
        form,
        options.sizes.join(','),
        '2000',
      ];
      try {
        const output = await runCommand({ file: process.execPath, args, env: { TCCL_SHM_DISABLE: '1' } }, { timeoutMs: 120_000 });
        for (const line of output.split('\n').filter((text) => text.startsWith('{')))
          record({ overSockets: true, ...JSON.parse(line) });
      } catch (error) {
        note(`all-reduces over sockets, engine ${engine}, ${form}: ${messageOf(error)}`);
      }
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter((record) => record['transport'] !== undefined);
  if (measured.length === 0) return '';
  const lowest = (/** @type {Record<string, unknown>} */ wanted) =>
    Math.min(
      ...measured
        .filter((record) => Object.entries(wanted).every(([key, value]) => record[key] === value))
        .map((record) => Number(record['us'])),
    );
  const bytes = measured.find(({ mode }) => mode === 'stream')?.['bytes'] ?? 0;
  const rate = (/** @type {Record<string, unknown>} */ wanted) => (bytes / lowest(wanted) / 1000).toFixed(2);
  const connections = table(
    ['transport', 'there and back, µs', 'stream, GB/s', 'ceiling, GB/s'],
    [
      [
        'shm',
        formatUs(lowest({ transport: 'shm', mode: 'round trip' })),
        rate({ transport: 'shm', mode: 'stream' }),
        `copy ${rate({ mode: 'copy' })}`,
      ],
      ...['socket', 'system calls'].map((transport) => [
        transport === 'socket' ? 'socket, node:net' : 'socket, system calls',
        formatUs(lowest({ transport, mode: 'round trip' })),
        rate({ transport, mode: 'stream' }),
        `node:net ${rate({ mode: 'node:net' })}`,
      ]),
    ],
  );
  const sizes = [...new Set(measured.filter(({ mode }) => mode === 'all-reduce').map((record) => Number(record['bytes'])))];
  const slices = table(
    ['all-reduce, µs', ...sliceBytes.map((slice) => `${slice / 1024}K`), 'node:net', 'system calls'],
    sizes.map((size) => [
      String(size),
      ...sliceBytes.map((slice) => formatUs(lowest({ transport: 'shm', mode: 'all-reduce', bytes: size, slice }))),
      ...['socket', 'system calls'].map((transport) => formatUs(lowest({ transport, mode: 'all-reduce', bytes: size }))),
    ]),
  );
  return `${connections}\n\nring of 2 ranks by length of slice over shm\n\n${slices}\n\n2 processes over sockets, arrays of alloc / ordinary\n\n${processes(records)}`;
}

function processes(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter((record) => record['overSockets'] === true);
  const medianUs = (/** @type {Record<string, unknown>} */ wanted) => {
    const found = measured.filter((record) => Object.entries(wanted).every(([key, value]) => record[key] === value));
    const values = found.map((record) => Number(record['us'])).sort((a, b) => a - b);
    return values[values.length >> 1] ?? NaN;
  };
  const sizes = [...new Set(measured.map((record) => Number(record['bytes'])))];
  return table(
    ['all-reduce, µs', ...forms.map(([engine, form]) => `${engine}, ${form}`)],
    sizes.map((bytes) => [
      String(bytes),
      ...forms.map(([engine, form]) =>
        ['alloc', 'ordinary'].map((memory) => formatUs(medianUs({ engine, form, memory, bytes }))).join(' / '),
      ),
    ]),
  );
}

/**
 * The lowest time of rank 1, which is the one that receives a stream. @param {Record<string, unknown>} job @returns
 * {Promise<number>}
 */
async function measure(job) {
  const memory = job['transport'] === 'shm' ? createMemory() : undefined;
  const workers = [0, 1].map(
    (rank) => new Worker(new URL('../ranks/transport.mjs', import.meta.url), { workerData: { ...job, rank, memory } }),
  );
  /** @type {unknown[][]} */
  const queues = [[], []];
  const passOn = () => {
    if (!queues.every((queue) => queue.length > 0)) return;
    const [a, b] = queues.map((queue) => queue.shift());
    workers[0]?.postMessage(b);
    workers[1]?.postMessage(a);
  };
  const times = await Promise.all(
    workers.map(
      (worker, rank) =>
        new Promise((resolve, reject) => {
          worker.on('error', reject);
          worker.on('message', (message) => {
            if (message.times !== undefined) return resolve(message.times);
            queues[rank]?.push(message.exchange);
            passOn();
          });
        }),
    ),
  );
  await Promise.all(workers.map((worker) => worker.terminate()));
  const ofSecond = /** @type {number[]} */ (times[1]);
  return Math.min(...ofSecond);
}

/** Time of one thread to copy these bytes into and out of a slot's room. @param {number} bytes */
function copyUs(bytes) {
  const segment = Segment.alone();
  const { slotBytes } = ringFifo(2);
  const [from, to] = [segment.allocateBytes(slotBytes), segment.allocateBytes(slotBytes)];
  const start = process.hrtime.bigint();
  for (let copied = 0; copied < bytes; copied += slotBytes) {
    segment.kernels.copy(to, from, slotBytes);
    segment.kernels.copy(from, to, slotBytes);
  }
  return Number(process.hrtime.bigint() - start) / 1000;
}
