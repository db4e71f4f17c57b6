import { InvalidUsageError, TcclError } from '../../errors.js';
import { inRanksOfNetwork, packError, unpackError } from './error-transfer.js';
import type { Mesh } from './mesh.js';

/** Collective operations, with the number that says on the wire which one a message belongs to. */
const operations = { allGather: 1, barrier: 2, broadcast: 3 } as const;
type Operation = keyof typeof operations;

/**
 * Collective operations among some ranks. Each is the n-th of the group at all of its members: they call the same
 * operations in the same order, and may begin one before the one before it has ended.
 */
export class RankGroup {
  /** Ranks of the mesh; its own is one of them. */
  readonly ranks: readonly number[];
  /** This rank's place among them. */
  readonly index: number;
  readonly #mesh: Mesh;
  readonly #space: number;
  readonly #name: string;
  /** The next operation's number. */
  #sequence = 0;
  /** Operations under way, and how to end them. */
  readonly #running = new Map<number, (error: Error) => void>();
  readonly #stopListening: (() => void)[];
  /** Resolves with the reason when an operation of the group, and so all later ones, cannot be completed. */
  readonly failed: Promise<Error>;
  /** Why the first member failed that did: it died, gave up, or ended the network for an error. One that closes does not fail. */
  #memberFailure: Error | undefined;
  readonly #failureListeners = new Set<(error: Error) => void>();
  #tellFailure: (error: Error) => void = () => undefined;
  #failed: { readonly sequence: number; readonly error: Error } | undefined;

  /**
   * @param space Keeps the group's messages apart from those of other groups that this rank is in.
   * @param name Tells the group from all others of the mesh, the same at all its members: `all`, `host of rank 4`.
   */
  constructor(mesh: Mesh, ranks: readonly number[], space: number, name: string) {
    this.ranks = ranks;
    this.index = ranks.indexOf(mesh.rank);
    this.#mesh = mesh;
    this.#space = space;
    this.#name = name;
    this.failed = new Promise((resolve) => (this.#tellFailure = resolve));
    this.#stopListening = [
      mesh.onLost((rank, error) => {
        // What is under way may have all it needs of that rank; where it has not, it finds out by itself.
        if (!ranks.includes(rank)) return;
        this.#fail(this.#sequence, error);
        this.#tellMemberFailure(error);
      }),
      mesh.onFailure((notice) => {
        if (notice.group !== name) return;
        const error = unpackError(notice.error);
        if (notice.own === true) inRanksOfNetwork(error);
        this.#fail(notice.sequence, error);
        if (notice.own === true) this.#tellMemberFailure(error);
      }),
    ];
  }

  /**
   * Ends the group at all its members: what is under way here or comes later fails with `error`. What this rank has
   * completed goes on at members that have not yet: they have all that they need of it.
   *
   * @param error speaks of the network's ranks
   */
  fail(error: TcclError): void {
    const sequence = Math.min(this.#sequence, ...this.#running.keys());
    this.#fail(sequence, inRanksOfNetwork(error));
    this.#mesh.spread({ kind: 'failed', group: this.#name, sequence, error: packError(error), own: true });
  }

  /** Calls `listener` for each failure of a member, also for one before this call. Returns a function that stops it. */
  onFailure(listener: (error: Error) => void): () => void {
    this.#failureListeners.add(listener);
    if (this.#memberFailure !== undefined) listener(this.#memberFailure);
    return () => this.#failureListeners.delete(listener);
  }

  #tellMemberFailure(error: Error): void {
    this.#memberFailure ??= error;
    for (const listener of this.#failureListeners) listener(error);
  }

  /** Tells the others that this rank takes no part in further operations: those that wait for it fail. */
  sayGoodbye(): void {
    this.#mesh.tell(this.ranks, { kind: 'closed', rank: this.#mesh.rank, group: this.#name, sequence: this.#sequence });
  }

  /** This rank has no more to do with the group: its own operations reject with `reason`. */
  close(reason: Error): void {
    for (const stop of this.#stopListening) stop();
    this.#fail(0, reason);
    this.#mesh.leaveSpace(this.#space, reason);
  }

  /**
   * Around the ring: in each step a rank passes on to the next what it got in the step before.
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

  /** Dissemination: after step k, each rank knows of the 2^(k+1) ranks up to its own that they have come. */
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
   * Along a binomial tree, in which a rank's parent has the rank's lowest bit cleared, counted from the root.
   * @param root The index of the rank that has the data; the others' is ignored.
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
    const sequence = this.#sequence++;
    if (this.#failed !== undefined && sequence >= this.#failed.sequence) throw this.#failed.error;
    const failure = new Promise<never>((_, reject) => this.#running.set(sequence, reject));
    try {
      return await Promise.race([body(sequence), failure]);
    } catch (error) {
      this.#mesh.signal.throwIfAborted();
      if (error instanceof TcclError && !(this.#failed !== undefined && sequence >= this.#failed.sequence)) {
        // Others wait for what this rank can't send any more.
        this.#mesh.spread({ kind: 'failed', group: this.#name, sequence, error: packError(error) });
      }
      throw error;
    } finally {
      this.#running.delete(sequence);
    }
  }

  /** `index` may lie a turn outside. Failure is seen where it is awaited, or by {@link #run}. */
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

  /** Why its operations cannot be completed any more, once one could not. */
  get failure(): Error | undefined {
    return this.#failed?.error;
  }

  /** Why an operation that this rank has begun, and may have completed, cannot be completed by others. */
  get brokenOff(): Error | undefined {
    return this.#failed !== undefined && this.#failed.sequence < this.#sequence ? this.#failed.error : undefined;
  }

  #fail(sequence: number, error: Error): void {
    if (this.#failed !== undefined && this.#failed.sequence <= sequence) return;
    this.#failed = { sequence, error };
    this.#tellFailure(error);
    for (const [running, reject] of this.#running) if (running >= sequence) reject(error);
  }
}
