import { callKinds, DONE, NO_ROOM, type Kernels } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import type { NumericArray } from '../device/types.js';
import { isDivided, isFromRoot, isToRoot, kindOf } from './call.js';
import type { Stage } from './direct-stage.js';
import { Operand } from './operand.js';

/** Calls other than all-reduce take one phase up to this at least, since not every rank reduces everything (measured). */
const LEAST_BYTES = 1024;

/**
 * Up to how many times `smallBytes` a rank posts its data (measured): a post costs a copy more, which weighs less where
 * only the root has one, and least where each of the others needs but a part of it.
 */
const factorOf: Readonly<Record<number, number>> = {
  [callKinds.scatter]: 8,
  [callKinds.broadcast]: 4,
  [callKinds.allToAll]: 2,
  [callKinds.reduceScatter]: 2,
};

/**
 * Whether *direct* carries out a call of even blocks in one phase, in which a rank's data travel in its post.
 *
 * @param kind its code
 * @param bytes the call's count times its elements' size
 * @param smallBytes up to which all-reduces take one phase; 0: no call does
 */
export function takesOnePhase(kind: number, bytes: number, nRanks: number, smallBytes: number): boolean {
  if (smallBytes === 0 || kind === callKinds.allReduce) return bytes <= smallBytes;
  const posted = isDivided(kind) ? bytes * nRanks : bytes;
  return posted <= Math.max(LEAST_BYTES, (factorOf[kind] ?? 1) * smallBytes);
}

/** What rooms for what ranks post (Stage.makeRoom) take at most: two halves, and the shorter ones that they replace. */
export function mostRoomBytes(smallBytes: number): number {
  return 4 * 2 ** Math.ceil(Math.log2(Math.max(LEAST_BYTES, Math.max(...Object.values(factorOf)) * smallBytes)));
}

/**
 * The one-phase form of all collectives but all-reduce: each rank's data travel in its post. Arrays outside the segment
 * are copied into it before and out of it after.
 */
export class Small {
  readonly #kernels: Kernels;
  readonly #source: Operand;
  readonly #destination: Operand;
  /** What to copy to the output when the call is over: where it is, and how long. */
  #outcome = 0;
  #outcomeBytes = 0;

  constructor(
    readonly team: Team,
    libc: Libc | undefined,
    readonly stage: Stage,
  ) {
    this.#kernels = team.kernels;
    this.#source = new Operand(team.segment, libc);
    this.#destination = new Operand(team.segment, libc);
  }

  /** Whether a call about `bytes` bytes (an element's times the call's count) takes this form; alike on all ranks. */
  fits(kind: number, bytes: number, smallBytes: number): boolean {
    return takesOnePhase(kind, bytes, this.team.nLocalRanks, smallBytes) && bytes * this.team.nLocalRanks <= this.team.stageBytes;
  }

  begin(
    code: number,
    root: number,
    send: NumericArray,
    recv: NumericArray,
    count: number,
    elementBytes: number,
    spins: number,
  ): number {
    const kind = kindOf(code);
    const { localRank, nLocalRanks } = this.team;
    const isRoot = localRank === root;
    const bytes = count * elementBytes;
    this.#outcomeBytes = 0;
    let from = 0;
    let to = 0;
    const posted = isDivided(kind) ? bytes * nLocalRanks : bytes;
    if (!isFromRoot(kind) || isRoot) {
      this.#source.use(send);
      from = this.#source.read(0, posted, this.#source.placed ? 0 : this.stage.next(posted));
    }
    if (!isToRoot(kind) || isRoot) {
      this.#destination.use(recv);
      if (this.#destination.placed) to = this.#destination.address(0);
      else {
        const gathers = kind === callKinds.gather || kind === callKinds.allGather || kind === callKinds.allToAll;
        this.#outcomeBytes = gathers ? bytes * nLocalRanks : bytes;
        to = this.#outcome = this.stage.scratch(this.#outcomeBytes);
      }
    }
    let status = this.#kernels.small(code, root, from, to, count, spins);
    if (status === NO_ROOM) {
      this.stage.makeRoom(posted);
      status = this.#kernels.small(code, root, from, to, count, spins);
    }
    return this.#finish(status);
  }

  progress(spins: number): number {
    return this.#finish(this.#kernels.progress(spins));
  }

  /** Forgets the caller's arrays. */
  forget(): void {
    this.#source.forget();
    this.#destination.forget();
  }

  #finish(status: number): number {
    if (status !== DONE) return status;
    if (this.#outcomeBytes > 0) this.#destination.write(0, this.#outcomeBytes, this.#outcome);
    return DONE;
  }
}
