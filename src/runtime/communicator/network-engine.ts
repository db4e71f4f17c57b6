import { Blocks } from '../collectives/blocks.js';
import { algorithmOf, hasCommonCounts, kindOf, operatorOf, type Algorithm, type CallDetails } from '../collectives/call.js';
import { Combiner } from '../collectives/combiner.js';
import { countsRoom, Exchange, type Track } from '../collectives/exchange.js';
import { pairFifo, Pairs } from '../collectives/pairs.js';
import { Pat, PAT_FIFO } from '../collectives/pat.js';
import { Ring, ringFifo } from '../collectives/ring.js';
import { DoubleTree, TREE_FIFO } from '../collectives/tree.js';
import { callKinds, DONE, PENDING } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InternalError, withRank } from '../../errors.js';
import type { PeerConnections, WantedEnd } from '../transport/peers.js';
import type { RingOfRanks } from '../transport/ring.js';
import type { FifoSize } from '../transport/transport.js';
import type { Engine } from './engine.js';

const nothing = new Int32Array(0);

/** Makes the connections of an algorithm other than ring; every rank does so at the same call. */
export type Connect = (algorithm: Algorithm) => Promise<PeerConnections>;

/**
 * The algorithms over connections, one call at a time: *ring*, whose connections are there from the beginning, *tree*,
 * *PAT* and *pairs*. Before the first call by one of these, all ranks meet around the ring, so that ranks that called
 * different things find out, and then make the connections if they are not there yet.
 */
export class NetworkEngine implements Engine {
  /** What carries data to the next rank of the ring, in NCCL's words. */
  readonly transport: string;
  readonly #exchange: Exchange;
  readonly #combiner: Combiner;
  readonly #ring: Ring;
  /** The same by the protocol LL, where there is one. */
  #quickRing: Ring | undefined;
  #quickBytes = 0;
  readonly #order: readonly number[];
  #tree: DoubleTree | undefined;
  #pat: Pat | undefined;
  #pairs: Pairs | undefined;
  readonly #connect: Connect;
  readonly #rank: number;
  readonly #nRanks: number;
  readonly #blocks: Blocks;
  readonly #receivedBlocks: Blocks;

  // The call under way.
  #algorithm: Algorithm = 'ring';
  #kind = 0;
  #bytesPerElement = 0;
  #root = 0;
  #send: NumericArray = nothing;
  #recv: NumericArray = nothing;
  #count = 0;
  #details: CallDetails | undefined;
  /** Whether the ranks only meet, because the call is the first by its algorithm, and connections in the making. */
  #meeting = false;
  readonly #metFor = new Set<Algorithm>(['ring']);
  #opening: Promise<void> | undefined;
  #openingFailed: Error | undefined;
  #ended = false;

  constructor(team: Team, libc: Libc | undefined, ring: RingOfRanks, connect: Connect) {
    const { rank, order, links } = ring;
    this.transport = links === undefined ? 'nothing' : links.send.transport === 'shm' ? 'SHM' : 'NET/Socket';
    this.#rank = rank;
    this.#nRanks = order.length;
    this.#order = order;
    this.#connect = connect;
    this.#exchange = new Exchange(rank, team.segment.buffer);
    if (links !== undefined) this.#exchange.add([links.send], [links.receive]);
    this.#combiner = new Combiner(team, libc, this.#nRanks, (links?.send.size ?? ringFifo(1)).slotBytes);
    this.#ring = new Ring(this.#combiner, ring, countsRoom(this.#nRanks));
    this.#blocks = new Blocks(this.#nRanks);
    this.#receivedBlocks = new Blocks(this.#nRanks);
  }

  /** From now on calls about at most `bytes` bytes go around `ring`, whose connections are of the protocol LL. */
  useLowLatency(ring: RingOfRanks, bytes: number): void {
    if (ring.links === undefined) return;
    this.#exchange.add([ring.links.send], [ring.links.receive]);
    this.#quickRing = new Ring(this.#combiner, ring);
    this.#quickBytes = bytes;
  }

  /** Makes an algorithm's connections now: blocking calls cannot make them. */
  async open(algorithm: Algorithm): Promise<void> {
    if (this.#isOpen(algorithm)) return;
    const connections = await this.#connect(algorithm);
    const { sends, receives } = connections;
    this.#exchange.add(sends, receives);
    if (algorithm === 'tree') this.#tree = new DoubleTree(this.#combiner, this.#order, this.#rank, connections);
    else if (algorithm === 'pat') this.#pat = new Pat(this.#combiner, this.#rank, this.#nRanks, connections);
    else this.#pairs = new Pairs(this.#combiner, this.#rank, this.#nRanks, connections);
    // The communicator has ended meanwhile.
    if (this.#ended) await this.#exchange.close();
  }

  get blocking(): boolean {
    return this.#exchange.blocking;
  }

  get steps(): number {
    return this.#exchange.steps;
  }

  get whenReady(): Engine['whenReady'] {
    if (this.#opening !== undefined) return this.#whenOpened;
    return this.#exchange.polled ? undefined : this.#whenNews;
  }

  begin(
    code: number, type: DataType, root: number, send: NumericArray, recv: NumericArray, count: number, spins: number, details?: CallDetails,
  ): number {
    const kind = kindOf(code);
    this.#algorithm = algorithmOf(code) ?? 'ring';
    this.#kind = kind;
    this.#bytesPerElement = type.bytes;
    this.#root = root;
    this.#send = send;
    this.#recv = recv;
    this.#count = count;
    this.#details = details;
    this.#exchange.call(code, root, count, hasCommonCounts(code) ? details?.counts : undefined);
    this.#combiner.begin(type, operatorOf(code), details?.scalar);
    if (kind !== callKinds.broadcast || root === this.#rank) this.#combiner.source.use(send);
    if (kind !== callKinds.reduce || root === this.#rank) this.#combiner.destination.use(recv);
    try {
      this.#meeting = !this.#metFor.has(this.#algorithm);
      return this.#goOn(this.#exchange.begin(this.#meeting ? this.#ring.barrier() : this.#work(), this.#looks(spins)), spins);
    } catch (error) {
      this.abort(error as Error);
      throw error;
    }
  }

  progress(spins: number): number {
    try {
      if (this.#openingFailed !== undefined) throw this.#openingFailed;
      if (this.#opening !== undefined) return PENDING;
      return this.#goOn(this.#exchange.progress(this.#looks(spins)), spins);
    } catch (error) {
      this.abort(error as Error);
      throw error;
    }
  }

  check(): void {
    this.#exchange.check();
  }

  late(timeoutMs: number): number[] {
    return this.#exchange.late(timeoutMs);
  }

  sayWaits(timeoutMs: number): void {
    this.#exchange.sayWaits(timeoutMs);
  }

  abort(reason: Error): void {
    this.#end();
    this.#exchange.abort(withRank(reason, this.#rank));
  }

  async close(): Promise<void> {
    this.#end();
    await this.#exchange.close();
  }

  #end(): void {
    this.#ended = true;
    this.#forget();
  }

  #forget(): void {
    this.#combiner.forget();
    this.#send = nothing;
    this.#recv = nothing;
  }

  /** When a call's meeting is over, begins its work; when that is, forgets it. */
  #goOn(status: number, spins: number): number {
    if (status !== DONE) return status;
    if (!this.#meeting) {
      this.#forget();
      return DONE;
    }
    this.#meeting = false;
    this.#metFor.add(this.#algorithm);
    if (this.#isOpen(this.#algorithm)) return this.#goOn(this.#exchange.begin(this.#work(), this.#looks(spins)), spins);
    this.#opening = this.open(this.#algorithm)
      .then(() => this.#exchange.replace(this.#work()))
      .catch((error: unknown) => void (this.#openingFailed = error as Error))
      .finally(() => (this.#opening = undefined));
    return PENDING;
  }

  /** Where all connections call, looking again at once is of no use. */
  #looks(spins: number): number {
    return this.#exchange.polled ? spins : 0;
  }

  readonly #whenNews = (wake: () => void): void => this.#exchange.onNews(wake);
  readonly #whenOpened = (wake: () => void): void => void this.#opening?.then(wake);

  #isOpen(algorithm: Algorithm): boolean {
    if (algorithm === 'tree') return this.#tree !== undefined;
    if (algorithm === 'pat') return this.#pat !== undefined;
    return algorithm !== 'pairs' || this.#pairs !== undefined;
  }

  /** This rank's part of the call. */
  #work(): readonly Track[] {
    const root = this.#root;
    const size = this.#bytesPerElement;
    const bytes = this.#count * size;
    const details = this.#details;
    const blocks = this.#blocks;
    const tree = this.#algorithm === 'tree' ? this.#tree : undefined;
    const ring = this.#quickRing !== undefined && bytes <= this.#quickBytes ? this.#quickRing : this.#ring;
    switch (this.#kind) {
      case callKinds.allReduce:
        return (tree ?? ring).allReduce(bytes);
      case callKinds.broadcast:
        return (tree ?? ring).broadcast(bytes, root, this.#send === this.#recv);
      case callKinds.barrier:
        return (tree ?? ring).barrier();
      case callKinds.reduce:
        return (tree ?? ring).reduce(bytes, root);
      case callKinds.allGather:
        if (this.#algorithm === 'pat' && this.#pat !== undefined) return this.#pat.allGather(bytes);
        return ring.allGather(blocks.even(bytes), this.#samePlace(this.#recv, this.#rank * bytes, this.#send, 0));
      case callKinds.reduceScatter:
        if (this.#algorithm === 'pat' && this.#pat !== undefined) return this.#pat.reduceScatter(bytes);
        return ring.reduceScatter(blocks.even(bytes));
      case callKinds.allGatherV:
        blocks.uneven(details?.counts ?? [], details?.displacements ?? [], size);
        return this.#ring.allGather(blocks, this.#samePlace(this.#recv, blocks.from[this.#rank] ?? 0, this.#send, 0));
      case callKinds.reduceScatterV:
        return this.#ring.reduceScatter(blocks.uneven(details?.counts ?? [], details?.displacements ?? [], size));
    }
    const pairs = this.#pairs;
    if (pairs === undefined) throw new InternalError('INTERNAL', `the connections for a call of kind ${this.#kind} are missing`);
    switch (this.#kind) {
      case callKinds.allToAll:
        blocks.even(bytes);
        return pairs.allToAll(blocks, blocks, this.#samePlace(this.#send, 0, this.#recv, 0));
      case callKinds.allToAllV:
        blocks.uneven(details?.counts ?? [], details?.displacements ?? [], size);
        this.#receivedBlocks.uneven(details?.recvCounts ?? [], details?.recvDisplacements ?? [], size);
        return pairs.allToAll(blocks, this.#receivedBlocks, false);
      case callKinds.gather:
        return pairs.gather(blocks.even(bytes), root);
      case callKinds.scatter:
        return pairs.scatter(blocks.even(bytes), root);
    }
    throw new InternalError('INTERNAL', `there is no call of kind ${this.#kind}`);
  }

  /** Whether two places in two arrays are the same memory. */
  #samePlace(a: NumericArray, aFrom: number, b: NumericArray, bFrom: number): boolean {
    return a.buffer === b.buffer && a.byteOffset + aFrom === b.byteOffset + bFrom;
  }
}

/** The size of an algorithm's connections. */
export function fifoOf(algorithm: Algorithm, nRanks: number): FifoSize {
  if (algorithm === 'tree') return TREE_FIFO;
  if (algorithm === 'pat') return PAT_FIFO;
  return algorithm === 'pairs' ? pairFifo(nRanks) : ringFifo(nRanks);
}

/** The ends that a rank has of an algorithm's connections, other than a ring's. */
export function wantedEnds(algorithm: Algorithm, order: readonly number[], rank: number): { sendTo: readonly WantedEnd[]; receiveFrom: readonly WantedEnd[] } {
  const nRanks = order.length;
  if (algorithm === 'pat') return { sendTo: Pat.wantedSends(rank, nRanks), receiveFrom: Pat.wantedReceives(rank, nRanks) };
  const ends = algorithm === 'tree' ? DoubleTree.wantedEnds(order, rank) : Pairs.wantedEnds(rank, nRanks);
  return { sendTo: ends, receiveFrom: ends };
}
