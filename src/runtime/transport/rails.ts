import { StripedTransport } from './striped.js';
import type { ConnectionSetUp, FifoSize, ReceiveConnection, SendConnection, Transport, TransportName } from './transport.js';

/** The lanes to a peer. Its first must lead to this rank's first, and so on. */
export interface Lanes {
  /** This rank's NIC of each lane; none leaves the choice to the kernel. */
  readonly nics: readonly string[];
  /** The lane of each message, repeated without end: faster NICs may have more turns. */
  readonly turns: readonly number[];
}

/** Opens a transport over one of this rank's NICs, or leaves the choice to the kernel. */
type OpenTransport = (nic: string | undefined) => Transport;

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
  readonly #open: OpenTransport;
  /** For peers to which no NIC is given. */
  readonly #anyNic: Transport;
  readonly #byNic = new Map<string, Transport>();

  /** @param open all that it opens have the same name and size */
  constructor(lanesTo: (peer: number) => Lanes, open: OpenTransport) {
    this.#lanesTo = lanesTo;
    this.#open = open;
    this.#anyNic = open(undefined);
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
    for (const transport of [this.#anyNic, ...this.#byNic.values()]) transport.close();
  }

  #to(peer: number): Transport {
    return inLanes(this.#lanesTo(peer), (nic) => this.#over(nic)) ?? this.#anyNic;
  }

  #over(nic: string): Transport {
    const transport = this.#byNic.get(nic) ?? this.#open(nic);
    this.#byNic.set(nic, transport);
    return transport;
  }
}
