import type { Address } from '../bootstrap/address.js';
import { purposes } from '../bootstrap/handshake.js';
import { Listener } from '../bootstrap/listener.js';
import { Segment } from '../device/segment.js';
import { TcclError } from '../../errors.js';
import type { Socket } from '../platform/platform.js';
import { packReason } from '../failure/transfer.js';
import { SocketConnection } from '../transport/socket-connection.js';
import { frame, frameKinds } from '../transport/socket-frames.js';
import { SlotMemory } from '../transport/socket-memory.js';
import { welcome } from '../transport/socket.js';
import { aggregatorFifo, decodeJoin } from './join.js';
import { ShareSum } from './share-sum.js';

interface AggregatorOptions {
  /** Address to listen on; port 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** Known to the ranks that may use it. */
  readonly secret: Uint8Array;
}

/**
 * A process in place of a network that reduces (NCCL's CollNet): heads on several hosts send it their shares of an all-reduce,
 * and get the sums back, so each host sends and receives its data once. Serves any number of communicators.
 *
 *     head of host 0 ──► ┌────────────┐ ──► head of host 0
 *     head of host 1 ──► │ adds, in   │ ──► head of host 1
 *     head of host 2 ──► │ this order │ ──► head of host 2
 *                        └────────────┘
 */
export class Aggregator {
  readonly #segment = Segment.alone();
  readonly #sums = new Map<string, ShareSum>();
  /** Connections whose head has not joined a sum yet. */
  readonly #joining = new Set<SocketConnection>();
  #listener: Listener | undefined;

  /** @throws SystemError `NETWORK` when the address cannot be listened on */
  static async open({ host, port, secret }: AggregatorOptions): Promise<Aggregator> {
    const aggregator = new Aggregator();
    aggregator.#listener = await Listener.open({
      host,
      port,
      secret,
      expects: ({ purpose }) => purpose === purposes.data,
      admit: ({ from }, _, { socket, keys }) => {
        socket.write(welcome(keys.send));
        aggregator.#admit(from, socket);
      },
    });
    return aggregator;
  }

  get address(): Address {
    return this.#listener?.address ?? { host: '', port: 0 };
  }

  /** Ends all sums: ranks that use them get `reason`. */
  close(reason: Error): void {
    this.#listener?.close();
    for (const connection of this.#joining) connection.abort(reason);
    for (const sum of [...this.#sums.values()]) sum.abort(reason);
  }

  #admit(rank: number, socket: Socket): void {
    let memory: SlotMemory;
    try {
      const { steps } = aggregatorFifo;
      memory = new SlotMemory(this.#segment, aggregatorFifo, { sends: steps, receives: steps + 1 });
    } catch (error) {
      // Its 4 GiB are enough for some 4,000 connections.
      socket.end(frame(frameKinds.abort, ...abortPayload(error as Error)));
      return;
    }
    const connection = new SocketConnection(socket, rank, memory, { readsInPlace: false });
    this.#joining.add(connection);
    connection.onNews(() => this.#join(connection));
  }

  /** Reads a head's first message. */
  #join(connection: SocketConnection): void {
    try {
      const slot = connection.peek();
      if (slot < 0) return;
      const join = decodeJoin(new Uint8Array(this.#segment.buffer, slot, connection.messageBytes).slice());
      connection.release();
      this.#joining.delete(connection);
      const key = `${join.communicator} ${join.share}`;
      const sum = this.#sums.get(key) ?? new ShareSum(this.#segment, join, () => this.#sums.delete(key));
      this.#sums.set(key, sum);
      sum.join(connection, join);
    } catch (error) {
      this.#joining.delete(connection);
      if (error instanceof TcclError && error.code === 'CLOSED') void connection.close();
      else connection.abort(error as Error);
    }
  }
}

function abortPayload(error: Error): [number, Uint8Array] {
  const packed = packReason(error);
  return [packed.length, packed];
}
