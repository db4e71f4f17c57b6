import { Ring } from '../../../src/collectives/ring.js';
import { loadLibc } from '../../../src/device/libc.js';
import { createMemory, rankStates, Segment } from '../../../src/device/segment.js';
import { Team } from '../../../src/device/team.js';
import type { NumericArray } from '../../../src/device/types.js';
import { Ring as RingOfRanks } from '../../../src/transport/ring.js';
import { ShmTransport } from '../../../src/transport/shm.js';
import { SocketTransport } from '../../../src/transport/socket.js';
import type { FifoSize, Transport, TransportName } from '../../../src/transport/transport.js';

const never = new AbortController().signal;

/** A ring of n ranks in one thread, the order given or ascending. */
export async function openRing(name: TransportName, n: number, size: FifoSize, order = Array.from({ length: n }, (_, rank) => rank)): Promise<Ring[]> {
  const shared = createMemory(2048);
  const segments = order.map((_, rank) => (name === 'shm' ? Segment.ofThreads(shared, rank, n) : Segment.ofThreads(createMemory(512), 0, 1)));
  for (const segment of segments) segment.setState(rankStates.ready);
  const transports: Transport[] = segments.map((segment, rank) =>
    name === 'shm'
      ? new ShmTransport({ team: Team.ofAll(segment), localRanks: order.map((_, local) => local), size })
      : new SocketTransport({ segment, rank, host: '127.0.0.1', secret: new Uint8Array(32), size }),
  );
  const rings = n === 1 ? [new RingOfRanks(0, order, undefined)] : await connect(transports, order);
  const loaded = loadLibc();
  const libc = 'libc' in loaded ? loaded.libc : undefined;
  return rings.map((ring) => new Ring(segments[ring.rank]!, ring.rank % 2 === 0 ? libc : undefined, ring));
}

async function connect(transports: readonly Transport[], order: readonly number[]): Promise<RingOfRanks[]> {
  const n = order.length;
  const layouts = transports.map((_, rank) => new RingOfRanks(rank, order, undefined));
  const ends = await Promise.all(
    layouts.map(async (layout, rank) => {
      const [send, receive] = await Promise.all([transports[rank]!.setUpSend(layout.rankAt(1)), transports[rank]!.setUpReceive(layout.rankAt(n - 1))]);
      return { send, receive };
    }),
  );
  return Promise.all(
    layouts.map(async (layout, rank) => {
      const [send, receive] = await Promise.all([
        ends[rank]!.send.connect(ends[layout.rankAt(1)]!.receive.info, never),
        ends[rank]!.receive.connect(ends[layout.rankAt(-1)]!.send.info, never),
      ]);
      return new RingOfRanks(rank, order, { send, receive });
    }),
  );
}

/** A random number generator that a test can repeat. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export const bytesOf = (array: NumericArray): Buffer => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
