import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { BootstrapEnvironment } from '../bootstrap/environment.js';
import { secretOf, type UniqueId } from '../bootstrap/unique-id.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import { PointToPoint } from '../messages/p2p.js';
import { messageFifo } from '#seam/messages/p2p-socket';
import { progressHere } from '../progress/progress.js';
import { coresOfAll } from '../detect/cores.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { Team } from '../device/team.js';
import { TcclError } from '../../errors.js';
import { RecordingFile } from '#seam/observe/recording-file';
import { TransportsByNic } from '../transport/by-nic.js';
import { RailsTransport, type Lanes } from '#seam/transport/rails';
import type { Transport } from '../transport/transport.js';
import { unlessAborted } from '../abort-signals.js';
import { connectsInAdvance, netOf, type RankFacts } from './agree.js';
import { chooseEngine } from './choose-engine.js';
import type { CompositeEngine } from '../algorithms/composite-engine.js';
import { mostNicPairs, nicsBetween, type Channels } from '../algorithms/connections/channels.js';
import type { Algorithm } from '../algorithms/call.js';
import { engineThreads, type CommunicatorConfig } from './config.js';
import { dataHost } from '../algorithms/connections/data-host.js';
import type { InitOptions } from './init-options.js';
import type { RuntimeSettings } from './options.js';
import { defined } from '../../defined.js';

/** Parts of a communicator. */
export interface CommunicatorParts {
  readonly resources: SharedResources;
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly engine: CompositeEngine;
  /** Channels of the algorithms over connections; undefined if there are none. */
  readonly channels: Channels | undefined;
  readonly pointToPoint: PointToPoint;
  /** Wait queries between ranks that share no memory. */
  readonly waitQueries: WaitQueries | undefined;
  /** Facts by rank. */
  readonly facts: readonly RankFacts[];
  /** Number of cores that the ranks of this host may use together. */
  readonly nCores: number;
  readonly config: CommunicatorConfig;
  /** The algorithm of all calls, if one is forced. */
  readonly forced: Algorithm | undefined;
}

/** Results of one init(), for its communicator and all that come from it. */
export interface SharedFacts {
  readonly segment: Segment;
  /** True if all ranks of this host share the segment. */
  readonly shared: boolean;
  readonly libc: Libc | undefined;
  readonly settings: RuntimeSettings;
  readonly network: BootstrapEnvironment;
  readonly id: UniqueId;
  /** Joins a communicator with new ranks, for grow(). Undefined in a page, where no rank can be new. */
  readonly join: ((options: InitOptions) => Promise<CommunicatorParts>) | undefined;
  readonly options: InitOptions;
  /** Called when this rank has left the segment. */
  readonly onLeft?: () => void;
}

/**
 * Resources of one init(), which its communicator and all that come from it share. They exist until the last of these is
 * closed; a child may outlive its parent.
 */
export class SharedResources {
  #users = 0;
  #hasFirst = false;

  /** File of this rank's last calls, if TCCL_RECORD asks for one. */
  readonly recording: RecordingFile | undefined;

  /** @param rank of this process in the job */
  constructor(
    readonly facts: SharedFacts,
    rank: number,
  ) {
    const { recordPath } = facts.settings;
    this.recording = recordPath === undefined ? undefined : new RecordingFile(recordPath, rank, facts.segment.board);
  }

  /**
   * Makes the parts of a communicator and connects its ranks for data. All its ranks call it.
   *
   * @param givenFacts by rank
   * @param forced algorithm of all calls
   * @param signal aborts a set-up that takes too long
   */
  async assemble(
    bootstrap: Bootstrap,
    team: Team,
    givenFacts: readonly RankFacts[],
    config: CommunicatorConfig,
    forced: Algorithm | undefined,
    signal: AbortSignal,
  ): Promise<CommunicatorParts> {
    const { shared, libc, settings, network, id } = this.facts;
    const nCores = coresOfAll(bootstrap.localRanks.map((rank) => defined(givenFacts[rank]).cores));
    const { nRanks, localRanks } = bootstrap;
    const { topology } = settings;
    const isFirst = !this.#hasFirst;
    this.#hasFirst = true;
    const wanted = engineThreads(config);
    const threads = { ...wanted, connectsAll: connectsInAdvance(wanted, givenFacts) };
    const { engine, channels, facts } = await chooseEngine({
      bootstrap,
      shared,
      team,
      facts: givenFacts,
      libc,
      nCores,
      settings,
      topology: isFirst ? topology : { ...topology, topologyDump: undefined, graphDump: undefined },
      network,
      id,
      signal,
      threads,
      forwardReport: (report) => pointToPoint.waits.forwardReport(report),
      reports: { ask: (ranks) => waitQueries?.ask(ranks), answer: (rank) => waitQueries?.answer(rank) },
      forced,
      onWarning: this.facts.options.onWarning,
      name: config.name,
    });
    // Ranks that share memory read each other's reports there.
    const waitQueries = shared && localRanks.length === nRanks ? undefined : bootstrap.openLastingWaitQueries();
    const pointToPoint = new PointToPoint({
      bootstrap,
      team,
      libc,
      shared,
      openTransport: () => this.#openTransport(bootstrap, team, facts, channels, threads.connectsAll),
      onNews: progressHere().wake,
      waitQueries,
      forwardInCalls: (report) => engine.forwardReport(report),
      observe: engine.observe,
    });
    const parts = {
      resources: this,
      bootstrap,
      team,
      engine,
      channels,
      pointToPoint,
      waitQueries,
      facts,
      nCores,
      config,
      forced,
    };
    try {
      if (threads.connectsAll) await unlessAborted(pointToPoint.links.connectAll(), signal);
      return parts;
    } catch (error) {
      abandon(parts, error);
      throw error;
    }
  }

  /** Opens the transport of messages between ranks that do not share memory. */
  #openTransport(
    bootstrap: Bootstrap,
    team: Team,
    facts: readonly RankFacts[],
    channels: Channels | undefined,
    connectsAll: boolean,
  ): Transport {
    const { libc, network, id } = this.facts;
    const { rank, nRanks, localRanks } = bootstrap;
    const nLanes = channels === undefined ? 1 : mostNicPairs(channels);
    const { nics } = facts[rank]?.location ?? {};
    const transports = new TransportsByNic(messageFifo(connectsAll ? nRanks * nLanes : 0), {
      bootstrap,
      team,
      libc,
      net: netOf(facts),
      host: dataHost(bootstrap, network, id),
      secret: secretOf(id),
      nics,
    });
    const lanesTo = (peer: number): Lanes => {
      const hasLanes = channels !== undefined && !transports.network.choosesNics && !localRanks.includes(peer);
      return hasLanes ? nicsBetween(channels, rank, peer) : { nics: [], turns: [] };
    };
    return new RailsTransport(lanesTo, transports);
  }

  /** Counts one more communicator. */
  use(): void {
    this.#users++;
    this.facts.segment.communicators++;
  }

  /** Counts one communicator less; after the last one, this rank leaves the segment. */
  leave(): void {
    this.facts.segment.communicators--;
    if (--this.#users > 0) return;
    this.recording?.close();
    this.facts.segment.close();
    this.facts.onLeft?.();
  }
}

/** Closes the parts of a communicator that could not be made. */
export function abandon({ engine, pointToPoint, waitQueries }: CommunicatorParts, error: unknown): void {
  waitQueries?.close();
  pointToPoint.abort(error as Error);
  if (error instanceof TcclError) engine.abort(error);
}
