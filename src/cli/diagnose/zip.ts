import { Readable } from 'node:stream';
import { createInflateRaw } from 'node:zlib';
import type { Entry as ZipEntry, ZipFile } from 'yauzl';
import { InputError } from '../../errors.js';
import type { ByteSource } from './bytes.js';

/** The signature of the header before each file. */
const localHeader = Buffer.from('PK\u0003\u0004', 'latin1');
const HEADER_BYTES = 30;
const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 1;
/** Sizes that the header does not say: they follow the file, or stand in an extra field. */
const UNSAID: ReadonlySet<number> = new Set([0, 0xffff_ffff]);

/** A file of an archive; without bytes, and with the reason, where it cannot be read. */
interface Entry {
  readonly name: string;
  readonly source: ByteSource;
  readonly refused?: string;
}

/** The files of a zip archive; those at its beginning where it is cut. */
export async function* zipEntries(archive: Buffer, file: string): AsyncGenerator<Entry> {
  const { fromBuffer } = await import('yauzl');
  const zip = await new Promise<ZipFile | undefined>((resolve) => {
    fromBuffer(archive, { lazyEntries: true, autoClose: false }, (error: Error | null, opened: ZipFile) => {
      resolve(error === null ? opened : undefined);
    });
  });
  if (zip === undefined) {
    yield* localEntries(archive, file);
    return;
  }
  for (;;) {
    const entry = await nextEntry(zip, file);
    if (entry === undefined) return;
    if (entry.fileName.endsWith('/')) continue;
    const { fileName: name } = entry;
    yield refusedEntry(name, entry.isEncrypted(), entry.compressionMethod) ?? { name, source: contentOf(zip, entry) };
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

/** The entry of a file that cannot be read; undefined for one that can. */
function refusedEntry(name: string, isEncrypted: boolean, method: number): Entry | undefined {
  const refuse = (refused: string): Entry => ({ name, source: Readable.from([]), refused });
  if (isEncrypted) return refuse('is encrypted: unpack it with its password, and give what comes out');
  if (method === STORED || method === DEFLATED) return undefined;
  return refuse(`is packed by method ${method}, which few programs know`);
}

async function* contentOf(zip: ZipFile, entry: ZipEntry): ByteSource {
  const stream = await new Promise<Readable>((resolve, reject) => {
    zip.openReadStream(entry, (error: Error | null, opened: Readable) => {
      if (error === null) resolve(opened);
      else reject(error);
    });
  });
  yield* stream as AsyncIterable<Buffer>;
}

/** The files of an archive without a directory at its end, which is cut, by the headers before them. */
function* localEntries(archive: Buffer, file: string): Generator<Entry> {
  let found = 0;
  for (let at = 0; at >= 0 && at + HEADER_BYTES <= archive.length;) {
    const [flags, method, size] = [archive.readUInt16LE(at + 6), archive.readUInt16LE(at + 8), archive.readUInt32LE(at + 18)];
    const nameEnd = at + HEADER_BYTES + archive.readUInt16LE(at + 26);
    const start = nameEnd + archive.readUInt16LE(at + 28);
    const name = archive.toString('utf8', at + HEADER_BYTES, nameEnd);
    const end = UNSAID.has(size) ? start : start + size;
    if (start < archive.length && !name.endsWith('/')) {
      found++;
      const packed = archive.subarray(start, end === start ? archive.length : end);
      yield (
        refusedEntry(name, (flags & ENCRYPTED) !== 0, method) ?? {
          name,
          source: localContent(packed, method, end > archive.length),
        }
      );
    }
    at = archive.indexOf(localHeader, end);
  }
  if (found === 0)
    throw new InputError(
      'CONTENT',
      'is no zip archive that can be read: its directory, at its end, is missing, and no file at its beginning can be read; give it whole',
      { file },
    );
}

/** Stops at the end of a deflated file, whatever follows. */
async function* localContent(packed: Buffer, method: number, isCut: boolean): ByteSource {
  if (method === DEFLATED) {
    const stream = createInflateRaw();
    stream.end(packed);
    yield* stream as AsyncIterable<Buffer>;
    return;
  }
  yield packed;
  if (isCut) throw new Error('unexpected end');
}
