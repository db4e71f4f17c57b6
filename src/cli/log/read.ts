import { StringDecoder } from 'node:string_decoder';
import { setFlagsFromString } from 'node:v8';
import { InputError, TcclError } from '../../errors.js';
import type { NcclLogReader } from '../../planner/log/job/read-log.js';
import { classify, encodingOf } from '../../planner/readers/classify.js';
import { type ByteSource, bytesOf, wholeOf } from '../diagnose/bytes.js';
import { type Unpacked, unpacked } from '../diagnose/unpack.js';

/** A file that was read, by its kind; the reason where it was not, or what it lacks. */
export interface Exhibit {
  readonly file: string;
  readonly kind: string;
  readonly refused?: string;
  readonly note?: string;
}

/** Prose and programs: they speak of faults that they do not have. */
const PROSE = 'prose or source, not a log';
const proseName = /\.(?:md|rst|py|sh|ipynb|c|cc|cpp|cu|h|hpp)$/i;

export function isProse(name: string): boolean {
  return proseName.test(name);
}

/** Bytes that are kept of a line: NCCL's own are shorter than 5 KiB. */
const LINE_LIMIT = 65_536;
/** Limit of files that are read as a whole. */
const WHOLE_LIMIT = 512 * 2 ** 20;
/** Bytes after which progress is reported. */
const PROGRESS_STEP = 2 ** 26;

/**
 * Keeps the heap of V8 small: almost all data become garbage immediately, so a heap that grows slowly takes half the memory for a
 * log of gigabytes, and hardly more time. It affects the whole process, so only commands call it.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=20');
}

/**
 * Reads a file, or all files that it packs, into a reader. A broken one does not hide the findings of others.
 *
 * @param name a file, or `-` for the standard input
 * @param skipsProse files with names of prose and programs are listed, and not read
 */
export async function readExhibits(
  name: string,
  reader: NcclLogReader,
  report: (name: string, bytes: number) => void,
  skipsProse = false,
): Promise<Exhibit[]> {
  const title = name === '-' ? 'standard input' : name;
  const exhibits: Exhibit[] = [];
  const source = bytesOf(name);
  try {
    for await (const file of unpacked(title, source))
      exhibits.push(
        skipsProse && isProse(file.name)
          ? { file: file.name, kind: PROSE }
          : await readOne(title, file, reader, (bytes) => report(file.name, bytes)),
      );
  } catch (error) {
    exhibits.push({ file: title, kind: 'unreadable', refused: reasonOf(error) });
  } finally {
    // Decompressors do not pass on that they stop early. A read of the standard input may never end, and needs no closing.
    if (name !== '-') await source.return(undefined);
  }
  return exhibits;
}

async function readOne(title: string, file: Unpacked, reader: NcclLogReader, report: (bytes: number) => void): Promise<Exhibit> {
  const { name, damage, refused } = file;
  if (refused !== undefined) return { file: name, kind: 'unreadable', refused };
  reader.openFile(name);
  const exhibit = await readByKind(file, reader, report).catch((error: unknown): Exhibit => {
    // A bomb ends its archive, which is named once.
    if (error instanceof InputError && error.file === title) throw error;
    return { file: name, kind: 'unreadable', refused: reasonOf(error) };
  });
  return damage.reason === undefined ? exhibit : { ...exhibit, note: damage.reason };
}

async function readByKind({ name, bytes }: Unpacked, reader: NcclLogReader, report: (bytes: number) => void): Promise<Exhibit> {
  const encoding = encodingOf(bytes.head);
  const kind = encoding === 'utf8' ? classify(bytes.head) : 'text';
  if (kind === 'binary') return { file: name, kind, refused: 'is no text (a binary file)' };
  if (kind !== 'text') return { file: name, kind: reader.readWhole(kind, await wholeOf(bytes.all(), WHOLE_LIMIT, name)) };
  await readText(bytes.all(), encoding, reader, report);
  return { file: name, kind };
}

function reasonOf(error: unknown): string {
  if (error instanceof TcclError) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  if (code === 'ENOENT') return 'there is no such file or folder';
  if (code === 'EISDIR') return 'is a folder; give its files (tccl diagnose takes folders)';
  return `cannot be read: ${message}`;
}

async function readText(
  source: ByteSource,
  encoding: 'utf8' | 'utf-16le' | 'utf-16be',
  reader: NcclLogReader,
  report: (bytes: number) => void,
): Promise<void> {
  const decoder = encoding === 'utf8' ? new StringDecoder('utf8') : wideDecoder(encoding);
  const lines = new LineSplitter(reader);
  let bytes = 0;
  for await (const piece of source) {
    lines.push(decoder.write(piece));
    if (Math.floor(bytes / PROGRESS_STEP) !== Math.floor((bytes + piece.length) / PROGRESS_STEP)) report(bytes + piece.length);
    bytes += piece.length;
  }
  lines.push(decoder.end());
  lines.end();
}

/** UTF-16, as PowerShell writes it. */
function wideDecoder(encoding: 'utf-16le' | 'utf-16be'): { write(piece: Buffer): string; end(): string } {
  const decoder = new TextDecoder(encoding);
  return { write: (piece) => decoder.decode(piece, { stream: true }), end: () => decoder.decode() };
}

/** Cuts text that comes in pieces into lines, of which it keeps no more than the limit. */
/** Empty lines in a row, after which more of them change nothing. */
const EMPTY_LINES = 10_000;
const LF = 10;
const CR = 13;

class LineSplitter {
  readonly #reader: NcclLogReader;
  #rest = '';
  #empty = 0;

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
      const plain = cleaned(line);
      this.#reader.readLine(plain);
      start = end + 1;
      this.#empty = plain === '' ? this.#empty + 1 : 0;
      if (this.#empty > EMPTY_LINES) start = this.#skipEmpty(text, start);
    }
    if (this.#rest.length < LINE_LIMIT) this.#rest += text.slice(start, start + LINE_LIMIT);
  }

  /** Skips the ends of empty lines, of which a file of 1 MB may unpack to a billion. */
  #skipEmpty(text: string, from: number): number {
    let at = from;
    let count = 0;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === LF) count++;
      else if (code !== CR) break;
    }
    this.#reader.skipLines(count);
    return at;
  }

  end(): void {
    if (this.#rest !== '') this.#reader.readUnfinishedLine(cleaned(this.#rest));
  }
}

/** Without its carriage return, and without the zeros that a log has where it was emptied while it was written. */
function cleaned(line: string): string {
  const short = line.length > LINE_LIMIT ? line.slice(0, LINE_LIMIT) : line;
  const plain = short.charCodeAt(0) === 0 ? short.replace(/^\0+/, '') : short;
  return plain.endsWith('\r') ? plain.slice(0, -1) : plain;
}

/** @throws InputError where no file of a log could be read */
export function refuseUnread(exhibits: readonly Exhibit[]): void {
  const refused = exhibits.filter((exhibit) => exhibit.refused !== undefined);
  const [first] = refused;
  if (first === undefined || refused.length < exhibits.length) return;
  throw refused.length === 1
    ? new InputError('CONTENT', first.refused ?? '', { file: first.file })
    : new InputError(
        'CONTENT',
        `nothing can be read: ${refused
          .map(({ file, refused: reason }) => `${file}: ${reason ?? ''}`)
          .slice(0, 3)
          .join('; ')}`,
      );
}
