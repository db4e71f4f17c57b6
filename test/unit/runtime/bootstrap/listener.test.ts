import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import type { BootstrapConnection } from '../../../../src/runtime/bootstrap/connection.js';
import type { Message } from '../../../../src/runtime/bootstrap/rank-connection.js';
import { dial } from '../../../../src/runtime/bootstrap/dial.js';
import { ConnectorHandshake, purposes } from '../../../../src/runtime/bootstrap/handshake.js';
import { Listener } from '../../../../src/runtime/bootstrap/listener.js';
import type { ListenerOptions } from '../../../../src/runtime/bootstrap/listener.js';
import { bytes, text } from './ranks.js';

const secret = randomBytes(32);
const greeting = { purpose: purposes.peer, from: 1, to: 0 };
const header = { space: 0, operation: 0, number: 0 };

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** A listener on loopback, and the connections that it accepted. */
async function listen(options: Partial<ListenerOptions> = {}) {
  const admitted: { connection: BootstrapConnection; messages: string[]; ended: Promise<Error | undefined> }[] = [];
  let onMessage: (message: Message) => void = () => undefined;
  const listener = await Listener.open({
    host: '127.0.0.1',
    secret,
    expects: ({ to }) => to === 0,
    admit: (_, open) => {
      const messages: string[] = [];
      const ended = new Promise<Error | undefined>((resolve) => {
        const connection = open({
          message: (message) => {
            messages.push(text(message.data));
            onMessage(message);
          },
          end: resolve,
        });
        queueMicrotask(() => admitted.push({ connection, messages, ended }));
      });
    },
    ...options,
  });
  cleanups.push(() => listener.close());
  const nextMessage = () => new Promise<Message>((resolve) => (onMessage = resolve));
  return { listener, admitted, nextMessage, port: listener.address.port };
}

async function dialTo(port: number, changes: Partial<Parameters<typeof dial>[0]> = {}): Promise<BootstrapConnection> {
  const connection = await dial({
    address: { host: '127.0.0.1', port },
    secret,
    greeting,
    events: { end: () => undefined },
    signal: new AbortController().signal,
    ...changes,
  });
  cleanups.push(() => connection.destroy());
  return connection;
}

/** A foreign connection that writes some bytes; resolves when connected. */
async function stranger(port: number, writes: Uint8Array = new Uint8Array()): Promise<Socket> {
  const socket = connectTcp(port, '127.0.0.1');
  cleanups.push(() => socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(writes);
  return socket;
}

/** An authenticated connection succeeds and its message arrives. */
async function expectServed({ port, nextMessage }: Awaited<ReturnType<typeof listen>>): Promise<void> {
  const arrived = nextMessage();
  const connection = await dialTo(port);
  await connection.send(header, bytes('hello'));
  expect(text((await arrived).data)).toBe('hello');
}

const closed = (socket: Socket) =>
  new Promise<void>((resolve) => (socket.closed ? resolve() : socket.on('close', () => resolve())));

it('a connection with the secret is accepted', async () => {
  await expectServed(await listen());
});

it('a connection that sends garbage is closed immediately and never reported', async () => {
  const server = await listen();
  // Less than a hello could be the beginning of one.
  const minLength = new ConnectorHandshake(secret, greeting).hello.length;
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength, maxLength: 2000 }), async (garbage) => {
      await closed((await stranger(server.port, garbage)).resume());
    }),
    { numRuns: 30 },
  );
  expect(server.admitted).toEqual([]);
  await expectServed(server);
});

it('a connection with a record of huge length instead of a proof is closed immediately and never reported', async () => {
  const server = await listen();
  const hugeRecord = Buffer.from([0xff, 0xff, 0xff, 0xff, 1]);
  const { hello } = new ConnectorHandshake(secret, greeting);
  await closed((await stranger(server.port, Buffer.concat([hello, hugeRecord, randomBytes(100)]))).resume());
  expect(server.admitted).toEqual([]);
  await expectServed(server);
});

it('an endless stream of bytes is closed after its first bytes', async () => {
  const server = await listen();
  const socket = (await stranger(server.port)).resume();
  const flood = () => {
    while (socket.writable && socket.write(randomBytes(65536)));
  };
  socket.on('drain', flood);
  flood();
  await closed(socket);
  expect(server.admitted).toEqual([]);
});

it('a connection that sends nothing, or half a hello, delays no other and is closed in time', async () => {
  const server = await listen({ limits: { connections: 100, timeMs: 300 } });
  const { hello } = new ConnectorHandshake(secret, greeting);
  const idle = await Promise.all([
    stranger(server.port),
    stranger(server.port, hello.subarray(0, 20)),
    stranger(server.port, hello),
  ]);
  await expectServed(server);
  await Promise.all(idle.map((socket) => closed(socket.resume())));
  expect(server.admitted.length).toBe(1);
});

it('beyond the limit of unauthenticated connections the oldest is closed, and one with the secret is accepted', async () => {
  const limit = 20;
  const server = await listen({ limits: { connections: limit, timeMs: 60_000 } });
  const crowd = [];
  for (let i = 0; i < 5 * limit; i++) crowd.push((await stranger(server.port)).resume());
  await Promise.all(crowd.slice(0, 4 * limit).map(closed));
  await expectServed(server);
  const open = crowd.slice(4 * limit).filter((socket) => !socket.closed);
  expect(open.length).toBeGreaterThanOrEqual(limit - 1);
});

it('a thousand concurrent unauthenticated connections disturb no rank', async () => {
  const server = await listen();
  const crowd = Promise.all(
    Array.from({ length: 1000 }, (_, i) => stranger(server.port, i % 2 === 0 ? randomBytes(60) : new Uint8Array())),
  );
  await Promise.all(Array.from({ length: 5 }, () => dialTo(server.port)));
  await crowd;
  await expectServed(server);
  expect(server.admitted.length).toBe(6);
});

it('bytes recorded from one connection are invalid on another', async () => {
  const server = await listen();
  const recorded: Buffer[] = [];
  const wiretap = createServer((from) => {
    const to = connectTcp(server.port, '127.0.0.1');
    from.on('data', (chunk) => recorded.push(chunk));
    from.pipe(to).pipe(from);
    for (const socket of [from, to]) socket.on('error', () => undefined);
    cleanups.push(() => [from, to].forEach((socket) => socket.destroy()));
  }).listen(0, '127.0.0.1');
  cleanups.push(() => wiretap.close());
  await once(wiretap, 'listening');

  const arrived = server.nextMessage();
  await (await dialTo((wiretap.address() as AddressInfo).port)).send(header, bytes('pay 100'));
  await arrived;
  await closed((await stranger(server.port, Buffer.concat(recorded))).resume());
  expect(server.admitted.map(({ messages }) => messages)).toEqual([['pay 100']]);
});

it('a record that was changed in transit ends the connection, and its message never arrives', async () => {
  const server = await listen();
  let tamper = false;
  const middle = createServer((from) => {
    const to = connectTcp(server.port, '127.0.0.1');
    from.on('data', (chunk) => {
      if (tamper) chunk[30]! ^= 1;
      to.write(chunk);
    });
    to.pipe(from);
    to.on('close', () => from.destroy());
    cleanups.push(() => [from, to].forEach((socket) => socket.destroy()));
  }).listen(0, '127.0.0.1');
  cleanups.push(() => middle.close());
  await once(middle, 'listening');

  const ended = new Promise((resolve) => {
    void dialTo((middle.address() as AddressInfo).port, { events: { end: resolve } }).then((connection) => {
      tamper = true;
      return connection.send(header, bytes('pay 100'));
    });
  });
  expect(await ended).toBeInstanceOf(Error);
  expect(await server.admitted[0]!.ended).toMatchObject({ message: expect.stringContaining('not authentic') as string });
  expect(server.admitted[0]!.messages).toEqual([]);
});

it('a side with another secret, or at the wrong address, is refused until it gives up', async () => {
  const server = await listen();
  for (const wrong of [{ secret: randomBytes(32) }, { greeting: { ...greeting, to: 7 } }]) {
    const gaveUp = new AbortController();
    let failures = 0;
    const attempts = dialTo(server.port, {
      ...wrong,
      signal: gaveUp.signal,
      onFailure: () => {
        if (++failures === 3) gaveUp.abort(new Error('gave up'));
      },
    });
    await expect(attempts).rejects.toThrow('gave up');
  }
  expect(server.admitted).toEqual([]);
});

it('a connection made before the secret is known is accepted when it is', async () => {
  let know: (known: Uint8Array) => void = () => undefined;
  const server = await listen({ secret: new Promise((resolve) => (know = resolve)) });
  const early = dialTo(server.port);
  await stranger(server.port);
  expect(server.admitted).toEqual([]);
  know(secret);
  await early;
});

it('a connection attempt before there is a listener succeeds when there is one', async () => {
  const { listener, port } = await listen();
  listener.close();
  const early = dialTo(port, { onFailure: () => void (reopened ??= listen({ port })) });
  let reopened: Promise<unknown> | undefined;
  await early;
});

it('a port in use is an error that names it', async () => {
  const { port } = await listen();
  await expect(listen({ port })).rejects.toThrow(`cannot listen on 127.0.0.1:${port}: the port is in use`);
});
