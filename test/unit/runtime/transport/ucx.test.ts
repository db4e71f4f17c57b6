import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hasRdmaModule, hasRdmaPort } from '../../../../src/runtime/transport/ucx/hardware.js';
import { constants, layouts, loadUcx, open } from '../../../../src/runtime/transport/ucx/library.js';
import { UcxTransport } from '../../../../src/runtime/transport/ucx/ucx.js';
import { UcxWorker } from '../../../../src/runtime/transport/ucx/worker.js';
import { transportCompliance } from './compliance.js';
import type { FifoSize, SendConnection } from '../../../../src/runtime/transport/transport.js';
import { hostSegments, join as joined, libc, secret, thrown, until, type ConnectedPair } from './pairs.js';

const size = { steps: 4, slotBytes: 2000 };
const compiler = ['cc', 'gcc'].find((name) => spawnSync(name, ['--version']).status === 0);

const ucx = loadUcx();
/** Reason why UCX cannot be tested here. */
const noUcx = 'reason' in ucx ? ucx.reason : undefined;

/** A worker of this thread of its own, as another process has. Ends that are not closed keep it open. */
function openUcxWorker(): UcxWorker {
  if ('reason' in ucx) throw new Error(ucx.reason);
  // In shared memory, the end of a rank shows in the end of its process.
  process.env['UCX_TLS'] ??= 'tcp,self';
  return new UcxWorker(ucx.ucx);
}

/** A pair of two workers, each as another process has one. */
async function openPair(size: FifoSize): Promise<ConnectedPair> {
  const segments = [hostSegments(1).segments[0]!, hostSegments(1).segments[0]!];
  const workers = segments.map(openUcxWorker);
  const [a, b] = segments.map(
    (segment, rank) => new UcxTransport({ segment, rank, secret, size, libc: libc!, worker: () => workers[rank]! }),
  );
  return {
    ...(await joined(a!, b!)),
    senderSegment: segments[0]!,
    receiverSegment: segments[1]!,
    kill: (rank) => workers[rank]!.close(),
  };
}

let folder = '';
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tccl-ucx-'))));
afterEach(() => rmSync(folder, { recursive: true }));

describe.skipIf(noUcx !== undefined)('with UCX', () => {
  transportCompliance('ucx', openPair);

  test('a rank without the secret does not get a connection, and the set-up leaves nothing', async () => {
    const segments = [0, 1].map(() => hostSegments(1).segments[0]!);
    const [a, b] = segments.map(
      (segment, rank) =>
        new UcxTransport({
          segment,
          rank,
          size,
          secret: rank === 0 ? secret : new Uint8Array(32),
          libc: libc!,
          worker: openUcxWorker,
        }),
    );
    const [send, receive] = await Promise.all([a!.setUpSend(1), b!.setUpReceive(0)]);
    const late = new AbortController();
    const connecting = [send.connect(new Uint8Array(), late.signal), receive.connect(send.info, late.signal)];
    // The hello was sent, but the sender receives no message with its tag.
    await new Promise((resolve) => setTimeout(resolve, 100));
    late.abort(new Error('too late'));
    for (const outcome of await Promise.allSettled(connecting))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'too late' } });
    a!.close();
    b!.close();
    for (const segment of segments) expect(segment.heap.usedBytes).toBe(0);
  });

  test('errors name both ranks, their hosts and addresses, and the status of UCX', async () => {
    const places = ['rank 0 on host6 (10.0.0.6)', 'rank 1 on host7 (10.0.0.7)'];
    const workers = [openUcxWorker(), openUcxWorker()];
    const [a, b] = workers.map((worker, rank) => {
      const segment = hostSegments(1).segments[0]!;
      return new UcxTransport({
        segment,
        rank,
        size,
        secret,
        libc: libc!,
        worker: () => worker,
        placeOf: (other) => places[other]!,
      });
    });
    const { sender, closeTransports } = await joined(a!, b!);
    const late = await a!.setUpSend(1);
    const gone = await b!.setUpReceive(0);
    workers[1]!.close();
    await until(() => thrown(() => sender.check()) !== undefined);
    expect(thrown(() => sender.check())).toMatchObject({
      code: 'RANK_DIED',
      rank: 1,
      message: expect.stringMatching(
        /^rank 1 on host7 \(10\.0\.0\.7\) died or cannot be reached: the connection of UCX ended: .*TCCL_NET=socket/,
      ) as string,
    });
    // The address of rank 1 leads nowhere now.
    late.cancel();
    gone.cancel();
    const addressOfRank1 = workers[1]!.address;
    const receiving = await a!.setUpReceive(1);
    await expect(
      receiving.connect(Buffer.concat([new Uint8Array(32), addressOfRank1]), new AbortController().signal),
    ).rejects.toMatchObject({
      code: 'NETWORK',
      rank: 1,
      message: expect.stringMatching(
        /^rank 0 on host6 \(10\.0\.0\.6\) cannot connect with rank 1 on host7 \(10\.0\.0\.7\) for data: .*UCX.*TCCL_NET=socket/,
      ) as string,
    });
    sender.abort(new Error('over'));
    closeTransports();
  });

  test('long messages go from slot to slot while the sender polls', async () => {
    const long = { steps: 2, slotBytes: 4 << 20 };
    const { sender, receiver, senderSegment, receiverSegment, closeTransports } = await openPair(long);
    for (const seed of [1, 2, 3]) {
      await until(() => sender.acquire() >= 0);
      new Uint8Array(senderSegment.buffer, sender.acquire(), long.slotBytes).fill(seed);
      sender.post(long.slotBytes);
      await until(() => [sender.flush(), receiver.peek() >= 0].every(Boolean));
      const message = new Uint8Array(receiverSegment.buffer, receiver.peek(), receiver.messageBytes);
      expect([message.length, message.every((byte) => byte === seed)]).toEqual([long.slotBytes, true]);
      receiver.release();
    }
    await Promise.all([sender.close(), receiver.close()]);
    closeTransports();
  });

  test('a connection closes though others have filled the socket to a process that does not read', async () => {
    const workers = [openUcxWorker(), openUcxWorker()];
    const large = { steps: 16, slotBytes: 60_000 };
    const senders: SendConnection[] = [];
    for (let number = 0; number <= 10; number++) {
      const [a, b] = workers.map(
        (worker, rank) =>
          new UcxTransport({
            segment: hostSegments(1).segments[0]!,
            rank,
            size: large,
            secret,
            libc: libc!,
            worker: () => worker,
          }),
      );
      const { sender } = await joined(a!, b!);
      senders.push(sender);
    }
    const [idle, ...busy] = senders;
    const isFull = (): boolean => busy.some((sender) => !sender.flush());
    for (const sender of busy) while (sender.acquire() >= 0) sender.post(large.slotBytes);
    expect(isFull()).toBe(true);
    await idle!.close();
    expect(isFull()).toBe(true);
    for (const worker of workers) worker.close();
  }, 30_000);

  test('a connection closes though the other process, which has read everything, is stopped', async () => {
    const { sender, receiver, kill } = await openPair({ steps: 16, slotBytes: 60_000 });
    for (let message = 0; message < 3; message++) {
      sender.acquire();
      sender.post(60_000);
    }
    for (let message = 0; message < 3; message++) {
      await until(() => [sender.flush(), receiver.peek() >= 0].every(Boolean));
      receiver.release();
    }
    receiver.settle?.();
    // Nobody polls the receiver from now on.
    await sender.close();
    kill(1);
  }, 30_000);

  test('leaves no descriptor behind at any end', async () => {
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const openAndEnd = async (ending: 'close' | 'abort' | 'kill'): Promise<void> => {
      const { sender, receiver, kill, closeTransports } = await openPair(size);
      if (ending === 'kill') kill(0);
      if (ending === 'abort') sender.abort(new Error('enough'));
      await until(() => ending === 'close' || thrown(() => receiver.check()) !== undefined);
      await Promise.all([sender.close(), receiver.close()]);
      closeTransports();
    };
    await openAndEnd('close');
    const before = descriptors();
    for (const ending of ['close', 'abort', 'kill'] as const) {
      await openAndEnd(ending);
      expect(descriptors()).toBe(before);
    }
  });
});

test('a missing library is an error of one line with a remedy', () => {
  const opened = open('libnothing.so.0');
  expect('reason' in opened && opened.reason).toMatch(
    /^UCX cannot be loaded \(libnothing.so.0: .*\); install UCX 1\.10 or newer \(Debian: libucx0\), or use TCCL_NET=socket$/,
  );
});

test.skipIf(compiler === undefined).each([
  [1, 8, 'UCX 1.8.3 (LIB) is too old'],
  [2, 0, 'UCX 2.0.3 (LIB) is newer than this tccl knows'],
])('version %i.%i is refused', (major, minor, text) => {
  const source = join(folder, 'ucp.c');
  const library = join(folder, 'libucp.so');
  writeFileSync(source, `void ucp_get_version(unsigned *a, unsigned *b, unsigned *c) { *a = ${major}; *b = ${minor}; *c = 3; }`);
  execFileSync(compiler!, ['-shared', '-fPIC', '-o', library, source]);
  const opened = open(library);
  expect('reason' in opened && opened.reason).toBe(
    `${text.replace('LIB', library)}; install UCX 1.10 or newer (Debian: libucx0), or use TCCL_NET=socket`,
  );
});

test.skipIf(compiler === undefined || !existsSync('/usr/include/ucp/api/ucp.h'))(
  'structures and constants are those of the headers',
  () => {
    const lines = [
      ...Object.entries(layouts).flatMap(([type, { bytes, ...offsets }]) => [
        `_Static_assert(sizeof(${type}) >= ${bytes}, "${type}");`,
        ...Object.entries(offsets).map(
          ([field, offset]) => `_Static_assert(offsetof(${type}, ${field}) == ${offset}, "${type}.${field}");`,
        ),
      ]),
      ...Object.entries(constants).map(([name, value]) => `_Static_assert(${name} == ${value}, "${name}");`),
      '_Static_assert(sizeof(ucs_status_t) == 1, "ucs_status_t");',
      '_Static_assert(offsetof(ucp_err_handler_t, arg) == 8, "ucp_err_handler_t.arg");',
    ];
    const source = join(folder, 'layout.c');
    writeFileSync(source, `#include <stddef.h>\n#include <ucp/api/ucp.h>\n${lines.join('\n')}\n`);
    const { status, stderr } = spawnSync(compiler!, ['-fsyntax-only', source], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
  },
);

describe('hardware', () => {
  const port = (device: string, number: number, state: string): void => {
    const place = join(folder, device, 'ports', String(number));
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'state'), `${state}\n`);
  };

  test('an active port of any device counts', () => {
    expect(hasRdmaPort(join(folder, 'nothing'))).toBe(false);
    port('mlx5_0', 1, '1: DOWN');
    expect(hasRdmaPort(folder)).toBe(false);
    port('mlx5_1', 1, '1: DOWN');
    port('mlx5_1', 2, '4: ACTIVE');
    expect(hasRdmaPort(folder)).toBe(true);
  });

  test('the module for RDMA is searched beside the loaded library', () => {
    const maps = `7f0 r-xp 00000000 08:01 5 /usr/lib/libc.so.6\n7f1 r--p 00000000 08:01 6    ${folder}/libuct.so.0.0.0\n`;
    expect(hasRdmaModule(maps)).toBe(false);
    mkdirSync(join(folder, 'ucx'));
    expect(hasRdmaModule(maps)).toBe(false);
    writeFileSync(join(folder, 'ucx', 'libuct_ib.so.0'), '');
    expect(hasRdmaModule(maps)).toBe(true);
    expect(hasRdmaModule('')).toBe(false);
  });
});
