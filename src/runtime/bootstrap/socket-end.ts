import { readStates } from './socket-state.js';
import { clearInterval, setInterval, type Socket, type Timer } from '../platform/platform.js';

/** Error codes of writes to a side that has closed. */
const closedCodes: readonly unknown[] = ['EPIPE', 'ECONNRESET'];

/**
 * Keeps a socket open after a write to a side that has closed: node:net would drop that side's last messages, perhaps its
 * goodbye, with the socket. Such a write counts as done, and the end is found by reading, after the remaining data.
 *
 * @param failed called with the error of the write
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
  // Override the methods that streams call, because the stream acts on every error that they report.
  const write = socket._write.bind(socket);
  socket._write = (chunk, encoding, callback) => write(chunk, encoding, forgive(callback));
  const writev = socket._writev?.bind(socket);
  if (writev !== undefined) socket._writev = (chunks, callback) => writev(chunks, forgive(callback));
}

/** Interval of checks whether sockets that have sent everything may be closed by force. */
const LOOK_EVERY_MS = 100;
/** Amount of data that the other side's kernel holds even if nobody reads: TCP's first window and some reserve. */
const KERNEL_HOLDS_BYTES = 48 * 1024;

/**
 * Ends this side's direction after all written data, and waits until the other side does the same or, if that takes long, until
 * the other kernel has all data: closing earlier could lose unsent data. Keeps the process alive until then.
 *
 * @param limitMs time after which it closes by force in any case, milliseconds in which this process runs
 * @param unreadBytes number of bytes that the other side may not have read yet
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

/** Sockets of this thread that are ending. */
const endings = new Set<{ readonly socket: Socket; readonly isLong: boolean; readonly limitMs: number; looks: number }>();
let timer: Timer | undefined;

function look(): void {
  const stateOf = readStates();
  for (const ending of endings) {
    const { socket, isLong } = ending;
    // The first check may come right after the beginning.
    if (++ending.looks === 1) continue;
    // On systems that do not show it, it must suffice that this host's own kernel has all data.
    const isDelivered = socket.writableFinished && !(isLong && (stateOf(socket)?.unconfirmedBytes ?? 0) > 0);
    if (isDelivered || ending.looks * LOOK_EVERY_MS > ending.limitMs) socket.destroy();
  }
}
