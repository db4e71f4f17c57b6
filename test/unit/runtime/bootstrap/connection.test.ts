import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { expect, it, vi } from 'vitest';
import type { BootstrapConnection } from '../../../../src/runtime/bootstrap/connection.js';
import type { ConnectionEvents, Message } from '../../../../src/runtime/bootstrap/rank-connection.js';
import { dial } from '../../../../src/runtime/bootstrap/dial.js';
import { purposes } from '../../../../src/runtime/bootstrap/handshake.js';
import { Listener } from '../../../../src/runtime/bootstrap/listener.js';
import { MAXIMUM_PAYLOAD_BYTES } from '../../../../src/runtime/bootstrap/record.js';
import { bytes, text } from './ranks.js';

const secret = randomBytes(32);
const header = { space: 7, operation: 8, number: 0xffffffff };

interface End {
  readonly connection: BootstrapConnection;
  readonly received: (Message | string)[];
  readonly ended: Promise<Error | undefined>;
  readonly socket: Socket;
  /** Resolves when so many messages and notices have come. */
  until(count: number): Promise<void>;
}

/** Report sockets that are made. */
const channels = ['net.client.socket', 'net.server.socket'] as const;

/** Both ends of a connection; they are closed after `body`. */
async function withPair(body: (connector: End, acceptor: End) => Promise<void>): Promise<void> {
  const ends = [endpoint(), endpoint()] as const;
  let accepted: (connection: BootstrapConnection) => void;
  const acceptor = new Promise<BootstrapConnection>((resolve) => (accepted = resolve));
  const listener = await Listener.open({
    host: '127.0.0.1',
    secret,
    expects: () => true,
    admit: (_, open) => accepted(open(ends[1].events)),
  });
  const sockets = new Map<string | symbol, Socket>();
  const watch = (message: unknown, channel: string | symbol): void =>
    void sockets.set(channel, (message as { socket: Socket }).socket);
  for (const channel of channels) subscribe(channel, watch);
  const connector = await dial({
    address: listener.address,
    secret,
    greeting: { purpose: purposes.peer, from: 0, to: 1 },
    events: ends[0].events,
    signal: new AbortController().signal,
  });
  for (const channel of channels) unsubscribe(channel, watch);
  const [client, server] = channels.map((channel) => sockets.get(channel)!);
  try {
    await body(
      { ...ends[0], connection: connector, socket: client! },
      { ...ends[1], connection: await acceptor, socket: server! },
    );
  } finally {
    listener.close();
    connector.destroy();
  }
}

function endpoint(): Omit<End, 'connection' | 'socket'> & { events: ConnectionEvents } {
  const received: (Message | string)[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const take = (what: Message | string) => {
    received.push(what);
    for (const { count, resolve } of waiting) if (received.length >= count) resolve();
  };
  let end: (cause: Error | undefined) => void;
  const ended = new Promise<Error | undefined>((resolve) => (end = resolve));
  return {
    received,
    ended,
    until: (count) => (received.length >= count ? Promise.resolve() : new Promise((resolve) => waiting.push({ count, resolve }))),
    events: { message: take, notice: take, end: (cause) => end(cause) },
  };
}

it.each([
  0,
  1,
  4000,
  5000,
  MAXIMUM_PAYLOAD_BYTES - 17,
  MAXIMUM_PAYLOAD_BYTES - 16,
  MAXIMUM_PAYLOAD_BYTES - 15,
  MAXIMUM_PAYLOAD_BYTES,
  3 * MAXIMUM_PAYLOAD_BYTES + 5,
  16 * 1024 * 1024,
])('a message of %i bytes arrives unchanged, in both directions', async (length) => {
  await withPair(async (connector, acceptor) => {
    const data = Buffer.alloc(length, randomBytes(Math.min(length, 100_003)));
    await Promise.all([connector.connection.send(header, data), acceptor.connection.send(header, data)]);
    for (const end of [connector, acceptor]) {
      await end.until(1);
      const message = end.received[0] as Message;
      expect(message).toMatchObject(header);
      expect(data.equals(message.data)).toBe(true);
    }
  });
});

it('messages keep their order', async () => {
  await withPair(async (connector, acceptor) => {
    const lengths = [5, 1_000_000, 0, 70_000, 1];
    await Promise.all(lengths.map((length) => connector.connection.send(header, new Uint8Array(length))));
    await acceptor.until(lengths.length);
    expect(acceptor.received.map((message) => (message as Message).data.length)).toEqual(lengths);
  });
});

it('shared memory can be sent', async () => {
  await withPair(async (connector, acceptor) => {
    for (const length of [100, 1_000_000]) {
      const data = new Uint8Array(new SharedArrayBuffer(length)).fill(7);
      await connector.connection.send(header, data);
    }
    await acceptor.until(2);
    for (const message of acceptor.received) expect((message as Message).data.every((byte) => byte === 7)).toBe(true);
  });
});

it('a notice overtakes a long message', async () => {
  await withPair(async (connector, acceptor) => {
    const sent = connector.connection.send(header, new Uint8Array(32 * 1024 * 1024));
    connector.connection.notify('news');
    await acceptor.until(2);
    expect(acceptor.received[0]).toBe('news');
    await sent;
  });
});

it('messages that were sent before a goodbye arrive before it', async () => {
  await withPair(async (connector, acceptor) => {
    await connector.connection.send(header, bytes('last words'));
    connector.connection.notify('news');
    await connector.connection.leave();
    expect(await acceptor.ended).toBeUndefined();
    expect(acceptor.received.map((what) => (typeof what === 'string' ? what : text(what.data)))).toEqual(['last words', 'news']);
    expect(await connector.ended).toBeUndefined();
  });
});

it('a message that is being sent rejects when this side leaves, and the goodbye still arrives', async () => {
  await withPair(async (connector, acceptor) => {
    const sent = connector.connection.send(header, new Uint8Array(256 * 1024 * 1024));
    const left = connector.connection.leave();
    await expect(sent).rejects.toThrow('closed by this side');
    await left;
    expect(await acceptor.ended).toBeUndefined();
    expect(acceptor.received).toEqual([]);
  });
});

it('a dial that is ended when the acceptor has the connection already sends its failure before the goodbye', async () => {
  const closing = new AbortController();
  const [here, there] = [endpoint(), endpoint()];
  const listener = await Listener.open({
    host: '127.0.0.1',
    secret,
    expects: () => true,
    admit: (_, open) => {
      open(there.events);
      closing.abort(new Error('closed'));
    },
  });
  try {
    await expect(
      dial({
        address: listener.address,
        secret,
        greeting: { purpose: purposes.peer, from: 0, to: 1 },
        events: here.events,
        signal: closing.signal,
        news: ['rank 2 died'],
      }),
    ).rejects.toThrow('closed');
    expect(await there.ended).toBeUndefined();
    expect(there.received).toEqual(['rank 2 died']);
  } finally {
    listener.close();
  }
});

it('an end without a goodbye has a cause, on both sides', async () => {
  await withPair(async (connector, acceptor) => {
    connector.connection.destroy();
    expect(await acceptor.ended).toBeInstanceOf(Error);
    expect(await connector.ended).toBeInstanceOf(Error);
    await expect(connector.connection.send(header, bytes('x'))).rejects.toThrow('not open');
  });
});

it('a message of more than 1 GiB is refused', async () => {
  await withPair(async (connector) => {
    const huge = { length: 1024 ** 3 + 1 } as Uint8Array;
    await expect(connector.connection.send(header, huge)).rejects.toMatchObject({ code: 'BUFFER_SIZE' });
  });
});

it('the last messages of the other side are read, though writing to it fails', async () => {
  await withPair(async ({ connection, socket, received, ended }, acceptor) => {
    // As when this side computes all the time until the other has closed by force.
    socket.pause();
    await acceptor.connection.send(header, bytes('last words'));
    acceptor.connection.notify('news');
    await acceptor.connection.leave();
    await connection.send(header, bytes('to nobody'));
    await expect(connection.send(header, bytes('refused'))).rejects.toMatchObject({ code: 'EPIPE' });
    socket.resume();
    expect(await ended).toBeUndefined();
    expect(received.map((what) => (typeof what === 'string' ? what : text(what.data)))).toEqual(['last words', 'news']);
  });
});

it('a goodbye waits for messages that the other side reads slowly', async () => {
  await withPair(async ({ socket, ended }, acceptor) => {
    socket.pause();
    // Longer than the kernel takes.
    const message = acceptor.connection.send(header, new Uint8Array(64 * 1024 * 1024)).catch(() => undefined);
    for (let stuck = 0; stuck < 20; stuck = acceptor.socket.writableLength > 0 ? stuck + 1 : 0) await new Promise(setImmediate);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const left = acceptor.connection.leave();
      vi.advanceTimersByTime(5000);
      socket.resume();
      expect(await ended).toBeUndefined();
      await Promise.all([left, message]);
    } finally {
      vi.useRealTimers();
    }
  });
});
