import { Writable } from '#platform/streams';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const newLine = Buffer.of(LINE_FEED);
/** Erases the rest of a terminal's line. */
const ERASE = '\x1b[K';
/** Bytes of an unfinished line that are kept back. A longer line is passed on in pieces. */
const LONGEST_BYTES = 2 ** 20;

/** Place where several prefixers write. */
export interface LinePlace {
  readonly isTerminal: boolean;
  /** True after the state of a line that its program rewrites was shown on the terminal. */
  showsProgress?: boolean;
  /** The prefixer that has passed on a piece of a line there, without its end. */
  open?: LinePrefixer | undefined;
}

/**
 * Puts a prefix before each line of a byte stream and passes on whole lines, so that lines of several streams never mix. Of a
 * line of more than a MiB, it passes on pieces: another stream's line breaks it there.
 *
 * Of a line that its program rewrites (`10 %\r20 %\r`) the last state is passed on; a terminal also gets each state, in its last
 * line. With an empty prefix, such lines are not changed.
 */
export class LinePrefixer extends Writable {
  readonly #prefix: Buffer;
  readonly #destination: Writable;
  readonly #place: LinePlace;
  /** Parts of the line that has not ended yet. */
  #rest: Buffer[] = [];
  #restBytes = 0;
  /** True if a piece of that line was passed on. */
  #hasBegun = false;
  #canWrite = true;
  /** Continues a write that waits for room. */
  #resume: (() => void) | undefined;

  constructor(prefix: string, destination: Writable, place: LinePlace) {
    super();
    this.#prefix = Buffer.from(prefix);
    this.#destination = destination;
    this.#place = place;
    destination.on('drain', () => this.#resume?.());
    // From then on, this discards what comes.
    for (const event of ['error', 'close'] as const) destination.on(event, () => this.#discard());
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    let hasRoom = true;
    if (end > 0) hasRoom = this.#pass(this.#prefixed(Buffer.concat([...this.#takeRest(), chunk.subarray(0, end)])), true);
    if (end < chunk.length) hasRoom = this.#keep(chunk.subarray(end)) && hasRoom;
    if (hasRoom) {
      done();
      return;
    }
    this.#resume = () => {
      this.#resume = undefined;
      done();
    };
  }

  override _final(done: () => void): void {
    if (this.#rest.length > 0) this.#pass(this.#prefixed(Buffer.concat([...this.#takeRest(), newLine])), true);
    else if (this.#place.open === this) this.#pass(newLine, true);
    done();
  }

  /** Writes to the destination; false if that has no room now. */
  #pass(bytes: Buffer, endsLine: boolean): boolean {
    const place = this.#place;
    const breaks = place.open !== undefined && place.open !== this;
    place.open = endsLine ? undefined : this;
    this.#hasBegun = !endsLine;
    return !this.#canWrite || this.#destination.write(breaks ? Buffer.concat([newLine, bytes]) : bytes);
  }

  /** Keeps a part of the line that has not ended; of one that is written again, the last state. */
  #keep(chunk: Buffer): boolean {
    this.#rest.push(chunk);
    this.#restBytes += chunk.length;
    if (this.#prefix.length > 0 && !this.#hasBegun && chunk.includes(CARRIAGE_RETURN)) return this.#keepState();
    if (this.#restBytes <= LONGEST_BYTES) return true;
    const bytes = Buffer.concat(this.#takeRest());
    return this.#pass(this.#continues ? bytes : Buffer.concat([this.#prefix, bytes]), false);
  }

  #keepState(): boolean {
    const state = Buffer.from(lastState(Buffer.concat(this.#takeRest())));
    this.#rest = [state];
    this.#restBytes = state.length;
    if (!this.#place.isTerminal) return true;
    this.#place.showsProgress = true;
    const text = state.at(-1) === CARRIAGE_RETURN ? state.subarray(0, -1) : state;
    return text.length === 0 || this.#pass(Buffer.concat([this.#prefix, text, Buffer.from(`${ERASE}\r`)]), true);
  }

  #takeRest(): Buffer[] {
    const rest = this.#rest;
    this.#rest = [];
    this.#restBytes = 0;
    return rest;
  }

  /** True if the next bytes go behind a piece of their line. */
  get #continues(): boolean {
    return this.#hasBegun && this.#place.open === this;
  }

  /** Returns one buffer, because a destination takes one write as a whole. */
  #prefixed(lines: Buffer): Buffer {
    if (this.#prefix.length === 0) return lines;
    // Otherwise the rest of a longer earlier state would show behind a shorter line.
    const erases = this.#place.isTerminal && this.#place.showsProgress === true;
    const parts: Buffer[] = [];
    let isPiece = this.#hasBegun;
    for (let start = 0; start < lines.length;) {
      const end = lines.indexOf(LINE_FEED, start);
      const line = lines.subarray(start, end);
      if (!(isPiece && this.#continues)) parts.push(this.#prefix);
      parts.push(isPiece ? line : lastState(line), Buffer.from(erases ? `${ERASE}\n` : '\n'));
      isPiece = false;
      start = end + 1;
    }
    return Buffer.concat(parts);
  }

  #discard(): void {
    this.#canWrite = false;
    this.#resume?.();
  }
}

/** Text after the last carriage return of a line, except for one at its end. */
function lastState(line: Buffer): Buffer {
  const end = line.at(-1) === CARRIAGE_RETURN ? line.length - 1 : line.length;
  return line.subarray(line.subarray(0, end).lastIndexOf(CARRIAGE_RETURN) + 1);
}
