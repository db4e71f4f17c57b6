import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { parseAddress } from '../../../../src/runtime/bootstrap/address.js';
import { SocketTransport } from '../../../../src/runtime/transport/socket.js';
import { hostSegments, secret, until } from './pairs.js';

const size = { steps: 2, slotBytes: 1000 };
const { signal } = new AbortController();

function transport(rank: number, password = secret): SocketTransport {
  return new SocketTransport({ segment: hostSegments(1).segments[0]!, rank, host: '127.0.0.1', secret: password, size });
}

const tcpHandles = (): string[] => process.getActiveResourcesInfo().filter((resource) => resource.startsWith('TCP'));

/** Connects to a sender's address without the secret. */
function stranger(info: Uint8Array): Socket {
  return connect(parseAddress(Buffer.from(info).toString())).on('error', () => undefined);
}

test('foreign connections that send nothing, garbage or too much are closed, and the receiver still connects', async () => {
  const setUp = await transport(0).setUpSend(1);
  const silent = stranger(setUp.info);
  const garbage = stranger(setUp.info);
  garbage.write('GET / HTTP/1.1\r\n\r\n'.repeat(20));
  const flood = stranger(setUp.info);
  flood.write(Buffer.alloc(1 << 20, 0xff));
  await until(() => garbage.closed && flood.closed);

  const receiving = await transport(1).setUpReceive(0);
  const [sender, receiver] = await Promise.all([setUp.connect(receiving.info, signal), receiving.connect(setUp.info, signal)]);
  expect(sender.acquire()).toBeGreaterThan(0);
  sender.post(3);
  await until(() => receiver.peek() >= 0);
  expect(receiver.messageBytes).toBe(3);
  await until(() => silent.closed); // the port no longer accepts connections
  await Promise.all([sender.close(), receiver.close()]);
  expect(tcpHandles()).toEqual([]);
});

test('neither side trusts another secret, nor another rank', async () => {
  const setUp = await transport(0).setUpSend(1);
  const impostors = [transport(1, new Uint8Array(32)), transport(2)];
  for (const impostor of impostors) {
    const receiving = await impostor.setUpReceive(0);
    await expect(receiving.connect(setUp.info, signal)).rejects.toMatchObject({ code: 'NETWORK', rank: 0 });
  }
  setUp.cancel();
  await until(() => tcpHandles().length === 0);
});

test('a listener that does not know the secret gets no data', async () => {
  // Without the secret it can neither check the proof nor make a valid welcome.
  const { createServer } = await import('node:net');
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(Buffer.alloc(32, 1));
      socket.once('data', () => socket.write(Buffer.alloc(32, 2)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const receiving = await transport(1).setUpReceive(0);
  await expect(receiving.connect(Buffer.from(`127.0.0.1:${port}`), signal)).rejects.toThrow(/does not know the secret/);
  await new Promise((resolve) => server.close(resolve));
});

test.each(['challenge', 'welcome'])('a connection that is cut before the %s is made again', async (cutBefore) => {
  const { createServer } = await import('node:net');
  const setUp = await transport(0).setUpSend(1);
  let dials = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    const listener = stranger(setUp.info);
    socket.pipe(listener);
    if (++dials > 1) listener.pipe(socket);
    else
      listener.on('data', (bytes) => {
        if (cutBefore === 'welcome' && socket.bytesWritten === 0) socket.write(bytes);
        else for (const each of [socket, listener]) each.destroy();
      });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const receiving = await transport(1).setUpReceive(0);
  const receiver = await receiving.connect(Buffer.from(`127.0.0.1:${port}`), signal);
  const sender = await setUp.connect(receiving.info, signal);
  expect(dials).toBe(2);
  expect(sender.acquire()).toBeGreaterThan(0);
  sender.post(3);
  await until(() => receiver.peek() >= 0);
  await Promise.all([sender.close(), receiver.close()]);
  await new Promise((resolve) => server.close(resolve));
  await until(() => tcpHandles().length === 0);
});

test('a sender that does not listen is named with its address', async () => {
  const setUp = await transport(0).setUpSend(1);
  setUp.cancel();
  const receiving = await transport(1).setUpReceive(0);
  const address = Buffer.from(setUp.info).toString();
  await expect(receiving.connect(setUp.info, signal)).rejects.toThrow(
    `cannot reach rank 0 for data at ${address}: connect ECONNREFUSED`,
  );
});

test('a signal ends a set-up that the other side never joins, and nothing stays open', async () => {
  const sending = transport(0);
  const setUp = await sending.setUpSend(1);
  const stop = new AbortController();
  const waiting = setUp.connect(new Uint8Array(), stop.signal);
  const reason = new Error('enough');
  stop.abort(reason);
  await expect(waiting).rejects.toBe(reason);

  const again = await sending.setUpSend(1);
  sending.close();
  const receiving = await transport(1).setUpReceive(0);
  await expect(receiving.connect(again.info, signal)).rejects.toMatchObject({ code: 'NETWORK' });
  await until(() => tcpHandles().length === 0);
});

test('an address that cannot be listened on is an error that names it', async () => {
  const elsewhere = new SocketTransport({ segment: hostSegments(1).segments[0]!, rank: 0, host: '192.0.2.1', secret, size });
  await expect(elsewhere.setUpSend(1)).rejects.toMatchObject({
    code: 'NETWORK',
    message: expect.stringContaining('192.0.2.1') as string,
  });
});
