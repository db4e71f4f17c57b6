import { InvalidUsageError, SystemError, type TcclError } from '../../errors.js';
import { clearInterval, setInterval, sleep } from '../platform/platform.js';
import { WatchClock } from '../progress/watch-clock.js';
import { formatAddress } from './address.js';
import { attempt, OtherJob } from './dial.js';
import { purposes, ROOT_RANK } from './handshake.js';
import { listenAt, type Root } from './root.js';
import type { Notices } from './notices.js';
import { ClosedSilently } from './read-exactly.js';
import { secretOf, type UniqueId } from './unique-id.js';
import { graceMs } from '../failure/grace.js';

interface TurnOptions {
  /** True if the job has an id or a secret, so that its ranks cannot be taken for those of another one. */
  readonly isDistinct: boolean;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly notices: Notices;
  /** Called once, if another job meets there. */
  readonly onOtherJob: (text: string) => void;
}

/** Time between two attempts to listen. */
const PAUSE_MS = 100;

/**
 * Opens the root at an address that the ranks know already, as {@link listenAt} does. A root of another job there closes as soon
 * as that job's ranks have met, so this one waits for its turn.
 *
 * @throws SystemError `NETWORK`: another program listens there, or the other job has not met in time; InvalidUsageError
 *   `RANK_DUPLICATE`: rank 0 of this job listens there already.
 */
export async function listenInTurn(id: UniqueId, options: TurnOptions): Promise<Root> {
  // Sockets do not keep the process alive.
  const hold = setInterval(() => undefined, 2 ** 30);
  try {
    return await takeTurn(id, options);
  } finally {
    clearInterval(hold);
  }
}

async function takeTurn(id: UniqueId, { timeoutMs, signal, notices, isDistinct, onOtherJob }: TurnOptions): Promise<Root> {
  const clock = new WatchClock(timeoutMs);
  const begunMs = clock.look();
  let isFirst = true;
  /** The last time at which somebody was known to listen there. */
  let seenMs = begunMs;
  while (true) {
    try {
      return await listenAt(id, { notices });
    } catch (error) {
      signal?.throwIfAborted();
      const inUse = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE';
      const occupant = inUse ? await whoListens(id) : 'another program';
      const nowMs = clock.look();
      if (occupant === 'another job') seenMs = nowMs;
      if (occupant === 'this job') throw startedTwice(id, isDistinct);
      if (occupant === 'another program' || nowMs - begunMs > timeoutMs || nowMs - seenMs > graceMs.busyPort) throw error;
      if (occupant === 'another job' && isFirst) {
        isFirst = false;
        const where = formatAddress(id.root);
        onOtherJob(`another job meets at ${where}: rank 0 waits until its ranks have met, for up to ${timeoutMs / 1000} s`);
      }
    }
    await sleep(PAUSE_MS, { signal });
  }
}

/** Error of rank 0 where a root with the same id and secret listens already. */
function startedTwice(id: UniqueId, isDistinct: boolean): TcclError {
  const where = formatAddress(id.root);
  if (isDistinct)
    return new InvalidUsageError(
      'RANK_DUPLICATE',
      `rank 0 of this job listens at ${where} already: each rank must be started once; with --nnodes, each node needs a --node-rank of its own`,
      { ranks: [0] },
    );
  return new SystemError(
    'NETWORK',
    `another job meets at ${where}, or rank 0 of this one was started twice: give each job a port of its own, or an id (--job-id, TCCL_JOB_ID), with which they take turns`,
  );
}

/**
 * Finds who listens at the root's address of an id. `nobody`: the port belongs to a connection, or the root there has just
 * closed, perhaps with this connection in its queue. A program that closes each connection looks the same.
 */
async function whoListens(id: UniqueId): Promise<'this job' | 'another job' | 'another program' | 'nobody'> {
  try {
    const connection = await attempt({
      address: id.root,
      secret: secretOf(id),
      greeting: { purpose: purposes.checkIn, from: 0, to: ROOT_RANK, job: id.job },
      events: { end: () => undefined },
      signal: AbortSignal.timeout(graceMs.occupant),
    });
    await connection.leave();
    return 'this job';
  } catch (error) {
    if (error instanceof OtherJob) return 'another job';
    const code = (error as NodeJS.ErrnoException).code ?? '';
    const isClosed = error instanceof ClosedSilently || ['ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(code);
    return isClosed ? 'nobody' : 'another program';
  }
}
