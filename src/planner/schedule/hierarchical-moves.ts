import { Moves, partBytes, type RankBlocks } from './moves.js';

/*
 * The moves of workers in hierarchical collectives; hierarchical.ts has their connections.
 */

export type HierarchicalRole = 'up' | 'owner' | 'down';

/** Role and position of a rank in a share. */
export interface WorkerPlace {
  readonly share: number;
  readonly role: HierarchicalRole;
  /** Position of the rank's host, and the number of hosts. */
  readonly host: number;
  readonly nHosts: number;
  /** Position of the rank on its host. */
  readonly local: number;
  /** By host: the rank whose block the share carries in an all-gather or reduce-scatter; -1 for none. */
  readonly blockRanks: readonly number[];
}

/** Position of a rank, and the first share that it owns. */
export interface RankPlace {
  readonly host: number;
  readonly local: number;
  readonly share: number;
}

/**
 * Numbers of an owner's sets in a ring: bits for the wire and for all others of the host, then sets for a root on this host.
 */
const WIRE = 1;
const HOST = 2;
/** Receives: from rank `local` of this host alone. */
const fromOnly = (local: number): number => 4 + local;
/** Sends: to all of this host but rank `local`, with WIRE over the wire too; and to that rank alone. */
const toOthers = (local: number): number => 4 + 3 * local;
const toOnly = (local: number): number => 6 + 3 * local;

// ── large calls: a ring of hosts for each share ───────────────────────────────────────────────────────────────────────

/** Sizes by which a share is cut. */
export interface ShareCut {
  /** Most bytes in a message; a multiple of `grainBytes`. */
  readonly sliceBytes: number;
  /** Messages of a chunk. A connection holds two chunks, so that ranks that send first have room. */
  readonly slicesPerChunk: number;
  readonly grainBytes: number;
}

type RingKind = 'allReduce' | 'reduceScatter' | 'allGather' | 'broadcast' | 'reduce';

/**
 * The moves of a share among H hosts: a ring of their owners. In an all-reduce a share is cut into columns of H chunks. In step
 * s, host h works on chunk h - s:
 *
 *     step    0             1 … H - 2              H - 1                          H … 2H - 3         2H - 2
 *     owner   add its host  receive, add its host  receive, add its host: result  receive: result    receive: result
 *             send          send                   send, keep, down               send, keep, down   keep, down
 *     up      send          send                   send
 *     down                                         keep                           keep               keep
 *
 * A reduce-scatter is its first half, on the blocks that the share carries, shifted by one host; an all-gather is its second
 * half. A broadcast is a chain of hosts from the root's, where the root is the only rank with a move up, and a reduce a chain
 * that ends at the root's host, where the root is the only rank with a move down. With one host there is one step.
 */
export class ShareMoves extends Moves {
  /** Offset of the data of an all-gather or broadcast in the outputs of all ranks. */
  target = 0;
  readonly #worker: WorkerPlace;
  readonly #isUp: boolean;
  readonly #isOwner: boolean;
  #kind: RingKind = 'allReduce';
  #cut: ShareCut = { sliceBytes: 1, slicesPerChunk: 1, grainBytes: 1 };
  #nSteps = 0;
  #columnBytes = 0;
  #end = 0;
  #column = 0;
  #step = 0;
  /** The column whose last step is still to come after the current step; -1 for none. */
  #behind = -1;
  /** The rest of the chunk, and the start of its offsets in the input and the output; -1 if not used. */
  #from = 0;
  #to = 0;
  #ownBase = -1;
  #keepBase = -1;
  #targetBase = 0;
  #blocks: RankBlocks | undefined;
  #root: RankPlace | undefined;
  /** True if a rank that has the data already must write them to its output. */
  #copies = false;

  constructor(worker: WorkerPlace) {
    super();
    this.#worker = worker;
    this.#isUp = worker.role === 'up';
    this.#isOwner = worker.role === 'owner';
  }

  /** Begins a call, whose share is the `bytes` bytes at `from`. */
  startAllReduce(from: number, bytes: number, cut: ShareCut): void {
    this.#start('allReduce', from, bytes, cut, 2 * this.#worker.nHosts - 1, this.#worker.nHosts);
  }

  /** @param copies true if the root's output is another array than its input */
  startBroadcast(from: number, bytes: number, cut: ShareCut, root: RankPlace, copies: boolean): void {
    this.#root = root;
    this.#copies = copies;
    this.#start('broadcast', from, bytes, cut, 1, 1);
  }

  startReduce(from: number, bytes: number, cut: ShareCut, root: RankPlace): void {
    this.#root = root;
    this.#start('reduce', from, bytes, cut, 1, 1);
  }

  /** @param copies true if this rank's block is not yet in its place in the output, whose blocks are given */
  startAllGather(blocks: RankBlocks, cut: ShareCut, copies: boolean): void {
    this.#blocks = blocks;
    this.#copies = copies;
    this.#start('allGather', 0, blocks.longest, cut, this.#worker.nHosts, 1);
  }

  /** @param blocks of the input */
  startReduceScatter(blocks: RankBlocks, cut: ShareCut): void {
    this.#blocks = blocks;
    this.#start('reduceScatter', 0, blocks.longest, cut, this.#worker.nHosts, 1);
  }

  next(): void {
    this.#from += this.bytes;
    if (this.#from < this.#to) {
      this.#take();
      return;
    }
    this.#advance();
    this.#enter();
  }

  #start(kind: RingKind, from: number, bytes: number, cut: ShareCut, nSteps: number, nChunks: number): void {
    this.#kind = kind;
    this.#cut = cut;
    this.#nSteps = nSteps;
    this.#columnBytes = nChunks * cut.slicesPerChunk * cut.sliceBytes;
    this.#column = from;
    this.#end = from + bytes;
    this.#step = 0;
    this.#behind = -1;
    this.done = bytes === 0;
    if (!this.done) this.#enter();
  }

  /** Enters the current step, or the next one in which this worker has data. */
  #enter(): void {
    while (!this.done) {
      if (this.#isConcerned() && this.#from < this.#to) {
        this.#take();
        return;
      }
      this.#advance();
    }
  }

  /**
   * Moves on to the next step. The last step of a column sends nothing over the wire, so the first step of the next column comes
   * before it and keeps the wire busy.
   */
  #advance(): void {
    const last = this.#nSteps - 1;
    if (this.#behind >= 0) {
      this.#column = this.#behind;
      this.#behind = -1;
      this.#step = last;
      return;
    }
    if (this.#step === last) {
      this.#column += this.#columnBytes;
      this.#step = Math.min(1, last);
      this.done = this.#column >= this.#end;
    } else {
      this.#step++;
    }
    if (last === 0 || this.#step < last || this.#column + this.#columnBytes >= this.#end) return;
    this.#behind = this.#column;
    this.#column += this.#columnBytes;
    this.#step = 0;
  }

  /** Sets the current step's move. Returns false if this worker has none in it. */
  #isConcerned(): boolean {
    this.#ownBase = -1;
    this.#keepBase = -1;
    this.#targetBase = 0;
    this.complete = false;
    switch (this.#kind) {
      case 'allReduce':
        return this.#inAllReduce();
      case 'reduceScatter':
        return this.#inReduceScatter();
      case 'allGather':
        return this.#inAllGather();
      case 'broadcast':
        return this.#inBroadcast();
      case 'reduce':
        return this.#inReduce();
    }
  }

  #inAllReduce(): boolean {
    const { host, nHosts } = this.#worker;
    const step = this.#step;
    const bytes = Math.min(this.#columnBytes, this.#end - this.#column);
    const chunk = (host - step + 2 * nHosts) % nHosts;
    const part = partBytes(bytes, nHosts, this.#cut.grainBytes);
    this.#from = this.#column + Math.min(bytes, chunk * part);
    this.#to = this.#column + Math.min(bytes, (chunk + 1) * part);
    const adds = step < nHosts;
    const isWhole = step >= nHosts - 1;
    if (adds && (this.#isUp || this.#isOwner)) this.#ownBase = 0;
    if (isWhole && !this.#isUp) this.#keepBase = 0;
    if (!this.#isOwner) return this.#isUp ? adds : isWhole;
    this.receives = (step > 0 ? WIRE : 0) | (adds ? HOST : 0);
    this.sends = (step < 2 * nHosts - 2 ? WIRE : 0) | (isWhole ? HOST : 0);
    this.complete = step === nHosts - 1;
    return true;
  }

  #inReduceScatter(): boolean {
    const { host, nHosts } = this.#worker;
    const step = this.#step;
    const base = this.#setBlock((host - step - 1 + 2 * nHosts) % nHosts);
    this.#ownBase = base;
    if (!this.#isOwner) return this.#isUp;
    const isLast = step === nHosts - 1;
    if (isLast) this.#keepBase = 0;
    this.complete = isLast;
    this.receives = (step > 0 ? WIRE : 0) | HOST;
    this.sends = isLast ? 0 : WIRE;
    return true;
  }

  #inAllGather(): boolean {
    const { host, nHosts } = this.#worker;
    const step = this.#step;
    const base = this.#setBlock((host - step + nHosts) % nHosts);
    this.#targetBase = base;
    if (!this.#isOwner || step > 0 || this.#copies) this.#keepBase = base;
    if (!this.#isOwner) return !this.#isUp;
    if (step === 0) this.#ownBase = 0;
    this.receives = step > 0 ? WIRE : 0;
    this.sends = (step < nHosts - 1 ? WIRE : 0) | HOST;
    return true;
  }

  #inBroadcast(): boolean {
    const { nHosts, local } = this.#worker;
    const distance = this.#setChain();
    const root = this.#root?.local ?? 0;
    const isRoot = distance === 0 && local === root;
    if (isRoot) this.#ownBase = 0;
    if (!isRoot || this.#copies) this.#keepBase = 0;
    if (!this.#isOwner) return this.#isUp === isRoot;
    const wire = distance < nHosts - 1 ? WIRE : 0;
    const isFromHere = distance === 0 && !isRoot;
    this.receives = isFromHere ? fromOnly(root) : distance > 0 ? WIRE : 0;
    this.sends = isFromHere ? toOthers(root) + wire : wire | HOST;
    return true;
  }

  #inReduce(): boolean {
    const { nHosts, local } = this.#worker;
    const distance = this.#setChain();
    const root = this.#root?.local ?? 0;
    const isRoot = distance === 0 && local === root;
    if (this.#isUp || this.#isOwner) this.#ownBase = 0;
    if (isRoot && !this.#isUp) this.#keepBase = 0;
    if (!this.#isOwner) return this.#isUp || isRoot;
    // The chain begins behind the root's host and ends there.
    this.receives = (distance === 1 || nHosts === 1 ? 0 : WIRE) | HOST;
    this.sends = distance > 0 ? WIRE : isRoot ? 0 : toOnly(root);
    this.complete = distance === 0;
    return true;
  }

  /** Selects the column's part of the block that the share has of a host. Returns where the block begins. */
  #setBlock(host: number): number {
    const rank = this.#worker.blockRanks[host] ?? -1;
    const bytes = rank < 0 ? 0 : (this.#blocks?.bytes[rank] ?? 0);
    this.#from = Math.min(this.#column, bytes);
    this.#to = Math.min(this.#column + this.#columnBytes, bytes);
    return rank < 0 ? 0 : (this.#blocks?.from[rank] ?? 0);
  }

  /** Selects the column. Returns how many hosts behind the root's this one is. */
  #setChain(): number {
    const { host, nHosts } = this.#worker;
    this.#from = this.#column;
    this.#to = Math.min(this.#column + this.#columnBytes, this.#end);
    return (host - (this.#root?.host ?? 0) + nHosts) % nHosts;
  }

  #take(): void {
    this.bytes = Math.min(this.#cut.sliceBytes, this.#to - this.#from);
    this.own = this.#ownBase < 0 ? -1 : this.#ownBase + this.#from;
    this.keep = this.#keepBase < 0 ? -1 : this.#keepBase + this.#from;
    this.target = this.#targetBase + this.#from;
  }
}

// ── small calls: owners exchange whole sums ───────────────────────────────────────────────────────────────────────────

/** A move of a small call, on all of its data. */
export interface ExchangeMove {
  readonly own: boolean;
  readonly keep: boolean;
  readonly complete: boolean;
  readonly held: Moves['held'];
  readonly holds: boolean;
}

export const sendOwn: ExchangeMove = { own: true, keep: false, complete: false, held: 'none', holds: false };
export const keepAll: ExchangeMove = { own: false, keep: true, complete: false, held: 'none', holds: false };

interface ExchangeStep {
  readonly move: ExchangeMove;
  /** Host that it receives from; -1: the ranks of this host. */
  readonly from: number;
  readonly to: readonly number[];
}

/**
 * Moves of the owner of share 0 on a host in a small call: recursive doubling among hosts, so that data cross log2(H) wires
 * in sequence. Hosts beyond the largest power of two give their sum to another host first, and get the result from it. Sums
 * are added in the order of the hosts on both sides, so all hosts get the same bits.
 */
export function exchangeSteps(host: number, nHosts: number): ExchangeStep[] {
  const power = 2 ** Math.floor(Math.log2(nHosts));
  if (host >= power)
    return [
      { from: -1, to: [host - power], move: sendOwn },
      { from: host - power, to: [], move: keepAll },
    ];
  const beyond = host + power < nHosts ? [host + power] : [];
  const partners: number[] = [];
  for (let bit = 1; bit < power; bit *= 2) partners.push(host ^ bit);
  const sources = [-1, ...beyond, ...partners];
  return sources.map((from, index) => {
    const isLast = index === sources.length - 1;
    const next = sources[index + 1] ?? -1;
    return {
      from,
      to: isLast ? beyond : next >= power ? [] : [next],
      move: {
        own: index === 0,
        keep: isLast,
        complete: isLast,
        held: index === 0 ? 'none' : host < from ? 'first' : 'last',
        holds: !isLast,
      },
    };
  });
}

/** Goes through the moves of a small call. */
export class ExchangeMoves extends Moves {
  constructor(readonly moves: readonly ExchangeMove[]) {
    super();
  }

  start(bytes: number): void {
    this.bytes = bytes;
    this.#enter(0);
  }

  next(): void {
    this.#enter(this.sends + 1);
  }

  #enter(number: number): void {
    const move = this.moves[number];
    this.done = move === undefined;
    if (move === undefined) return;
    this.receives = number;
    this.sends = number;
    this.own = move.own ? 0 : -1;
    this.keep = move.keep ? 0 : -1;
    this.complete = move.complete;
    this.held = move.held;
    this.holds = move.holds;
    this.isPlain = move.held === 'none' && !move.holds;
  }
}
