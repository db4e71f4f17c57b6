import { expect, it } from 'vitest';
import {
  ConnectionEndedError,
  type RankConnection,
  type ConnectionEvents,
} from '../../../../src/runtime/bootstrap/rank-connection.js';
import { Mesh } from '../../../../src/runtime/bootstrap/mesh.js';
import { Peer } from '../../../../src/runtime/bootstrap/peer.js';
import { RemoteError } from '../../../../src/errors.js';
import { packError } from '../../../../src/runtime/failure/transfer.js';
import { bytes, withRanks } from './ranks.js';

/** Events of a mesh on a connection without another side. */
function heard(mesh: Mesh, rank: number): ConnectionEvents {
  let heardThere: ConnectionEvents | undefined;
  mesh.accept(rank, (events) => {
    heardThere = events;
    return { notify: () => undefined, leave: () => Promise.resolve(), destroy: () => undefined } as unknown as RankConnection;
  });
  return heardThere!;
}

it("a rank that closed because of a loss is reported after it, even while the lost rank's last messages are awaited", async () => {
  const mesh = new Mesh(0, 3, () => Promise.reject(new Error('unreachable')));
  const [first, second] = [heard(mesh, 1), heard(mesh, 2)];
  const news: string[] = [];
  mesh.onLost((rank) => news.push(`lost ${rank}`));
  const waiting = mesh.take(1, { space: 0, number: 7 }).catch((error: unknown) => {
    const { code, rank } = error as RemoteError;
    news.push(`${code} ${String(rank)}`);
  });
  first.notice?.(JSON.stringify({ kind: 'died', rank: 2 }));
  first.end(undefined);
  // Events after the goodbye of a rank are no loss of it.
  first.end(new Error('reset'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(news).toEqual([]);
  second.end(new Error('reset'));
  await waiting;
  expect(news).toEqual(['lost 2', 'CLOSED 1']);
});

it('a rank that aborted because of a loss is reported after it, so that ranks name the cause', () => {
  const mesh = new Mesh(0, 3, () => Promise.reject(new Error('unreachable')));
  const [first, second] = [heard(mesh, 1), heard(mesh, 2)];
  const news: string[] = [];
  mesh.onLost((rank, error) => news.push(`${error instanceof RemoteError ? error.code : 'none'} ${rank}`));
  first.notice?.(JSON.stringify({ kind: 'died', rank: 2 }));
  first.notice?.(JSON.stringify({ kind: 'aborted', rank: 1, reason: 'rank 2 died' }));
  first.end(new Error('reset'));
  expect(news).toEqual([]);
  second.end(new Error('reset'));
  expect(news).toEqual(['RANK_DIED 2', 'ABORTED 1']);
});

it('a rank that aborted because of a loss that no other rank has seen brings the loss as the reason', async () => {
  const mesh = new Mesh(0, 4, () => Promise.reject(new Error('unreachable')));
  const first = heard(mesh, 1);
  const waiting = mesh.take(1, { space: 0, number: 7 }).catch((error: unknown) => error);
  const death = packError(new RemoteError('RANK_DIED', 'rank 2 cannot be reached from here', { rank: 2 }));
  first.notice?.(JSON.stringify({ kind: 'aborted', rank: 1, reason: death.message, death }));
  first.end(new Error('reset'));
  expect(await waiting).toMatchObject({ code: 'RANK_DIED', rank: 2, message: death.message });
  // Of its own loss, a rank knows better.
  const lost = new Mesh(2, 4, () => Promise.reject(new Error('unreachable')));
  const other = heard(lost, 1);
  const own = lost.take(1, { space: 0, number: 7 }).catch((error: unknown) => error);
  other.notice?.(JSON.stringify({ kind: 'aborted', rank: 1, reason: death.message, death }));
  other.end(new Error('reset'));
  expect(await own).toMatchObject({ code: 'ABORTED', rank: 1 });
});

it('a message to a rank whose goodbye has arrived on one of two connections fails with CLOSED', async () => {
  const peer = new Peer(1);
  const why = peer.whyBroken(new ConnectionEndedError('is not open'));
  await new Promise((resolve) => setImmediate(resolve));
  const closed = new RemoteError('CLOSED', 'rank 1 closed its communicator', { rank: 1 });
  peer.forget(closed);
  expect(await why).toBe(closed);
});

it('messages to a rank that closes at any moment fail with CLOSED', async () => {
  for (let round = 0; round < 20; round++) {
    await withRanks(3, async ([first, second]) => {
      let error: unknown;
      void second?.close();
      while (error === undefined) {
        await first?.send(1, 0, bytes('x')).catch((why: unknown) => (error = why));
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(error).toMatchObject({ code: 'CLOSED', rank: 1 });
    });
  }
});
