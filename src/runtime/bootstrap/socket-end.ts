import type { Socket } from 'node:net';
import { socketStates } from './socket-table.js';

/** What writing to a side that has closed fails with. */
const closedCodes: readonly unknown[] = ['EPIPE', 'ECONNRESET'];

/**
 * Lets a socket outlive a write to a side that has closed. What that side sent last, its goodbye perhaps, may lie here still
 * unread, and node:net would throw it away with the socket: a rank that computed for long and then writes twice would take one
 * that closed meanwhile for dead. So such a write counts as done, and the end comes from reading, behind what there is.
 *
 * @param failed is told what the write failed with
 */
export function readOnAfterWrites(socket: Socket, failed: (error: Error) => void): void {
  const forgive =
    (callback: (error?: Error | null) => void) =>
    (error?: Error | null): void => {
      if (error === undefined || error === null || !('code' in error && closedCodes.includes(error.code))) {
        callback(error);
        return;
      }
      failed(error);
      callback();
    };
  // The methods that streams are made of: an error that they report is one that the stream has seen.
  const write = socket._write.bind(socket);
  socket._write = (chunk, encoding, callback) => write(chunk, encoding, forgive(callback));
  const writev = socket._writev?.bind(socket);
  if (writev !== undefined) socket._writev = (chunks, callback) => writev(chunks, forgive(callback));
}

/** How often it is looked whether sides that have said all may close by force. */
const LOOK_EVERY_MS = 100;
/** What the other side's kernel has room for, whether or not anybody reads it: TCP's first window, and something to spare. */
const KERNEL_HOLDS_BYTES = 48 * 1024;

/**
 * Ends this side's direction behind what was written, and waits for the other side to do the same: it has then read
 * all. Where that takes longer, because the other side computes or is stopped, this one closes as soon as the other's
 * kernel has all: from there it can be read at any time. Before, it could be lost, since a kernel throws away what it
 * still has to send when the other side answers on a connection that is closed here. Keeps the process alive until
 * then.
 *
 * @param limitMs when it closes by force in any case, milliseconds in which this process runs
 * @param unreadBytes what the other side may not have read yet
 */
export function endSocket(socket: Socket, limitMs: number, unreadBytes = 0): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => {
    const ending = { socket, isLong: unreadBytes > KERNEL_HOLDS_BYTES, limitMs, looks: 0 };
    endings.add(ending);
    timer ??= setInterval(look, LOOK_EVERY_MS).unref();
    socket.once('close', () => {
      endings.delete(ending);
      if (endings.size === 0) {
        clearInterval(timer);
        timer = undefined;
      }
      resolve();
    });
    socket.ref();
    socket.end();
  });
}

/** Sockets of this thread that end. The kernel's table is long, so it is read only where it matters, and once for all. */
const endings = new Set<{ readonly socket: Socket; readonly isLong: boolean; readonly limitMs: number; looks: number }>();
let timer: NodeJS.Timeout | undefined;

function look(): void {
  const states = [...endings].some(({ isLong }) => isLong) ? socketStates() : undefined;
  for (const ending of endings) {
    const { socket, isLong } = ending;
    // The first may come right after its beginning.
    if (++ending.looks === 1) continue;
    // Where this system does not tell, that its own kernel has all must do.
    const isDelivered =
      socket.writableFinished &&
      !(isLong && (states?.get(`${socket.localPort} ${socket.remotePort}`)?.unconfirmedBytes ?? 0) > 0);
    if (isDelivered || ending.looks * LOOK_EVERY_MS > ending.limitMs) socket.destroy();
  }
}
