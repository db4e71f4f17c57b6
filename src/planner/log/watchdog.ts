import type { LogPlace } from './line.js';
import { ownText } from './own-text.js';

/** A rank's collective that PyTorch's watchdog gave up on. */
export interface Timeout {
  /** The process group's name or number in the rank's lines; empty if they lack it. */
  readonly group: string;
  readonly rank: number;
  /** Number of the collective in its group. */
  readonly sequence: number;
  readonly operation: string;
  readonly elements: number | undefined;
  readonly timeoutMs: number | undefined;
  /** Numbers of the last collective that was enqueued and that was completed. */
  enqueued: number | undefined;
  completed: number | undefined;
  readonly place: LogPlace;
}

const TIMEOUT_LIMIT = 100_000;
const workForm =
  /\[(?:PG (?:ID )?([^\]]{0,100}?) )?Rank (\d{1,7})\][^\n]{0,60}Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d{1,15}), OpType=(\w{1,40})(?:, NumelIn=(\d{1,20}))?(?:, NumelOut=\d{1,20})?(?:[^)]{0,60}Timeout\(ms\)=(\d{1,12}))?/;
const lastForm =
  /\[(?:PG (?:ID )?([^\]]{0,100}?) )?Rank (\d{1,7})\][^\n]{0,200}last enqueued(?: NCCL)? work: (-?\d{1,15})(?:, [^\n]{0,40}?)?,? last completed(?: NCCL)? work: (-?\d{1,15})/;

/** Messages of PyTorch's watchdogs about a collective that timed out, by rank. */
export class WatchdogTracker {
  readonly #timeouts = new Map<string, Timeout>();

  read(text: string, place: LogPlace): void {
    if (text.includes('Watchdog caught')) this.#readWork(text, place);
    else if (text.includes('last enqueued')) this.#readLast(text);
  }

  list(): Timeout[] {
    return [...this.#timeouts.values()];
  }

  #readWork(text: string, place: LogPlace): void {
    const [, group = '', rank, sequence, operation = '', elements, timeout] = workForm.exec(text) ?? [];
    if (rank === undefined) return;
    const key = `${rank} ${sequence ?? ''} ${operation}`;
    if (this.#timeouts.has(key) || this.#timeouts.size >= TIMEOUT_LIMIT) return;
    this.#timeouts.set(key, {
      group: ownText(group),
      rank: Number(rank),
      sequence: Number(sequence),
      operation: ownText(operation),
      place,
      elements: elements === undefined ? undefined : Number(elements),
      timeoutMs: timeout === undefined ? undefined : Number(timeout),
      enqueued: undefined,
      completed: undefined,
    });
  }

  #readLast(text: string): void {
    const [, , rank, enqueued, completed] = lastForm.exec(text) ?? [];
    if (rank === undefined) return;
    const own = [...this.#timeouts.values()].findLast((timeout) => timeout.rank === Number(rank));
    if (own === undefined) return;
    own.enqueued ??= Number(enqueued);
    own.completed ??= Number(completed);
  }
}
