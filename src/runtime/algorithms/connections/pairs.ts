import type { Moves } from '../../../planner/schedule/moves.js';
import { PairWork, type PairWorker } from '../../../planner/schedule/pair-work.js';
import { callKinds } from '../../device/kernels/kernels.js';
import { InternalError } from '../../../errors.js';
import type { PeerConnections, WantedEnd } from '../../transport/peers.js';
import {
  LEAST_IN_PLACE_BYTES,
  type Connection,
  type FifoSize,
  type ReceiveConnection,
  type SendConnection,
} from '../../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import { mostNicPairs, railTurns, type Channels } from './channels.js';
import type { Combiner } from './combiner.js';
import { HEADER_BYTES, type Outputs, type Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';
import { fairSlice, MOST_BUFFERS, type SlotLimits } from '../slices.js';
import { WorkerTrack, type ConnectionSets } from './worker-track.js';
import { defined } from '../../../defined.js';

/** Of a connection: a rank fills many slots of one before it turns to the next, and waits less often. */
const slots: SlotLimits = { steps: 8, heldBytes: 8 * 2 ** 20, shortestBytes: 4 * 1024, buffers: MOST_BUFFERS };

/** Size of a connection between two ranks. Measured (docs/notes/algorithms.md). */
function pairFifo(nRanks: number, nLanes: number): FifoSize {
  return { steps: slots.steps, slotBytes: HEADER_BYTES + fairSlice(slots, nRanks * nLanes) };
}

export const pairs: NetworkAlgorithm = {
  fifo: pairFifo,
  lanes: (channels) => (takesAll(channels) ? mostNicPairs(channels) : 1),
  ends: (channels, rank) => {
    const { length } = channels.order;
    const turns = railTurns(channels);
    const all = takesAll(channels);
    const neighbours = channels.hosts.find((ranks) => ranks.includes(rank));
    const ends = Array.from({ length: length - 1 }, (_, i): WantedEnd => {
      const peer = (rank + 1 + i) % length;
      // Both ends get the same turn.
      const channel = all && !neighbours?.includes(peer) ? 'all' : defined(turns[(rank + peer) % turns.length]);
      return { peer, name: 'pair', channel };
    });
    return { sendTo: ends, receiveFrom: ends };
  },
  open: ({ combiner, outputs, order, rank, connections }) => new Pairs(combiner, outputs, rank, order.length, connections),
};

/** True if each pair of ranks of two hosts takes all NICs, because a host has too few ranks to deal its pairs to them. */
function takesAll(channels: Channels): boolean {
  return Math.min(...channels.hosts.map(({ length }) => length)) < railTurns(channels).length;
}

/**
 * The algorithm *pairs*: every rank exchanges data with every other on a connection of their own, all at the same time. For
 * data that differ between pairs and so cannot be passed on or reduced on the way: all-to-all, gather, scatter. See PairWork.
 */
class Pairs implements NetworkPlayer {
  readonly #rank: number;
  readonly #work: PairWork;
  /** By number of a worker. */
  readonly #workers: readonly WorkerTrack[];
  readonly #tracks: Track[] = [];

  constructor(combiner: Combiner, outputs: Outputs, rank: number, nRanks: number, { sends, receives }: PeerConnections) {
    this.#rank = rank;
    const sliceBytes = Math.min(...sends.map(({ size }) => size.slotBytes)) - HEADER_BYTES;
    this.#work = new PairWork(rank, nRanks, sliceBytes);
    const setsOf = ({ from, to }: PairWorker): ConnectionSets => ({
      receives: [[], receives.filter(({ peer }) => peer === from)],
      sends: [[], sends.filter(({ peer }) => peer === to)],
    });
    this.#workers = this.#work.workers.map((worker) =>
      worker.hasBlocks
        ? new BlockTrack(combiner, worker.moves, setsOf(worker), outputs)
        : new WorkerTrack(combiner, worker.moves, setsOf(worker)),
    );
  }

  start(call: NetworkCall): readonly Track[] {
    this.#begin(call);
    const tracks = this.#tracks;
    const { busy } = this.#work;
    tracks.length = 0;
    for (let i = 0; i < busy.length; i++) {
      const track = this.#workers[defined(busy[i])];
      if (track === undefined) continue;
      track.start();
      tracks.push(track);
    }
    return tracks;
  }

  #begin(call: NetworkCall): void {
    const work = this.#work;
    const rank = this.#rank;
    const { kind, derived, root } = call;
    switch (kind) {
      case callKinds.allToAll:
        if (call.isInPlace) work.startSwap(call.blocks());
        else work.startAllToAll(call.blocks(), call.receivedBlocks());
        break;
      case callKinds.allToAllV: {
        const sent = call.blocks();
        const received = call.receivedBlocks();
        const isRoot = rank === root;
        // Only the root receives in a gather, and only it sends in a scatter.
        if (derived === 'gatherV')
          work.startGather(
            received,
            root,
            isRoot ? 0 : defined(sent.from[root]),
            defined((isRoot ? received : sent).bytes[root]),
          );
        else if (derived === 'scatterV')
          work.startScatter(
            sent,
            root,
            isRoot ? 0 : defined(received.from[root]),
            defined((isRoot ? sent : received).bytes[root]),
          );
        else work.startAllToAll(sent, received);
        break;
      }
      case callKinds.gather:
        work.startGather(call.blocks(), root, 0, defined(call.blocks().bytes[rank]));
        break;
      case callKinds.scatter:
        work.startScatter(call.blocks(), root, 0, defined(call.blocks().bytes[rank]));
        break;
      case callKinds.scan:
      case callKinds.exscan:
        work.startScan(call.bytes, kind === callKinds.exscan);
        break;
      default:
        throw new InternalError('INTERNAL', `pairs has no call of kind ${kind}`);
    }
  }
}

/**
 * Sends a block, receives one, or swaps two. Between ranks of a host the receiver announces where in its output the block
 * belongs, and the sender writes there if the announcement is there in time, so that data are copied once; otherwise they go
 * through slots. A rank that works in place announces nothing: it still has to send what is there.
 */
class BlockTrack extends WorkerTrack {
  readonly #outputs: Outputs;
  readonly #send: SendConnection | undefined;
  readonly #receive: ReceiveConnection | undefined;
  /** Of the running call: start of the block in this rank's input, and in the receiver's output; 0 if unknown. */
  #from = 0;
  #output = 0;
  readonly #destination = [0];

  constructor(combiner: Combiner, moves: Moves, sets: ConnectionSets, outputs: Outputs) {
    super(combiner, moves, sets);
    this.#outputs = outputs;
    const isWithinHost = ({ transport }: Connection): boolean => transport === 'shm';
    this.#send = sets.sends.flat().find(isWithinHost);
    this.#receive = sets.receives.flat().find(isWithinHost);
  }

  override start(): void {
    super.start();
    const { own, keep } = this.moves;
    this.#from = own;
    this.#output = 0;
    if (this.done || own >= 0 || this.#receive === undefined) return;
    const output = this.combiner.outputAddress(keep);
    if (output !== 0) this.#outputs.announce(this.#receive, output);
  }

  override pass(inputs: readonly number[], outputs: readonly number[]): void {
    const sends = this.to.length > 0;
    const isWithinHost = (sends ? this.#send : this.#receive) !== undefined;
    if (!isWithinHost || this.bytes < LEAST_IN_PLACE_BYTES) super.pass(inputs, outputs);
    else if (sends) this.#write(inputs, outputs);
    else if (!this.isWritten(inputs[0])) super.pass(inputs, outputs);
  }

  #write(inputs: readonly number[], outputs: readonly number[]): void {
    const { moves } = this;
    if (this.#output === 0 && this.#send !== undefined) this.#output = this.#outputs.announced(this.#send);
    this.markWritten(defined(outputs[0]), this.#output !== 0);
    if (this.#output === 0) {
      super.pass(inputs, outputs);
      return;
    }
    this.#destination[0] = this.#output + moves.own - this.#from;
    this.combiner.pass(moves, inputs, 0, this.#destination, 1);
  }
}
