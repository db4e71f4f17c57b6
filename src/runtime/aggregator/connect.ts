import { formatAddress } from '../bootstrap/address.js';
import type { Introduction } from '../bootstrap/bootstrap.js';
import { secretOf, UniqueId } from '../bootstrap/unique-id.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import { SystemError, TcclError } from '../../errors.js';
import { SocketTransport } from '../transport/socket.js';
import type { FifoSize, TwoWayConnection } from '../transport/transport.js';
import { silenceOf } from '../failure/silence.js';
import type { Aggregators, HeadOf } from './aggregators.js';
import { encodeJoin } from './join.js';
import { defined } from '../../defined.js';

interface HeadOptions {
  readonly bootstrap: Introduction;
  readonly segment: Segment;
  readonly libc: Libc | undefined;
  /** Address that this rank listens on; for errors. */
  readonly host: string;
  readonly size: FifoSize;
}

/**
 * Connects a head with an aggregator, and joins the sum of its share.
 *
 * @throws SystemError `NETWORK` when the aggregator cannot be reached or does not know the secret; `OUT_OF_MEMORY`
 */
export async function connectAggregator(
  { ids, secret, communicator, limitMs }: Aggregators,
  { aggregator, share, member, members }: HeadOf,
  { bootstrap, segment, libc, host, size }: HeadOptions,
  signal: AbortSignal,
): Promise<TwoWayConnection> {
  const { rank, nRanks } = bootstrap;
  const id = await UniqueId.read(defined(ids[aggregator]), secret);
  const address = formatAddress(id.root);
  const transport = new SocketTransport({
    size,
    segment,
    rank,
    host,
    secret: secretOf(id),
    libc,
    placeOf: () => 'the aggregator of TCCL_AGGREGATOR',
    ended: (cause) =>
      new SystemError(
        'NETWORK',
        `the aggregator at ${address} ${silenceOf(cause) === undefined ? 'ended while the ranks used it' : 'does not answer any more'}; start it again, or leave out TCCL_AGGREGATOR and tccl run --collnet`,
        { cause },
      ),
  });
  try {
    const connection = await transport.setUpDial(nRanks + aggregator).connect(Buffer.from(address), signal);
    const slot = connection.acquire();
    const join = encodeJoin({ communicator, share, member, members, nRanks, limitMs });
    new Uint8Array(segment.buffer, slot, join.length).set(join);
    connection.post(join.length);
    connection.flush();
    return connection;
  } catch (error) {
    // Other ranks wait for this one.
    if (!signal.aborted && error instanceof TcclError) bootstrap.fail(error);
    throw error;
  }
}
