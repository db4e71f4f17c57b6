import { createGunzip } from 'node:zlib';
import { Readable } from 'node:stream';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { InputError } from '../../errors.js';
import { type ByteSource, drain, Peeked, wholeOf } from './bytes.js';
import { tarEntries } from './tar.js';
import { zipEntries } from './zip.js';

/** A file, after everything that packs it was taken off. */
export interface Unpacked {
  /** `logs.tar.gz: node1/job.log` */
  readonly name: string;
  readonly bytes: Peeked;
  /** Set when its bytes are used up, if they end before their packing does. */
  readonly damage: { reason: string | undefined };
  /** The reason where it cannot be read. */
  readonly refused?: string;
}

/** Archives within archives, files of all of them together, and bytes that an archive in memory has. */
const DEPTH_LIMIT = 4;
const FILE_LIMIT = 20_000;
const MEMORY_LIMIT = 512 * 2 ** 20;
/** A file may unpack to so many bytes, or to so many times what was read of it: more is a bomb. */
const SIZE_LIMIT = 2 ** 27;
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
      const inside = `${name}: ${entry.name}`;
      if (entry.refused === undefined) yield* layer(inside, await Peeked.of(source), budget, depth + 1, own, false);
      else yield { name: inside, bytes: await Peeked.of(source), damage: own, refused: entry.refused };
    }
    return;
  }
  if (packing === 'tar') {
    for await (const entry of tarEntries(bytes.all(), damage))
      yield* layer(`${name}: ${entry.name}`, await Peeked.of(entry.source), budget, depth + 1, damage, true);
    return;
  }
  const source = limited(tolerant(decompressed(packing, bytes.all()), damage), budget);
  const content = await Peeked.of(source);
  if (content.head.length === 0 && damage.reason !== undefined)
    throw new InputError(
      'CONTENT',
      `nothing of it could be unpacked: ${damage.reason.split(':', 1)[0] ?? ''} before the end of its first block; give it whole`,
    );
  yield* layer(name, content, budget, depth + 1, damage, isBeforeOthers);
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

/** Words of decompressors for an end that comes too early. */
const cutForm = /unexpected end|EOF|truncated|too short|premature|input (?:ended|is incomplete)/i;

/** Ends early, with a reason, where packed bytes are cut or damaged: the bytes before are good. */
async function* tolerant(source: ByteSource, damage: Unpacked['damage']): ByteSource {
  try {
    yield* source;
  } catch (error) {
    if (error instanceof InputError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    damage.reason = cutForm.test(message) ? 'it is cut: what unpacks is read' : 'it is damaged: what unpacks is read';
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
    case 'zstd':
      yield* unzstd(source);
  }
}

/** Bytes that the decoder of zstd gets at a time: a block of 4 bytes may unpack to 128 KiB. */
const ZSTD_SLICE = 256;
/** The decoder keeps a window in memory; `zstd -d` itself takes no more without an option. */
const ZSTD_WINDOW = 2 ** 27;

async function* unzstd(source: ByteSource): ByteSource {
  const { Decompress } = await import('fzstd');
  const ready: Buffer[] = [];
  const stream = new Decompress((piece) => ready.push(Buffer.from(piece)));
  let isFirst = true;
  for await (const piece of source) {
    if (isFirst && zstdWindow(piece) > ZSTD_WINDOW)
      throw new InputError(
        'CONTENT',
        `was packed with a window of ${Math.ceil(zstdWindow(piece) / 2 ** 20)} MiB (zstd --long), more than ${ZSTD_WINDOW / 2 ** 20}: unpack it with \`zstd -d --long=31\`, and give what comes out`,
      );
    isFirst = false;
    for (let at = 0; at < piece.length; at += ZSTD_SLICE) {
      // It keeps parts of what it gets.
      stream.push(new Uint8Array(piece.subarray(at, at + ZSTD_SLICE)));
      yield* ready.splice(0);
    }
  }
  stream.push(new Uint8Array(0), true);
  yield* ready.splice(0);
}

/** The window of the first frame, by its header (RFC 8878, 3.1.1.1). */
function zstdWindow(head: Buffer): number {
  const [descriptor = 0, window = 0] = head.subarray(4, 6);
  if ((descriptor & 0x20) === 0) return 2 ** (10 + (window >> 3)) * (1 + (window & 7) / 8);
  const at = 5 + ([0, 1, 2, 4][descriptor & 3] ?? 0);
  const size = [1, 2, 4, 8][descriptor >> 6] ?? 1;
  if (head.length < at + size) return 0;
  return size === 8 ? Number(head.readBigUInt64LE(at)) : head.readUIntLE(at, size);
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
