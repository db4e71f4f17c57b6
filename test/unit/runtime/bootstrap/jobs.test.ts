import { randomBytes } from 'node:crypto';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { connect, UniqueId, type Bootstrap } from '../../../../src/runtime/bootstrap/index.js';
import { listenInTurn } from '../../../../src/runtime/bootstrap/listen-in-turn.js';
import { listenAt, type Root } from '../../../../src/runtime/bootstrap/root.js';
import { loopbackRoot, rejection, timeoutMs } from './ranks.js';

/** A port of loopback on which nobody listens. */
async function freePort(): Promise<number> {
  const probe = await loopbackRoot();
  probe.close();
  await probe.done;
  return probe.id.root.port;
}

const quiet = { afterMs: 0, report: () => undefined };

/** The two ranks of a job that meets at a port. */
class Job {
  readonly said: string[] = [];
  readonly ranks: Promise<Bootstrap>[] = [];

  constructor(readonly id: UniqueId) {}

  /** Opens the root. */
  listen(isDistinct = true): Promise<Root> {
    const onOtherJob = (text: string): number => this.said.push(text);
    return listenInTurn(this.id, { isDistinct, timeoutMs, notices: quiet, onOtherJob });
  }

  /** Starts rank 0 once it can listen. */
  startRank0(): void {
    this.ranks[0] = this.listen().then(() => this.#connect(0));
  }

  startRank1(): void {
    this.ranks[1] = this.#connect(1);
  }

  #connect(rank: number): Promise<Bootstrap> {
    return connect({ id: this.id, rank, nRanks: 2, timeoutMs });
  }
}

describe('two jobs at one address', () => {
  it.each([
    ['ids', (name: string, port: number) => UniqueId.fromHostPort(`127.0.0.1:${port}`, '', name)],
    ['secrets', (name: string, port: number) => UniqueId.fromHostPort(`127.0.0.1:${port}`, name)],
  ])('with different %s take turns, and each gets its own ranks', async (_, idOf) => {
    const port = await freePort();
    const [a, b] = [new Job(await idOf('a', port)), new Job(await idOf('b', port))];
    const root = await a.listen();
    a.ranks[0] = connect({ id: a.id, rank: 0, nRanks: 2, timeoutMs });
    // Rank 1 of the second job comes before that of the first.
    b.startRank1();
    b.startRank0();
    while (b.said.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(b.said[0]).toMatch(
      new RegExp(`^another job meets at 127\\.0\\.0\\.1:${port}: rank 0 waits until its ranks have met, for`),
    );
    a.startRank1();
    for (const job of [a, b]) {
      const ranks = await Promise.all(job.ranks);
      const parts = await Promise.all(ranks.map((rank) => rank.allGather(Buffer.from(job === a ? 'a' : 'b'))));
      expect(parts.map((own) => Buffer.concat(own).toString())).toEqual(job === a ? ['aa', 'aa'] : ['bb', 'bb']);
      await Promise.all(ranks.map((rank) => rank.close()));
    }
    expect([a.said, b.said.length]).toEqual([[], 1]);
    await root.done;
  });

  it('without ids: the one that comes later gets one line', async () => {
    const id = await UniqueId.fromHostPort(`127.0.0.1:${await freePort()}`);
    const first = await new Job(id).listen(false);
    const error = await rejection(new Job(id).listen(false));
    expect(error).toMatchObject({ name: 'SystemError', code: 'NETWORK' });
    expect((error as Error).message).toMatch(
      /^another job meets at 127\.0\.0\.1:\d+, or rank 0 of this one was started twice: give each job a port of its own, or an id \(--job-id, TCCL_JOB_ID\)/,
    );
    first.close();
  });
});

it('rank 0 of a job with an id that was started twice is named', async () => {
  const id = await UniqueId.fromHostPort(`127.0.0.1:${await freePort()}`, '', 'job 7');
  const first = await new Job(id).listen();
  expect(await rejection(new Job(id).listen())).toMatchObject({
    code: 'RANK_DUPLICATE',
    ranks: [0],
    message: expect.stringMatching(
      /^rank 0 of this job listens at 127\.0\.0\.1:\d+ already: each rank must be started once/,
    ) as string,
  });
  first.close();
});

it('a root that closes while it is asked who it is counts as gone', async () => {
  const port = await freePort();
  const id = await UniqueId.fromHostPort(`127.0.0.1:${port}`, '', 'b');
  let asked = 0;
  const closing = createServer((socket) => {
    // As the kernel does with connections in the queue of a listener that closes; the second one ends in the usual way.
    if (asked++ === 0) socket.resetAndDestroy();
    else socket.destroy();
    if (asked === 2) closing.close();
  }).listen(port, '127.0.0.1');
  await new Promise((resolve) => closing.once('listening', resolve));
  const root = await new Job(id).listen();
  expect(asked).toBe(2);
  root.close();
});

it('another program at the port is named immediately', async () => {
  const program = createServer((socket) => {
    socket.write(randomBytes(8));
    socket.destroySoon();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => program.once('listening', resolve));
  const { port } = program.address() as AddressInfo;
  const id = await UniqueId.fromHostPort(`127.0.0.1:${port}`, 'secret', 'job 7');
  const error = await rejection(new Job(id).listen());
  expect((error as Error).message).toMatch(/^cannot listen on 127\.0\.0\.1:\d+: the port is in use, by another program/);
  program.close();
});

it('a rank that only finds another job names that in its error', async () => {
  const port = await freePort();
  const root = await listenAt(await UniqueId.fromHostPort(`127.0.0.1:${port}`, '', 'a'));
  const id = await UniqueId.fromHostPort(`127.0.0.1:${port}`, '', 'b');
  const error = await rejection(connect({ id, rank: 1, nRanks: 2, timeoutMs: 500 }));
  expect(error).toMatchObject({ code: 'TIMEOUT' });
  expect((error as Error).message).toContain('(another job meets there: compare --job-id or TCCL_JOB_ID)');
  root.close();
});
