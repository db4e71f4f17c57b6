import { InvalidArgumentError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import type { LocalSystem } from '../../topology/local-systems.js';
import type { NodeContribution } from '../merge/contribution.js';
import { ringNeighbours, treeLinks } from '../merge/links.js';
import type { Merged } from '../merge/merge.js';
import { kindOf } from '../merge/nodes.js';
import type { PlannedConnection } from './connection.js';
import { NodeTransports } from './node-transports.js';

/** A rank's connections in the ring of a channel; undefined where it is alone. */
export interface RingConnections {
  readonly send: PlannedConnection | undefined;
  readonly receive: PlannedConnection | undefined;
}

/** A rank's connections in the tree of a channel, in one direction; undefined where there is no peer. */
export interface TreeConnections {
  readonly up: PlannedConnection | undefined;
  readonly down: readonly (PlannedConnection | undefined)[];
}

/** One side of a connection. */
export type Direction = 'send' | 'receive';

/**
 * Transports between the ranks of a communicator (peer-to-peer, shared memory or network, with its device), as NCCL decides when
 * it connects its channels. Computed on request; a rank costs little.
 *
 *     const transports = new Transports(merged, machines, parameters);
 *     transports.ring(0, 7).send     // { via: 'NET', peer: 8, dev: 0, proxyRank: 0, gdr: 1, … }
 */
export class Transports {
  readonly #merged: Merged;
  readonly #machines: ReadonlyMap<NodeContribution, LocalSystem>;
  readonly #parameters: Parameters;
  readonly #byKind = new Map<NodeContribution, NodeTransports>();

  /** @param machines the machine that each of `merged.nodes.kinds` is about */
  constructor(merged: Merged, machines: ReadonlyMap<NodeContribution, LocalSystem>, parameters: Parameters) {
    this.#merged = merged;
    this.#machines = machines;
    this.#parameters = parameters;
  }

  /** @throws InvalidArgumentError where there is no such rank or channel; InputError where NCCL fails */
  ring(channel: number, rank: number): RingConnections {
    const { prev, next } = ringNeighbours(this.#merged, channel, rank);
    return {
      send: next === rank ? undefined : this.between(rank, next, 'ring', channel, 'send'),
      receive: prev === rank ? undefined : this.between(rank, prev, 'ring', channel, 'receive'),
    };
  }

  /**
   * Data goes up a tree and down again: each connection is there in both directions.
   *
   * @throws InvalidArgumentError where there is no such rank or channel; InputError where NCCL fails
   */
  tree(channel: number, rank: number, direction: Direction): TreeConnections {
    const { up, down } = treeLinks(this.#merged, channel, rank);
    const to = (peer: number) => (peer < 0 ? undefined : this.between(rank, peer, 'tree', channel, direction));
    return { up: to(up), down: down.map(to) };
  }

  /**
   * The connection of a rank with another on a channel, as the rank itself makes it.
   *
   * @throws InputError where NCCL fails
   */
  between(rank: number, peer: number, graph: 'ring' | 'tree', channel: number, direction: Direction): PlannedConnection {
    const { nodes, graphs } = this.#merged;
    const node = nodes.rankToNode[rank] ?? 0;
    const base = nodes.rankBase[node] ?? 0;
    const kind = kindOf(nodes, node);
    const transports = this.#of(kind);
    const onHost = base === nodes.rankBase[nodes.rankToNode[peer] ?? 0];

    const found = onHost
      ? transports.between(rank - base, peer - base)
      : ({ via: 'NET', reason: { why: 'other-host' } } as const);
    // Field by field, because copies of whole objects are slow and a cluster has a hundred thousand connections.
    if (found.via === 'SHM' || found.via === 'none') return { via: found.via, reason: found.reason, peer };
    if (found.via === 'P2P') {
      const { read, relay, distance } = found;
      return { via: 'P2P', read, relay: relay === undefined ? undefined : base + relay, distance, peer };
    }
    const use = transports.net(kind.graphs[graph], channel % graphs[graph].nChannels, rank - base, direction);
    return {
      via: 'NET',
      reason: found.reason,
      dev: use.dev,
      relay: use.relay === undefined ? undefined : base + use.relay,
      proxyRank: base + use.proxyRank,
      gdr: use.gdr,
      gdrReason: use.gdrReason,
      distance: use.distance,
      peer,
    };
  }

  #of(kind: NodeContribution): NodeTransports {
    let transports = this.#byKind.get(kind);
    if (transports === undefined) {
      const machine = this.#machines.get(kind);
      if (machine === undefined)
        throw new InvalidArgumentError(
          'ARGUMENT_RANGE',
          `no machine is given for the node of ranks ${kind.ranks.join(' ')} of its host`,
        );
      this.#byKind.set(kind, (transports = new NodeTransports(machine, this.#parameters)));
    }
    return transports;
  }
}
