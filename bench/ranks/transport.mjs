/**
 * One of two ranks, as a thread, of suite transport: connects with the other both ways and measures the given job.
 *
 * @module
 */
import { createServer, connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { encodeCall } from '../../dist/runtime/algorithms/call.js';
import { ringInOrder } from '../../dist/runtime/algorithms/connections/channels.js';
import { NetworkEngine } from '../../dist/runtime/algorithms/connections/network-engine.js';
import { loadLibc } from '../../dist/runtime/device/libc.js';
import { Segment } from '../../dist/runtime/device/segment.js';
import { Team } from '../../dist/runtime/device/team.js';
import { float32 } from '../../dist/runtime/device/types.js';
import { RingOfRanks } from '../../dist/runtime/transport/ring.js';
import { ShmTransport } from '../../dist/runtime/transport/shm.js';
import { SocketTransport } from '../../dist/runtime/transport/socket.js';

const { transport: name, rank, memory, slotBytes, bytes, repeats, mode } = workerData;
const other = 1 - rank;
const segment = name === 'shm' ? Segment.ofThreads(memory, rank, 2) : Segment.alone();
const { libc } = loadLibc();

/** Exchanges a value with the other thread. @param {unknown} mine @returns {Promise<any>} */
function exchange(mine) {
  parentPort?.postMessage({ exchange: mine });
  return new Promise((resolve) => parentPort?.once('message', resolve));
}

const times = mode === 'node:net' ? await rawSocket() : await measure(await openRing());
parentPort?.postMessage({ times });

async function openRing() {
  const size = { steps: 8, slotBytes };
  const transport =
    name === 'shm'
      ? new ShmTransport({ team: Team.ofAll(segment), localRanks: [0, 1], size })
      : new SocketTransport({
          segment,
          rank,
          host: '127.0.0.1',
          secret: new Uint8Array(32),
          size,
          libc: name === 'system calls' ? libc : undefined,
        });
  const send = await transport.setUpSend(other);
  const receive = await transport.setUpReceive(other);
  const infos = await exchange({ send: send.info, receive: receive.info });
  const { signal } = new AbortController();
  const [sender, receiver] = await Promise.all([send.connect(infos.receive, signal), receive.connect(infos.send, signal)]);
  return new RingOfRanks(rank, [0, 1], { send: sender, receive: receiver });
}

/** @param {RingOfRanks} ring @returns {Promise<number[]>} */
async function measure(ring) {
  const { send, receive } = /** @type {NonNullable<RingOfRanks['links']>} */ (ring.links);
  const wait = () => {
    if (send.polled) return void libc?.yieldCore();
    return new Promise((/** @type {(value: void) => void} */ resolve) => {
      send.onNews(resolve);
      receive.onNews(resolve);
    });
  };
  const post = async (/** @type {number} */ length) => {
    let slot = send.acquire();
    while (slot < 0) {
      await wait();
      slot = send.acquire();
    }
    segment.kernels.copy(slot, buffer, length);
    send.post(length);
  };
  const take = async () => {
    let slot = receive.peek();
    for (let look = 0; slot < 0; look++) {
      if (!send.polled || look > 1000) await wait();
      slot = receive.peek();
    }
    segment.kernels.copy(buffer, slot, receive.messageBytes);
    receive.release();
  };
  const buffer = segment.allocateBytes(slotBytes);
  const engine = new NetworkEngine(Team.ofAll(segment), libc, [ring], ringInOrder([ring.order], 'one host'), () =>
    Promise.reject(new Error('a ring has all connections that it needs')),
  );
  const allReduce = encodeCall({
    kind: 'allReduce',
    type: float32,
    operator: 'sum',
    root: 0,
    count: bytes / 4,
    algorithm: 'ring',
  });
  const [input, output] = [segment.alloc(Float32Array, bytes / 4), segment.alloc(Float32Array, bytes / 4)];
  const call = { code: allReduce, type: float32, root: 0, send: input, recv: output, count: bytes / 4, details: undefined };

  /** @type {Record<string, () => Promise<void>>} */
  const modes = {
    async 'round trip'() {
      if (rank === 0) await post(8);
      await take();
      if (rank === 1) await post(8);
    },
    async stream() {
      for (let sent = 0; sent < bytes; sent += slotBytes) await (rank === 0 ? post(slotBytes) : take());
      await (rank === 0 ? take() : post(8));
    },
    async 'all-reduce'() {
      let status = engine.begin(call, 1000);
      while (status === 0) {
        await wait();
        status = engine.progress(1000);
      }
    },
  };
  const measured = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    const start = process.hrtime.bigint();
    await modes[mode]?.();
    measured.push(Number(process.hrtime.bigint() - start) / 1000);
  }
  await exchange('done');
  await Promise.all([send.close(), receive.close()]);
  return measured;
}

/** The ceiling of sockets: bytes written and read by node:net into one buffer, nothing else. @returns {Promise<number[]>} */
async function rawSocket() {
  const chunk = new Uint8Array(slotBytes);
  const measured = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    if (rank === 0) {
      const server = createServer({ noDelay: true }).listen(0, '127.0.0.1');
      await new Promise((resolve) => server.once('listening', resolve));
      await exchange(server.address());
      const socket = await new Promise((resolve) => server.once('connection', resolve));
      for (let sent = 0; sent < bytes; sent += slotBytes)
        if (!socket.write(chunk)) await new Promise((resolve) => socket.once('drain', resolve));
      socket.end();
      await exchange('done');
      server.close();
    } else {
      const { port } = await exchange('address');
      let start = 0n;
      let got = 0;
      await new Promise((/** @type {(value: void) => void} */ resolve) => {
        const callback = (/** @type {number} */ count) => {
          if (start === 0n) start = process.hrtime.bigint();
          got += count;
          if (got >= bytes) resolve();
          return true;
        };
        connect({ port, host: '127.0.0.1', onread: { buffer: chunk, callback } });
      });
      measured.push(Number(process.hrtime.bigint() - start) / 1000);
      await exchange('done');
    }
  }
  return measured;
}
