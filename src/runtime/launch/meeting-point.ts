import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { SystemError } from '../../errors.js';

/** Variables that tell ranks where they meet. */
export type MeetingPoint = Readonly<Record<'TCCL_COMM_ID' | 'TCCL_COMM_SECRET', string>>;

/** Below what the kernel takes for outgoing connections (32768 and up), above what services are known to use. */
const ports = { first: 20_000, end: 32_768 };
const ATTEMPTS = 100;

/**
 * An address on this host's loopback where nobody listens, and a secret for it.
 *
 * The first rank opens the root there when it wants a communicator, and again when it wants the next. A root in the
 * launcher would make every start some 35 ms slower (a fifth of the whole for four empty Node jobs), also for jobs
 * that never want a communicator, and would serve only one.
 *
 * @throws SystemError `NETWORK` when no port is free
 */
export async function localMeetingPoint(): Promise<MeetingPoint> {
  let refusal: unknown;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(ports.first, ports.end);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
      return { TCCL_COMM_ID: `127.0.0.1:${port}`, TCCL_COMM_SECRET: randomBytes(32).toString('hex') };
    } catch (error) {
      refusal = error;
    } finally {
      server.close();
    }
  }
  throw new SystemError(
    'NETWORK',
    `the ranks have nowhere to meet: no port of this host's loopback can be listened on (${(refusal as Error).message})`,
    { cause: refusal },
  );
}
