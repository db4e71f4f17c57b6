import { formatAddress } from '../bootstrap/address.js';
import { UniqueId } from '../bootstrap/unique-id.js';

/** The aggregators of a communicator; plain data, because engine threads get them. */
export interface Aggregators {
  /** Values of TCCL_AGGREGATOR: each an id or `host:port`. They contain secrets. */
  readonly ids: readonly string[];
  /** TCCL_COMM_SECRET, for those given as `host:port`. */
  readonly secret: string | undefined;
  /** Random text of the communicator, the same on all its ranks. */
  readonly communicator: string;
  /** Limit of the communicator's waits in milliseconds; 0 means none. */
  readonly limitMs: number;
}

/** Ids in the text of TCCL_AGGREGATOR, which has commas or spaces between them. */
export function aggregatorIds(text: string): string[] {
  return text.split(/[\s,]+/).filter((id) => id !== '');
}

/** Addresses of aggregators, for logs and errors. */
export async function aggregatorAddresses({ ids, secret }: Pick<Aggregators, 'ids' | 'secret'>): Promise<string[]> {
  const read = await Promise.all(ids.map((id) => UniqueId.read(id, secret)));
  return read.map(({ root }) => formatAddress(root));
}

/** One head's share of the data, and its place among the hosts. */
export interface HeadOf {
  /** Number of the aggregator that adds it. */
  readonly aggregator: number;
  /** The same on the heads of all hosts. */
  readonly share: string;
  readonly member: number;
  readonly members: number;
}
