import type { Transferable as Transferred, Worker } from '#platform/threads';
import { InvalidArgumentError } from '../../errors.js';

/** A port for messages to a rank that is a thread. Its answers come to `onMessage`. */
export interface RankPort {
  /** The rank's number. */
  readonly rank: number;
  /**
   * Sends `value` to the rank, which receives it with `parentPort.on('message', …)`. Values are copied by structured clone;
   * buffers and ports in `transferList` move. Messages wait until the rank listens; those to a rank that has ended are lost.
   *
   * @throws InvalidArgumentError `ARGUMENT_TYPE` for a value that cannot be copied
   */
  postMessage(value: unknown, transferList?: readonly object[]): void;
}

/** @internal A port whose thread may not have been started yet. */
export class ThreadPort implements RankPort {
  readonly rank: number;
  #thread: Worker | undefined;
  #keepsAlive = true;
  readonly #early: (readonly [value: unknown, moved: Transferred[]])[] = [];

  constructor(rank: number) {
    this.rank = rank;
  }

  postMessage(value: unknown, transferList: readonly object[] = []): void {
    const moved = [...transferList] as Transferred[];
    try {
      if (this.#thread !== undefined) this.#thread.postMessage(value, moved);
      // Copied and moved here, as by a thread that has started: the caller may change the value.
      else this.#early.push(structuredClone<[unknown, Transferred[]]>([value, moved], { transfer: moved }));
    } catch (error) {
      throw new InvalidArgumentError('ARGUMENT_TYPE', `postMessage to rank ${this.rank}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  /** Sets whether the thread keeps the process alive. */
  keepAlive(does: boolean): void {
    this.#keepsAlive = does;
    if (does) this.#thread?.ref();
    else this.#thread?.unref();
  }

  /** Sends the messages that were posted before `thread` was started. */
  open(thread: Worker): void {
    this.#thread = thread;
    this.keepAlive(this.#keepsAlive);
    for (const [value, moved] of this.#early.splice(0)) thread.postMessage(value, moved);
  }
}
