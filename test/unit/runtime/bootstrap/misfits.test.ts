import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { formatAddress } from '../../../../src/runtime/bootstrap/address.js';
import { dial } from '../../../../src/runtime/bootstrap/dial.js';
import { purposes, ROOT_RANK } from '../../../../src/runtime/bootstrap/handshake.js';
import { connect, listenAt, UniqueId } from '../../../../src/runtime/bootstrap/index.js';
import type { ConnectOptions, RootOptions } from '../../../../src/runtime/bootstrap/index.js';
import { Listener } from '../../../../src/runtime/bootstrap/listener.js';
import type { CheckIn } from '../../../../src/runtime/bootstrap/roll-call.js';
import { encodeJson } from '../../../../src/runtime/bootstrap/json.js';
import { setUpHeader } from '../../../../src/runtime/bootstrap/set-up-message.js';
import { SECRET_BYTES, secretOf } from '../../../../src/runtime/bootstrap/unique-id.js';
import { InvalidUsageError, TcclError, TimeoutError } from '../../../../src/errors.js';
import { version } from '../../../../src/version.js';
import { loopbackRoot, rejection, timeoutMs, withRanks } from './ranks.js';

const ownNameResolves = await lookup(hostname()).then(
  () => true,
  () => false,
);

/** The error of each rank; all must fail. */
async function failures(
  ranks: readonly (Partial<ConnectOptions> & { rank: number; nRanks: number })[],
  rootOptions: RootOptions = {},
): Promise<TcclError[]> {
  const root = await loopbackRoot({ settleMs: timeoutMs, ...rootOptions });
  try {
    return (await Promise.all(ranks.map((rank) => rejection(connect({ id: root.id, timeoutMs, ...rank }))))) as TcclError[];
  } finally {
    root.close();
  }
}

/** All have one message, and it is returned. */
function sameEverywhere(errors: readonly TcclError[], kind: new (...args: never[]) => TcclError): TcclError {
  const [first] = errors;
  for (const error of errors) {
    expect(error).toBeInstanceOf(kind);
    expect([error.message, error.code, error.ranks]).toEqual([first!.message, first!.code, first!.ranks]);
  }
  return first!;
}

describe('every rank gets the same error that names the ranks', () => {
  it('when one has another rank count', async () => {
    const error = sameEverywhere(
      await failures([
        { rank: 0, nRanks: 3 },
        { rank: 1, nRanks: 2 },
        { rank: 2, nRanks: 3 },
      ]),
      InvalidUsageError,
    );
    expect(error).toMatchObject({ code: 'RANK_COUNT_MISMATCH', ranks: [1] });
    expect(error.message).toContain('ranks 0,2 with 3, rank 1 with 2');
  });

  it('when the larger rank count is wrong, so that no other rank checks in', async () => {
    const error = sameEverywhere(
      await failures(
        [
          { rank: 0, nRanks: 2 },
          { rank: 1, nRanks: 5 },
        ],
        { settleMs: 10 },
      ),
      InvalidUsageError,
    );
    expect(error.message).toContain('rank 0 with 2, rank 1 with 5');
  });

  it('when a rank is started twice', async () => {
    const error = sameEverywhere(await failures([0, 1, 1, 3].map((rank) => ({ rank, nRanks: 4 }))), InvalidUsageError);
    expect(error).toMatchObject({ code: 'RANK_DUPLICATE', ranks: [1] });
    expect(error.message).toContain(`rank 1 checked in 2 times (process ${process.pid} on`);
  });

  it('when one has another version', async () => {
    const error = sameEverywhere(
      await failures([
        { rank: 0, nRanks: 3 },
        { rank: 1, nRanks: 3, version: '99.0.0' },
        { rank: 2, nRanks: 3 },
      ]),
      InvalidUsageError,
    );
    expect(error).toMatchObject({ code: 'VERSION_MISMATCH', ranks: [1] });
    expect(error.message).toContain('99.0.0 at rank 1');
  });

  it('when two use one device of a host', async () => {
    const devices = ['gpu:0', 'gpu:1', 'gpu:0', 'gpu:2'];
    const error = sameEverywhere(await failures(devices.map((device, rank) => ({ rank, nRanks: 4, device }))), InvalidUsageError);
    expect(error).toMatchObject({ code: 'DEVICE_DUPLICATE', ranks: [0, 2] });
    expect(error.message).toContain('ranks 0,2 all use device gpu:0 of host');
  });

  it('also a rank that checks in after the others have got it', async () => {
    const root = await loopbackRoot({ settleMs: 1 });
    const join = (rank: number, nRanks: number) =>
      rejection(connect({ id: root.id, rank, nRanks, timeoutMs })) as Promise<TcclError>;
    const early = await Promise.all([join(0, 4), join(1, 5)]);
    const late = await join(2, 4);
    root.close();
    expect(sameEverywhere([...early, late], InvalidUsageError).code).toBe('RANK_COUNT_MISMATCH');
  });
});

it('one device on two hosts is no conflict', async () => {
  const { id } = await loopbackRoot();
  const ranks = await Promise.all(
    [0, 1].map((rank) => connect({ id, rank, nRanks: 2, timeoutMs, device: 'gpu:0', hostId: `host ${rank}` })),
  );
  expect(ranks.map(({ localRank, localRanks }) => [localRank, localRanks])).toEqual([
    [0, [0]],
    [0, [1]],
  ]);
  await Promise.all(ranks.map((rank) => rank.close()));
});

describe('refused before anything is sent', () => {
  const id = UniqueId.create({ host: '127.0.0.1', port: 1 });

  it.each([
    [-1, 2, 'the rank -1 is not a whole number from 0 to 1'],
    [2, 2, 'the rank 2 is not a whole number from 0 to 1'],
    [0.5, 2, 'the rank 0.5'],
    [0, 0, 'the rank count 0'],
    [0, NaN, 'the rank count NaN'],
  ])('rank %d of %d', async (rank, nRanks, message) => {
    const error = await rejection(connect({ id, rank, nRanks, timeoutMs }));
    expect(error).toMatchObject({ name: 'InvalidArgumentError', code: 'ARGUMENT_RANGE' });
    expect((error as Error).message).toContain(message);
  });

  it.each([0, -5, NaN, Infinity])('a timeout of %d', async (badTimeoutMs) => {
    await expect(connect({ id, rank: 0, nRanks: 1, timeoutMs: badTimeoutMs })).rejects.toMatchObject({ code: 'ARGUMENT_RANGE' });
  });

  it('an interface that does not exist', async () => {
    const error = await rejection(connect({ id, rank: 0, nRanks: 1, timeoutMs, interfaceName: 'nope0' }));
    expect(error).toMatchObject({ name: 'InvalidArgumentError', code: 'ENVIRONMENT' });
    expect((error as Error).message).toMatch(/no network interface matches TCCL_SOCKET_IFNAME=nope0; there are: .*127\.0\.0\.1/);
  });

  it('an aborted signal', async () => {
    const reason = new Error('not wanted any more');
    expect(await rejection(connect({ id, rank: 0, nRanks: 1, timeoutMs, signal: AbortSignal.abort(reason) }))).toBe(reason);
  });
});

// These wait for timeouts, side by side.
describe.concurrent('after a timeout or grace period', () => {
  it('missing ranks are named by the same error at every other rank', async () => {
    const error = sameEverywhere(await failures([0, 2, 6].map((rank) => ({ rank, nRanks: 8, timeoutMs: 2000 }))), TimeoutError);
    expect(error).toMatchObject({ code: 'RANK_MISSING', ranks: [1, 3, 4, 5, 7] });
    expect(error.message).toContain('ranks 1,3-5,7 of 8 did not join in time (3 did: 0,2,6)');
  });

  it('a root that does not exist is a timeout with its address and what happened', async () => {
    const free = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => free.once('listening', resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const id = UniqueId.create({ host: '127.0.0.1', port });
    const error = await rejection(connect({ id, rank: 3, nRanks: 4, timeoutMs: 1000 }));
    expect(error).toMatchObject({ name: 'TimeoutError', code: 'TIMEOUT' });
    expect(error).not.toHaveProperty('rank'); // it only waits
    expect((error as Error).message).toMatch(
      new RegExp(`rank 3 found no root at 127.0.0.1:${port} within 1000 ms \\(connect ECONNREFUSED`),
    );
  });

  it('a root with another secret is refused', async () => {
    const root = await loopbackRoot();
    const id = UniqueId.create(root.id.root);
    const error = await rejection(connect({ id, rank: 0, nRanks: 1, timeoutMs: 1000 }));
    expect(error).toMatchObject({ code: 'TIMEOUT' });
    expect((error as Error).message).toContain(
      'the other side refused the connection, probably because of another id or another TCCL_COMM_SECRET',
    );
    root.close();
  });

  it('a root that closes after a check-in is a timeout that names this', async () => {
    const secret = randomBytes(SECRET_BYTES);
    const listener = await Listener.open({
      host: '127.0.0.1',
      secret,
      expects: ({ purpose }) => purpose === purposes.checkIn,
      admit: (_, open) => {
        const connection = open({
          message: () => void connection.send(setUpHeader, encodeJson({ stays: false })).then(() => listener.close()),
          end: () => undefined,
        });
      },
    });
    const error = await rejection(connect({ id: new UniqueId(listener.address, secret), rank: 0, nRanks: 2, timeoutMs: 300 }));
    expect(error).toMatchObject({ name: 'TimeoutError', code: 'TIMEOUT' });
    expect(error).not.toHaveProperty('rank');
    expect((error as Error).message).toContain(
      `rank 0 checked in with the root at 127.0.0.1:${listener.address.port}, but got no answer at 127.0.0.1:`,
    );
  });

  it('a rank that others exclude gets an error, and one that asks too late gets the missing ranks', async () => {
    const never = new AbortController().signal;
    await withRanks(3, async (ranks) => {
      const asked = [ranks[0]!.survivors([1], never), ranks[2]!.survivors([], never)];
      expect((await Promise.all(asked)).map((one) => one.ranks)).toEqual([
        [0, 2],
        [0, 2],
      ]);
      const late = [
        rejection(ranks[0]!.survivors([], AbortSignal.abort())),
        rejection(ranks[2]!.survivors([], AbortSignal.abort())),
      ];
      for (const error of await Promise.all(late)) expect(error).toMatchObject({ code: 'RANK_MISSING' });
    });
  });

  it.each([
    { out: [0], isMajority: true },
    { out: [2, 3], isMajority: true },
    { out: [0, 1], isMajority: false },
    { out: [1, 2, 3], isMajority: false },
  ])('the ranks without $out of 4 are a majority if one asks for one: $isMajority', async ({ out, isMajority }) => {
    const rest = [0, 1, 2, 3].filter((rank) => !out.includes(rank));
    await withRanks(4, async (ranks) => {
      const ask = (quorum: boolean): Promise<unknown>[] =>
        rest.map((rank) => ranks[rank]!.survivors(out, new AbortController().signal, { quorum: quorum && rank === rest.at(-1) }));
      const asked = ask(true);
      const found = isMajority ? await Promise.all(asked) : await Promise.all(asked.map(rejection));
      const expected = isMajority ? { ranks: rest } : { name: 'RemoteError', code: 'NO_QUORUM', ranks: out };
      expect(found).toMatchObject(rest.map(() => expected));
      // A refusal ends no rank: without the wish for a majority, they continue.
      expect(await Promise.all(ask(false))).toMatchObject(rest.map(() => ({ ranks: rest })));
    });
  });

  it.each([
    ['of rank 0', 0, { name: 'RemoteError', code: 'RANK_DIED', rank: 0 }],
    ['of another process', undefined, { name: 'SystemError', code: 'NETWORK' }],
  ])('a root %s that ends after a check-in is reported immediately', async (_, rankOfRoot, expected) => {
    const secret = randomBytes(SECRET_BYTES);
    const listener = await Listener.open({
      host: '127.0.0.1',
      secret,
      expects: ({ purpose }) => purpose === purposes.checkIn,
      admit: (_, open) => {
        const connection = open({
          message: () => void connection.send(setUpHeader, encodeJson({ stays: true })).then(() => connection.destroy()),
          end: () => undefined,
        });
      },
    });
    // A rank that waits for its timeout waits longer than the test.
    const id = new UniqueId(listener.address, secret);
    const error = await rejection(connect({ id, rank: 1, nRanks: 3, timeoutMs: 1_000_000, rankOfRoot }));
    listener.close();
    expect(error).toMatchObject(expected);
    expect((error as Error).message).toMatch(/^the root at 127\.0\.0\.1:\d+.* ended before all ranks had checked in$/);
  });
});

describe('the root', () => {
  it('at host:port is found by ranks that started before it', async () => {
    const probe = await loopbackRoot();
    const hostPort = `127.0.0.1:${probe.id.root.port}`;
    probe.close();
    const id = await UniqueId.fromHostPort(hostPort, 'secret');
    const early = connect({ id, rank: 1, nRanks: 2, timeoutMs });
    const root = await listenAt(id);
    const ranks = await Promise.all([connect({ id, rank: 0, nRanks: 2, timeoutMs }), early]);
    await root.done;
    // Its port is free for the next communicator.
    const next = await listenAt(id);
    next.close();
    await Promise.all(ranks.map((rank) => rank.close()));
  });

  it('cannot be at an address of another host', async () => {
    await expect(listenAt(await UniqueId.fromHostPort('192.0.2.213:29500'))).rejects.toMatchObject({
      code: 'NETWORK',
      message: expect.stringMatching(
        /^cannot listen on 192\.0\.2\.213:29500: the address is not one of this host; .*: start rank 0 on the host that has it \(with --nnodes: --node-rank 0 there\), or set TCCL_COMM_ID/,
      ) as string,
    });
  });

  it.each(['localhost', ...(ownNameResolves ? [hostname()] : [])])('at the name %s is found', async (name) => {
    const probe = await loopbackRoot();
    const { port } = probe.id.root;
    probe.close();
    const id = await UniqueId.fromHostPort(`${name}:${port}`);
    const root = await listenAt(id);
    const rank = await connect({ id, rank: 0, nRanks: 1, timeoutMs });
    await root.done;
    await rank.close();
  });
});

it('a signal ends the set-up with its reason', async () => {
  const { id } = await loopbackRoot();
  const controller = new AbortController();
  const waiting = rejection(connect({ id, rank: 0, nRanks: 2, timeoutMs, signal: controller.signal }));
  const reason = new Error('not wanted any more');
  controller.abort(reason);
  expect(await waiting).toBe(reason);
});

it('a rank that checked in and died before the ring closed is named to all others', async () => {
  const root = await loopbackRoot();
  const { id } = root;
  // Rank 2's process exits right after its check-in: its addresses no longer accept connections.
  const closed = await Listener.open({ host: '127.0.0.1', secret: secretOf(id), expects: () => false, admit: () => undefined });
  closed.close();
  const nowhere = formatAddress(closed.address);
  const checkIn: CheckIn = {
    rank: 2,
    nRanks: 4,
    version,
    instance: 'x',
    answerAddress: nowhere,
    peerAddress: nowhere,
    hostname: 'h',
    pid: 1,
    processHash: 'p',
    remainingMs: timeoutMs,
  };
  const connection = await dial({
    address: id.root,
    secret: secretOf(id),
    greeting: { purpose: purposes.checkIn, from: 2, to: ROOT_RANK },
    events: { end: () => undefined },
    signal: new AbortController().signal,
  });
  await connection.send(setUpHeader, encodeJson(checkIn));

  const errors = await Promise.all([0, 1, 3].map((rank) => rejection(connect({ id, rank, nRanks: 4, timeoutMs }))));
  root.close();
  for (const error of errors) expect(error).toMatchObject({ name: 'RemoteError', code: 'RANK_DIED', rank: 2 });
  await connection.leave();
});
