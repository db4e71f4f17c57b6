import { Transform, type Writable } from '#platform/streams';
import { clearTimeout, setTimeout, type Timer } from '../platform/platform.js';

/** Longest time that an error is kept back to compare it with those of other ranks, milliseconds. */
const LONGEST_MS = 1000;
/** Longest error that is compared, in bytes. */
const LONGEST_BYTES = 65536;
const LINE_FEED = 0x0a;
/** First lines of an error: Node's or Bun's place in the source, the words of Deno or Python, or the error's name. */
const BEGIN =
  /^(?:(?:node:internal\/|file:\/\/|\/|\[eval\d*\]|\[stdin\])\S*:\d+$| *\d+ \| |(?:error: )?(?:Uncaught )?(?:\(in promise\) )?[\w$.]*Error\b|error: |Traceback \(most recent)/m;

/** Ranks whose errors have the same text. */
interface Equal {
  readonly ranks: number[];
  readonly printed: (() => void)[];
}

/** Destination of errors. */
interface ErrorPrinter {
  /** Returns a stream that prints lines as those of `ranks`. */
  readonly open: (ranks: readonly number[]) => Writable;
}

/**
 * Prints errors that several ranks report in the same words once, with all these ranks. The first error of a job goes first,
 * alone and at once: it is mostly the cause of the others.
 *
 *     a rank's stderr ──► watch(): passes on ordinary lines ──────────────────► its own lines
 *                          └── from the first line of an error to the end of the stream ──► gathered by text, printed together
 *
 * An error is kept back until the streams of all other ranks have ended or gather here too, and for a second at most.
 */
export class EqualErrors {
  readonly #printer: ErrorPrinter;
  readonly #waiting = new Map<string, Equal>();
  /** Number of streams that are open and do not wait here. */
  #open = 0;
  #first: { readonly rank: number; readonly text: string } | undefined;
  #timer: Timer | undefined;

  constructor(printer: ErrorPrinter) {
    this.#printer = printer;
  }

  /** Returns a stream between the error output of a rank and its lines; it ends once its error was printed. */
  watch(rank: number): Transform {
    this.#open++;
    const { errors, held } = { errors: this, held: new HeldError() };
    return new Transform({
      transform(chunk: Buffer, _encoding, done) {
        held.add(chunk, (passed) => this.push(passed));
        done();
      },
      flush(done) {
        errors.#ended(rank, held.take(), done);
      },
    });
  }

  #ended(rank: number, error: Buffer, done: () => void): void {
    this.#open--;
    if (error.length === 0) {
      done();
      this.#printIfComplete();
      return;
    }
    const text = error.toString('latin1');
    if (this.#first === undefined) {
      this.#first = { rank, text };
      this.#print([rank], text, [done]);
    } else {
      // A rank that was ended while it wrote has the first part of the same error.
      const whole = this.#first.text.startsWith(text) ? this.#first.text : text;
      const equal = this.#waiting.get(whole) ?? { ranks: [], printed: [] };
      equal.ranks.push(rank);
      equal.printed.push(done);
      this.#waiting.set(whole, equal);
      this.#timer ??= setTimeout(() => this.#printAll(), LONGEST_MS);
    }
    this.#printIfComplete();
  }

  #printIfComplete(): void {
    if (this.#open === 0) this.#printAll();
  }

  #printAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const all = [...this.#waiting];
    this.#waiting.clear();
    for (const [text, { ranks, printed }] of all) {
      const isFirst = text === this.#first?.text;
      this.#print(ranks, isFirst ? `the same error as of rank ${String(this.#first?.rank)}\n` : text, printed);
    }
  }

  #print(ranks: readonly number[], text: string, printed: readonly (() => void)[]): void {
    const lines = this.#printer.open(ranks);
    lines.end(Buffer.from(text, 'latin1'), () => {
      for (const done of printed) done();
    });
  }
}

/** The end of a rank's error output, from the first line that looks like an error. */
class HeldError {
  #parts: Buffer[] = [];
  #bytes = 0;
  #timer: Timer | undefined;
  #isAtLineStart = true;
  #pass: ((bytes: Buffer) => void) | undefined;

  add(chunk: Buffer, pass: (bytes: Buffer) => void): void {
    this.#pass = pass;
    const from = this.#bytes > 0 ? 0 : this.#beginIn(chunk);
    this.#isAtLineStart = chunk.at(-1) === LINE_FEED;
    if (from > 0) pass(chunk.subarray(0, from));
    if (from === chunk.length) return;
    if (this.#bytes === 0) this.#timer = setTimeout(() => this.#release(), LONGEST_MS);
    this.#parts.push(chunk.subarray(from));
    this.#bytes += chunk.length - from;
    if (this.#bytes > LONGEST_BYTES) this.#release();
  }

  /** Returns what is held, and holds nothing any more. */
  take(): Buffer {
    clearTimeout(this.#timer);
    const bytes = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    return bytes;
  }

  /** The program goes on after its error, or the error is too long. */
  #release(): void {
    this.#pass?.(this.take());
  }

  /** Index of the first line of an error in a chunk; its length if there is none. */
  #beginIn(chunk: Buffer): number {
    const skipped = this.#isAtLineStart ? 0 : chunk.indexOf(LINE_FEED) + 1;
    if (skipped === 0 && !this.#isAtLineStart) return chunk.length;
    const found = BEGIN.exec(chunk.toString('latin1', skipped));
    return found === null ? chunk.length : skipped + found.index;
  }
}
