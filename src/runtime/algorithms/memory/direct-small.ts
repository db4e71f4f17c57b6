import type { EngineCall } from '../queued-call.js';
import { callKinds, DONE, NO_ROOM, type Kernels } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import type { Team } from '../../device/team.js';
import { divides, gathers, isFromRoot, isToRoot, isUneven } from '../call-traits.js';
import { kindOf } from '../call.js';
import type { StagingMemory } from './direct-staging.js';
import { Operand } from '../operand.js';

/** Calls other than all-reduce use one phase at least up to this size, because not every rank reduces everything (measured). */
const LEAST_BYTES = 1024;

/**
 * Most bytes that a rank posts, in multiples of `smallBytes` (measured). A post costs one more copy, which matters less if
 * only the root has one, and least if each of the others needs only a part of it.
 */
const factorOf: Readonly<Record<number, number>> = {
  [callKinds.scatter]: 8,
  [callKinds.broadcast]: 4,
  [callKinds.allToAll]: 2,
  [callKinds.reduceScatter]: 2,
};

/**
 * True if *direct* carries out a call in one phase, as with even blocks it may, with a rank's data in its post.
 *
 * @param kind its code
 * @param bytes the call's count times the size of its elements
 * @param smallBytes largest all-reduce in one phase; 0: no call uses one phase
 */
export function takesOnePhase(kind: number, bytes: number, nRanks: number, smallBytes: number): boolean {
  if (isUneven(kind)) return false;
  if (smallBytes === 0 || kind === callKinds.allReduce) return bytes <= smallBytes;
  const posted = divides(kind) ? bytes * nRanks : bytes;
  return posted <= Math.max(LEAST_BYTES, (factorOf[kind] ?? 1) * smallBytes);
}

/** Most memory for the posts of one-phase calls (StagingMemory.makeRoom): two halves, and the shorter ones that they replace. */
export function mostRoomBytes(smallBytes: number): number {
  return 4 * 2 ** Math.ceil(Math.log2(Math.max(LEAST_BYTES, Math.max(...Object.values(factorOf)) * smallBytes)));
}

/**
 * The one-phase form of all collectives except all-reduce: each rank's data travel in its post. Arrays outside the segment
 * are copied in before and out after.
 */
export class Small {
  readonly #kernels: Kernels;
  readonly #source: Operand;
  readonly #destination: Operand;
  /** Address and length of the result to copy to the output at the end of the call. */
  #outcome = 0;
  #outcomeBytes = 0;

  constructor(
    readonly team: Team,
    libc: Libc | undefined,
    readonly stage: StagingMemory,
  ) {
    this.#kernels = team.kernels;
    this.#source = new Operand(team.segment, libc);
    this.#destination = new Operand(team.segment, libc);
  }

  /** True if a call of `bytes` bytes (element size times count) uses this form; the same on all ranks. */
  fits(kind: number, bytes: number, smallBytes: number): boolean {
    return takesOnePhase(kind, bytes, this.team.nLocalRanks, smallBytes) && bytes * this.team.nLocalRanks <= this.team.stageBytes;
  }

  begin({ type, root, send, recv, count }: EngineCall, code: number, spins: number): number {
    const kind = kindOf(code);
    const { localRank, nLocalRanks } = this.team;
    const isRoot = localRank === root;
    const bytes = count * type.bytes;
    this.#outcomeBytes = 0;
    let from = 0;
    let to = 0;
    const posted = divides(kind) ? bytes * nLocalRanks : bytes;
    if (!isFromRoot(kind) || isRoot) {
      this.#source.use(send);
      from = this.#source.read(0, posted, this.#source.placed ? 0 : this.stage.next(posted));
    }
    if (!isToRoot(kind) || isRoot) {
      this.#destination.use(recv);
      if (this.#destination.placed) to = this.#destination.address(0);
      else {
        this.#outcomeBytes = gathers(kind) ? bytes * nLocalRanks : bytes;
        to = this.#outcome = this.stage.scratch(this.#outcomeBytes);
        // Rank 0 gets nothing.
        if (kind === callKinds.exscan && localRank === 0) this.#outcomeBytes = 0;
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

  /** Drops the references to the caller's arrays. */
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
