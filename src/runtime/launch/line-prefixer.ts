import { Transform, type TransformCallback } from 'node:stream';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** Erases the rest of a terminal's line. */
const ERASE = '\x1b[K';

/** Options of a prefixer. */
interface LinePrefixerOptions {
  /** The terminal that the lines go to, if they go to one; the same object for all prefixers of it. */
  readonly terminal?: { showsProgress: boolean } | undefined;
}

/**
 * Puts a prefix before each line of a byte stream and passes on whole lines only, so that lines of several streams never mix.
 *
 * Of a line that its program rewrites (`10 %\r20 %\r`) the last state is passed on; a terminal also gets each state, in its last
 * line. With an empty prefix, such lines are not changed.
 */
export class LinePrefixer extends Transform {
  readonly #prefix: Buffer;
  readonly #terminal: { showsProgress: boolean } | undefined;
  /** Parts of the line that has not ended yet. */
  #rest: Buffer[] = [];

  constructor(prefix: string, { terminal }: LinePrefixerOptions = {}) {
    super();
    this.#prefix = Buffer.from(prefix);
    this.#terminal = prefix === '' ? undefined : terminal;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      this.push(this.#prefixed(Buffer.concat([...this.#rest, chunk.subarray(0, end)])));
      this.#rest = [];
    }
    if (end < chunk.length) this.#keep(chunk.subarray(end));
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#rest.length > 0) this.push(this.#prefixed(Buffer.concat([...this.#rest, Buffer.of(LINE_FEED)])));
    this.#rest = [];
    done();
  }

  /** Keeps a part of the line that has not ended; of one that is written again, the last state. */
  #keep(chunk: Buffer): void {
    this.#rest.push(chunk);
    if (this.#prefix.length === 0 || !chunk.includes(CARRIAGE_RETURN)) return;
    const state = lastState(Buffer.concat(this.#rest));
    this.#rest = [Buffer.from(state)];
    if (this.#terminal === undefined) return;
    this.#terminal.showsProgress = true;
    const text = state.at(-1) === CARRIAGE_RETURN ? state.subarray(0, -1) : state;
    if (text.length > 0) this.push(Buffer.concat([this.#prefix, text, Buffer.from(`${ERASE}\r`)]));
  }

  /** Returns one buffer, because a destination takes one write as a whole. */
  #prefixed(lines: Buffer): Buffer {
    if (this.#prefix.length === 0) return lines;
    // Otherwise the rest of a longer earlier state would show behind a shorter line.
    const erases = this.#terminal?.showsProgress === true;
    const parts: Buffer[] = [];
    for (let start = 0; start < lines.length;) {
      const end = lines.indexOf(LINE_FEED, start);
      parts.push(this.#prefix, lastState(lines.subarray(start, end)), Buffer.from(erases ? `${ERASE}\n` : '\n'));
      start = end + 1;
    }
    return Buffer.concat(parts);
  }
}

/** Text after the last carriage return of a line, except for one at its end. */
function lastState(line: Buffer): Buffer {
  const end = line.at(-1) === CARRIAGE_RETURN ? line.length - 1 : line.length;
  return line.subarray(line.subarray(0, end).lastIndexOf(CARRIAGE_RETURN) + 1);
}
