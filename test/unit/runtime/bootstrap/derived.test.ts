import { expect, test } from 'vitest';
import type { Bootstrap } from '../../../../src/runtime/bootstrap/index.js';
import { RemoteError } from '../../../../src/errors.js';
import { bytes, connectRanks, rejection, text, timeoutMs, withRanks } from './ranks.js';

const never = new AbortController().signal;

function derive(ranks: readonly Bootstrap[], members: readonly number[]): Bootstrap[] {
  const number = ranks[0]!.nextNumber();
  return members.map((rank) => ranks[rank]!.derive(number, members));
}

test('a network of some ranks has its own order, and its messages are separate from those of others', async () => {
  await withRanks(4, async (ranks) => {
    const some = derive(ranks, [3, 0, 2]);
    expect(some.map((network) => [network.rank, network.nRanks, network.peers.map((peer) => peer.pid)])).toEqual(
      [0, 1, 2].map((rank) => [rank, 3, Array(3).fill(process.pid)]),
    );
    const gathered = Promise.all(some.map((network) => network.allGather(bytes(`child ${network.rank}`))));
    const all = await Promise.all(ranks.map((network) => network.allGather(bytes(`rank ${network.rank}`))));
    for (const one of all) expect(one.map(text)).toEqual(['rank 0', 'rank 1', 'rank 2', 'rank 3']);
    for (const one of await gathered) expect(one.map(text)).toEqual(['child 0', 'child 1', 'child 2']);
    await some[0]!.send(2, 5, bytes('to child 2'));
    await ranks[3]!.send(2, 5, bytes('to rank 2'));
    expect(text(await ranks[2]!.recv(3, 5))).toBe('to rank 2');
    expect(text(await some[2]!.recv(0, 5))).toBe('to child 2');
    expect(text((await Promise.all(some.map((network) => network.broadcast(bytes(`${network.rank}`), 1, 'host'))))[2]!)).toBe(
      '1',
    );
    await Promise.all(some.map((network) => network.close()));
  });
});

test('connections live until the last network on them is closed', async () => {
  const ranks = await connectRanks(3);
  const some = derive(ranks, [0, 2]);
  await Promise.all(ranks.map((rank) => rank.close()));
  expect(await rejection(ranks[0]!.barrier())).toMatchObject({ code: 'CLOSED' });
  await Promise.all(some.map((network) => network.barrier()));
  const more = derive(some, [1, 0]);
  await Promise.all(some.map((network) => network.close()));
  expect((await Promise.all(more.map((network) => network.allGather(bytes(`${network.rank}`)))))[0]!.map(text)).toEqual([
    '0',
    '1',
  ]);
  await Promise.all(more.map((network) => network.close()));
});

test('a failure in one network reaches all its ranks and no other network', async () => {
  await withRanks(3, async (ranks) => {
    const [some, others] = [derive(ranks, [0, 1, 2]), derive(ranks, [2, 1, 0])];
    const waiting = [rejection(some[1]!.barrier()), rejection(some[2]!.barrier())];
    some[0]!.fail(new RemoteError('ABORTED', 'out of paper', { rank: 0 }));
    for (const error of await Promise.all(waiting))
      expect(error).toMatchObject({ code: 'ABORTED', message: expect.stringContaining('out of paper') as string });
    await Promise.all(others.map((network) => network.barrier()));
    await Promise.all(ranks.map((network) => network.barrier()));
    // The remaining ranks can still agree on survivors over the failed one.
    const found = await Promise.all(some.map((network) => network.survivors([], never)));
    expect(found.map(({ ranks: members }) => members)).toEqual([0, 1, 2].map(() => [0, 1, 2]));
    await Promise.all([...some, ...others].map((network) => network.close()));
  });
});

test('a rank that opens a failed network late gets its error', async () => {
  await withRanks(3, async (ranks) => {
    const number = ranks[0]!.nextNumber();
    const [first, second] = [ranks[0]!.derive(number, [0, 1, 2]), ranks[1]!.derive(number, [0, 1, 2])];
    const told = rejection(second.barrier());
    first.fail(new RemoteError('ABORTED', 'out of paper', { rank: 0 }));
    await told;
    // The failure has passed the last rank, too: it arrives before later messages on the same connections.
    await Promise.all(ranks.map((network) => network.barrier()));
    const last = ranks[2]!.derive(number, [0, 1, 2]);
    expect(await rejection(last.barrier())).toMatchObject({ code: 'ABORTED', message: 'out of paper' });
    await Promise.all([first, second, last].map((network) => network.close()));
  });
});

test('the rank that ended a network is named by its number there', async () => {
  await withRanks(3, async (ranks) => {
    const some = derive(ranks, [2, 1, 0]);
    const waiting = [rejection(some[1]!.barrier()), rejection(some[2]!.barrier()), rejection(some[2]!.recv(0, 1))];
    some[2]!.watch(0);
    some[0]!.fail(new RemoteError('ABORTED', 'rank 0 is out of paper', { rank: 0 }));
    await some[0]!.close();
    for (const error of await Promise.all(waiting))
      expect(error).toMatchObject({ code: 'ABORTED', rank: 0, message: 'rank 0 is out of paper' });
    await Promise.all([some[1]!.close(), some[2]!.close()]);
  });
});

test('a close rejects what is pending in that network only', async () => {
  await withRanks(2, async (ranks) => {
    const some = derive(ranks, [0, 1]);
    const pending = [rejection(some[0]!.recv(1, 0)), rejection(some[0]!.barrier())];
    const other = ranks[0]!.recv(1, 0);
    await some[0]!.close();
    for (const error of await Promise.all(pending)) expect(error).toMatchObject({ code: 'CLOSED' });
    await ranks[1]!.send(0, 0, bytes('still there'));
    expect(text(await other)).toBe('still there');
    await some[1]!.close();
  });
});

test('a rank that waits for messages of another gets an error when that closes the network, or has closed it before', async () => {
  await withRanks(5, async (ranks) => {
    const some = derive(ranks, [0, 1, 2, 3, 4]);
    // No connection of the ring joins 0 and 2, nor 4 and 2.
    const early = rejection(some[0]!.recv(2, 7));
    some[0]!.watch(2);
    await some[2]!.send(0, 8, bytes('before'));
    await some[2]!.close();
    expect(await early).toMatchObject({ code: 'CLOSED', rank: 2 });
    expect(text(await some[0]!.recv(2, 8))).toBe('before');
    expect(await rejection(some[0]!.recv(2, 8))).toMatchObject({ code: 'CLOSED', rank: 2 });
    const late = rejection(some[4]!.recv(2, 7));
    some[4]!.watch(2);
    expect(await late).toMatchObject({ code: 'CLOSED', rank: 2 });
    // Live ranks do not end the wait, and other networks stay usable.
    const waits = some[4]!.recv(1, 7);
    some[4]!.watch(1);
    await some[1]!.send(4, 7, bytes('here'));
    expect(text(await waits)).toBe('here');
    await ranks[2]!.send(0, 7, bytes('there'));
    expect(text(await ranks[0]!.recv(2, 7))).toBe('there');
    await Promise.all([0, 1, 3, 4].map((rank) => some[rank]!.close()));
  });
});

test('a rank that waits for one that has closed the network gets an error, except if it has its part of the operation', async () => {
  await withRanks(3, async (ranks) => {
    const some = derive(ranks, [0, 1, 2]);
    await Promise.all(some.map((network) => network.barrier()));
    const last = some.map((network) => network.allGather(bytes('last')));
    await last[1];
    await some[1]!.close();
    for (const network of [0, 2]) expect((await last[network]!).map(text)).toEqual(['last', 'last', 'last']);
    for (const network of [0, 2]) expect(await rejection(some[network]!.barrier())).toMatchObject({ code: 'CLOSED', rank: 1 });
    await Promise.all([some[0]!.close(), some[2]!.close()]);
  });
});

test('survivors are the same on all ranks, for any exclusions and any losses before or meanwhile', async () => {
  const ranks = await connectRanks(6);
  ranks[0]!.abort(new Error('gone before'));
  const questions = [1, 2, 4].map((rank) => ranks[rank]!.survivors(rank === 4 ? [3] : [], AbortSignal.timeout(timeoutMs)));
  // Rank 5 is waited for until it is lost.
  ranks[5]!.abort(new Error('gone meanwhile'));
  const found = await Promise.all(questions);
  for (const one of found) expect(one).toEqual(found[0]);
  expect(found[0]!.ranks).toEqual([1, 2, 4]);
  const next = [1, 2, 4].map((rank) => ranks[rank]!.derive(found[0]!.number, found[0]!.ranks));
  expect((await Promise.all(next.map((network) => network.allGather(bytes(`${network.rank}`)))))[1]!.map(text)).toEqual([
    '0',
    '1',
    '2',
  ]);
  await Promise.all([...next, ...ranks].map((network) => network.close()));
});

test('a loss is reported with the ranks of the network', async () => {
  const ranks = await connectRanks(3);
  const some = derive(ranks, [2, 1]);
  const waiting = rejection(some[1]!.recv(0, 1));
  const lost = new Promise((resolve) => some[1]!.onFailure(resolve));
  for (const network of [some[0]!, ranks[2]!]) network.abort(new Error('gone'));
  expect(await waiting).toMatchObject({
    code: 'ABORTED',
    rank: 0,
    message: expect.stringMatching(/^rank 2 .*it is rank 0 of this communicator/) as string,
  });
  expect(await lost).toMatchObject({ code: 'ABORTED', rank: 0 });
  await Promise.all([some[1]!, ranks[0]!, ranks[1]!].map((network) => network.close()));
});
