import type { CollectiveName } from './collectives.js';
import type { Combining, Part, PeerStep } from './memory.js';

/** Elements of a call that a piece of it has: `length` of each part, from `from` on. */
export interface Piece {
  readonly from: number;
  readonly length: number;
}

/** A piece of a call between peers, as one rank sees it. Parts are numbered as in the arrays of the call. */
export interface PeerView<Buffer> {
  readonly rank: number;
  readonly nRanks: number;
  readonly root: number;
  readonly elementBytes: number;
  readonly piece: Piece;
  readonly combining: Combining | undefined;
  /** `length` elements, from the piece's element `from` on, of a part of a rank's array. */
  input(rank: number, part: number, from: number, length: number): Part<Buffer>;
  output(rank: number, part: number, from: number, length: number): Part<Buffer>;
}

/** Arrays of ranks that other ranks read or write. */
export interface SharedArrays {
  readonly send?: 'each' | 'root';
  readonly recv?: 'each' | 'root';
}

interface Row extends SharedArrays {
  steps<Buffer>(view: PeerView<Buffer>): readonly PeerStep<Buffer>[];
}

/**
 * Collectives as a direct exchange. Each rank combines its share of the elements, or its part, from the inputs of all ranks, and
 * writes it where it belongs; so every byte passes between two ranks once. What a step writes, no other step of the call reads.
 */
const rows: Readonly<Record<CollectiveName, Row>> = {
  allReduce: { send: 'each', recv: 'each', steps: (view) => combineShare(view, ranksOf(view)) },
  reduce: { send: 'each', recv: 'root', steps: (view) => combineShare(view, [view.root]) },
  reduceScatter: {
    send: 'each',
    steps: (view) => {
      const { rank, piece, combining } = view;
      const sources = ranksOf(view).map((each) => view.input(each, rank, 0, piece.length));
      return [{ sources, destinations: [view.output(rank, 0, 0, piece.length)], combining }];
    },
  },
  broadcast: { send: 'root', steps: (view) => [copyOf(view, [view.root, 0], [view.rank, 0])] },
  scatter: { send: 'root', steps: (view) => [copyOf(view, [view.root, view.rank], [view.rank, 0])] },
  gather: { recv: 'root', steps: (view) => [copyOf(view, [view.rank, 0], [view.root, view.rank])] },
  allGather: { recv: 'each', steps: (view) => othersFirst(view).map((each) => copyOf(view, [view.rank, 0], [each, view.rank])) },
  allToAll: {
    send: 'each',
    steps: (view) => othersFirst(view).map((each) => copyOf(view, [each, view.rank], [view.rank, each])),
  },
};

/** Steps of a rank, without copies of a part to itself. */
export function peerSteps<Buffer>(name: CollectiveName, view: PeerView<Buffer>): readonly PeerStep<Buffer>[] {
  return rows[name].steps(view).filter(({ sources: [from], destinations: [to], combining }) => {
    if (from === undefined || to === undefined || from.bytes === 0) return false;
    return combining !== undefined || from.buffer !== to.buffer || from.offset !== to.offset;
  });
}

export function sharedArrays(name: CollectiveName): SharedArrays {
  return rows[name];
}

/** Vectors of 16 bytes belong to one share, and so do two elements of 8. */
const SHARE_BYTES = 16;

function combineShare<Buffer>(view: PeerView<Buffer>, to: readonly number[]): PeerStep<Buffer>[] {
  const { rank, nRanks, piece, elementBytes, combining } = view;
  const unit = SHARE_BYTES / elementBytes;
  const share = Math.ceil(piece.length / nRanks / unit) * unit;
  const from = Math.min(rank * share, piece.length);
  const length = Math.min(share, piece.length - from);
  const sources = ranksOf(view).map((each) => view.input(each, 0, from, length));
  return [{ sources, destinations: to.map((each) => view.output(each, 0, from, length)), combining }];
}

function copyOf<Buffer>(
  view: PeerView<Buffer>,
  [fromRank, fromPart]: readonly [number, number],
  [toRank, toPart]: readonly [number, number],
): PeerStep<Buffer> {
  const { length } = view.piece;
  return { sources: [view.input(fromRank, fromPart, 0, length)], destinations: [view.output(toRank, toPart, 0, length)] };
}

function ranksOf({ nRanks }: PeerView<unknown>): number[] {
  return Array.from({ length: nRanks }, (_, rank) => rank);
}

/** Ranks from the next one on, so that not all begin with the same one. */
function othersFirst({ rank, nRanks }: PeerView<unknown>): number[] {
  return Array.from({ length: nRanks }, (_, i) => (rank + 1 + i) % nRanks);
}
