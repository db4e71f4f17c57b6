import { open } from 'node:fs/promises';
import { constants, read } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { InputError } from '../../errors.js';

/** Bytes in pieces; each piece is valid until the next one is asked for. */
export type ByteSource = AsyncIterable<Buffer>;

/** Bytes that are read at a time, few enough for the young generation of the garbage collector. */
const PIECE_BYTES = 65_536;
/** Bytes by which a file is recognised. */
const HEAD_BYTES = 65_536;

/** Zeros that are skipped at a beginning: a log that was emptied while it is written has a hole there. */
const HOLE_LIMIT = 2 ** 30;
const LEAST_HOLE = 16;
const zeros = Buffer.alloc(PIECE_BYTES);

/** Number of zeros at the beginning, or 0 where they are too few for a hole. It is even: UTF-16 behind it stays readable. */
function leadingZeros(piece: Buffer): number {
  let count = piece.equals(zeros.subarray(0, piece.length)) ? piece.length : 0;
  while (count < piece.length && piece[count] === 0) count++;
  return count < LEAST_HOLE ? 0 : count - (count % 2);
}

/** A source whose first bytes were looked at. */
export class Peeked {
  readonly #rest: AsyncIterator<Buffer>;

  private constructor(
    /** The first bytes: 64 KiB, or all where there are fewer. */
    readonly head: Buffer,
    rest: AsyncIterator<Buffer>,
  ) {
    this.#rest = rest;
  }

  static async of(source: ByteSource): Promise<Peeked> {
    const rest = source[Symbol.asyncIterator]();
    const pieces: Buffer[] = [];
    let length = 0;
    let hole = 0;
    while (length < HEAD_BYTES) {
      const next = await rest.next();
      if (next.done === true) break;
      const skipped: number = length === 0 && hole < HOLE_LIMIT ? leadingZeros(next.value) : 0;
      hole += skipped;
      pieces.push(Buffer.from(next.value.subarray(skipped)));
      length += next.value.length - skipped;
    }
    // A file of zeros alone is no hole before a text.
    if (length === 0 && hole > 0) pieces.push(Buffer.alloc(Math.min(hole, HEAD_BYTES)));
    return new Peeked(Buffer.concat(pieces), rest);
  }

  /** All bytes, the first ones again. */
  async *all(): AsyncGenerator<Buffer> {
    try {
      if (this.head.length > 0) yield this.head;
      for (let next = await this.#rest.next(); next.done !== true; next = await this.#rest.next()) yield next.value;
    } finally {
      await this.close();
    }
  }

  /** Closes a file that is refused before its end. */
  async close(): Promise<void> {
    await this.#rest.return?.(undefined);
  }
}

/** All bytes in one buffer. */
export async function wholeOf(source: ByteSource, limit: number, file: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of source) {
    length += piece.length;
    if (length > limit) throw new InputError('TOO_LARGE', `has more than ${limit / 2 ** 20} MiB`, { file });
    pieces.push(Buffer.from(piece));
  }
  return Buffer.concat(pieces, length);
}

/** Reads the bytes that are still there, and keeps none. */
export async function drain(source: ByteSource): Promise<void> {
  const pieces = source[Symbol.asyncIterator]();
  while ((await pieces.next()).done !== true);
}

/** The bytes of a file, or of the standard input for `-`. */
export function bytesOf(name: string): AsyncGenerator<Buffer> {
  return name === '-' ? readPieces(STANDARD_INPUT) : readInPlace(name);
}

/** Does not wait for a process that opens a pipe; Windows lacks the flag. */
const READ_FLAGS = constants.O_RDONLY | ((constants as { readonly O_NONBLOCK?: number }).O_NONBLOCK ?? 0);

async function* readInPlace(name: string): AsyncGenerator<Buffer> {
  const file = await open(name, READ_FLAGS);
  try {
    let isEmpty = true;
    for await (const piece of readPieces(file.fd)) {
      isEmpty = false;
      yield piece;
    }
    if (isEmpty && (await file.stat()).isFIFO())
      throw new InputError('CONTENT', 'is a pipe to which no process writes; start its writer first, or pipe into -', {
        file: name,
      });
  } finally {
    await file.close();
  }
}

const readPiece = promisify(read);
const STANDARD_INPUT = 0;
/** Pause before the next look at an input that does not block and has nothing yet, in milliseconds. */
const INPUT_PAUSE_MS = 5;

/** Reads into one buffer again and again: gigabytes of new ones would outrun the garbage collector. */
async function* readPieces(descriptor: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (;;) {
    try {
      const { bytesRead } = await readPiece(descriptor, buffer, 0, buffer.length, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Windows reports the end of a pipe in this way.
      if (code === 'EOF') return;
      if (code !== 'EAGAIN') throw error;
      await setTimeout(INPUT_PAUSE_MS);
    }
  }
}
