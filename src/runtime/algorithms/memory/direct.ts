import type { TcclError } from '../../../errors.js';
import type { EngineCall } from '../queued-call.js';
import { callKinds, DONE, NO_ROOM, PARTLY, PENDING, type Kernels } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import { SCALAR_BYTES, writeScalar } from '../../device/scalar.js';
import type { Segment } from '../../device/segment.js';
import type { Team } from '../../device/team.js';
import { int32, type DataType, type NumericArray } from '../../device/types.js';
import { kindOf } from '../call.js';
import { DirectExchange } from './direct-exchange.js';
import { Small } from './direct-small.js';
import { StagingMemory } from './direct-staging.js';
import { Operand } from '../operand.js';
import { defined } from '../../../defined.js';

const nothing = new Int32Array(0);

/** Forms of the running operation. */
const ALL_REDUCE = 0;
const BARRIER = 1;
const SMALL = 2;
const EXCHANGE = 3;
/** Over, but another rank has given it up: see #ended. */
const GIVEN_UP = 4;

/**
 * The algorithm *direct*, for ranks that share one segment: NVLS on shared memory. The kernels (device/kernels/assembly/local.ts)
 * do the work and the waiting. This class chooses between the one-phase form for small operations and the forms for large ones,
 * and carries out the all-reduce of arrays outside the segment, which goes through staging memory chunk by chunk:
 *
 *      zero copy      |---------------------- one round ----------------------|
 *      staged         | copy in, round, copy out | copy in, round, copy out | …   (Team.stageBytes each, on every rank)
 *
 * One operation runs at a time. Each step returns the status of the kernels: PENDING, DONE, or a mismatch.
 */
export class Direct {
  readonly segment: Segment;
  readonly #kernels: Kernels;
  readonly #stage: StagingMemory;
  readonly #smallOperation: Small;
  readonly #exchange: DirectExchange;
  #mode = BARRIER;

  // State of the running all-reduce.
  #code = 0;
  #count = 0;
  #type: DataType = int32;
  #send: NumericArray = nothing;
  #recv: NumericArray = nothing;
  #sendOffset = -1;
  #recvOffset = -1;
  #staged = false;
  /** Number of elements that earlier rounds completed. */
  #completed = 0;
  /** Address of this round's staged data. */
  #chunk = 0;
  readonly #source: Operand;
  readonly #destination: Operand;

  /**
   * @param smallBytes largest all-reduce in one phase; other kinds use takesOnePhase(); the same on all ranks
   * @param leastStageBytes see StagingMemory
   */
  constructor(
    readonly team: Team,
    readonly libc: Libc | undefined,
    readonly smallBytes: number,
    leastStageBytes?: number,
  ) {
    this.segment = team.segment;
    this.#kernels = team.kernels;
    this.#stage = new StagingMemory(team, leastStageBytes);
    this.#smallOperation = new Small(team, libc, this.#stage);
    this.#exchange = new DirectExchange(team, libc, this.#stage);
    this.#source = new Operand(team.segment, libc);
    this.#destination = new Operand(team.segment, libc);
  }

  /**
   * Starts a call and progresses until it has to wait.
   *
   * @param code of the call as the kernels take it, with its algorithm (call.ts)
   * @param spins number of unset flags to poll before PENDING is returned
   */
  begin(call: EngineCall, code: number, spins: number): number {
    if (kindOf(code) === callKinds.allReduce && call.details === undefined) return this.#beginAllReduce(call, code, spins);
    return this.#beginOther(call, code, spins);
  }

  #beginOther(call: EngineCall, code: number, spins: number): number {
    const { type, details } = call;
    if (details?.scalar !== undefined) this.#setScalar(type, details.scalar);
    const kind = kindOf(code);
    if (kind === callKinds.allReduce) return this.#beginAllReduce(call, code, spins);
    if (kind === callKinds.barrier) {
      this.#mode = BARRIER;
      return this.#kernels.barrier(code, call.root, spins);
    }
    if (details?.share === undefined && this.#smallOperation.fits(kind, call.count * type.bytes, this.smallBytes)) {
      this.#mode = SMALL;
      return this.#smallOperation.begin(call, code, spins);
    }
    this.#mode = EXCHANGE;
    return this.#ended(this.#exchange.begin(call, code, spins));
  }

  /** Progresses the running operation. */
  progress(spins: number): number {
    switch (this.#mode) {
      case SMALL:
        return this.#smallOperation.progress(spins);
      case EXCHANGE:
        return this.#ended(this.#exchange.progress(spins));
      case GIVEN_UP:
        return PENDING;
      case BARRIER:
        return this.#kernels.progress(spins);
      default: {
        const status = this.#kernels.progress(spins);
        return status === PENDING ? PENDING : this.#continue(status, spins);
      }
    }
  }

  /**
   * Keeps a call from its end that another rank has given up, and whose arrays may have changed while they were read: the error
   * of that rank will arrive while this one waits.
   */
  #ended(status: number): number {
    const { givenUp } = this.team;
    if (status !== DONE || givenUp === 0 || ((this.#kernels.operationNumber() + 1 - givenUp) | 0) < 0) return status;
    this.#mode = GIVEN_UP;
    return PENDING;
  }

  /** See DirectExchange. */
  unread(): number[] {
    return this.#mode === EXCHANGE ? this.#exchange.unread() : [];
  }

  /** Lengths in bytes of all parts that a rank posted for the running allGatherV or reduceScatterV. */
  partsOf(rank: number): number[] {
    return this.#exchange.partsOf(rank);
  }

  /** See DirectExchange. */
  partsError(): TcclError | undefined {
    return this.#mode === EXCHANGE ? this.#exchange.partsError() : undefined;
  }

  /** Drops the references to the caller's arrays. */
  close(): void {
    this.#send = nothing;
    this.#recv = nothing;
    this.#smallOperation.forget();
    this.#exchange.forget();
    this.#source.forget();
    this.#destination.forget();
  }

  #setScalar(type: DataType, scalar: number | bigint): void {
    const words = new Uint32Array(SCALAR_BYTES / 4);
    writeScalar(type, scalar, words.buffer, 0);
    this.#kernels.setScalar(defined(words[0]), defined(words[1]));
  }

  // ── all-reduce ────────────────────────────────────────────────────────────────────────────────────────────────────

  #beginAllReduce(call: EngineCall, code: number, spins: number): number {
    const { type, send, recv, count } = call;
    if (send !== this.#send || recv !== this.#recv) this.#locate(send, recv);
    const sendOffset = this.#sendOffset;
    const recvOffset = this.#recvOffset;
    let status = PENDING;
    // The fast path: nothing is stored for a call that finishes immediately.
    if (sendOffset >= 0 && recvOffset >= 0) {
      status = this.#kernels.allReduce(code, sendOffset, recvOffset, count, this.smallBytes, 0, spins);
      if (status === DONE) return count * type.bytes <= this.smallBytes ? DONE : this.#ended(DONE);
    }
    return this.#goOn(status, code, type, count, spins);
  }

  /** Finds the addresses of an all-reduce's arrays; the next call often has the same arrays. */
  #locate(send: NumericArray, recv: NumericArray): void {
    this.#send = send;
    this.#recv = recv;
    this.#sendOffset = this.segment.offsetOf(send);
    this.#recvOffset = this.segment.offsetOf(recv);
  }

  /** Stores the state of an all-reduce that has begun, or begins one whose arrays are staged. */
  #goOn(status: number, code: number, type: DataType, count: number, spins: number): number {
    this.#mode = ALL_REDUCE;
    this.#staged = this.#sendOffset < 0 || this.#recvOffset < 0;
    this.#completed = 0;
    this.#code = code;
    this.#type = type;
    this.#count = count;
    if (!this.#staged) return this.#continue(status === NO_ROOM ? this.#startRound(spins) : status, spins);
    this.#source.use(this.#send);
    this.#destination.use(this.#recv);
    return this.#continue(this.#startRound(spins), spins);
  }

  #startRound(spins: number): number {
    const left = this.#count - this.#completed;
    const done = this.#completed * this.#type.bytes;
    if (!this.#staged) return this.#beginRound(this.#sendOffset + done, this.#recvOffset + done, left, 0, spins);
    const bytes = Math.min(left * this.#type.bytes, this.team.stageBytes);
    this.#chunk = this.#stage.next(bytes);
    this.#source.copyTo(this.#chunk, done, bytes);
    return this.#beginRound(this.#chunk, this.#chunk, left, 1, spins);
  }

  #beginRound(send: number, recv: number, count: number, staged: number, spins: number): number {
    const status = this.#kernels.allReduce(this.#code, send, recv, count, this.smallBytes, staged, spins);
    if (status !== NO_ROOM) return status;
    this.#stage.makeRoom(count * this.#type.bytes);
    return this.#kernels.allReduce(this.#code, send, recv, count, this.smallBytes, staged, spins);
  }

  /** Finishes rounds and starts further ones until one has to wait. */
  #continue(status: number, spins: number): number {
    while (status === DONE || status === PARTLY) {
      const bytes = status === DONE ? (this.#count - this.#completed) * this.#type.bytes : this.#kernels.roundBytes();
      if (this.#staged) this.#destination.write(this.#completed * this.#type.bytes, bytes, this.#chunk);
      this.#completed += bytes / this.#type.bytes;
      if (this.#completed >= this.#count) {
        if (this.#staged) this.close();
        return this.#count * this.#type.bytes <= this.smallBytes ? DONE : this.#ended(DONE);
      }
      status = this.#startRound(spins);
    }
    return status;
  }
}
