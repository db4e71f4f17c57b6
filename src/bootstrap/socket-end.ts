import type { Socket } from 'node:net';

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
  const forgive = (callback: (error?: Error | null) => void) => (error?: Error | null): void => {
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

/** How long the end of a connection may take, in milliseconds. */
export interface EndLimits {
  /** To send what was written. */
  readonly flushMs: number;
  /** Then, for the other side to close too. */
  readonly lingerMs: number;
}

/**
 * Ends this side's direction behind what was written, and waits for the other side to do the same; within limits, then by force.
 * Keeps the process alive until then.
 */
export function endSocket(socket: Socket, { flushMs, lingerMs }: EndLimits): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => {
    let timer = setTimeout(() => socket.destroy(), flushMs).unref();
    const linger = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => socket.destroy(), lingerMs).unref();
    };
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.ref();
    if (socket.writableFinished) linger();
    else socket.once('finish', linger);
    socket.end();
  });
}
