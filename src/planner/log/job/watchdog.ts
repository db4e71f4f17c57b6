import type { LogPlace } from '../lines/line.js';
import { timeOf } from '../deaths/stream.js';
import { ownText } from '../lines/own-text.js';

/** A rank's collective that PyTorch's watchdog gave up on. */
export interface Timeout {
  /** The process group's name or number in the rank's lines; empty if they lack it. */
  readonly group: string;
  readonly rank: number;
  /** Number of the collective in its group; -1 in versions of PyTorch that do not print it. */
  readonly sequence: number;
  readonly operation: string;
  readonly elements: number | undefined;
  readonly timeoutMs: number | undefined;
  /** Numbers of the last collective that was enqueued and that was completed. */
  enqueued: number | undefined;
  completed: number | undefined;
  readonly place: LogPlace;
}

/** A bar such as `Map:  31%|███`, or a line such as `Saving checkpoint` that ends long before the first time-out. */
export interface Progress {
  readonly name: string;
  /** Undefined for a line. */
  readonly percent: number | undefined;
  /** Seconds that the work has run; undefined where it does not say. */
  readonly seconds: number | undefined;
}

const TIMEOUT_LIMIT = 100_000;
const aloneForm =
  /\b(?:[Ss]aving|[Ww]riting|[Uu]ploading|[Ee]valuating|[Vv]alidating|[Dd]ownloading|[Tt]okeni[sz]ing|[Pp]re-?processing) [\w ]{3,60}/;
const workForm =
  /\[(?:PG (?:ID )?([^\]]{0,100}?) )?Rank (\d{1,7})\][^\n]{0,60}(?:Watchdog caught|Caught) collective operation timeout: WorkNCCL\((?:SeqNum=(\d{1,15}), )?OpType=(\w{1,40})(?:, (?:NumelIn=(\d{1,20})|TensorShape=\[([\d, ]{1,100})\]))?(?:, NumelOut=\d{1,20})?(?:[^)]{0,120}Timeout\(ms\)=(\d{1,12}))?/;
const lastForm =
  /\[(?:PG (?:ID )?([^\]]{0,100}?) )?Rank (\d{1,7})\][^\n]{0,200}last enqueued(?: NCCL)? work: (-?\d{1,15})(?:, [^\n]{0,40}?)?,? last completed(?: NCCL)? work: (-?\d{1,15})/;

/** Messages of PyTorch's watchdogs about a collective that timed out, by rank. */
export class WatchdogTracker {
  readonly #timeouts = new Map<string, Timeout>();
  #progress: Progress | undefined;
  /** The last dated line about work that ranks do alone. */
  #work: { readonly name: string; readonly timeMs: number } | undefined;

  read(text: string, place: LogPlace): void {
    if (text.includes('aught collective operation timeout')) this.#readWork(text, place);
    else if (text.includes('last enqueued')) this.#readLast(text);
    else if (this.#timeouts.size === 0 && text.includes('%|')) this.#readProgress(text);
    else if (this.#timeouts.size === 0 && text.includes('ing ')) this.#readWorkBefore(text);
  }

  /** The work that a progress bar showed last before the first time-out. */
  get progress(): Progress | undefined {
    return this.#progress;
  }

  #readWorkBefore(text: string): void {
    const [name] = aloneForm.exec(text) ?? [];
    const timeMs = name === undefined ? undefined : timeOf(text);
    if (name !== undefined && timeMs !== undefined) this.#work = { name: ownText(name.trim()), timeMs };
  }

  #readProgress(text: string): void {
    const [, name = '', percent, elapsed = ''] =
      /(?:([\w()/. -]{2,60}?)(?: \(num_proc=\d{1,4}\))?: {1,6}|^\s{0,10})(\d{1,3})%\|(?:[^\n[]{0,200}\[((?:\d{1,3}:)?\d{1,2}:\d\d)<)?/.exec(
        text,
      ) ?? [];
    if (percent === undefined || Number(percent) >= 100) return;
    const seconds = elapsed === '' ? undefined : elapsed.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
    if (name !== '' || seconds !== undefined) this.#progress = { name: ownText(name.trim()), percent: Number(percent), seconds };
  }

  list(): Timeout[] {
    return [...this.#timeouts.values()];
  }

  #readWork(text: string, place: LogPlace): void {
    const [, group = '', rank, sequence, operation = '', numbers, shape, timeout] = workForm.exec(text) ?? [];
    if (rank === undefined) return;
    const elements = numbers ?? shape?.split(',').reduce((product, length) => product * Number(length), 1);
    const key = `${rank} ${sequence ?? ''} ${operation}`;
    if (this.#timeouts.has(key) || this.#timeouts.size >= TIMEOUT_LIMIT) return;
    const timeMs = timeOf(text);
    if (this.#timeouts.size === 0 && this.#progress === undefined && this.#work !== undefined && timeMs !== undefined)
      this.#progress = { name: this.#work.name, percent: undefined, seconds: (timeMs - this.#work.timeMs) / 1000 };
    this.#timeouts.set(key, {
      group: ownText(group),
      rank: Number(rank),
      sequence: Number(sequence ?? -1),
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
