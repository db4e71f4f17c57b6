import type { EngineCall } from '../queued-call.js';
import { oddRanks } from '../../bootstrap/rank-list.js';
import { callKinds, DONE, MET, PENDING, type Kernels } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import type { Team } from '../../device/team.js';
import { int32, type DataType, type NumericArray } from '../../device/types.js';
import { InvalidUsageError, namingCall } from '../../../errors.js';
import { alignedPiece, alignedShare } from '../alignment.js';
import { isFromRoot, isToRoot, isScan, divides, gathers } from '../call-traits.js';
import { derivedOf, kindOf } from '../call.js';
import { CopyDirection } from './direct-direction.js';
import { InputWay } from './direct-input-way.js';
import { ExchangePlan } from './direct-plan.js';
import { Operand } from '../operand.js';
import { PartTables } from './direct-tables.js';
import { CLOSED, HELPS, OPEN, Posts, SPREADS, STAGED, SWAPS } from './direct-posts.js';
import { Reduction } from './direct-reduction.js';
import { RootedCopies } from './direct-rooted.js';
import { TwoOutputCopy } from './direct-spread.js';
import type { StagingMemory } from './direct-staging.js';
import { defined } from '../../../defined.js';

/** Polls for the other ranks before this rank copies its own block out of turn. */
const POLLS_BEFORE_OWN_COPY = 200;

/**
 * All collectives except all-reduce, of ranks that share a segment, for more than a few bytes. Each rank posts the addresses
 * of its arrays and waits for all posts (*meet*). Then each copies or combines its data directly from the others' arrays into
 * its own, wherever that is, and finally waits until no rank needs its arrays any more.
 *
 *      all inputs in the segment   | meet, take | finish |
 *      some outside                | meet, take | fill, meet, take a piece | fill, meet, take a piece | … | finish |
 *
 * Ranks whose input lies outside the segment copy it piece by piece to staging memory, from which the others take it; all
 * ranks meet in every round. In some calls, ranks also write to others' memory, or share the work in another way:
 *
 *      gather      into an array in the segment, the senders write
 *      broadcast, scatter, gather
 *                  a root with nothing to copy for itself copies a part of each block (direct-rooted.ts)
 *      allToAll    if all ranks work in place in the segment, pairs of ranks swap parts, each rank one half of them
 *      allGather, broadcast
 *                  two ranks write large blocks to both outputs in one pass (direct-spread.ts)
 *      reduce      each rank reduces its share of all inputs into the root's output, unless that output and inputs lie
 *                  outside and are not staged
 */
export class DirectExchange {
  readonly #kernels: Kernels;
  readonly #rank: number;
  readonly #nRanks: number;
  readonly #plan: ExchangePlan;
  readonly #source: Operand;
  readonly #destination: Operand;
  readonly #tables: PartTables;
  /** Posts of all ranks. */
  readonly #posts: Posts;
  readonly #way: InputWay;
  readonly #direction: CopyDirection;
  readonly #reduction: Reduction;
  readonly #rooted: RootedCopies;
  readonly #spread: TwoOutputCopy;

  // State of the running call.
  #code = 0;
  #kind = 0;
  #type: DataType = int32;
  #root = 0;
  #count = 0;
  #round = 0;
  #rounds = 0;
  /** True if input and output share memory that others take from piece by piece. */
  #inPlace = false;
  /** True if this rank has copied its own block; and if it copies it while the others take their last data. */
  #ownTaken = false;
  #takesOwnLast = false;
  /** Contents of this rank's post. */
  #address = 0;
  #target = 0;
  #flags = 0;
  #table = 0;
  #place = 0;
  /** True if this rank must retry its work of this round, because the data to read were not there. */
  #unfinished = false;

  constructor(
    readonly team: Team,
    libc: Libc | undefined,
    readonly stage: StagingMemory,
  ) {
    const { segment, localRank, nLocalRanks } = team;
    this.#kernels = team.kernels;
    this.#rank = localRank;
    this.#nRanks = nLocalRanks;
    this.#plan = new ExchangePlan(localRank, nLocalRanks, team.stageBytes);
    this.#source = new Operand(segment, libc);
    this.#destination = new Operand(segment, libc);
    this.#tables = new PartTables(team);
    this.#posts = new Posts(team);
    this.#way = new InputWay(localRank, nLocalRanks, this.#plan, this.#posts);
    this.#direction = new CopyDirection(nLocalRanks);
    this.#reduction = new Reduction(team, stage, this.#posts, this.#source, this.#destination);
    this.#rooted = new RootedCopies(localRank, nLocalRanks, this.#plan, this.#posts, this.#source, this.#destination);
    this.#spread = new TwoOutputCopy(team, this.#plan, this.#posts, this.#source, this.#destination);
  }

  /**
   * Starts a call and progresses until it has to wait. Returns PENDING, DONE, or a mismatch like the kernels.
   *
   * @throws InvalidUsageError `CALL_MISMATCH` on all ranks when one rank sends another count than its receiver expects
   *   (allToAllV)
   */
  begin({ type, root, send, recv, count, details }: EngineCall, code: number, spins: number): number {
    this.#code = code;
    this.#type = type;
    this.#root = root;
    this.#count = count;
    this.#round = this.#rounds = 0;
    this.#unfinished = false;
    this.#kind = kindOf(code);
    this.#plan.start(this.#kind, root, count, type.bytes, details);
    this.#way.start(code, root);
    this.#rooted.start(this.#kind, root);
    this.#usePlaces(send, recv);
    const isPlaced = (this.#flags & (STAGED | OPEN | CLOSED)) === 0;
    this.#direction.start(this.#kind, isPlaced ? count * type.bytes : 0);
    const { isBackward } = this.#direction;
    let status = this.#meet(isBackward ? Math.min(spins, POLLS_BEFORE_OWN_COPY) : 0);
    if (status < 0) return status;
    if (!this.#takesOwnLast && (!isBackward || status === PENDING)) this.#copyOwn();
    if (status === PENDING) status = this.#kernels.progress(spins);
    return this.#run(status, spins);
  }

  progress(spins: number): number {
    if ((this.#flags & OPEN) !== 0) this.#source.checkAttached(1);
    return this.#run(this.#unfinished ? MET : this.#kernels.progress(spins), spins);
  }

  /** Members whose input this rank reads from their private memory, while it cannot. */
  unread(): number[] {
    if (!this.#unfinished) return [];
    const members = Array.from({ length: this.#nRanks }, (_, member) => member);
    return members.filter((member) => member !== this.#rank && this.#posts.has(member, OPEN));
  }

  /** Lengths in bytes of the parts that a rank posted for a V form. */
  partsOf(rank: number): number[] {
    return this.#tables.partsAt(this.#posts.table(rank));
  }

  /**
   * Error for two ranks that do not expect of each other what they send, once all have posted the running call; undefined if all
   * do, or it is not such a call. The same on every rank.
   */
  partsError(): InvalidUsageError | undefined {
    if (this.#kind !== callKinds.allToAllV) return undefined;
    const found = this.#tables.disagreement(Array.from({ length: this.#nRanks }, (_, rank) => this.#posts.table(rank)));
    if (found === undefined) return undefined;
    const { sender, receiver, sentBytes, expectedBytes } = found;
    const { bytes, name } = this.#type;
    return namingCall(
      new InvalidUsageError(
        'CALL_MISMATCH',
        `${derivedOf(this.#code) ?? 'allToAllV'}: rank ${sender} sends ${sentBytes / bytes} ${name} to rank ${receiver}, which expects ${expectedBytes / bytes}; ` +
          'the count of each sender must equal the count of its receiver',
        { ranks: oddRanks([[sender], [receiver]]) },
      ),
    );
  }

  /** Drops the references to the caller's arrays. */
  forget(): void {
    this.#source.forget();
    this.#destination.forget();
  }

  /** Continues from a status of the kernels until the call has to wait. */
  #run(status: number, spins: number): number {
    while (true) {
      if (status === MET) {
        // The rank whose data are missing has failed, or left: its error arrives while this one waits, or check() sees it.
        this.#unfinished = !this.#work();
        if (this.#unfinished) return PENDING;
        if (!this.#ownTaken && this.#round === this.#rounds) {
          this.#kernels.finish(0, 0); // other ranks need not wait for this one
          this.#copyOwn();
        }
        status = this.#kernels.finish(this.#waits() ? 1 : 0, spins);
      } else if (status === DONE) {
        this.#takeResult();
        if (this.#round === this.#rounds) {
          this.#way.ended();
          this.forget();
          return DONE;
        }
        this.#round++;
        this.#fill();
        status = this.#meet(spins);
      } else return status;
    }
  }

  // ── places ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Determines where this rank's arrays are, and the contents of its post. */
  #usePlaces(send: NumericArray, recv: NumericArray): void {
    const isRoot = this.#rank === this.#root;
    const sends = !isFromRoot(this.#kind) || isRoot;
    const receives = !isToRoot(this.#kind) || isRoot;
    const source = this.#source;
    const destination = this.#destination;
    this.#address = this.#target = this.#flags = this.#table = this.#place = 0;
    this.#inPlace = this.#ownTaken = false;
    if (sends) {
      source.use(send);
      this.#inPlace = (this.#kind === callKinds.allToAll || isScan(this.#kind)) && isSamePlace(send, recv);
      if (source.placed) this.#address = source.address(0);
      if (!source.placed || this.#inPlace) this.#flags |= STAGED;
      if (source.placed && this.#inPlace && this.#kind === callKinds.allToAll) this.#flags |= SWAPS;
    }
    if (receives) {
      destination.use(recv);
      if (destination.placed) this.#target = destination.address(0);
      else {
        this.#flags |= CLOSED;
        if (this.#kind === callKinds.reduce)
          this.#target = this.stage.scratch(Math.min(this.#count * this.#type.bytes, this.#plan.pieceBytes));
      }
    }
    this.#reduction.nSources = sourcesOf(this.#kind, this.#rank, this.#nRanks);
    if (this.#plan.reduces && receives) this.#reduction.start(this.#code, this.#type);
    // If the others take all of the input, this rank's part of an output in the segment serves as the input.
    if (sends && !source.placed && destination.placed && gathers(this.#kind) && !divides(this.#kind) && !isToRoot(this.#kind)) {
      this.#copyOwn();
      this.#address = destination.address((this.#plan.takeTo[this.#rank] ?? 0) - (this.#plan.takeFrom[this.#rank] ?? 0));
      this.#flags &= ~STAGED;
    }
    if ((this.#flags & STAGED) !== 0 && !this.#inPlace && this.#way.opens()) {
      this.#place = source.open();
      if (this.#place !== 0) this.#flags = (this.#flags & ~STAGED) | this.#way.openFlags();
    }
    this.#flags |= this.#rooted.helpFlags() | this.#spread.start(this.#kind, this.#root);
    this.#takesOwnLast = (isRoot && isFromRoot(this.#kind) && !source.placed) || (this.#flags & SPREADS) !== 0;
    this.#flags |= this.#way.choiceFlags((sends && !source.placed) || (receives && !destination.placed));
    if (this.#plan.uneven) this.#table = this.#tables.write(this.#plan.partFrom, this.#plan.wholeParts, this.#plan.wholeTakes);
  }

  /** Copies this rank's own block, unless done. */
  #copyOwn(): void {
    if (this.#ownTaken) return;
    this.#ownTaken = true;
    const { takeFrom, takeTo, takeBytes, partFrom, reduces } = this.#plan;
    if (reduces) return;
    const me = this.#rank;
    const from = this.#kind === callKinds.allToAllV ? partFrom[me] : takeFrom[me];
    const bytes = takeBytes[me] ?? 0;
    this.#destination.copyFrom(this.#source, from ?? 0, takeTo[me] ?? 0, bytes, this.#direction.copiesBackward(bytes));
  }

  /** Copies this round's piece of each part from this rank's input to its staging memory. */
  #fill(): void {
    if ((this.#flags & STAGED) === 0 || (this.#kind === callKinds.gather && this.#rank === this.#root)) return;
    const { partFrom, partBytes, pieceBytes, nParts, divided } = this.#plan;
    const stage = this.stage.next(nParts * pieceBytes);
    const done = (this.#round - 1) * pieceBytes;
    for (let part = 0; part < nParts; part++) {
      if (divided && part === this.#rank) continue;
      const bytes = Math.min(pieceBytes, (partBytes[part] ?? 0) - done);
      if (bytes > 0) this.#source.copyTo(stage + part * pieceBytes, (partFrom[part] ?? 0) + done, bytes);
    }
    this.#address = stage;
  }

  #meet(spins: number): number {
    return this.#kernels.meet(
      this.#code,
      this.#root,
      this.#count,
      this.#address,
      this.#target,
      this.#flags,
      this.#table,
      this.#place,
      spins,
    );
  }

  // ── work ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** True if this rank waits until all have finished the round, because others read its data or write its output. */
  #waits(): boolean {
    const isRoot = this.#rank === this.#root;
    const last = this.#round === this.#rounds;
    if (this.#kind === callKinds.reduce && isRoot) return this.#round > 0 || last;
    if (!last) return false;
    if ((!isRoot && this.#rooted.helps(this.#rank)) || this.#spreads()) return true;
    if (this.#kind === callKinds.gather)
      return isRoot ? this.#target !== 0 : (this.#flags & STAGED) === 0 && this.#rootIsClosed();
    if (isFromRoot(this.#kind)) return isRoot && (this.#flags & STAGED) === 0;
    return (this.#flags & STAGED) === 0 || this.#allSwap();
  }

  /** Does this rank's work of a round. Returns false if it could not, because another rank has gone. */
  #work(): boolean {
    this.#posts.read(this.#round === 0);
    if (this.#round === 0) {
      this.#flags = this.#way.settle(this.#flags);
      this.#learn();
    }
    if (this.#kind === callKinds.reduce)
      return !this.#rootReducesAll() ? this.#reduceShare() : this.#rank !== this.#root || this.#reducePart();
    if (this.#plan.reduces) return this.#reducePart();
    if (this.#spreads()) {
      this.#spread.run();
      this.#ownTaken = true;
      return true;
    }
    if ((this.#flags & HELPS) !== 0) this.#rooted.help();
    if (this.#kind === callKinds.gather && !this.#rootIsClosed()) this.#rooted.put();
    else if (this.#kind === callKinds.allToAll && this.#allSwap()) this.#swap();
    else return this.#take();
    return true;
  }

  /** Determines the number of rounds from the first posts. */
  #learn(): void {
    let longest = 0;
    if (this.#kind === callKinds.allToAllV) this.#learnParts();
    for (let r = 0; r < this.#nRanks; r++) {
      if (!this.#posts.has(r, STAGED)) continue;
      if (this.#kind === callKinds.allToAllV)
        longest = Math.max(longest, ...this.#tables.partsAt(this.#posts.table(r)).map((bytes) => this.#plan.bytesOf(bytes)));
      else if (this.#kind === callKinds.allGatherV) longest = Math.max(longest, this.#plan.takeBytes[r] ?? 0);
      else if (this.#kind === callKinds.reduceScatterV) longest = Math.max(...this.#plan.partBytes);
      else if (this.#kind !== callKinds.gather || (r !== this.#root && this.#rootIsClosed()))
        longest = this.#plan.partBytes[0] ?? 0;
    }
    if (this.#kind === callKinds.reduce && this.#rootIsClosed() && !this.#rootReducesAll())
      longest = this.#count * this.#type.bytes;
    const alone = this.#nRanks === 1 && !this.#plan.reduces;
    this.#rounds = alone || this.#allSwap() ? 0 : Math.ceil(longest / this.#plan.pieceBytes);
    this.#plan.fitPieces(longest);
  }

  /** Reads where the others have this rank's parts. */
  #learnParts(): void {
    const error = this.partsError();
    if (error !== undefined) throw error;
    for (let rank = 0; rank < this.#nRanks; rank++)
      this.#plan.takeFrom[rank] = this.#tables.sendFrom(this.#posts.table(rank), this.#rank);
  }

  #rootIsClosed(): boolean {
    return this.#posts.has(this.#root, CLOSED);
  }

  /**
   * True if the root reduces alone: it reads open arrays, and shares of other ranks would come through its scratch memory,
   * whose cache lines move back and forth as often as staged ones.
   */
  #rootReducesAll(): boolean {
    return this.#rootIsClosed() && this.#posts.anyHas(OPEN) && !this.#posts.anyHas(STAGED);
  }

  /** True if each rank copies a block to all outputs. */
  #spreads(): boolean {
    return (this.#flags & SPREADS) !== 0 && this.#posts.allHave(SPREADS);
  }

  /** True if all ranks work in place in the segment. */
  #allSwap(): boolean {
    return (this.#flags & SWAPS) !== 0 && this.#posts.allHave(SWAPS);
  }

  /**
   * Takes the data that are available in this round: in the first, everything from inputs in the segment, then pieces of the
   * others. A rank that works in place would overwrite data that others need, so it takes all in pieces.
   */
  #take(): boolean {
    const { takeFrom, takeTo, takeBytes, pieceBytes, divided } = this.#plan;
    const done = (this.#round - 1) * pieceBytes;
    for (let i = 1; i < this.#nRanks; i++) {
      const r = (this.#rank + (this.#direction.isBackward ? this.#nRanks - i : i)) % this.#nRanks;
      const staged = this.#posts.has(r, STAGED);
      const inPieces = staged || this.#inPlace;
      if (inPieces === (this.#round === 0)) continue;
      const at = inPieces ? done : 0;
      const bytes = Math.min(inPieces ? pieceBytes : Infinity, this.#rooted.ownPart(takeBytes[r] ?? 0) - at);
      if (bytes <= 0) continue;
      const from = this.#posts.source(r) + (staged ? (divided ? this.#rank * pieceBytes : 0) : (takeFrom[r] ?? 0) + at);
      const to = (takeTo[r] ?? 0) + at;
      if (!this.#posts.has(r, OPEN)) this.#destination.write(to, bytes, from, this.#direction.copiesBackward(bytes));
      else if (!this.#destination.readFrom(to, bytes, defined(this.team.members[r]), from)) return false;
    }
    return this.#posts.areValid();
  }

  /** Exchanges parts with all others; each rank of a pair moves one half. */
  #swap(): void {
    const {
      partFrom,
      partBytes: [bytes = 0],
    } = this.#plan;
    const half = alignedPiece(bytes, 2);
    for (let i = 1; i < this.#nRanks; i++) {
      const r = (this.#rank + i) % this.#nRanks;
      const [from, length] = this.#rank < r ? [0, half] : [half, bytes - half];
      this.#kernels.swap(
        this.#posts.source(this.#rank) + (partFrom[r] ?? 0) + from,
        this.#posts.source(r) + (partFrom[this.#rank] ?? 0) + from,
        length,
      );
    }
  }

  /** Combines this rank's part of all inputs: in the first round if all can be taken whole, otherwise piece by piece. */
  #reducePart(): boolean {
    if ((this.#round === 0) !== (this.#rounds === 0)) return true;
    const { takeFrom, takeTo, takeBytes, pieceBytes, divided } = this.#plan;
    const done = this.#rounds === 0 ? 0 : (this.#round - 1) * pieceBytes;
    const bytes = Math.min(this.#rounds === 0 ? Infinity : pieceBytes, (takeBytes[this.#rank] ?? 0) - done);
    return this.#reduction.intoOutput(
      (takeTo[this.#rank] ?? 0) + done,
      (takeFrom[this.#rank] ?? 0) + done,
      divided ? this.#rank * pieceBytes : 0,
      bytes,
    );
  }

  /** Combines this rank's share of all inputs into the root's output, or of a piece into the root's scratch memory. */
  #reduceShare(): boolean {
    if ((this.#round === 0) !== (this.#rounds === 0)) return true;
    const { pieceBytes } = this.#plan;
    const all = this.#count * this.#type.bytes;
    const done = this.#rounds === 0 ? 0 : (this.#round - 1) * pieceBytes;
    const bytes = this.#rounds === 0 ? all : Math.min(pieceBytes, all - done);
    const share = alignedShare(bytes, this.#nRanks);
    const from = share * this.#rank;
    const target = this.#posts.destination(this.#root) + (this.#rootIsClosed() ? 0 : done);
    return this.#reduction.into(target + from, done + from, from, Math.min(share, bytes - from));
  }

  /** Copies the results that the ranks have written to the root's scratch memory. */
  #takeResult(): void {
    if (this.#kind !== callKinds.reduce || this.#rank !== this.#root || this.#destination.placed || this.#round === 0) return;
    const done = (this.#round - 1) * this.#plan.pieceBytes;
    this.#destination.write(done, Math.min(this.#plan.pieceBytes, this.#count * this.#type.bytes - done), this.#target);
  }
}

/** True if two arrays begin at the same byte. */
function isSamePlace(a: NumericArray, b: NumericArray): boolean {
  return a === b || (a.buffer === b.buffer && a.byteOffset === b.byteOffset);
}

/** Number of ranks, from rank 0 on, whose inputs a rank combines. */
function sourcesOf(kind: number, rank: number, nRanks: number): number {
  return kind === callKinds.scan ? rank + 1 : kind === callKinds.exscan ? rank : nRanks;
}
