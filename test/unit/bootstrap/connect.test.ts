import { describe, expect, it } from 'vitest';
import { bytes, connectRanks, text, withRanks } from './ranks.js';

describe.each([1, 2, 3, 8])('%i ranks in one event loop', (n) => {
  it('know each other', async () => {
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

  it('broadcast from each', async () => {
    await withRanks(n, async (ranks) => {
      for (let root = 0; root < n; root++) {
        const results = await Promise.all(ranks.map((bootstrap, rank) => bootstrap.broadcast(bytes(rank === root ? `from ${root}` : ''), root)));
        expect(results.map(text)).toEqual(ranks.map(() => `from ${root}`));
      }
    });
  });

  it('pass a barrier together', async () => {
    await withRanks(n, async (ranks) => {
      let arrived = 0;
      await Promise.all(ranks.map(async (bootstrap) => {
        arrived++;
        await bootstrap.barrier();
        expect(arrived).toBe(n);
      }));
    });
  });

  it('send and receive by tag, in order, to themselves too', async () => {
    await withRanks(n, async (ranks) => {
      const pairs = ranks.flatMap((_, from) => ranks.map((__, to) => [from, to] as const));
      await Promise.all(pairs.flatMap(([from, to]) => [1, 2, 1].map((tag, i) => ranks[from]!.send(to, tag, bytes(`${from}-${to}-${tag}-${i}`)))));
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
    const results = await Promise.all(ranks.map((bootstrap, rank) => Promise.all([
      bootstrap.allGather(bytes(`a${rank}`)),
      bootstrap.allGather(bytes(`b${rank}`)),
      bootstrap.broadcast(bytes(`c${rank}`), 2),
    ])));
    for (const [a, b, c] of results) {
      expect(a.map(text)).toEqual(['a0', 'a1', 'a2']);
      expect(b.map(text)).toEqual(['b0', 'b1', 'b2']);
      expect(text(c)).toBe('c2');
    }
  });
});

it('200 ranks check in one after the other', async () => {
  const ranks = await connectRanks(200);
  await Promise.all(ranks.map((bootstrap) => bootstrap.barrier()));
  await Promise.all(ranks.map((bootstrap) => bootstrap.close()));
}, 60_000);
