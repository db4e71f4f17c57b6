import { connect, createServer, type Socket } from 'node:net';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { loadLibc, POLLIN, POLLOUT, setPollEntry } from '../../../../src/runtime/device/libc.js';

const here = loadLibc();
const { EAGAIN, EPIPE } = constants.errno;

describe.runIf(here.libc !== undefined)('calls on descriptors', () => {
  const libc = here.libc!;
  const fds: number[] = [];
  const opened = (fd: number): number => {
    fds.push(fd);
    return fd;
  };
  const openPipe = (): { readEnd: number; writeEnd: number } => {
    const { readEnd, writeEnd } = libc.pipe();
    return { readEnd: opened(readEnd), writeEnd: opened(writeEnd) };
  };
  afterEach(() => fds.splice(0).forEach((fd) => libc.close(fd)));

  test('a pipe returns the bytes that were written to it, and never blocks', () => {
    const { readEnd, writeEnd } = openPipe();
    expect(libc.readFd(readEnd)).toBe(-EAGAIN);
    let written = 0;
    while (libc.writeFd(writeEnd) === 1) written++;
    expect(libc.writeFd(writeEnd)).toBe(-EAGAIN);
    expect(written).toBeGreaterThan(1000);
    while (libc.readFd(readEnd) === 1) written--;
    expect(written).toBe(0);
  });

  test('poll finds the descriptors that are ready, and does not wait with a timeout of 0', () => {
    const { readEnd, writeEnd } = openPipe();
    const entries = new Int32Array(4);
    setPollEntry(entries, 0, readEnd, POLLIN);
    setPollEntry(entries, 1, writeEnd, POLLOUT);
    expect(libc.pollFds(entries, 1, 0)).toBe(0);
    expect(libc.pollFds(entries, 2, -1)).toBe(1);
    libc.writeFd(writeEnd);
    expect(libc.pollFds(entries, 1, -1)).toBe(1);
    expect(entries[1]! >> 16).toBe(POLLIN);
  });

  test('a watched descriptor calls back once for each watch', async () => {
    const { readEnd, writeEnd } = openPipe();
    let calls = 0;
    let called: () => void = () => undefined;
    const next = (): Promise<void> => new Promise((resolve) => (called = resolve));
    const first = next();
    const watch = libc.watchFd(readEnd, { readable: true }, () => {
      calls++;
      called();
    });
    libc.writeFd(writeEnd);
    await first;
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    expect(calls).toBe(1);
    const second = next();
    watch.start({ readable: true });
    await second;
    expect(calls).toBe(2);
    watch.start({ readable: true });
    watch.stop();
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    expect(calls).toBe(2);
    watch.close();
    watch.close();
    watch.start({ readable: true });
    watch.stop();
  });

  test('a descriptor can be watched repeatedly, and beside others', async () => {
    const pipes = [openPipe(), openPipe()];
    for (let time = 0; time < 3; time++) {
      const woken = pipes.map(
        ({ readEnd }) =>
          new Promise<void>((resolve) => {
            const watch = libc.watchFd(readEnd, { readable: true }, () => {
              watch.close();
              resolve();
            });
          }),
      );
      for (const { writeEnd } of pipes) libc.writeFd(writeEnd);
      await Promise.all(woken);
      for (const { readEnd } of pipes) expect(libc.readFd(readEnd)).toBe(1);
    }
  });

  test('a descriptor that was closed before it is watched counts as broken: the watch calls back', async () => {
    await new Promise<void>((resolve) => {
      const watch = libc.watchFd(1e6, { readable: true }, () => {
        watch.close();
        resolve();
      });
    });
    libc.watchFd(1e6, { readable: true }, () => expect.unreachable('it is watched no longer')).close();
    await new Promise(setImmediate);
  });

  test('a descriptor whose number the first watch takes for itself counts as broken, too', async () => {
    const fd = openSync('/dev/null', 'r');
    closeSync(fd);
    await new Promise<void>((resolve) => {
      const watch = libc.watchFd(fd, { readable: true }, () => {
        watch.close();
        resolve();
      });
    });
  });

  test('send and recv use memory at an address, and move as many bytes as the kernel has room for', async () => {
    const server = createServer();
    const accepted = new Promise<Socket>((resolve) => server.on('connection', resolve));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const sockets = [connect((server.address() as { port: number }).port, '127.0.0.1'), await accepted];
    const [from, to] = sockets.map((socket) => {
      socket.pause();
      return (socket as unknown as { _handle: { fd: number } })._handle.fd;
    }) as [number, number];
    await new Promise<void>((resolve) => {
      const watch = libc.watchFd(from, { writable: true }, () => {
        watch.close();
        resolve();
      });
    });
    const bytes = 64 << 20;
    const memory = new Uint8Array(bytes);
    memory.fill(7, 0, 1000);
    const address = Number(libc.addressOf(memory));
    expect(libc.recv(to, address, 1)).toBe(-EAGAIN);
    const sent = libc.send(from, address, bytes);
    expect(sent).toBeGreaterThan(1000);
    expect(sent).toBeLessThan(bytes);
    expect(libc.recv(to, address + 2000, 1000)).toBe(1000);
    expect(memory.subarray(2000, 3000)).toEqual(memory.subarray(0, 1000));
    sockets[1]!.destroy();
    await new Promise((resolve) => sockets[1]!.once('close', resolve));
    for (const socket of sockets) socket.on('error', () => undefined);
    const { ECONNRESET } = constants.errno;
    expect([-EPIPE, -ECONNRESET]).toContain(libc.send(from, address, 1));
    sockets[0]!.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  test('descriptors are closed for good', () => {
    const before = readdirSync('/proc/self/fd').length;
    const { readEnd, writeEnd } = libc.pipe();
    expect(readdirSync('/proc/self/fd').length).toBe(before + 2);
    for (const fd of [readEnd, writeEnd]) libc.close(fd);
    expect(readdirSync('/proc/self/fd').length).toBe(before);
    expect(() => closeSync(readEnd)).toThrow('EBADF');
  });
});
