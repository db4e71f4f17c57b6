import { createGunzip } from 'node:zlib';
import { Readable } from 'node:stream';
import type { ReadableStream as WebStream } from 'node:stream/web';
import type { Entry as ZipEntry, ZipFile } from 'yauzl';
import { InputError } from '../../errors.js';
import { type ByteSource, drain, Peeked, wholeOf } from './bytes.js';
import { tarEntries } from './tar.js';

/** A file, after everything that packs it was taken off. */
export interface Unpacked {
  /** `logs.tar.gz: node1/job.log` */
  readonly name: string;
  readonly bytes: Peeked;
  /** Set when its bytes are used up, if they end before their packing does. */
  readonly damage: { reason: string | undefined };
}

/** Archives within archives, files of all of them together, and bytes that an archive in memory has. */
const DEPTH_LIMIT = 4;
const FILE_LIMIT = 20_000;
const MEMORY_LIMIT = 512 * 2 ** 20;
/** A file may unpack to a gibibyte, or to so many times its size: more is a bomb. */
const SIZE_LIMIT = 2 ** 30;
const RATIO_LIMIT = 256;

/** Bytes and files that have come out of one given file. */
interface Budget {
  readonly file: string;
  packed: number;
  unpacked: number;
  files: number;
}

/**
 * The files in a file: itself, or those of archives (.zip, .tar) and compressed files (.gz, .xz, .zst, .bz2), in any order of
 * packing. Bytes of one that are left over when the next is asked for are lost.
 *
 * @throws InputError for a bomb, which names the given file, and for an archive that is damaged
 */
export async function* unpacked(name: string, source: ByteSource): AsyncGenerator<Unpacked> {
  const budget: Budget = { file: name, packed: 0, unpacked: 0, files: 0 };
  yield* layer(name, await Peeked.of(counted(source, budget)), budget, 0, { reason: undefined }, false);
}

async function* counted(source: ByteSource, budget: Budget): ByteSource {
  for await (const piece of source) {
    budget.packed += piece.length;
    yield piece;
  }
}

async function* layer(
  name: string,
  bytes: Peeked,
  budget: Budget,
  depth: number,
  damage: Unpacked['damage'],
  isBeforeOthers: boolean,
): AsyncGenerator<Unpacked> {
  const packing = packingOf(bytes.head);
  if (packing === undefined) {
    if (++budget.files > FILE_LIMIT) throw new InputError('TOO_LARGE', `holds more than ${FILE_LIMIT} files`, { file: name });
    yield { name, bytes, damage };
    if (isBeforeOthers) await drain(bytes.all());
    else await bytes.close();
    return;
  }
  if (depth >= DEPTH_LIMIT) throw new InputError('TOO_LARGE', `is packed more than ${DEPTH_LIMIT} times`, { file: name });
  if (packing === 'zip') {
    const archive = await wholeOf(bytes.all(), MEMORY_LIMIT, name);
    for await (const entry of zipEntries(archive, name)) {
      const own = { reason: undefined };
      const source = limited(tolerant(entry.source, own), budget);
      yield* layer(`${name}: ${entry.name}`, await Peeked.of(source), budget, depth + 1, own, false);
    }
    return;
  }
  if (packing === 'tar') {
    for await (const entry of tarEntries(bytes.all(), damage))
      yield* layer(`${name}: ${entry.name}`, await Peeked.of(entry.source), budget, depth + 1, damage, true);
    return;
  }
  const source = limited(tolerant(decompressed(packing, bytes.all()), damage), budget);
  yield* layer(name, await Peeked.of(source), budget, depth + 1, damage, isBeforeOthers);
}

type Packing = 'gzip' | 'xz' | 'zstd' | 'bzip2' | 'zip' | 'tar';

/** The packing of a file, by its first bytes. */
function packingOf(head: Uint8Array): Packing | undefined {
  const starts = (...bytes: readonly number[]) => bytes.every((byte, index) => head[index] === byte);
  if (starts(0x1f, 0x8b)) return 'gzip';
  if (starts(0x28, 0xb5, 0x2f, 0xfd)) return 'zstd';
  if (starts(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0)) return 'xz';
  if (starts(0x42, 0x5a, 0x68) && (head[3] ?? 0) >= 0x31 && (head[3] ?? 0) <= 0x39) return 'bzip2';
  if (starts(0x50, 0x4b, 3, 4) || starts(0x50, 0x4b, 5, 6)) return 'zip';
  return Buffer.from(head.subarray(257, 262)).toString('latin1') === 'ustar' ? 'tar' : undefined;
}

async function* limited(source: ByteSource, budget: Budget): ByteSource {
  for await (const piece of source) {
    budget.unpacked += piece.length;
    if (budget.unpacked > Math.max(SIZE_LIMIT, RATIO_LIMIT * budget.packed))
      throw new InputError(
        'TOO_LARGE',
        `unpacks to more than ${RATIO_LIMIT} times its size: this is no log (a zip bomb?); unpack it yourself if it is one`,
        { file: budget.file },
      );
    yield piece;
  }
}

/** Ends early, with a reason, where packed bytes are cut or damaged: the bytes before are good. */
async function* tolerant(source: ByteSource, damage: Unpacked['damage']): ByteSource {
  try {
    yield* source;
  } catch (error) {
    if (error instanceof InputError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    damage.reason = /unexpected end|EOF|truncated|too short|premature/i.test(message)
      ? 'it is cut: what unpacks is read'
      : `it is damaged (${message}): what unpacks is read`;
  }
}

async function* decompressed(packing: 'gzip' | 'xz' | 'zstd' | 'bzip2', source: ByteSource): ByteSource {
  switch (packing) {
    case 'gzip':
      yield* Readable.from(copies(source)).pipe(createGunzip()) as AsyncIterable<Buffer>;
      return;
    case 'bzip2':
      yield* through(source);
      return;
    case 'xz': {
      // The module is CommonJS, of which Node gives the exports as the default.
      const module = await import('xz-decompress');
      const { XzReadableStream } = (module as unknown as { readonly default: typeof module }).default;
      const packed = Readable.toWeb(Readable.from(copies(source))) as unknown as ReadableStream<Uint8Array>;
      const reader = (new XzReadableStream(packed) as unknown as WebStream<Uint8Array>).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield Buffer.from(value);
      }
    }
    case 'zstd': {
      const { Decompress } = await import('fzstd');
      const ready: Buffer[] = [];
      const stream = new Decompress((piece) => ready.push(Buffer.from(piece)));
      for await (const piece of source) {
        stream.push(new Uint8Array(piece));
        yield* ready.splice(0);
      }
      stream.push(new Uint8Array(0), true);
      yield* ready.splice(0);
    }
  }
}

/** unbzip2-stream is a stream of Node's first kind, which ends with an event. */
async function* through(source: ByteSource): ByteSource {
  const { default: bunzip2 } = await import('unbzip2-stream');
  const stream = bunzip2();
  const readable = new Readable({ read: () => stream.resume() });
  stream.on('data', (piece: Buffer) => {
    if (!readable.push(piece)) stream.pause();
  });
  stream.on('end', () => readable.push(null));
  // Where the file is cut, it reads from a piece that does not exist.
  stream.on('error', (error: Error) => readable.destroy(error instanceof TypeError ? new Error('unexpected end') : error));
  Readable.from(copies(source))
    .on('error', (error) => readable.destroy(error))
    .pipe(stream);
  yield* readable as AsyncIterable<Buffer>;
}

/** Sources use one buffer again and again; streams keep what they get. */
async function* copies(source: ByteSource): ByteSource {
  for await (const piece of source) yield Buffer.from(piece);
}

async function* zipEntries(
  archive: Buffer,
  file: string,
): AsyncGenerator<{ readonly name: string; readonly source: ByteSource }> {
  const { fromBuffer } = await import('yauzl');
  const zip = await new Promise<ZipFile>((resolve, reject) => {
    fromBuffer(archive, { lazyEntries: true, autoClose: false }, (error: Error | null, opened: ZipFile) => {
      if (error === null) resolve(opened);
      else reject(new InputError('CONTENT', `is no zip archive that can be read: ${error.message}`, { file, cause: error }));
    });
  });
  for (;;) {
    const entry = await nextEntry(zip, file);
    if (entry === undefined) return;
    if (entry.fileName.endsWith('/')) continue;
    yield { name: entry.fileName, source: contentOf(zip, entry) };
  }
}

function nextEntry(zip: ZipFile, file: string): Promise<ZipEntry | undefined> {
  return new Promise((resolve, reject) => {
    const done = (entry: ZipEntry | undefined) => {
      zip.removeAllListeners();
      resolve(entry);
    };
    zip.once('entry', done);
    zip.once('end', () => done(undefined));
    zip.once('error', (error: Error) => {
      zip.removeAllListeners();
      reject(new InputError('CONTENT', `is a damaged zip archive: ${error.message}`, { file, cause: error }));
    });
    zip.readEntry();
  });
}

async function* contentOf(zip: ZipFile, entry: ZipEntry): ByteSource {
  if (entry.isEncrypted()) throw new InputError('CONTENT', `${entry.fileName} is encrypted`);
  if (entry.compressionMethod !== 0 && entry.compressionMethod !== 8)
    throw new InputError('CONTENT', `${entry.fileName} is packed by method ${entry.compressionMethod}, which few programs know`);
  const stream = await new Promise<Readable>((resolve, reject) => {
    zip.openReadStream(entry, (error: Error | null, opened: Readable) => {
      if (error === null) resolve(opened);
      else reject(error);
    });
  });
  yield* stream as AsyncIterable<Buffer>;
}
