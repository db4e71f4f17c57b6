import { afterEach, expect, it } from 'vitest';
import { startRoot } from '../../src/runtime/bootstrap/index.js';
import type { PeerInfo, Root } from '../../src/runtime/bootstrap/index.js';
import { localMeetingPoint } from '../../src/runtime/launch/meeting-point.js';
import { startFixture } from './fixtures/processes.js';
import type { Fixture } from './fixtures/processes.js';

let root: Root | undefined;
const started: Fixture[] = [];
afterEach(() => {
  root?.close();
  for (const { child } of started.splice(0)) child.kill('SIGKILL');
});

function start(
  scenario: string,
  commId: string,
  rank: number,
  n: number,
  options: object = {},
  env: Record<string, string> = {},
): Fixture {
  const fixture = startFixture('bootstrap-rank.mjs', [scenario, commId, String(rank), String(n), JSON.stringify(options)], env);
  started.push(fixture);
  return fixture;
}

/** All ranks of a scenario, with a root in this process. */
async function startRanks(scenario: string, n: number, optionsOf: (rank: number) => object = () => ({})): Promise<Fixture[]> {
  root = await startRoot({ host: '127.0.0.1' });
  const { id } = root;
  return Array.from({ length: n }, (_, rank) => start(scenario, id.toString(), rank, n, optionsOf(rank)));
}

it('ranks in separate processes exchange data, and exit by themselves', async () => {
  const outcomes = await Promise.all((await startRanks('work', 4)).map(({ ended }) => ended));
  for (const [rank, { code, lines, stderr }] of outcomes.entries()) {
    expect([code, stderr]).toEqual([0, '']);
    expect(lines[0]).toMatchObject({
      gathered: ['part 0', 'part 1', 'part 2', 'part 3'],
      received: 'from the last',
      local: ['local 0', 'local 1', 'local 2', 'local 3'],
      message: `for you from ${(rank + 2) % 4}`,
      localRanks: [0, 1, 2, 3],
    });
    const peers = lines[0]!.peers as PeerInfo[];
    expect(new Set(peers.map(({ hostHash }) => hostHash)).size).toBe(1);
    expect(new Set(peers.map(({ processHash }) => processHash)).size).toBe(4);
    expect(peers.map(({ device }) => device)).toEqual(['cpu:0', 'cpu:1', 'cpu:2', 'cpu:3']);
  }
});

it('ranks that know only host:port of rank 0 connect, with a common secret', async () => {
  const { TCCL_COMM_ID: commId } = await localMeetingPoint();
  const ranks = [2, 1, 0].map((rank) => start('work', commId, rank, 3, {}, { TCCL_COMM_SECRET: 'our secret' }));
  for (const { code, lines } of await Promise.all(ranks.map(({ ended }) => ended))) {
    expect(code).toBe(0);
    expect(lines[0]).toMatchObject({ gathered: ['part 0', 'part 1', 'part 2'] });
  }
});

it('when a rank is killed, all waits of the others reject with its number', async () => {
  const idle = 2;
  const ranks = await startRanks('wait', 5, () => ({ idle }));
  await Promise.all(ranks.map((rank) => rank.line((line) => 'waiting' in line)));
  ranks[idle]!.child.kill('SIGKILL');
  for (const [rank, fixture] of ranks.entries()) {
    const { code, signal, lines, stderr } = await fixture.ended;
    if (rank === idle) {
      expect(signal).toBe('SIGKILL');
      continue;
    }
    expect([code, stderr]).toEqual([0, '']);
    const errors = lines.filter((line) => 'code' in line);
    expect(errors.length).toBe(3);
    for (const error of errors) {
      expect(error).toMatchObject({ name: 'RemoteError', code: 'RANK_DIED', rank: idle });
      expect(error.message).toContain(`rank 2 (process ${ranks[idle]!.child.pid} on `);
    }
    expect(lines.filter((line) => 'lost' in line)).toEqual([{ lost: idle }]);
  }
});

it('when a thread that is a rank is terminated, the other threads get an error', async () => {
  root = await startRoot({ host: '127.0.0.1' });
  const { code, lines, stderr } = await start('threads', root.id.toString(), 0, 3).ended;
  expect([code, stderr]).toEqual([0, '']);
  for (const thread of [0, 1]) {
    const errors = lines.filter((line) => line.thread === thread && 'code' in line);
    expect(errors.map((error) => [error.code, error.rank])).toEqual([
      ['RANK_DIED', 2],
      ['RANK_DIED', 2],
      ['RANK_DIED', 2],
    ]);
  }
});

it('when a rank is killed while others set up, all of them fail and exit', async () => {
  root = await startRoot({ host: '127.0.0.1' });
  const doomed = start('wait', root.id.toString(), 1, 3, { timeoutMs: 2000 });
  const waiting = start('fail', root.id.toString(), 0, 3, { timeoutMs: 2000 });
  doomed.child.kill('SIGKILL');
  const { lines, code } = await waiting.ended;
  expect(code).toBe(0);
  expect(lines[0]).toMatchObject({ name: 'TimeoutError', code: 'RANK_MISSING' });
  expect(lines[0]!.ranks).toContain(2);
});

it('every process gets the same error, though the process with the root exits as soon as it has it', async () => {
  const { TCCL_COMM_ID: commId } = await localMeetingPoint();
  const places = [
    [0, 4],
    [1, 4],
    [2, 3],
    [3, 4],
  ] as const;
  const outcomes = await Promise.all(places.map(([rank, n]) => start('fail', commId, rank, n).ended));
  for (const { lines } of outcomes) {
    expect(lines).toEqual([
      expect.objectContaining({
        name: 'InvalidUsageError',
        code: 'RANK_COUNT_MISMATCH',
        ranks: [2],
        message: outcomes[0]!.lines[0]!.message,
      }),
    ]);
  }
});

it('neither an open root nor a network that was not closed keeps a process alive', async () => {
  const rootProcess = start('root', 'none', 0, 0);
  expect((await rootProcess.ended).code).toBe(0);
  for (const { ended } of await startRanks('forget', 2)) expect((await ended).code).toBe(0);
});
