import { read } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { createGunzip } from 'node:zlib';
import { InputError, InvalidArgumentError, SystemError } from '../../errors.js';
import type { LogModel } from '../../planner/log/model.js';
import { NcclLogReader } from '../../planner/log/read-log.js';
import { progressLine } from '../output.js';

/** Bytes that are kept of a line: NCCL's own are shorter than 5 KiB. */
const LINE_LIMIT = 65_536;
/** Bytes that are read at a time, few enough for the young generation of the garbage collector. */
const PIECE_BYTES = 65_536;
/** Bytes after which the progress line moves. */
const PROGRESS_STEP = 2 ** 26;

/**
 * Reads logs piece by piece, one file after the other.
 *
 * @param names files, `-` for the standard input
 * @throws InvalidArgumentError where one does not exist; SystemError where one cannot be read; InputError where one is not text
 */
export async function readLogs(names: readonly string[]): Promise<LogModel> {
  if (names.filter((name) => name === '-').length > 1)
    throw new InvalidArgumentError('FILE', 'the standard input (-) is given twice; it can be read once');
  const reader = new NcclLogReader();
  const progress = progressLine();
  try {
    for (const name of names) {
      reader.openFile(name === '-' ? 'standard input' : name);
      await readFile(name, reader, (bytes) => progress.update(`${name}: ${Math.round(bytes / 2 ** 20)} MiB read`));
    }
  } finally {
    progress.done();
  }
  return reader.finish();
}

/**
 * Keeps the heap of V8 small: almost all data become garbage immediately, so a heap that grows slowly takes half the memory for a
 * log of gigabytes, and hardly more time. It affects the whole process, so only commands call it.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=20');
}

/** Reads one file into a reader that knows its name already. */
export async function readFile(name: string, reader: NcclLogReader, report: (bytes: number) => void): Promise<void> {
  const decoder = new StringDecoder('utf8');
  const lines = new LineSplitter(reader);
  let bytes = 0;
  try {
    for await (const piece of pieces(name)) {
      if (bytes === 0) refuseBinary(piece, name);
      lines.push(decoder.write(piece));
      if (Math.floor(bytes / PROGRESS_STEP) !== Math.floor((bytes + piece.length) / PROGRESS_STEP)) report(bytes + piece.length);
      bytes += piece.length;
    }
  } catch (error) {
    if (error instanceof InputError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new InvalidArgumentError('FILE', 'there is no such file', { file: name });
    if (code === 'EISDIR')
      throw new InvalidArgumentError('FILE', `is a folder; give its files: ${name.replace(/\/$/, '')}/*`, { file: name });
    throw new SystemError('FILE', `cannot be read: ${message}`, { file: name, cause: error });
  }
  lines.push(decoder.end());
  lines.end();
}

/** The bytes of a file, unpacked where it is compressed. Each piece is valid until the next one is requested. */
async function* pieces(name: string): AsyncGenerator<Buffer> {
  const iterator = (name === '-' ? readInput() : readInPlace(name))[Symbol.asyncIterator]();
  try {
    const first = await iterator.next();
    if (first.done === true) return;
    const isCompressed = first.value[0] === 0x1f && first.value[1] === 0x8b;
    const rest = async function* () {
      for (let next: IteratorResult<Buffer> = first; next.done !== true; next = await iterator.next())
        yield isCompressed ? Buffer.from(next.value) : next.value;
    };
    if (isCompressed) yield* Readable.from(rest()).pipe(createGunzip()) as AsyncIterable<Buffer>;
    else yield* rest();
  } finally {
    await iterator.return(undefined); // closes a file that is refused before its end
  }
}

/** Reads into one buffer again and again: gigabytes of new ones would outrun the garbage collector. */
async function* readInPlace(name: string): AsyncGenerator<Buffer> {
  const file = await open(name);
  try {
    const buffer = Buffer.allocUnsafe(PIECE_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

const readPiece = promisify(read);
const STANDARD_INPUT = 0;
/** Pause before the next look at an input that does not block and has nothing yet, in milliseconds. */
const INPUT_PAUSE_MS = 5;

/** The same for the standard input, of which streams make new buffers. */
async function* readInput(): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (;;) {
    try {
      const { bytesRead } = await readPiece(STANDARD_INPUT, buffer, 0, buffer.length, null);
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

function refuseBinary(piece: Buffer, name: string): void {
  const file = name === '-' ? 'standard input' : name;
  if (piece.subarray(0, 4096).includes(0)) throw new InputError('CONTENT', 'is no text, so it is no log', { file });
}

/** Cuts text that comes in pieces into lines, of which it keeps no more than the limit. */
class LineSplitter {
  readonly #reader: NcclLogReader;
  #rest = '';

  constructor(reader: NcclLogReader) {
    this.#reader = reader;
  }

  push(text: string): void {
    let start = 0;
    for (;;) {
      const end = text.indexOf('\n', start);
      if (end < 0) break;
      const line = this.#rest === '' ? text.slice(start, end) : this.#rest + text.slice(start, end);
      this.#rest = '';
      this.#reader.readLine(cleaned(line));
      start = end + 1;
    }
    if (this.#rest.length < LINE_LIMIT) this.#rest += text.slice(start, start + LINE_LIMIT);
  }

  end(): void {
    if (this.#rest !== '') this.#reader.readUnfinishedLine(cleaned(this.#rest));
  }
}

function cleaned(line: string): string {
  const short = line.length > LINE_LIMIT ? line.slice(0, LINE_LIMIT) : line;
  return short.endsWith('\r') ? short.slice(0, -1) : short;
}
