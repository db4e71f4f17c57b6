import { afterEach, expect, test } from 'vitest';
import type { Bootstrap } from '../../../../src/runtime/bootstrap/bootstrap.js';
import type { Segment } from '../../../../src/runtime/device/segment.js';
import { Team } from '../../../../src/runtime/device/team.js';
import { connectRing, connectRings, type RingOfRanks } from '../../../../src/runtime/transport/ring.js';
import { ShmTransport } from '../../../../src/runtime/transport/shm.js';
import { SocketTransport } from '../../../../src/runtime/transport/socket.js';
import type { FifoSize, Transport } from '../../../../src/runtime/transport/transport.js';
import { connectRanks } from '../bootstrap/ranks.js';
import { hostSegments, secret, until } from './pairs.js';

const size: FifoSize = { steps: 2, slotBytes: 256 };
const { signal } = new AbortController();

let bootstraps: Bootstrap[] = [];
afterEach(async () => {
  await Promise.all(bootstraps.map((bootstrap) => bootstrap.close()));
});

interface Host {
  readonly ranks: readonly number[];
  readonly segments: readonly Segment[];
}

/** Hosts of ranks in this thread, numbered one host after the other. */
function hosts(...counts: readonly number[]): Host[] {
  let first = 0;
  return counts.map((count) => {
    const ranks = Array.from({ length: count }, (_, i) => first + i);
    first += count;
    return { ranks, segments: hostSegments(count).segments };
  });
}

/** Shared memory within a host, sockets between hosts. */
function transports({ ranks, segments }: Host, local: number, fifo = size): (peer: number) => Transport {
  const segment = segments[local]!;
  const shm = new ShmTransport({ team: Team.ofAll(segment), localRanks: ranks, size: fifo });
  const socket = new SocketTransport({ segment, rank: ranks[local]!, host: '127.0.0.1', secret, size: fifo });
  return (peer) => (ranks.includes(peer) ? shm : socket);
}

const cases: readonly (readonly [string, readonly number[], readonly number[]])[] = [
  ['two ranks of a host', [2], [0, 1]],
  ['two hosts', [1, 1], [0, 1]],
  ['a host, in another order', [5], [3, 0, 4, 2, 1]],
  ['three hosts', [2, 1, 2], [0, 1, 2, 3, 4]],
  ['hosts in an order that visits each twice', [2, 2], [0, 2, 1, 3]],
];

test.each(cases)('%s form a ring: messages to the next rank arrive from the previous one', async (_, counts, order) => {
  bootstraps = await connectRanks(order.length);
  const rings = await Promise.all(
    hosts(...counts).flatMap((host) =>
      host.ranks.map((rank, local) => connectRing(bootstraps[rank]!, order, transports(host, local), signal)),
    ),
  );
  for (const ring of rings) {
    expect(ring.links!.send.peer).toBe(order[(order.indexOf(ring.rank) + 1) % order.length]);
    ring.links!.send.acquire();
    ring.links!.send.post(ring.rank);
  }
  for (const ring of rings) {
    const { receive } = ring.links!;
    await until(() => receive.peek() >= 0);
    expect(receive.messageBytes).toBe(receive.peer);
    expect(receive.peer).toBe(ring.rankAt(-1));
  }
  await close(rings);
});

test('messages to another host go through the relay, which has connections of its own for them', async () => {
  bootstraps = await connectRanks(6);
  const path = { order: [0, 1, 2, 3, 4, 5], relays: { 2: 0, 5: 4 } };
  const rings = await Promise.all(
    hosts(3, 3).flatMap((host) =>
      host.ranks.map(async (rank, local) => {
        const [ring] = await connectRings(bootstraps[rank]!, [path], transports(host, local), signal);
        return ring!;
      }),
    ),
  );
  const peersOf = ({ links }: RingOfRanks) =>
    [links, links?.relayed].flatMap((hop) => (hop === undefined ? [] : [[hop.receive.peer, hop.send.peer]]));
  expect(rings.map(peersOf)).toEqual([
    [[4, 1], [2, 3]], // prettier-ignore
    [[0, 2]],
    [[1, 0]],
    [[0, 4]],
    [[3, 5], [5, 0]], // prettier-ignore
    [[4, 4]],
  ]);
  await close(rings);
  for (const { links } of rings) await Promise.all([links?.relayed?.send.close(), links?.relayed?.receive.close()]);
});

test('a ring of one rank has no links', async () => {
  bootstraps = await connectRanks(1);
  const ring = await connectRing(
    bootstraps[0]!,
    [0],
    () => {
      throw new Error('asked for a transport');
    },
    signal,
  );
  expect(ring.links).toBeUndefined();
});

test('all ranks refuse transports that differ between neighbours, and free everything', async () => {
  bootstraps = await connectRanks(3);
  const [host] = hosts(3);
  const rejections = await failures(
    host!.ranks.map((rank, local) => {
      const choose = transports(host!, local);
      const apart = new SocketTransport({ segment: host!.segments[local]!, rank, host: '127.0.0.1', secret, size });
      return connectRing(bootstraps[rank]!, [0, 1, 2], (peer) => (rank === 1 && peer === 2 ? apart : choose(peer)), signal);
    }),
  );
  for (const error of rejections)
    expect(error).toMatchObject({ code: 'UNSUPPORTED', ranks: [1, 2], message: expect.stringContaining('by socket') as string });
  expect(host!.segments.map((segment) => segment.heap.usedBytes)).toEqual([0, 0, 0]);
});

test('all ranks refuse connections of different sizes', async () => {
  bootstraps = await connectRanks(2);
  const [host] = hosts(2);
  const rejections = await failures(
    host!.ranks.map((rank, local) =>
      connectRing(bootstraps[rank]!, [0, 1], transports(host!, local, { steps: 2, slotBytes: 256 + 128 * rank }), signal),
    ),
  );
  for (const error of rejections)
    expect(error).toMatchObject({ code: 'UNSUPPORTED', message: expect.stringContaining('256 bytes') as string });
});

test('a rank without room for its slots is an error on all ranks', async () => {
  bootstraps = await connectRanks(3);
  const [host] = hosts(3);
  const { heap } = host!.segments[1]!;
  heap.allocate(heap.largestFree() - 4096);
  const rejections = await failures(
    host!.ranks.map((rank, local) =>
      connectRing(bootstraps[rank]!, [0, 1, 2], transports(host!, local, { steps: 2, slotBytes: 4096 }), signal),
    ),
  );
  for (const error of rejections) expect(error).toMatchObject({ name: 'SystemError', code: 'OUT_OF_MEMORY' });
  expect(host!.segments[0]!.heap.usedBytes).toBe(0);
});

test('a rank that cannot be reached is an error on all ranks, and made connections are closed', async () => {
  bootstraps = await connectRanks(3);
  const apart = hosts(1, 1, 1);
  const tooLong = AbortSignal.timeout(500);
  const rejections = await failures(
    apart.map(({ ranks, segments }) => {
      const rank = ranks[0]!;
      // Rank 1 does not know the secret: neither side of it gets through.
      const socket = new SocketTransport({
        segment: segments[0]!,
        rank,
        host: '127.0.0.1',
        secret: rank === 1 ? new Uint8Array(32) : secret,
        size,
      });
      return connectRing(bootstraps[rank]!, [0, 1, 2], () => socket, tooLong);
    }),
  );
  for (const error of rejections)
    expect(error).toMatchObject({
      name: 'SystemError',
      code: 'NETWORK',
      message: expect.stringMatching(/^rank (1 on .* cannot reach rank 0|2 on .* cannot reach rank 1) for data at/) as string,
    });
  await until(() => apart.every(({ segments }) => segments[0]!.heap.usedBytes === 0));
});

async function failures(promises: readonly Promise<unknown>[]): Promise<unknown[]> {
  const results = await Promise.allSettled(promises);
  return results.map((result) => (result.status === 'rejected' ? (result.reason as unknown) : undefined));
}

async function close(rings: readonly RingOfRanks[]): Promise<void> {
  await Promise.all(rings.flatMap(({ links }) => (links === undefined ? [] : [links.send.close(), links.receive.close()])));
}
