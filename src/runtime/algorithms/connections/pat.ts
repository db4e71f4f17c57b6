import { PatMoves, patEnds, patStoreBytes } from '../../../planner/schedule/pat-rounds.js';
import { callKinds } from '../../device/kernels/kernels.js';
import { InternalError } from '../../../errors.js';
import type { PeerConnections } from '../../transport/peers.js';
import type { FifoSize } from '../../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import { alignedPiece } from '../alignment.js';
import type { Combiner } from './combiner.js';
import { HEADER_BYTES, type Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';
import { BUFFER_SLICE_BYTES } from '../slices.js';
import { connected, endsOf, WorkerTrack } from './worker-track.js';

/** Longest message: its blocks together. */
const MESSAGE_BYTES = BUFFER_SLICE_BYTES;
const patFifo: FifoSize = { steps: 4, slotBytes: HEADER_BYTES + MESSAGE_BYTES };

/**
 * The algorithm *PAT* (parallel aggregated trees): all-gather and reduce-scatter in log2(n) rounds, for any number of ranks
 * and for small data, where the n - 1 messages of a ring take longest. See planner/schedule/pat-rounds.ts.
 */
export const pat: NetworkAlgorithm = {
  fifo: () => patFifo,
  ends: ({ order: { length } }, rank) => endsOf([patEnds(rank, length)]),
  open: ({ combiner, order, rank, connections }) => new Pat(combiner, rank, order.length, connections),
};

class Pat implements NetworkPlayer {
  readonly #moves: PatMoves;
  readonly #track: WorkerTrack;
  readonly #tracks: readonly Track[];
  readonly #columnBytes: number;

  constructor(combiner: Combiner, rank: number, nRanks: number, connections: PeerConnections) {
    const messageBytes = Math.min(...connections.sends.map(({ size }) => size.slotBytes)) - HEADER_BYTES;
    this.#columnBytes = alignedPiece(messageBytes, Math.ceil(nRanks / 2));
    this.#moves = new PatMoves(rank, nRanks);
    const ends = patEnds(rank, nRanks);
    const store = combiner.team.allocateBytes(patStoreBytes(nRanks, this.#columnBytes));
    this.#track = new WorkerTrack(combiner, this.#moves, connected(endsOf([ends]), connections)(ends), store);
    this.#tracks = [this.#track];
  }

  start(call: NetworkCall): readonly Track[] {
    const { kind, bytes } = call;
    if (kind === callKinds.allGather) this.#moves.startAllGather(bytes, this.#columnBytes, !call.isInPlace);
    else if (kind === callKinds.reduceScatter) this.#moves.startReduceScatter(bytes, this.#columnBytes);
    else throw new InternalError('INTERNAL', `PAT has no call of kind ${kind}`);
    this.#track.start();
    return this.#tracks;
  }
}
