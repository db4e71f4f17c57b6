import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { BootstrapConnection } from '../../../../src/runtime/bootstrap/connection.js';
import { dial } from '../../../../src/runtime/bootstrap/dial.js';
import { purposes, ROOT_RANK } from '../../../../src/runtime/bootstrap/handshake.js';
import { connect, UniqueId, type Root } from '../../../../src/runtime/bootstrap/index.js';
import { encodeJson } from '../../../../src/runtime/bootstrap/json.js';
import { otherSource, type Notices } from '../../../../src/runtime/bootstrap/notices.js';
import type { CheckIn } from '../../../../src/runtime/bootstrap/roll-call.js';
import { listenAt, startRoot } from '../../../../src/runtime/bootstrap/root.js';
import { setUpHeader } from '../../../../src/runtime/bootstrap/set-up-message.js';
import { secretOf } from '../../../../src/runtime/bootstrap/unique-id.js';
import { version } from '../../../../src/version.js';
import { loopbackRoot, rejection, timeoutMs } from './ranks.js';

/** Checks a rank in that never joins the ring. Resolves when the root has confirmed. */
async function checkIn(root: Root, rank: number, nRanks: number, instance = 'old'): Promise<BootstrapConnection> {
  const message: CheckIn = {
    rank,
    nRanks,
    version,
    instance,
    answerAddress: '127.0.0.1:1',
    peerAddress: '127.0.0.1:1',
    hostname: 'host7',
    pid: 77,
    processHash: 'p',
    remainingMs: timeoutMs,
  };
  return new Promise((resolve, reject) => {
    const dialled = dial({
      address: root.id.root,
      secret: secretOf(root.id),
      greeting: { purpose: purposes.checkIn, from: rank, to: ROOT_RANK, job: root.id.job },
      events: { message: () => void dialled.then(resolve), end: () => undefined },
      signal: new AbortController().signal,
    });
    dialled.then((connection) => connection.send(setUpHeader, encodeJson(message))).catch(reject);
  });
}

describe('a rank that ended before all had come', () => {
  it.each([
    [
      'was killed',
      (connection: BootstrapConnection) => {
        connection.destroy();
      },
    ],
    ['gave up', (connection: BootstrapConnection) => void connection.leave()],
  ])('%s, and is replaced by its new process', async (_, end) => {
    const root = await loopbackRoot({ settleMs: 0 });
    const { id } = root;
    const first = connect({ id, rank: 0, nRanks: 3, timeoutMs });
    end(await checkIn(root, 1, 3));
    const second = connect({ id, rank: 1, nRanks: 3, timeoutMs });
    const third = connect({ id, rank: 2, nRanks: 3, timeoutMs });
    const ranks = await Promise.all([first, second, third]);
    await Promise.all(ranks.map((rank) => rank.barrier()));
    await Promise.all(ranks.map((rank) => rank.close()));
  });

  it('is replaced where its old process ends after the new one has come', async () => {
    const root = await loopbackRoot({ settleMs: 60_000 });
    const { id } = root;
    const old = await checkIn(root, 1, 3);
    const next = await checkIn(root, 1, 3, 'new');
    old.destroy();
    // All three have come; the new process of rank 1 does not exist.
    const errors = await Promise.all([0, 2].map((rank) => rejection(connect({ id, rank, nRanks: 3, timeoutMs }))));
    for (const error of errors) expect(error).toMatchObject({ code: 'RANK_DIED', rank: 1 });
    await next.leave();
  });

  it('is named with its process where no other takes its place', async () => {
    const root = await loopbackRoot();
    const waiting = rejection(connect({ id: root.id, rank: 0, nRanks: 3, timeoutMs: 300 }));
    (await checkIn(root, 1, 3)).destroy();
    const error = (await waiting) as Error;
    expect(error).toMatchObject({ code: 'RANK_MISSING', ranks: [1, 2] });
    expect(error.message).toMatch(
      /^ranks 1,2 of 3 did not join in time \(1 did: 0\); rank 1 checked in, but ended \(process 77 on host7\); were all started/,
    );
    root.close();
  });
});

describe('a meeting that takes long', () => {
  /** Notices after a short time, and a promise for the first one. */
  function notices(afterMs = 500): Notices & { readonly first: Promise<string>; readonly all: string[] } {
    const all: string[] = [];
    let resolve: (text: string) => void = () => undefined;
    const first = new Promise<string>((done) => (resolve = done));
    return { afterMs, report: (text) => resolve((all.push(text), text)), first, all };
  }

  it('is reported by the root: who is missing, where, and whom it refused', async () => {
    const said = notices();
    const root = await startRoot({ host: '127.0.0.1', notices: said });
    const id = UniqueId.create(root.id.root);
    const tired = new AbortController();
    const stranger = rejection(connect({ id, rank: 1, nRanks: 3, timeoutMs, signal: tired.signal }));
    const joining = connect({ id: root.id, rank: 0, nRanks: 3, timeoutMs });
    const port = root.id.root.port;
    expect(await said.first).toMatch(
      new RegExp(
        `^init has waited 0\\.5 s at the root, 127\\.0\\.0\\.1:${port} on ${hostname()}, for ranks 1,2 of 3 \\(1 checked in: 0\\)` +
          ', and waits 20 s in all \\(TCCL_INIT_TIMEOUT\\); it refused a rank with another TCCL_COMM_SECRET from 127\\.0\\.0\\.1$',
      ),
    );
    tired.abort();
    await stranger;
    const others = [1, 2].map((rank) => connect({ id: root.id, rank, nRanks: 3, timeoutMs }));
    for (const rank of await Promise.all([joining, ...others])) await rank.close();
    expect(said.all).toHaveLength(1);
  });

  it('is reported by a rank that cannot reach the root: from where, to where, and why', async () => {
    const said = notices();
    const probe = await loopbackRoot();
    probe.close();
    await probe.done;
    const { port } = probe.id.root;
    const id = await UniqueId.fromHostPort(`127.0.0.1:${port}`);
    const joining = [1, 0].map((rank) =>
      connect({ id, rank, nRanks: 2, timeoutMs, rankOfRoot: 0, ...(rank === 1 && { notices: said }) }),
    );
    expect(await said.first).toMatch(
      new RegExp(
        `^rank 1 on ${hostname()} \\(127\\.0\\.0\\.1\\) has waited 0\\.5 s in init for the root at 127\\.0\\.0\\.1:${port}, in the process of rank 0` +
          ` \\(connect ECONNREFUSED 127\\.0\\.0\\.1:${port}\\), and waits 20 s in all \\(TCCL_INIT_TIMEOUT\\): does rank 0 run on that host, `,
      ),
    );
    await listenAt(id);
    for (const rank of await Promise.all(joining)) await rank.close();
  });

  it('is not reported when all come in time, nor twice', async () => {
    const said = notices(60_000);
    const root = await startRoot({ host: '127.0.0.1', notices: said });
    const ranks = await Promise.all([0, 1].map((rank) => connect({ id: root.id, rank, nRanks: 2, timeoutMs, notices: said })));
    for (const rank of ranks) await rank.close();
    expect(said.all).toEqual([]);
  });
});

it.each([
  ['10.0.0.2:5', '10.0.0.2', undefined],
  ['[fe80::1%eth0]:5', 'fe80::1%eth1', undefined],
  ['127.0.0.1:5', '10.0.0.2', undefined],
  ['192.168.1.5:5', '10.0.0.2', /^its check-in came from 10\.0\.0\.2, not from 192\.168\.1\.5: are addresses translated .*NAT/],
])('a rank that announces %s and comes from %s', (announced, source, hint) => {
  if (hint === undefined) expect(otherSource(announced, source)).toBeUndefined();
  else expect(otherSource(announced, source)).toMatch(hint);
});
