import type { EngineCall } from '../queued-call.js';
import type { NetworkPlayer } from './algorithm.js';
import type { Channels } from './channels.js';
import { hasCommonCounts } from '../call-traits.js';
import { algorithmOf, kindOf, operatorOf, type Algorithm, type Call } from '../call.js';
import { parkAfterMs, spinsAt } from '../../progress/backoff.js';
import type { WakeSources } from '../../progress/parking.js';
import type { Activity } from '../activity.js';
import { RequestedReports, type ReportsOnRequest } from '../wait-chains.js';
import { Combiner } from './combiner.js';
import { Exchange, type Track } from './exchange.js';
import { NetworkCall } from './network-call.js';
import { networkAlgorithm } from './registry.js';
import { Ring, ringFifo, Rings } from './ring.js';
import { callKinds, DONE, PENDING } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import type { Team } from '../../device/team.js';
import { InternalError, InvalidUsageError, withRank } from '../../../errors.js';
import type { PeerConnections, PendingEnds } from '../../transport/peers.js';
import type { RingOfRanks } from '../../transport/ring.js';
import { logNameOf } from '#seam/transport/networks';
import type { Engine } from '../engine.js';

/**
 * Makes the connections of an algorithm other than ring; every rank does so at the same call. The signal aborts it. `pending` has
 * the ends of those that have not been made yet.
 */
export type Connect = (algorithm: Algorithm, signal: AbortSignal, pending: PendingEnds) => Promise<PeerConnections>;

/**
 * Carries out calls over connections, one at a time. The ring's connections exist from the beginning; those of another algorithm
 * are made at its first call, after all ranks have met around the ring, unless `openAll` has made them.
 */
export class NetworkEngine implements Engine {
  /** Transport to the next rank of each ring, as NCCL's log names it. */
  readonly transports: readonly string[];
  readonly #exchange: Exchange;
  readonly #combiner: Combiner;
  readonly #ring: Rings;
  /** Algorithms whose connections exist. */
  readonly #players = new Map<Algorithm, NetworkPlayer>();
  /** True if no call needs further connections. */
  #hasAll = false;
  readonly #channels: Channels;
  readonly #connect: Connect;
  readonly #rank: number;

  // State of the running call.
  #algorithm: Algorithm = 'ring';
  readonly #call: NetworkCall;
  /**
   * True if the ranks only meet, because this is the first call by its algorithm; and its connections while they are being made.
   */
  #meeting = false;
  readonly #metFor = new Set<Algorithm>(['ring']);
  #opening: Promise<void> | undefined;
  #openingFailed: Error | undefined;
  /** Aborted when the engine ends. */
  readonly #stop = new AbortController();

  /**
   * @param rings of `channels`, connected
   * @param reports of ranks with which connections are being made
   */
  constructor(
    team: Team,
    libc: Libc | undefined,
    rings: readonly RingOfRanks[],
    channels: Channels,
    connect: Connect,
    reports?: ReportsOnRequest,
  ) {
    const [first] = rings;
    if (first === undefined) throw new InternalError('INTERNAL', 'there is no ring');
    const { rank, order, links } = first;
    this.transports = rings.map((ring) => (ring.links === undefined ? 'nothing' : logNameOf(ring.links.send.transport)));
    this.#rank = rank;
    this.#channels = channels;
    this.#connect = connect;
    this.#exchange = new Exchange(rank, team, new RequestedReports(order.length, reports));
    for (const { links } of rings) {
      for (const hop of [links, links?.relayed]) if (hop !== undefined) this.#exchange.add([hop.send], [hop.receive]);
    }
    this.#combiner = new Combiner(team, libc, order.length, (links?.send.size ?? ringFifo(1)).slotBytes);
    this.#ring = new Rings(this.#combiner, rings);
    this.#players.set('ring', this.#ring);
    this.#call = new NetworkCall(rank, order.length);
  }

  /** Sends calls of at most `bytes` around `ring`, whose connections use the protocol LL. */
  useLowLatency(ring: RingOfRanks, bytes: number): void {
    if (ring.links === undefined) return;
    this.#exchange.add([ring.links.send], [ring.links.receive]);
    this.#ring.useLowLatency(new Ring(this.#combiner, ring), bytes);
  }

  /** Makes the connections of all algorithms that calls may take, because blocking calls cannot. Every rank calls it. */
  async openAll(algorithms: readonly Algorithm[]): Promise<void> {
    for (const algorithm of algorithms) await this.#open(algorithm);
    this.#hasAll = true;
  }

  async #open(algorithm: Algorithm): Promise<void> {
    if (this.#players.has(algorithm)) return;
    const connections = await this.#connect(algorithm, this.#stop.signal, this.#exchange.pending ?? new Set());
    const { sends, receives } = connections;
    this.#exchange.add(sends, receives);
    this.#players.set(
      algorithm,
      networkAlgorithm(algorithm).open({
        combiner: this.#combiner,
        outputs: this.#exchange,
        order: this.#channels.order,
        channels: this.#channels,
        rank: this.#rank,
        connections,
      }),
    );
    // The communicator has ended meanwhile.
    if (this.#stop.signal.aborted) await this.#exchange.close();
  }

  get blocking(): boolean {
    return this.#hasAll && this.#exchange.blocking;
  }

  get steps(): number {
    return this.#exchange.steps;
  }

  get polled(): boolean {
    return this.#opening === undefined && this.#exchange.polled;
  }

  get parkAfterMs(): number {
    return parkAfterMs(this.#exchange.hasSockets);
  }

  wakeOn(sources: WakeSources): void {
    if (this.#opening === undefined) this.#exchange.wakeOn(sources);
    else void this.#opening.then(sources.wake);
  }

  begin(call: EngineCall, spins: number, mark = 0): number {
    const { type, root, send, recv, count, details } = call;
    const code = call.code | mark;
    const kind = kindOf(code);
    this.#algorithm = algorithmOf(code) ?? 'ring';
    this.#call.begin(call);
    this.#exchange.call(code, root, count, hasCommonCounts(code) ? details?.counts : undefined);
    this.#combiner.begin(type, operatorOf(code), details?.scalar);
    if (kind !== callKinds.broadcast || root === this.#rank) this.#combiner.source.use(send);
    if (kind !== callKinds.reduce || root === this.#rank) this.#combiner.destination.use(recv);
    try {
      this.#meeting = !this.#metFor.has(this.#algorithm);
      return this.#goOn(this.#exchange.begin(this.#meeting ? this.#ring.barrier() : this.#work(), this.#looks(spins)), spins);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  progress(spins: number): number {
    try {
      if (this.#openingFailed !== undefined) throw this.#openingFailed;
      if (this.#opening !== undefined) return PENDING;
      return this.#goOn(this.#exchange.progress(this.#looks(spins)), spins);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  check(): void {
    try {
      this.#exchange.check();
    } catch (error) {
      throw this.#exchange.reasonOf(error);
    }
  }

  late(limitMs: number): number[] {
    return this.#exchange.late(limitMs).filter((rank) => rank < this.#channels.order.length);
  }

  lateBeyondRanks(limitMs: number): string | undefined {
    const { order, aggregators = [] } = this.#channels;
    const addresses = this.#exchange.late(limitMs).flatMap((peer) => aggregators[peer - order.length] ?? []);
    return addresses.length === 0 ? undefined : addresses.map((address) => `the aggregator at ${address}`).join(' and ');
  }

  reportWait(limitMs: number, activity: Activity): readonly number[] {
    return this.#exchange.reportWait(limitMs, activity);
  }

  forwardReport(report: readonly number[]): void {
    this.#exchange.forwardReport(report);
  }

  /** See Exchange. */
  answerWaits(report: readonly number[]): void {
    this.#exchange.answerWaits(report);
  }

  underWay(): Call | undefined {
    return this.#exchange.underWay();
  }

  doing(rank: number): string | undefined {
    return this.#exchange.doing(rank);
  }

  abort(reason: Error): void {
    this.#end(reason);
    this.#exchange.abort(withRank(reason, this.#rank));
  }

  async close(): Promise<void> {
    this.#end(new InvalidUsageError('CLOSED', `rank ${this.#rank} closed the communicator`));
    await this.#exchange.close();
  }

  /** Ends the call for an error; returns the reason. */
  #failed(error: unknown): Error {
    const reason = this.#exchange.reasonOf(error) as Error;
    this.abort(reason);
    return reason;
  }

  #end(reason: Error): void {
    this.#stop.abort(reason);
    this.#forget();
  }

  #forget(): void {
    this.#combiner.forget();
    this.#call.forget();
  }

  /** When the ranks have met, begins the call's work; when that is done, forgets the call. */
  #goOn(status: number, spins: number): number {
    if (status !== DONE) return status;
    if (!this.#meeting) {
      this.#forget();
      return DONE;
    }
    this.#meeting = false;
    this.#metFor.add(this.#algorithm);
    if (this.#players.has(this.#algorithm)) return this.#goOn(this.#exchange.begin(this.#work(), this.#looks(spins)), spins);
    this.#exchange.pending = new Set();
    this.#opening = this.#open(this.#algorithm)
      .then(() => this.#exchange.replace(this.#work()))
      .catch((error: unknown) => void (this.#openingFailed = error as Error))
      .finally(() => {
        this.#opening = undefined;
        this.#exchange.pending = undefined;
      });
    return PENDING;
  }

  /** Number of polls: none if all connections report news, because polling again would find nothing. */
  #looks(spins: number): number {
    return this.#exchange.polled ? spinsAt(this.#exchange.hasSockets, spins) : 0;
  }

  /** This rank's part of the call. */
  #work(): readonly Track[] {
    const player = this.#players.get(this.#algorithm);
    if (player === undefined) throw new InternalError('INTERNAL', `the connections of ${this.#algorithm} are missing`);
    return player.start(this.#call);
  }
}
