import type { TransportsByNic } from './by-nic.js';
import { StripedTransport } from './striped.js';
import type { ConnectionSetUp, FifoSize, ReceiveConnection, SendConnection, Transport, TransportName } from './transport.js';

/** The lanes to a peer. Its first must lead to this rank's first, and so on. */
export interface Lanes {
  /** This rank's NIC of each lane; none leaves the choice to the kernel. */
  readonly nics: readonly string[];
  /** The lane of each message, repeated without end: faster NICs may have more turns. */
  readonly turns: readonly number[];
}

/** A transport whose connections go over all lanes to a peer; undefined without lanes. */
export function inLanes({ nics, turns }: Lanes, over: (nic: string) => Transport): Transport | undefined {
  const lanes = nics.map(over);
  return lanes.length > 1 ? new StripedTransport(lanes, turns) : lanes[0];
}

/** Connections that go over several NICs at once, each over those that lead to its peer. */
export class RailsTransport implements Transport {
  readonly name: TransportName;
  readonly size: FifoSize;
  readonly #lanesTo: (peer: number) => Lanes;
  readonly #transports: TransportsByNic;
  /** For peers to which no NIC is given. */
  readonly #anyNic: Transport;

  constructor(lanesTo: (peer: number) => Lanes, transports: TransportsByNic) {
    this.#lanesTo = lanesTo;
    this.#transports = transports;
    this.#anyNic = transports.over();
    this.name = this.#anyNic.name;
    this.size = this.#anyNic.size;
  }

  setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>> {
    return this.#to(peer).setUpSend(peer);
  }

  setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>> {
    return this.#to(peer).setUpReceive(peer);
  }

  close(): void {
    this.#transports.close();
  }

  #to(peer: number): Transport {
    return inLanes(this.#lanesTo(peer), (nic) => this.#transports.over(nic)) ?? this.#anyNic;
  }
}
