import { readdirSync, readlinkSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import type { Bootstrap } from '../../../../src/runtime/bootstrap/index.js';
import { RemoteError } from '../../../../src/errors.js';
import { bytes, connectRanks, rejection, text, timeoutMs, withRanks } from './ranks.js';

/** Sockets that this process has open, whether or not they keep it alive. */
function sockets(): string[] {
  return readdirSync('/proc/self/fd')
    .map(linkOf)
    .filter((link) => link.startsWith('socket:'));
}

function linkOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return ''; // that of the directory just read
  }
}

it.runIf(process.platform === 'linux')('after close no handle is left open', async () => {
  const before = sockets().length;
  const ranks = await connectRanks(4);
  await Promise.all(ranks.map((rank) => rank.barrier()));
  expect(sockets().length).toBeGreaterThan(before);
  await Promise.all(ranks.map((rank) => rank.close()));
  await vi.waitFor(() => expect(sockets().length).toBe(before), timeoutMs);
});

it('close may be called twice, and calls after it reject', async () => {
  const ranks = await connectRanks(2);
  await Promise.all(ranks.map((rank) => rank.close()));
  await ranks[0]!.close();
  for (const operation of [
    ranks[0]!.barrier(),
    ranks[0]!.send(1, 0, bytes('x')),
    ranks[0]!.recv(1, 0),
    ranks[0]!.allGather(bytes('x'), 'host'),
  ]) {
    await expect(operation).rejects.toMatchObject({
      name: 'InvalidUsageError',
      code: 'CLOSED',
      message: 'rank 0 has closed its communicator',
    });
  }
});

it('close rejects pending calls of its rank', async () => {
  await withRanks(2, async ([first]) => {
    const pending = [first!.recv(1, 5), first!.barrier(), first!.allGather(bytes('x'))].map(rejection);
    await first!.close();
    for (const error of await Promise.all(pending)) expect(error).toMatchObject({ code: 'CLOSED' });
  });
});

it('messages that a rank sent before it closed can still be received; no others', async () => {
  await withRanks(5, async (ranks) => {
    await ranks[0]!.send(2, 9, bytes('last words'));
    await ranks[0]!.close();
    expect(text(await ranks[2]!.recv(0, 9))).toBe('last words');
    await expect(ranks[2]!.recv(0, 9)).rejects.toMatchObject({ name: 'RemoteError', code: 'CLOSED', rank: 0 });
    await expect(ranks[2]!.send(0, 9, bytes('hello?'))).rejects.toMatchObject({ code: 'CLOSED', rank: 0 });
  });
});

it('a rank that waits for one that closed without ever connecting to it gets an error', async () => {
  await withRanks(6, async (ranks) => {
    const waiting = rejection(ranks[3]!.recv(0, 1));
    await ranks[0]!.close();
    expect(await waiting).toMatchObject({ code: 'CLOSED', rank: 0 });
  });
});

it('a collective that a closed rank would have to join fails everywhere with one error', async () => {
  await withRanks(4, async (ranks) => {
    await ranks[1]!.close();
    const errors = await Promise.all([0, 2, 3].map((rank) => rejection(ranks[rank]!.allGather(bytes('x')))));
    for (const error of errors) expect(error).toMatchObject({ name: 'RemoteError', code: 'CLOSED', rank: 1 });
  });
});

it('ranks may finish at different times', async () => {
  const ranks = await connectRanks(8);
  await Promise.all(
    ranks.map(async (rank) => {
      await rank.barrier();
      await rank.allGather(bytes('x'));
      await rank.barrier();
      await rank.close();
    }),
  );
});

it('a goodbye is no loss', async () => {
  await withRanks(3, async (ranks) => {
    const lost: number[] = [];
    for (const rank of ranks) rank.onFailure((error) => lost.push(error instanceof RemoteError ? (error.rank ?? -1) : -1));
    await ranks[0]!.close();
    await expect(ranks[1]!.recv(0, 0)).rejects.toMatchObject({ code: 'CLOSED' });
    expect(lost).toEqual([]);
  });
});

it('an abort ends pending calls here with its reason, and on all other ranks with an error that names the rank', async () => {
  await withRanks(5, async (ranks) => {
    const reason = new Error('out of paper');
    const lost = ranks.map((rank) => {
      const peers: number[] = [];
      rank.onFailure((error) => peers.push(error instanceof RemoteError ? (error.rank ?? -1) : -1));
      return peers;
    });
    const pending = [ranks[2]!.recv(0, 0), ranks[2]!.barrier()].map(rejection);
    const others = [0, 1, 3, 4].map((rank) => rejection(ranks[rank]!.barrier()));
    ranks[2]!.abort(reason);
    for (const error of await Promise.all(pending)) expect(error).toBe(reason);
    expect(await rejection(ranks[2]!.barrier())).toBe(reason);
    for (const error of await Promise.all(others)) {
      expect(error).toMatchObject({ name: 'RemoteError', code: 'ABORTED', rank: 2 });
      expect((error as Error).message).toMatch(/^rank 2 \(process \d+ on .+\) aborted: out of paper$/);
    }
    await vi.waitFor(() => expect(lost).toEqual([[2], [2], [], [2], [2]]), timeoutMs);
    // Live ranks can still exchange messages.
    await ranks[0]!.send(3, 1, bytes('still here'));
    expect(text(await ranks[3]!.recv(0, 1))).toBe('still here');
    await expect(ranks[4]!.recv(2, 0)).rejects.toMatchObject({ code: 'ABORTED', rank: 2 });
    await expect(ranks[4]!.broadcast(bytes('x'), 4)).rejects.toMatchObject({ code: 'ABORTED', rank: 2 });
  });
});

it('a rank that has completed an operation that others cannot complete can read the reason', async () => {
  await withRanks(3, async (ranks) => {
    await ranks[0]!.broadcast(bytes('x'), 0);
    expect(ranks[0]!.failure).toBeUndefined();
    ranks[2]!.fail(new RemoteError('ABORTED', 'rank 1 aborted', { rank: 1 }));
    await vi.waitFor(() => expect(ranks[0]!.failure).toMatchObject({ code: 'ABORTED', rank: 1 }), timeoutMs);
    // It began none.
    expect(ranks[1]!.failure).toBeUndefined();
    await expect(ranks[1]!.broadcast(bytes('x'), 0)).rejects.toMatchObject({ code: 'ABORTED', rank: 1 });
  });
});

it('a listener that was removed gets no loss', async () => {
  await withRanks(3, async (ranks) => {
    const heard: string[] = [];
    const stop = ranks[0]!.onFailure(() => heard.push('stopped'));
    const told = new Promise((resolve) => ranks[0]!.onFailure(resolve));
    stop();
    ranks[1]!.abort(new Error('x'));
    expect(await told).toMatchObject({ code: 'ABORTED', rank: 1 });
    expect(heard).toEqual([]);
  });
});

it('different calls are an error on all ranks that names both ranks and calls', async () => {
  await withRanks(3, async (ranks) => {
    const errors = await Promise.all(
      [ranks[0]!.allGather(bytes('x')), ranks[1]!.barrier(), ranks[2]!.allGather(bytes('x'))].map(rejection),
    );
    for (const error of errors) {
      expect(error).toMatchObject({ name: 'InvalidUsageError', code: 'CALL_MISMATCH' });
      expect((error as Error).message).toMatch(
        /^rank \d .* called (allGather|barrier) where rank \d .* called (allGather|barrier): all ranks must call the same/,
      );
    }
  });
});

it('wrong arguments are refused immediately', async () => {
  await withRanks(2, async ([rank]) => {
    const refusals: [Promise<unknown>, string][] = [
      [rank!.send(2, 0, bytes('x')), 'there is no rank 2'],
      [rank!.recv(-1, 0), 'there is no rank -1'],
      [rank!.send(1, -1, bytes('x')), 'the tag -1'],
      [rank!.recv(1, 2 ** 32), 'the tag 4294967296'],
      [rank!.broadcast(bytes('x'), 7), 'there is no rank 7 to broadcast from; the ranks are 0 to 1'],
    ];
    for (const [refusal, message] of refusals) {
      const error = await rejection(refusal);
      expect(error).toMatchObject({ name: 'InvalidArgumentError' });
      expect((error as Error).message).toContain(message);
    }
    // A call that was refused does not count as one.
    await Promise.all([rank!.send(1, 0, bytes('x'))]);
  });
});

const hostOf = (rank: number) => ({ hostId: `host ${rank % 2}` });

it('the ranks of each host communicate among themselves, without the others', async () => {
  await withRanks(
    5,
    async (ranks) => {
      const even = [0, 2, 4].map((rank) => ranks[rank]!);
      const gathered = await Promise.all(even.map((rank) => rank.allGather(bytes(`from ${rank.rank}`), 'host')));
      for (const parts of gathered) expect(parts.map(text)).toEqual(['from 0', 'from 2', 'from 4']);
      await Promise.all(even.map((rank) => rank.barrier('host')));
      const received = await Promise.all(even.map((rank) => rank.broadcast(bytes(`${rank.rank}`), 4, 'host')));
      expect(received.map(text)).toEqual(['4', '4', '4']);
      expect(await rejection(ranks[0]!.broadcast(bytes('x'), 1, 'host'))).toMatchObject({ code: 'ROOT_RANGE' });

      const odd = [1, 3].map((rank) => ranks[rank]!);
      expect(odd.map(({ localRank, localRanks }) => [localRank, localRanks])).toEqual([
        [0, [1, 3]],
        [1, [1, 3]],
      ]);
      const all = (operation: (rank: Bootstrap) => Promise<unknown>) => Promise.all(ranks.map(operation));
      await all((rank) => Promise.all([rank.barrier('host'), rank.barrier(), rank.barrier('host')]));
    },
    hostOf,
  );
});

it('the loss of a rank does not affect calls within other hosts', async () => {
  await withRanks(
    4,
    async (ranks) => {
      const told = Promise.all([0, 2, 3].map((rank) => new Promise((resolve) => ranks[rank]!.onFailure(resolve))));
      ranks[1]!.abort(new Error('x'));
      for (const error of await told) expect(error).toMatchObject({ code: 'ABORTED', rank: 1 });
      const gathered = await Promise.all([0, 2].map((rank) => ranks[rank]!.allGather(bytes(`${rank}`), 'host')));
      expect(gathered.map((parts) => parts.map(text))).toEqual([
        ['0', '2'],
        ['0', '2'],
      ]);
      await expect(ranks[3]!.barrier('host')).rejects.toMatchObject({ code: 'ABORTED', rank: 1 });
    },
    hostOf,
  );
});

it('a rank that closes because of a loss does not hide the loss from others', async () => {
  const n = 33; // around the ring news take many steps, but a goodbye only one where ranks have talked
  const ranks = await connectRanks(n, (rank) => ({ hostId: rank === 2 ? 'other' : 'same' }));
  await Promise.all(ranks.map((rank) => rank.barrier()));
  const others = ranks.filter(({ rank }) => rank !== 2);
  const errors = Promise.all(
    others.map(async (rank) => {
      const error = await rejection(rank.barrier());
      await rank.close();
      return error;
    }),
  );
  await Promise.all(others.map((rank) => rank.barrier('host'))); // the barrier of all gets stuck meanwhile
  ranks[2]!.abort(new Error('out of paper'));
  for (const error of await errors) expect(error).toMatchObject({ code: 'ABORTED', rank: 2 });
});

it('a rank that fails after it completed an operation does not fail it on ranks that are still in it', async () => {
  await withRanks(3, async (ranks) => {
    await ranks[0]!.broadcast(bytes('first'), 0);
    ranks[0]!.fail(new RemoteError('TIMEOUT', 'later', { rank: 0 }));
    // All have the failure before they ask.
    await expect(ranks[0]!.barrier()).rejects.toMatchObject({ code: 'TIMEOUT' });
    await Promise.all([1, 2].map((rank) => ranks[0]!.send(rank, 0, bytes('told'))));
    await Promise.all([1, 2].map((rank) => ranks[rank]!.recv(0, 0)));
    for (const rank of [1, 2]) expect(text(await ranks[rank]!.broadcast(bytes(''), 0))).toBe('first');
    for (const rank of [1, 2]) await expect(ranks[rank]!.barrier()).rejects.toMatchObject({ code: 'TIMEOUT', message: 'later' });
  });
});

it('a rank that is lost after it completed an operation does not fail it on ranks that are still in it', async () => {
  const ranks = await connectRanks(2);
  const under = ranks[1]!.broadcast(bytes(''), 0);
  await ranks[0]!.broadcast(bytes('first'), 0);
  ranks[0]!.abort(new Error('gone'));
  expect(text(await under)).toBe('first');
  await expect(ranks[1]!.barrier()).rejects.toMatchObject({ code: 'ABORTED', rank: 0 });
  await ranks[1]!.close();
});

it('the reason why a rank is gone is available before and after: it closed, or the network failed', async () => {
  await withRanks(3, async (ranks) => {
    const before = ranks[2]!.whyGone(0);
    const reason = new RemoteError('ABORTED', 'enough', { rank: 1 });
    ranks[1]!.fail(reason);
    expect(await before).toMatchObject({ code: 'ABORTED', rank: 1, message: 'enough' });
    expect(await ranks[0]!.whyGone(2)).toMatchObject({ code: 'ABORTED', rank: 1 });
  });
  await withRanks(2, async (ranks) => {
    const before = ranks[1]!.whyGone(0);
    await ranks[0]!.close();
    expect(await before).toMatchObject({ code: 'CLOSED', rank: 0 });
    expect(await ranks[1]!.whyGone(0)).toMatchObject({ code: 'CLOSED', rank: 0 });
  });
});

it('a rank that closes one network is no reason why another rank is gone from it', async () => {
  await withRanks(3, async (ranks) => {
    const part = ranks.map((rank) => rank.derive(7, [0, 1, 2]));
    await Promise.all(part.map((rank) => rank.barrier()));
    await part[2]!.close();
    expect(await part[0]!.whyGone(2)).toMatchObject({ code: 'CLOSED', rank: 2 });
    const reason = part[0]!.whyGone(1);
    await part[1]!.close();
    expect(await reason).toMatchObject({ code: 'CLOSED', rank: 1 });
    await part[0]!.close();
  });
});

it('a rank that closes after a failure is reported with the failure', async () => {
  await withRanks(3, async (ranks) => {
    const waiting = rejection(ranks[0]!.recv(1, 5));
    ranks[1]!.fail(new RemoteError('ABORTED', 'enough', { rank: 1 }));
    await ranks[1]!.close();
    expect(await waiting).toMatchObject({ code: 'ABORTED', message: 'enough' });
  });
});
