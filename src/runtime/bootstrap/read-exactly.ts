import { SystemError } from '../../errors.js';
import type { Socket } from '../platform/platform.js';

/** The other side closed the connection without a byte. */
export class ClosedSilently extends SystemError {}

/**
 * Reads the next `bytes` bytes of a socket that is not read as a stream yet. Later bytes stay in the socket, whose own limit
 * bounds the memory that a stranger can use. Rejects when the socket closes before.
 */
export function readExactly(socket: Socket, bytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      socket.off('readable', attempt);
      socket.off('close', close);
    };
    const fail = (read = 0) => {
      stop();
      const Failure = read === 0 ? ClosedSilently : SystemError;
      reject(new Failure('NETWORK', 'the other side closed the connection before it was accepted'));
    };
    const close = () => fail();
    const attempt = () => {
      const chunk = socket.read(bytes) as Buffer | null;
      if (chunk === null) return;
      // At its end, a socket returns the rest, even if it is too short.
      if (chunk.length < bytes) {
        fail(chunk.length);
      } else {
        stop();
        resolve(chunk);
      }
    };
    socket.on('readable', attempt);
    socket.on('close', close);
    if (socket.destroyed) fail();
    else attempt();
  });
}
