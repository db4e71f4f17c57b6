import type { Introduction } from '../bootstrap/bootstrap.js';
import type { Nic } from '#seam/bootstrap/interfaces';
import { placeOf } from '../bootstrap/peer-info.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import { networkNamed, type ChosenNetwork } from '#seam/transport/networks';
import type { Network } from './network.js';
import type { FifoSize, Transport } from './transport.js';

/** Means of a rank to connect over a network. */
export interface NetworkMeans {
  readonly bootstrap: Pick<Introduction, 'rank' | 'peers' | 'whyGone'>;
  readonly team: Team;
  readonly libc: Libc | undefined;
  readonly net: ChosenNetwork;
  /** See dataHost(). */
  readonly host: string;
  /** Secret of the ranks of one init(). */
  readonly secret: Uint8Array;
  /** NICs of this host. */
  readonly nics?: readonly Nic[] | undefined;
}

/** Transports of the network that the ranks chose, one for each NIC of this rank, opened at first use. */
export class TransportsByNic {
  readonly #means: NetworkMeans;
  readonly #size: FifoSize;
  /** By address. */
  readonly #opened = new Map<string, Transport>();

  constructor(size: FifoSize, means: NetworkMeans) {
    this.#size = size;
    this.#means = means;
  }

  get network(): Pick<Network, 'choosesNics' | 'open'> {
    return networkNamed(this.#means.net.name);
  }

  /** @param name of the NIC; left out, or unknown, the kernel chooses */
  over(name?: string): Transport {
    const { bootstrap, team, libc, net, host, secret, nics = [] } = this.#means;
    const nic = name === undefined ? undefined : nics.find((own) => own.name === name);
    const key = nic?.host ?? '';
    const opened = this.#opened.get(key);
    if (opened !== undefined) return opened;
    const transport = this.network.open({
      size: this.#size,
      sockets: net.sockets,
      segment: team.segment,
      rank: bootstrap.rank,
      host: nic?.host ?? host,
      nic,
      secret,
      libc,
      whyGone: (peer) => bootstrap.whyGone(peer),
      placeOf: (other) => placeOf(bootstrap.peers, other),
    });
    this.#opened.set(key, transport);
    return transport;
  }

  close(): void {
    for (const transport of this.#opened.values()) transport.close();
  }
}
