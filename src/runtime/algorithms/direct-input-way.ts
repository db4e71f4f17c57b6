import { callKinds } from '../device/kernels/kernels.js';
import { isFromRoot, isToRoot, kindOf } from './call.js';
import type { ExchangePlan } from './direct-plan.js';
import { EITHER, OPEN, type Posts, STAGED, STAGES } from './direct-posts.js';
import { Ways, type Way } from './direct-ways.js';

/** Parts from this length on are read from where they are: below, two copies cost less than a call of the kernel (measured). */
const OPEN_BYTES = 32 * 1024;
/** Of a call's code, what tells how long it takes: all but the algorithm. */
const TIMED_CODE = 0xfff;

/**
 * How input outside the segment comes to the ranks that need it: they read it where it is (`OPEN`), or take it out of staging
 * memory (`STAGED`). An owner whose input may be read says so; where two ranks exchange, it lets the other way open
 * (`EITHER`), and one rank of the two, which finds out by time what is faster, says if it wants staging (`STAGES`).
 */
export class InputWay {
  readonly #rank: number;
  readonly #nRanks: number;
  readonly #plan: ExchangePlan;
  readonly #posts: Posts;
  readonly #ways = new Ways();

  // The call under way.
  #code = 0;
  #root = 0;
  /** Whether this rank chose the way by time, and when all had come, in milliseconds; 0 before. */
  #measures = false;
  #since = 0;

  constructor(rank: number, nRanks: number, plan: ExchangePlan, posts: Posts) {
    this.#rank = rank;
    this.#nRanks = nRanks;
    this.#plan = plan;
    this.#posts = posts;
  }

  /** Begins a call, which the plan has begun. */
  start(code: number, root: number): void {
    this.#code = code;
    this.#root = root;
    this.#measures = false;
    this.#since = 0;
  }

  /**
   * Whether reading what is left in this rank's own memory may cost the others less than taking it out of staging memory.
   * The kernel's copy takes about as long as that way's two, so it pays where each byte has one reader.
   */
  opens(): boolean {
    const { reduces, divided } = this.#plan;
    if (this.#nRanks > 2 && (reduces || (!divided && kindOf(this.#code) !== callKinds.gather))) return false;
    return this.#plan.longestPart >= OPEN_BYTES;
  }

  /** What this rank's post says when its input is open. */
  openFlags(): number {
    return OPEN | (this.#nRanks === 2 ? EITHER : 0);
  }

  /**
   * What this rank's post says of the way, if it chooses. @param isOutside whether some array of its own lies outside
   * the segment
   */
  choiceFlags(isOutside: boolean): number {
    return this.#chooses() && this.#choose(isOutside) === 'staged' ? STAGES : 0;
  }

  /**
   * All have come: lets inputs that may come either way come as the rank said that chooses.
   *
   * @param flags what this rank posted
   * @returns what holds of it now
   */
  settle(flags: number): number {
    if (this.#measures && this.#since === 0 && this.#posts.anyHas(EITHER)) this.#since = performance.now();
    if (!this.#posts.anyHas(STAGES)) return flags;
    this.#posts.stage();
    return (flags & EITHER) !== 0 ? (flags & ~OPEN) | STAGED : flags;
  }

  /** The call is over. */
  ended(): void {
    if (this.#since > 0) this.#ways.took(performance.now() - this.#since);
  }

  /** Whether it is this one of two ranks who says which way: one that is not done before it has data. */
  #chooses(): boolean {
    if (this.#nRanks !== 2) return false;
    return this.#rank === (isFromRoot(this.#code) ? 1 - this.#root : isToRoot(this.#code) ? this.#root : 0);
  }

  /** By time, but for calls on arrays in the segment, which do not pay for what only a mixture would gain. */
  #choose(isOutside: boolean): Way {
    this.#measures = isOutside && this.opens();
    return this.#measures ? this.#ways.choose(this.#code & TIMED_CODE, this.#plan.longestPart) : 'open';
  }
}
