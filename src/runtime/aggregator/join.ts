import { SystemError } from '../../errors.js';
import { HEADER_BYTES } from '../algorithms/connections/exchange.js';
import { BUFFER_SLICE_BYTES } from '../algorithms/slices.js';
import type { FifoSize } from '../transport/transport.js';

/** Slots of an aggregator for each connection, and the credits of both directions. A head may have shorter ones, not longer. */
export const aggregatorFifo: FifoSize = { steps: 8, slotBytes: HEADER_BYTES + BUFFER_SLICE_BYTES };

/** First message of a head on its connection with an aggregator: the sum in which it takes part. */
export interface Join {
  /** Random text of the communicator, the same on all its ranks. */
  readonly communicator: string;
  /** Name of the share of the data: one head of each host has it. */
  readonly share: string;
  /** Number of the head's host, and of all hosts. Sums are in this order. */
  readonly member: number;
  readonly members: number;
  /** Divisor of averages. */
  readonly nRanks: number;
  /** Limit of the communicator's waits in milliseconds; 0 means none. */
  readonly limitMs: number;
}

export function encodeJoin(join: Join): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(join));
}

/** @throws SystemError `NETWORK` for other bytes: the rank has another version. */
export function decodeJoin(bytes: Uint8Array): Join {
  let join: Partial<Join> = {};
  try {
    join = JSON.parse(new TextDecoder().decode(bytes)) as Partial<Join>;
  } catch {
    // Reported below.
  }
  const { communicator, share, member = -1, members = 0, nRanks = 0, limitMs = 0 } = join;
  const whole = [member, members, nRanks].every(Number.isInteger);
  if (
    typeof communicator !== 'string' ||
    typeof share !== 'string' ||
    !whole ||
    member < 0 ||
    member >= members ||
    nRanks < members
  )
    throw new SystemError('NETWORK', 'a rank does not speak the protocol of this aggregator; use one version of tccl everywhere');
  return { communicator, share, member, members, nRanks, limitMs };
}
