import { callKinds } from '../../device/kernels/kernels.js';
import { COPY_BLOCK_BYTES } from '../../device/machine-code/copy-twice.js';
import type { Team } from '../../device/team.js';
import { CACHED_BYTES } from '../../launch/copy-tunables.js';
import { alignedShare } from '../alignment.js';
import type { ExchangePlan } from './direct-plan.js';
import { type Posts, SPREADS } from './direct-posts.js';
import type { Operand } from '../operand.js';
import { defined } from '../../../defined.js';

/**
 * All-gathers and broadcasts of two ranks, in the segment, whose input and outputs exceed the caches. Each rank reads one block
 * once (in a broadcast, one half) and writes it to both outputs, around the caches to the other rank's.
 *
 *      input of rank 0    -> output of rank 0, output of rank 1
 *      input of rank 1    -> output of rank 1, output of rank 0
 *
 * It needs machine code, and separate outputs: in place, nothing has to be written twice.
 */
export class TwoOutputCopy {
  readonly #team: Team;
  readonly #plan: ExchangePlan;
  readonly #posts: Posts;
  readonly #source: Operand;
  readonly #destination: Operand;
  #isBroadcast = false;
  #root = 0;

  /** @param source this rank's input, and @param destination its output */
  constructor(team: Team, plan: ExchangePlan, posts: Posts, source: Operand, destination: Operand) {
    this.#team = team;
    this.#plan = plan;
    this.#posts = posts;
    this.#source = source;
    this.#destination = destination;
  }

  /** Begins a call that the plan has begun, and returns the flags of this rank's post: set if it can do its part. */
  start(kind: number, root: number): number {
    const { localRank, nLocalRanks, segment } = this.#team;
    this.#isBroadcast = kind === callKinds.broadcast;
    this.#root = root;
    if (nLocalRanks !== 2 || (!this.#isBroadcast && kind !== callKinds.allGather)) return 0;
    const { wholeTakes, takeFrom, takeTo } = this.#plan;
    const bytes = defined(wholeTakes[this.#isBroadcast ? root : localRank]);
    // Two inputs and two outputs of two blocks, or one input and two outputs.
    if ((this.#isBroadcast ? 3 : 6) * bytes <= CACHED_BYTES || !this.#destination.placed) return 0;
    if (!this.#isBroadcast || localRank === root) {
      if (!this.#source.placed) return 0;
      if (this.#source.address(defined(takeFrom[localRank])) === this.#destination.address(defined(takeTo[localRank]))) return 0;
    }
    return segment.machineCode !== undefined && segment.machineCode.refusal === undefined ? SPREADS : 0;
  }

  /** Does this rank's work. */
  run(): void {
    const me = this.#team.localRank;
    const owner = this.#isBroadcast ? this.#root : me;
    const { takeBytes, takeFrom, takeTo } = this.#plan;
    const whole = defined(takeBytes[owner]);
    const half = alignedShare(whole, 2);
    const [from, until] = !this.#isBroadcast ? [0, whole] : me === 0 ? [0, half] : [half, whole];
    const source = this.#posts.source(owner) + defined(takeFrom[owner]) + from;
    const to = defined(takeTo[owner]) + from;
    this.#copy(source, this.#destination.address(to), this.#posts.destination(1 - me) + to, until - from);
  }

  /** Stores around the caches must begin at a multiple of a block. */
  #copy(source: number, cached: number, streamed: number, bytes: number): void {
    const { kernels, machineCode } = this.#team.segment;
    const before = Math.min((COPY_BLOCK_BYTES - (streamed % COPY_BLOCK_BYTES)) % COPY_BLOCK_BYTES, bytes);
    const done = before + (machineCode?.copyTwice(source + before, cached + before, streamed + before, bytes - before) ?? 0);
    for (const [from, length] of [
      [0, before],
      [done, bytes - done],
    ] as const) {
      kernels.copy(cached + from, source + from, length);
      kernels.copy(streamed + from, source + from, length);
    }
  }
}
