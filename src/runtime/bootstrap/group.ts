import { InvalidUsageError, TcclError } from '../../errors.js';
import { inRanksOfNetwork, packError, unpackError } from '../failure/transfer.js';
import { Ending } from '../failure/ending.js';
import type { Mesh } from './mesh.js';

/** Collective operations, with their numbers in messages. */
const operations = { allGather: 1, barrier: 2, broadcast: 3 } as const;
type Operation = keyof typeof operations;

/**
 * Collective operations among some ranks. The n-th operation is the same on all members: they call the same operations in the
 * same order, and may begin one before the previous one has ended.
 */
export class RankGroup {
  /** Ranks of the mesh, including this one. */
  readonly ranks: readonly number[];
  /** Index of this rank in `ranks`. */
  readonly index: number;
  readonly #mesh: Mesh;
  readonly #space: number;
  readonly #name: string;
  /** Number of the next operation. */
  #sequence = 0;
  /** Running operations, with functions that end them. */
  readonly #running = new Map<number, (error: Error) => void>();
  readonly #stopListening: (() => void)[];
  /** Error of the first member that failed: it died, gave up, or ended the network with an error. Closing is not a failure. */
  readonly #memberEnding = new Ending();
  /** This rank's own close. */
  readonly #ownEnding = new Ending();
  #failed: { readonly sequence: number; readonly error: Error } | undefined;

  /**
   * @param space keeps the group's messages apart from those of other groups of this rank
   * @param name identifies the group in the mesh, the same on all its members: `all`, `host of rank 4`
   */
  constructor(mesh: Mesh, ranks: readonly number[], space: number, name: string) {
    this.ranks = ranks;
    this.index = ranks.indexOf(mesh.rank);
    this.#mesh = mesh;
    this.#space = space;
    this.#name = name;
    this.#stopListening = [
      mesh.onLost((rank, error) => {
        // A running operation may have all it needs of that rank; otherwise it detects the end itself.
        if (!ranks.includes(rank)) return;
        this.#fail(this.#sequence, error);
        this.#memberEnding.end(error);
      }),
      mesh.onFailure(name, (notice) => {
        const error = unpackError(notice.error);
        if (notice.own === true) inRanksOfNetwork(error);
        this.#fail(notice.sequence, error);
        if (notice.own === true) this.#memberEnding.end(error);
      }),
    ];
  }

  /**
   * Ends the group on all its members: running and later operations here fail with `error`. Operations that this rank has
   * completed can still complete on other members, which have all that they need of it.
   *
   * @param error has rank numbers of the network
   */
  fail(error: TcclError): void {
    const sequence = Math.min(this.#sequence, ...this.#running.keys());
    this.#fail(sequence, inRanksOfNetwork(error));
    this.#mesh.spread({ kind: 'failed', group: this.#name, sequence, error: packError(error), own: true });
  }

  /** Calls `listener` for the first failure of a member, which may be past. Returns a function that removes it. */
  onFailure(listener: (error: Error) => void): () => void {
    return this.#memberEnding.onEnd(listener);
  }

  /** Resolves with the reason why a member ended: its goodbye, or a failure in the group. The goodbye of another is none. */
  whyGone(rank: number): Promise<Error> {
    return new Promise((resolve) => {
      void this.#mesh.whenGone(rank).then(resolve);
      for (const ending of [this.#ownEnding, this.#memberEnding]) ending.onEnd(resolve);
      const stop = this.#mesh.onFailure(this.#name, ({ own, error }) => {
        if (own !== true && (error.code !== 'CLOSED' || error.rank === rank)) resolve(unpackError(error));
      });
      this.#stopListening.push(stop);
    });
  }

  /** Reports to the others that this rank takes part in no further operations, so that operations that wait for it fail. */
  sayGoodbye(): void {
    this.#mesh.notify(this.ranks, { kind: 'closed', rank: this.#mesh.rank, group: this.#name, sequence: this.#sequence });
  }

  /** Ends this rank's own operations of the group with `reason`. */
  close(reason: Error): void {
    for (const stop of this.#stopListening) stop();
    this.#ownEnding.end(reason);
    this.#fail(0, reason);
    this.#mesh.leaveSpace(this.#space, reason);
  }

  /**
   * Around the ring: in each step a rank passes on to the next the data that it received in the step before.
   *
   *     step 0   0 ─a─► 1 ─b─► 2 ─c─► 0        step 1   0 ─c─► 1 ─a─► 2 ─b─► 0
   */
  allGather(data: Uint8Array): Promise<Uint8Array[]> {
    return this.#run(async (sequence) => {
      const n = this.ranks.length;
      const own = new Uint8Array(data);
      const parts: Uint8Array[] = Array.from({ length: n }, () => own);
      const posts: Promise<void>[] = [];
      let passed: Uint8Array = own;
      for (let step = 1; step < n; step++) {
        posts.push(this.#post('allGather', sequence, this.index + 1, passed));
        passed = await this.#take('allGather', sequence, this.index - 1);
        parts[(this.index - step + n) % n] = passed;
      }
      await Promise.all(posts);
      return parts;
    });
  }

  /** Dissemination: after step k, each rank knows that the 2^(k+1) ranks up to its own have arrived. */
  barrier(): Promise<void> {
    return this.#run(async (sequence) => {
      for (let distance = 1; distance < this.ranks.length; distance *= 2) {
        await Promise.all([
          this.#post('barrier', sequence, this.index + distance, new Uint8Array()),
          this.#take('barrier', sequence, this.index - distance),
        ]);
      }
    });
  }

  /**
   * Along a binomial tree: a rank's parent has the rank's lowest bit cleared, counted from the root.
   * @param root index of the rank that has the data; the others' data are ignored
   */
  broadcast(data: Uint8Array, root: number): Promise<Uint8Array> {
    return this.#run(async (sequence) => {
      const n = this.ranks.length;
      const place = (this.index - root + n) % n;
      const lowestBit = place === 0 ? 2 ** Math.ceil(Math.log2(n)) : place & -place;
      const received = place === 0 ? new Uint8Array(data) : await this.#take('broadcast', sequence, this.index - lowestBit);
      const posts: Promise<void>[] = [];
      for (let bit = lowestBit / 2; bit >= 1; bit /= 2) {
        if (place + bit < n) posts.push(this.#post('broadcast', sequence, this.index + bit, received));
      }
      await Promise.all(posts);
      return received;
    });
  }

  async #run<T>(body: (sequence: number) => Promise<T>): Promise<T> {
    this.#mesh.signal.throwIfAborted();
    const sequence = this.#sequence;
    // Not counted: fail() would report it as completed, and the others would wait for it.
    if (this.#failed !== undefined && sequence >= this.#failed.sequence) throw this.#failed.error;
    this.#sequence++;
    const failure = new Promise<never>((_, reject) => this.#running.set(sequence, reject));
    try {
      return await Promise.race([body(sequence), failure]);
    } catch (error) {
      this.#mesh.signal.throwIfAborted();
      if (error instanceof TcclError && !(this.#failed !== undefined && sequence >= this.#failed.sequence)) {
        // Other ranks wait for data that this rank can no longer send.
        this.#mesh.spread({ kind: 'failed', group: this.#name, sequence, error: packError(error) });
      }
      throw error;
    } finally {
      this.#running.delete(sequence);
    }
  }

  /** Sends to the rank at `index`, which may be one turn out of range. The caller, or {@link #run}, handles failures. */
  #post(operation: Operation, sequence: number, index: number, data: Uint8Array): Promise<void> {
    const posted = this.#mesh.post(
      this.#rankAt(index),
      { space: this.#space, operation: operations[operation], number: sequence },
      data,
    );
    posted.catch(() => undefined);
    return posted;
  }

  async #take(operation: Operation, sequence: number, index: number): Promise<Uint8Array> {
    const rank = this.#rankAt(index);
    const message = await this.#mesh.take(rank, { space: this.#space, number: sequence });
    if (message.operation === operations[operation]) return message.data;
    const other = Object.entries(operations).find(([, number]) => number === message.operation)?.[0] ?? 'something unknown';
    throw new InvalidUsageError(
      'CALL_MISMATCH',
      `${this.#mesh.nameOf(rank)} called ${other} where ${this.#mesh.nameOf(this.#mesh.rank)} called ${operation}: all ranks must call the same operations in the same order`,
      { ranks: [rank, this.#mesh.rank].sort((a, b) => a - b) },
    );
  }

  #rankAt(index: number): number {
    const n = this.ranks.length;
    return this.ranks[(index + n) % n] ?? this.#mesh.rank;
  }

  /** Error with which an operation failed, so that no further one can complete. */
  get failure(): Error | undefined {
    return this.#failed?.error;
  }

  /** Error for which other ranks cannot complete an operation that this rank has begun, and may have completed. */
  get brokenOff(): Error | undefined {
    return this.#failed !== undefined && this.#failed.sequence < this.#sequence ? this.#failed.error : undefined;
  }

  #fail(sequence: number, error: Error): void {
    if (this.#failed !== undefined && this.#failed.sequence <= sequence) return;
    this.#failed = { sequence, error };
    for (const [running, reject] of this.#running) if (running >= sequence) reject(error);
  }
}
