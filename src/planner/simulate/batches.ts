import type { Worker } from '../schedule/schedule.js';

/** The workers of one thread block. */
interface Block {
  /** Workers that have moves left. */
  members: number;
  /** Batch that may run. */
  open: number;
  /** Time at which the last worker was done with the batch before. */
  openedUs: number;
  latestUs: number;
  /** Workers that are done with the open batch, and the batch that each wants. */
  readonly waiting: Map<number, number>;
}

/**
 * Batches of thread blocks: the workers of a block do the moves of a batch concurrently, and none begins with the next one
 * before all are done.
 */
export class Batches {
  readonly #blocks: Block[];
  readonly #ended: Uint8Array;
  readonly #wake: (worker: number) => void;

  constructor(workers: readonly Worker[], wake: (worker: number) => void) {
    const known = new Map<string, Block>();
    this.#blocks = workers.map(({ rank, channel }) => {
      const key = `${rank} ${channel}`;
      let block = known.get(key);
      if (block === undefined) known.set(key, (block = { members: 0, open: 0, openedUs: 0, latestUs: 0, waiting: new Map() }));
      block.members++;
      return block;
    });
    this.#ended = new Uint8Array(workers.length);
    this.#wake = wake;
  }

  /** Time from which a worker may do moves of a batch; undefined if it is woken when that is known. */
  begin(worker: number, batch: number, freeUs: number): number | undefined {
    const block = this.#blocks[worker];
    if (block === undefined) return freeUs;
    if (block.open < batch) {
      block.waiting.set(worker, batch);
      block.latestUs = Math.max(block.latestUs, freeUs);
      this.#openNext(block);
    }
    if (block.open < batch) return undefined;
    block.waiting.delete(worker);
    return block.openedUs;
  }

  /** Records that a worker has done all its moves. */
  end(worker: number, freeUs: number): void {
    const block = this.#blocks[worker];
    if (block === undefined || this.#ended[worker] === 1) return;
    this.#ended[worker] = 1;
    block.members--;
    block.latestUs = Math.max(block.latestUs, freeUs);
    this.#openNext(block);
  }

  #openNext(block: Block): void {
    if (block.waiting.size < block.members || block.waiting.size === 0) return;
    block.open = Math.min(...block.waiting.values());
    block.openedUs = block.latestUs;
    for (const [worker, batch] of block.waiting) {
      if (batch > block.open) continue;
      block.waiting.delete(worker);
      this.#wake(worker);
    }
  }
}
