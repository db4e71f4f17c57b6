import { InputError } from '../../errors.js';
import { type ByteSource, drain } from './bytes.js';

const BLOCK = 512;
/** Headers with long names and attributes are small. */
const HEADER_LIMIT = 2 ** 20;

/**
 * Files of a tar archive (ustar, GNU's long names, pax). An archive that is cut ends with the bytes that it has, and with a
 * reason.
 */
export async function* tarEntries(
  source: ByteSource,
  damage: { reason: string | undefined },
): AsyncGenerator<{ readonly name: string; readonly source: ByteSource }> {
  const blocks = new Blocks(source);
  let longName: string | undefined;
  for (;;) {
    const header = await blocks.take(BLOCK);
    if (header.length < BLOCK) {
      if (header.length > 0) damage.reason ??= 'it is cut: what unpacks is read';
      return;
    }
    if (header.every((byte) => byte === 0)) continue;
    const size = numberIn(header.subarray(124, 136));
    if (textIn(header.subarray(257, 262)) !== 'ustar' || !Number.isSafeInteger(size))
      throw new InputError('CONTENT', 'is a damaged tar archive: a header is none');
    const padding = (BLOCK - (size % BLOCK)) % BLOCK;
    const type = String.fromCharCode(header[156] ?? 0);
    if (type === 'L' || type === 'x' || type === 'g') {
      const body = (await blocks.take(Math.min(size, HEADER_LIMIT))).toString('utf8');
      await blocks.skip(Math.max(0, size - HEADER_LIMIT) + padding);
      if (type === 'L') longName = body.replace(/\0.*$/s, '');
      else if (type === 'x') longName = /^\d+ path=([^\n]*)$/m.exec(body)?.[1] ?? longName;
      continue;
    }
    const prefix = textIn(header.subarray(345, 500));
    const name = longName ?? `${prefix === '' ? '' : `${prefix}/`}${textIn(header.subarray(0, 100))}`;
    longName = undefined;
    if (type !== '0' && type !== '\0') {
      await blocks.skip(size + padding);
      continue;
    }
    const body = blocks.body(size);
    yield { name, source: body };
    // The reader of the entry may have left bytes of it.
    await drain(body);
    if (blocks.missing > 0) {
      damage.reason ??= 'it is cut: what unpacks is read';
      return;
    }
    await blocks.skip(padding);
  }
}

function textIn(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.subarray(0, end < 0 ? bytes.length : end).toString('utf8');
}

/** Octal digits, or for files of 8 GiB and more a binary number. */
function numberIn(bytes: Buffer): number {
  if (((bytes[0] ?? 0) & 0x80) === 0) return Number.parseInt(textIn(bytes).trim() || '0', 8);
  return bytes.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0);
}

/** Takes given numbers of bytes from a source. */
class Blocks {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest = Buffer.alloc(0);
  /** Bytes of the last body that the source did not have. */
  missing = 0;

  constructor(source: ByteSource) {
    this.#pieces = source[Symbol.asyncIterator]();
  }

  /** Fewer at the end of the source. */
  async take(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let left = count;
    while (left > 0 && (await this.#fill())) {
      const part = this.#rest.subarray(0, left);
      parts.push(Buffer.from(part));
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  async skip(count: number): Promise<void> {
    let left = count;
    while (left > 0 && (await this.#fill())) {
      const part = Math.min(left, this.#rest.length);
      this.#rest = this.#rest.subarray(part);
      left -= part;
    }
  }

  /** The next bytes, in pieces; iterating it again goes on where the last one stopped. */
  body(size: number): ByteSource {
    let left = size;
    this.missing = size;
    const next = async (): Promise<Buffer | undefined> => {
      if (left === 0 || !(await this.#fill())) return undefined;
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
      this.missing = left;
      return part;
    };
    return {
      async *[Symbol.asyncIterator]() {
        for (let part = await next(); part !== undefined; part = await next()) yield part;
      },
    };
  }

  /** False at the end of the source. */
  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const next = await this.#pieces.next();
      if (next.done === true) return false;
      this.#rest = next.value as Buffer<ArrayBuffer>;
    }
    return true;
  }
}
