import { randomBytes } from 'node:crypto';
import { connect as connectTcp } from 'node:net';
import { describe, expect, it } from 'vitest';
import { connect, systemInterfaces } from '../../../../src/runtime/bootstrap/index.js';
import { isLinkLocal } from '../../../../src/runtime/bootstrap/address.js';
import { runs } from '../../../runs.js';
import { bytes, connectRanks, loopbackRoot, text, timeoutMs, withRanks } from './ranks.js';

describe.each([1, 2, 3, 8])('%i ranks in one event loop', (n) => {
  it("have each other's peer information", async () => {
    await withRanks(n, async (ranks) => {
      for (const [rank, bootstrap] of ranks.entries()) {
        expect(bootstrap.rank).toBe(rank);
        expect(bootstrap.nRanks).toBe(n);
        expect(bootstrap.localRank).toBe(rank);
        expect(bootstrap.localRanks).toEqual(ranks.map((_, other) => other));
        expect(bootstrap.peers.map((peer) => peer.rank)).toEqual(bootstrap.localRanks);
        expect(new Set(bootstrap.peers.map((peer) => peer.device)).size).toBe(n);
        expect(new Set(bootstrap.peers.map((peer) => peer.hostHash)).size).toBe(1);
        expect(new Set(bootstrap.peers.map((peer) => peer.processHash)).size).toBe(1);
        expect(bootstrap.peers[rank]?.pid).toBe(process.pid);
      }
      return Promise.resolve();
    });
  });

  it('gather parts of different lengths in the order of ranks', async () => {
    await withRanks(n, async (ranks) => {
      const results = await Promise.all(ranks.map((bootstrap, rank) => bootstrap.allGather(bytes('x'.repeat(rank)))));
      for (const parts of results) expect(parts.map((part) => part.length)).toEqual(ranks.map((_, rank) => rank));
    });
  });

  it('broadcast from each rank', async () => {
    await withRanks(n, async (ranks) => {
      for (let root = 0; root < n; root++) {
        const results = await Promise.all(
          ranks.map((bootstrap, rank) => bootstrap.broadcast(bytes(rank === root ? `from ${root}` : ''), root)),
        );
        expect(results.map(text)).toEqual(ranks.map(() => `from ${root}`));
      }
    });
  });

  it('leave a barrier together', async () => {
    await withRanks(n, async (ranks) => {
      let arrived = 0;
      await Promise.all(
        ranks.map(async (bootstrap) => {
          arrived++;
          await bootstrap.barrier();
          expect(arrived).toBe(n);
        }),
      );
    });
  });

  it('send and receive by tag, in order, to themselves too', async () => {
    await withRanks(n, async (ranks) => {
      const pairs = ranks.flatMap((_, from) => ranks.map((__, to) => [from, to] as const));
      await Promise.all(
        pairs.flatMap(([from, to]) => [1, 2, 1].map((tag, i) => ranks[from]!.send(to, tag, bytes(`${from}-${to}-${tag}-${i}`)))),
      );
      for (const [from, to] of pairs) {
        const received = [];
        for (const tag of [2, 1, 1]) received.push(text(await ranks[to]!.recv(from, tag)));
        expect(received).toEqual([`${from}-${to}-2-1`, `${from}-${to}-1-0`, `${from}-${to}-1-2`]);
      }
    });
  });
});

it('operations may overlap', async () => {
  await withRanks(3, async (ranks) => {
    const results = await Promise.all(
      ranks.map((bootstrap, rank) =>
        Promise.all([
          bootstrap.allGather(bytes(`a${rank}`)),
          bootstrap.allGather(bytes(`b${rank}`)),
          bootstrap.broadcast(bytes(`c${rank}`), 2),
        ]),
      ),
    );
    for (const [a, b, c] of results) {
      expect(a.map(text)).toEqual(['a0', 'a1', 'a2']);
      expect(b.map(text)).toEqual(['b0', 'b1', 'b2']);
      expect(text(c)).toBe('c2');
    }
  });
});

it('more than 128 ranks check in one after the other', async () => {
  const ranks = await connectRanks(runs(130, 200));
  await Promise.all(ranks.map((bootstrap) => bootstrap.barrier()));
  await Promise.all(ranks.map((bootstrap) => bootstrap.close()));
});

it('a rank may send to many concurrently', async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on('warning', warn);
  await withRanks(24, async (ranks) => {
    await Promise.all(ranks.map((_, to) => ranks[0]!.send(to, 0, bytes(`for ${to}`))));
    expect(await Promise.all(ranks.map(async (bootstrap) => text(await bootstrap.recv(0, 0))))).toEqual(
      ranks.map((_, to) => `for ${to}`),
    );
  });
  process.off('warning', warn);
  expect(warnings).toEqual([]);
});

it('all operations carry long messages', async () => {
  await withRanks(3, async (ranks) => {
    const long = randomBytes(3_000_000);
    const gathered = await Promise.all(ranks.map((bootstrap, rank) => bootstrap.allGather(long.subarray(rank))));
    for (const parts of gathered) for (const [rank, part] of parts.entries()) expect(long.subarray(rank).equals(part)).toBe(true);
    for (const received of await Promise.all(ranks.map((bootstrap) => bootstrap.broadcast(long, 1))))
      expect(long.equals(received)).toBe(true);
  });
});

it('results are copies: changing them changes no input', async () => {
  await withRanks(1, async ([only]) => {
    const data = bytes('abc');
    const [[gathered], broadcast] = await Promise.all([only!.allGather(data), only!.broadcast(data, 0)]);
    gathered!.fill(0);
    broadcast.fill(0);
    expect(text(data)).toBe('abc');
  });
});

it('foreign connections to the root disturb no rank', async () => {
  const { id } = await loopbackRoot();
  const strangers = Array.from({ length: 200 }, (_, i) => {
    const socket = connectTcp(id.root.port, '127.0.0.1').on('error', () => undefined);
    if (i % 2 === 0) socket.write(randomBytes(100));
    return socket;
  });
  const ranks = await Promise.all([0, 1, 2].map((rank) => connect({ id, rank, nRanks: 3, timeoutMs })));
  await Promise.all(ranks.map((rank) => rank.barrier()));
  await Promise.all(ranks.map((rank) => rank.close()));
  for (const socket of strangers) socket.destroy();
});

describe('IPv6', () => {
  const addresses = systemInterfaces().filter(({ family }) => family === 6);
  const linkLocal = addresses.find(({ address }) => isLinkLocal(address));

  async function expectConnected(host: string): Promise<void> {
    const { id } = await loopbackRoot({ host });
    expect(id.root.host).toBe(host);
    const ranks = await Promise.all([0, 1, 2].map((rank) => connect({ id, rank, nRanks: 3, timeoutMs, family: 6 })));
    await ranks[0]!.send(2, 0, bytes('hello'));
    expect(text(await ranks[2]!.recv(0, 0))).toBe('hello');
    await Promise.all(ranks.map((rank) => rank.close()));
  }

  it.skipIf(addresses.length === 0)('loopback', () => expectConnected('::1'));
  it.skipIf(linkLocal === undefined)('link-local', () => expectConnected(`${linkLocal!.address}%${linkLocal!.name}`));
});
