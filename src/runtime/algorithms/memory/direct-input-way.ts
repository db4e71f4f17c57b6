import { callKinds } from '../../device/kernels/kernels.js';
import { isFromRoot, isToRoot } from '../call-traits.js';
import { kindOf } from '../call.js';
import type { ExchangePlan } from './direct-plan.js';
import { EITHER, OPEN, type Posts, STAGED, STAGES } from './direct-posts.js';
import { Ways, type Way } from './direct-ways.js';
import { clockMs } from '../../platform/platform.js';

/** Shortest part that is read in place: below, two copies cost less than a system call (measured). */
const OPEN_BYTES = 32 * 1024;
/** The bits of a call's code that affect its time: all but the algorithm. */
const TIMED_CODE = 0xfff;

/**
 * Decides how input outside the segment reaches other ranks: they read it in place (`OPEN`), or copy it from staging memory
 * (`STAGED`). The owner of a readable input posts that; if two ranks exchange, it leaves the way open (`EITHER`), and one of
 * the two, which measures the faster way, posts whether it wants staging (`STAGES`).
 */
export class InputWay {
  readonly #rank: number;
  readonly #nRanks: number;
  readonly #plan: ExchangePlan;
  readonly #posts: Posts;
  readonly #ways = new Ways();

  // State of the running call.
  #code = 0;
  #root = 0;
  /** True if this rank chose the way by time; and the time at which all had arrived, in milliseconds, 0 before. */
  #measures = false;
  #since = 0;

  constructor(rank: number, nRanks: number, plan: ExchangePlan, posts: Posts) {
    this.#rank = rank;
    this.#nRanks = nRanks;
    this.#plan = plan;
    this.#posts = posts;
  }

  /** Begins a call that the plan has begun. */
  start(code: number, root: number): void {
    this.#code = code;
    this.#root = root;
    this.#measures = false;
    this.#since = 0;
  }

  /**
   * True if reading in this rank's private memory may cost the others less than staging. The kernel's copy takes about as
   * long as the two copies of staging, so it pays if each byte has one reader.
   */
  opens(): boolean {
    const { reduces, divided } = this.#plan;
    if (this.#nRanks > 2 && (reduces || (!divided && kindOf(this.#code) !== callKinds.gather))) return false;
    return this.#plan.longestPart >= OPEN_BYTES;
  }

  /** Flags of this rank's post if its input is open. */
  openFlags(): number {
    return OPEN | (this.#nRanks === 2 ? EITHER : 0);
  }

  /** Flags of this rank's post if it chooses the way. @param isOutside true if one of its arrays lies outside the segment */
  choiceFlags(isOutside: boolean): number {
    return this.#chooses() && this.#choose(isOutside) === 'staged' ? STAGES : 0;
  }

  /**
   * All have arrived: settles the way of inputs that may use either, as the choosing rank posted.
   *
   * @param flags that this rank posted
   * @returns the flags that hold now
   */
  settle(flags: number): number {
    if (this.#measures && this.#since === 0 && this.#posts.anyHas(EITHER)) this.#since = clockMs();
    if (!this.#posts.anyHas(STAGES)) return flags;
    this.#posts.stage();
    return (flags & EITHER) !== 0 ? (flags & ~OPEN) | STAGED : flags;
  }

  /** Ends the call. */
  ended(): void {
    if (this.#since > 0) this.#ways.took(clockMs() - this.#since);
  }

  /** True if this is the rank of the two that chooses: one that cannot finish before it has data. */
  #chooses(): boolean {
    if (this.#nRanks !== 2) return false;
    return this.#rank === (isFromRoot(this.#code) ? 1 - this.#root : isToRoot(this.#code) ? this.#root : 0);
  }

  /** Chooses by time, except for calls on arrays in the segment: measuring would slow them down without a gain. */
  #choose(isOutside: boolean): Way {
    this.#measures = isOutside && this.opens();
    return this.#measures ? this.#ways.choose(this.#code & TIMED_CODE, this.#plan.longestPart) : 'open';
  }
}
