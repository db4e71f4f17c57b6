import { typeCodeOf, type CallDetails } from '../algorithms/call.js';
import { int32, typeOfCode, type DataType, type NumericArray } from '../device/types.js';
import { setImmediate } from '../platform/platform.js';
import { graceMs } from '../failure/grace.js';
import { REASON_BYTES } from '../failure/transfer.js';
import type { QueuedCall } from '../algorithms/queued-call.js';

/*
 * Memory shared by a rank's thread and one of its engine threads, besides the segment: one call at a time.
 *
 *     words    0 calls handed over | 1 calls carried out | 2 bytes of the reason for which the engine gave up, or 0 | 3 steps
 *              4 is 1 once the thread has ended | 5 state of the rank's thread: 0, LEFT or ENDS
 *     numbers  code, root, address and length of input and output, count, bytes of the details
 *     reason   why the engine gave up
 *     details  JSON, for calls that have some
 *     late     a word for each rank: 1 if the engine waits for it, as of its last check
 */
const POSTED = 0;
const COMPLETED = 1;
const FAILED = 2;
const STEPS = 3;
const ENDED = 4;
const RANK = 5;
const LEFT = 1;
const ENDS = 2;
const NUMBERS = 64;
const REASON = 192;
const DETAILS = REASON + REASON_BYTES;
/** Details have at most four numbers for each rank, and a scalar. */
const DETAILS_BYTES = 1024;
const DETAILS_BYTES_PER_RANK = 4 * 20;
const LATE_BYTES_PER_RANK = 4;

/** Code of the call that ends an engine thread. It is complete when the others know that the rank leaves. */
export const EXIT = 0xffff;
/** The same for a rank that fails, which the others see by the end of its connections. Ends a call under way; never complete. */
export const DIE = 0xfffe;

/** Allocates the memory for calls among `nRanks` ranks. */
export function engineThreadBuffer(nRanks: number): SharedArrayBuffer {
  return new SharedArrayBuffer(DETAILS + DETAILS_BYTES + nRanks * (DETAILS_BYTES_PER_RANK + LATE_BYTES_PER_RANK));
}

/** A call whose arrays lie in the segment. Lengths are in elements. */
export interface PlacedCall {
  readonly code: number;
  readonly root: number;
  readonly send: number;
  readonly sendLength: number;
  readonly recv: number;
  readonly recvLength: number;
  readonly count: number;
  readonly details: CallDetails | undefined;
}

const none = new Int32Array(0);

/** The call, with views of its arrays in the segment's memory. */
export function callAt(memory: SharedArrayBuffer, call: PlacedCall): QueuedCall {
  const { code, root, send, sendLength, recv, recvLength, count, details } = call;
  const type = typeOfCode(typeCodeOf(code)) ?? int32;
  const input = elementsAt(memory, type, send, sendLength);
  const output = recv === send && recvLength === sendLength ? input : elementsAt(memory, type, recv, recvLength);
  return { code, type, root, send: input, recv: output, count, details };
}

function elementsAt(memory: SharedArrayBuffer, type: DataType, offset: number, length: number): NumericArray {
  return length === 0 ? none : new type.array(memory, offset, length);
}

export class EngineThreadMemory {
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;
  readonly #late: Int32Array;

  constructor(readonly buffer: SharedArrayBuffer) {
    const nRanks = (buffer.byteLength - DETAILS - DETAILS_BYTES) / (DETAILS_BYTES_PER_RANK + LATE_BYTES_PER_RANK);
    this.#late = new Int32Array(buffer, buffer.byteLength - nRanks * LATE_BYTES_PER_RANK, nRanks);
    this.#words = new Int32Array(buffer, 0, NUMBERS / 4);
    this.#numbers = new Float64Array(buffer, NUMBERS, (REASON - NUMBERS) / 8);
  }

  // ── the rank's thread ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Hands a call over. */
  post({ code, root, send, sendLength, recv, recvLength, count, details }: PlacedCall): void {
    const text = details === undefined ? '' : JSON.stringify(details, (_, value: unknown) => forJson(value));
    const written = Buffer.from(this.buffer, DETAILS).write(text);
    this.#numbers.set([code, root, send, sendLength, recv, recvLength, count, written]);
    Atomics.add(this.#words, POSTED, 1);
    Atomics.notify(this.#words, POSTED);
  }

  /** Ends the thread by a call without arrays. */
  end(code: typeof EXIT | typeof DIE): void {
    this.post({ code, root: 0, send: 0, sendLength: 0, recv: 0, recvLength: 0, count: 0, details: undefined });
  }

  /** True if the last call is complete; polls at most `spins` times. */
  isDone(spins: number): boolean {
    const posted = Atomics.load(this.#words, POSTED);
    for (let turn = 0; turn <= spins; turn++) if (Atomics.load(this.#words, COMPLETED) === posted) return true;
    return false;
  }

  /** Blocks until the last call is complete, or the engine gives up, at most for `ms`. */
  waitUntilDone(ms: number): void {
    const seen = Atomics.load(this.#words, COMPLETED);
    if (seen !== Atomics.load(this.#words, POSTED)) Atomics.wait(this.#words, COMPLETED, seen, ms);
  }

  /** Blocks until the engine has given up, at most for `ms`. */
  waitUntilGivenUp(ms: number): void {
    const seen = Atomics.load(this.#words, COMPLETED);
    if (Atomics.load(this.#words, FAILED) === 0) Atomics.wait(this.#words, COMPLETED, seen, ms);
  }

  /** Lets the thread end before its rank's, which is about to end: at once if `isFailure`, unless it ends already. */
  rankEnds(isFailure: boolean): void {
    if (isFailure && !this.#isEnding) this.end(DIE);
    this.#rankIs(ENDS);
  }

  /** The rank leaves: lets a thread that gave up end. */
  rankLeaves(): void {
    this.#rankIs(LEFT);
  }

  #rankIs(state: number): void {
    Atomics.store(this.#words, RANK, state);
    Atomics.notify(this.#words, RANK);
  }

  /** Blocks until a thread that ends has ended, at most for `ms`. */
  waitUntilEnded(ms: number): void {
    if (this.isDying || this.#isEnding) Atomics.wait(this.#words, ENDED, 0, ms);
  }

  /** True if the rank leaves, or the engine has given up. */
  get #isEnding(): boolean {
    return this.#numbers[0] === EXIT || this.reason() !== undefined;
  }

  get steps(): number {
    return Atomics.load(this.#words, STEPS);
  }

  /** The ranks that the engine waited for at its last check. */
  late(): number[] {
    return [...this.#late.keys()].filter((rank) => Atomics.load(this.#late, rank) === 1);
  }

  /** The packed reason for which the engine gave up, if it has. */
  reason(): Uint8Array | undefined {
    const bytes = Atomics.load(this.#words, FAILED);
    return bytes === 0 ? undefined : new Uint8Array(this.buffer, REASON, bytes).slice();
  }

  /** Calls `wake` once, soon after the last call is complete or the engine gives up. */
  whenNews(wake: () => void): void {
    const seen = Atomics.load(this.#words, COMPLETED);
    if (seen === Atomics.load(this.#words, POSTED) || Atomics.load(this.#words, FAILED) !== 0) {
      setImmediate(wake);
      return;
    }
    const news = Atomics.waitAsync(this.#words, COMPLETED, seen);
    if (news.async) void news.value.then(wake);
    else setImmediate(wake);
  }

  // ── the engine thread ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes the next call; waits for it, giving the core away after `spins` polls. */
  take(spins: number): PlacedCall {
    const completed = Atomics.load(this.#words, COMPLETED);
    for (let turn = 0; Atomics.load(this.#words, POSTED) === completed; turn++) {
      if (turn >= spins) Atomics.wait(this.#words, POSTED, completed);
    }
    return this.#posted();
  }

  /** Takes the next call, for a thread whose event loop runs until then. */
  async taken(): Promise<PlacedCall> {
    const completed = Atomics.load(this.#words, COMPLETED);
    while (Atomics.load(this.#words, POSTED) === completed) {
      const news = Atomics.waitAsync(this.#words, POSTED, completed);
      if (news.async) await news.value;
    }
    return this.#posted();
  }

  #posted(): PlacedCall {
    const [code = 0, root = 0, send = 0, sendLength = 0, recv = 0, recvLength = 0, count = 0, bytes = 0] = this.#numbers;
    const text = Buffer.from(this.buffer, DETAILS, bytes).toString();
    const details = text === '' ? undefined : (JSON.parse(text, (_, value: unknown) => fromJson(value)) as CallDetails);
    return { code, root, send, sendLength, recv, recvLength, count, details };
  }

  /** @param steps of the engine; a call may end without a poll, which would have set them */
  completed(steps: number): void {
    this.setSteps(steps);
    this.#wakeRank();
  }

  #wakeRank(): void {
    Atomics.add(this.#words, COMPLETED, 1);
    Atomics.notify(this.#words, COMPLETED);
  }

  /** True if the rank fails. */
  get isDying(): boolean {
    return Atomics.load(this.#words, POSTED) > 0 && this.#numbers[0] === DIE;
  }

  /** Calls `die` if the rank fails, for a thread whose event loop runs. */
  async onDeath(die: () => void): Promise<void> {
    await Atomics.waitAsync(this.#words, RANK, 0).value;
    if (this.isDying) die();
  }

  /**
   * Called at the end of the thread, which waits a while for its rank to leave, or to end, which terminates it: Node.js before
   * 20.18.3 aborts the process if a thread ends while the one that started it does.
   */
  ended(): void {
    Atomics.store(this.#words, ENDED, 1);
    Atomics.notify(this.#words, ENDED);
    Atomics.wait(this.#words, RANK, 0, graceMs.rankAfterEngineThread);
    if (this.isDying || Atomics.load(this.#words, RANK) === ENDS) Atomics.wait(this.#words, ENDED, 1);
  }

  setSteps(steps: number): void {
    Atomics.store(this.#words, STEPS, steps);
  }

  setLate(ranks: readonly number[]): void {
    for (let rank = 0; rank < this.#late.length; rank++) Atomics.store(this.#late, rank, ranks.includes(rank) ? 1 : 0);
  }

  gaveUp(reason: Uint8Array): void {
    new Uint8Array(this.buffer, REASON, reason.length).set(reason);
    Atomics.store(this.#words, FAILED, reason.length);
    // Wakes the rank, which finds the reason.
    this.#wakeRank();
  }
}

/** JSON has neither bigints nor NaN, infinities and -0, so a scalar is sent as text. */
function forJson(value: unknown): unknown {
  if (typeof value === 'bigint') return { bigint: value.toString() };
  if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0)))
    return { number: Object.is(value, -0) ? '-0' : String(value) };
  return value;
}

function fromJson(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if ('bigint' in value) return BigInt(value.bigint as string);
  return 'number' in value ? Number(value.number) : value;
}
