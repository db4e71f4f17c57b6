import type { Socket } from 'node:net';
import { SystemError } from '../../errors.js';

/**
 * Reads the next `bytes` bytes of a socket that is not read as a stream yet. Later bytes stay in the socket, whose own limit
 * bounds the memory that a stranger can use. Rejects when the socket closes before.
 */
export function readExactly(socket: Socket, bytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      socket.off('readable', attempt);
      socket.off('close', fail);
    };
    const fail = () => {
      stop();
      reject(new SystemError('NETWORK', 'the other side closed the connection before it was accepted'));
    };
    const attempt = () => {
      const chunk = socket.read(bytes) as Buffer | null;
      if (chunk === null) return;
      // At its end, a socket returns the rest, even if it is too short.
      if (chunk.length < bytes) {
        fail();
      } else {
        stop();
        resolve(chunk);
      }
    };
    socket.on('readable', attempt);
    socket.on('close', fail);
    if (socket.destroyed) fail();
    else attempt();
  });
}
