import { Transform, type TransformCallback } from 'node:stream';

/** A line feed. */
const LINE_FEED = 0x0a;

/**
 * Puts a prefix before each line of a byte stream and passes on whole lines only, so that lines of several streams never mix
 * in one destination. A last line without a line feed gets one.
 *
 * A line is kept in memory until it ends, whatever its length.
 */
export class LinePrefixer extends Transform {
  readonly #prefix: Buffer;
  /** Parts of the line that has not ended yet. */
  #rest: Buffer[] = [];

  constructor(prefix: string) {
    super();
    this.#prefix = Buffer.from(prefix);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      this.push(this.#prefixed(Buffer.concat([...this.#rest, chunk.subarray(0, end)])));
      this.#rest = [];
    }
    if (end < chunk.length) this.#rest.push(chunk.subarray(end));
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#rest.length > 0) this.push(this.#prefixed(Buffer.concat([...this.#rest, Buffer.of(LINE_FEED)])));
    this.#rest = [];
    done();
  }

  /** Returns one buffer, because a destination takes one write as a whole. */
  #prefixed(lines: Buffer): Buffer {
    if (this.#prefix.length === 0) return lines;
    const parts: Buffer[] = [];
    for (let start = 0; start < lines.length;) {
      const end = lines.indexOf(LINE_FEED, start) + 1;
      parts.push(this.#prefix, lines.subarray(start, end));
      start = end;
    }
    return Buffer.concat(parts);
  }
}
