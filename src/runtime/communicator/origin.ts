import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { BootstrapEnvironment } from '../bootstrap/environment.js';
import { secretOf, type UniqueId } from '../bootstrap/unique-id.js';
import { messageFifo } from '../messages/p2p-socket.js';
import { coresOfAll } from '../detect/cores.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { Team } from '../device/team.js';
import { SocketTransport } from '../transport/socket.js';
import type { Transport } from '../transport/transport.js';
import type { RankFacts } from './agree.js';
import { chooseEngine, type ChosenEngine } from './choose-engine.js';
import type { CompositeEngine } from '../algorithms/composite-engine.js';
import { engineThreads, forcedAlgorithm, type CommunicatorConfig } from './config.js';
import { dataHost } from '../algorithms/open-network.js';
import type { InitOptions } from './init-options.js';
import type { RuntimeSettings } from './options.js';

/** Parts of a communicator. */
export interface CommunicatorParts {
  readonly origin: Origin;
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly engine: CompositeEngine;
  readonly thread: ChosenEngine['thread'];
  /** Connects ranks that share no memory, for messages between two ranks. */
  readonly openTransport: (bySystemCalls: boolean) => Transport;
  /** Facts by rank. */
  readonly facts: readonly RankFacts[];
  /** Number of cores that the ranks of this host may use together. */
  readonly nCores: number;
  readonly config: CommunicatorConfig;
}

/** Results of one init(), for its communicator and all that come from it. */
export interface OriginFacts {
  readonly segment: Segment;
  /** True if all ranks of this host share the segment. */
  readonly shared: boolean;
  readonly libc: Libc | undefined;
  readonly settings: RuntimeSettings;
  readonly network: BootstrapEnvironment;
  readonly id: UniqueId;
  /** Joins a communicator with new ranks, for grow(). */
  readonly join: (options: InitOptions) => Promise<CommunicatorParts>;
  readonly options: InitOptions;
}

/**
 * Origin of communicators: one init(), whose segment all of them use. It stays until the last of them is closed, which need
 * not be the first one: a child may outlive its parent.
 */
export class Origin {
  #users = 0;

  constructor(readonly facts: OriginFacts) {}

  /**
   * Makes the parts of a communicator and connects its ranks for data. All its ranks call it.
   *
   * @param facts by rank
   * @param signal aborts a set-up that takes too long
   */
  async assemble(
    bootstrap: Bootstrap,
    team: Team,
    facts: readonly RankFacts[],
    config: CommunicatorConfig,
    signal: AbortSignal,
  ): Promise<CommunicatorParts> {
    const { shared, libc, settings, network, id } = this.facts;
    const nCores = coresOfAll(bootstrap.localRanks.map((rank) => facts[rank]?.cores ?? []));
    const { engine, thread } = await chooseEngine({
      bootstrap,
      shared,
      team,
      facts,
      libc,
      nCores,
      settings,
      network,
      id,
      signal,
      threads: engineThreads(config),
      forced: forcedAlgorithm(settings, config),
      onWarning: this.facts.options.onWarning,
      name: config.name,
    });
    const openTransport = (bySystemCalls: boolean): SocketTransport =>
      new SocketTransport({
        size: messageFifo,
        segment: team.segment,
        rank: bootstrap.rank,
        host: dataHost(bootstrap, network, id),
        secret: secretOf(id),
        libc: bySystemCalls ? libc : undefined,
        whyGone: (peer) => bootstrap.whyGone(peer),
      });
    return { origin: this, bootstrap, team, engine, thread, openTransport, facts, nCores, config };
  }

  /** Counts one more communicator. */
  use(): void {
    this.#users++;
    this.facts.segment.communicators++;
  }

  /** Counts one communicator less; after the last one, this rank leaves the segment. */
  leave(): void {
    this.facts.segment.communicators--;
    if (--this.#users === 0) this.facts.segment.close();
  }
}
