import { InputError } from '../errors.js';
import { encodingOf } from '../planner/readers/classify.js';

/** Bytes by which a file is recognised. */
export const HEAD_BYTES = 65_536;

/** Part that a file has in a cluster: its hosts, the graphs of `NCCL_GRAPH_FILE`, or another. */
export async function partOfFile(blob: Blob): Promise<'topology' | 'graphs' | 'other'> {
  const head = await headOf(blob);
  const text = new TextDecoder(encodingOf(head)).decode(head);
  const [, name] = /^\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--[^>]{0,2000}-->\s*)*<(system|graphs)\b/.exec(text) ?? [];
  return name === 'system' ? 'topology' : name === 'graphs' ? 'graphs' : 'other';
}

/** The bytes of a file, unpacked. */
export async function bytesOf(blob: Blob): Promise<AsyncIterable<Uint8Array>> {
  const start = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const isCompressed = start[0] === 0x1f && start[1] === 0x8b;
  const stream = isCompressed ? blob.stream().pipeThrough(new DecompressionStream('gzip')) : blob.stream();
  return pieces(stream.getReader());
}

/** Pieces of a stream; a compressed file that is cut ends where it is cut. */
async function* pieces(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel();
  }
}

/** The beginning of a file, unpacked. */
export async function headOf(blob: Blob): Promise<Uint8Array> {
  for await (const piece of await bytesOf(blob)) return piece.subarray(0, HEAD_BYTES);
  return new Uint8Array(0);
}

/** Bytes at most of a recording or dump, which is read as a whole. */
export const WHOLE_LIMIT = 256 * 2 ** 20;

/**
 * All bytes of a file, unpacked.
 *
 * @throws InputError `TOO_LARGE`
 */
export async function wholeOf(name: string, blob: Blob): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const piece of await bytesOf(blob)) {
    length += piece.length;
    if (length > WHOLE_LIMIT) throw tooLarge(name);
    parts.push(piece);
  }
  return joined(parts);
}

export function tooLarge(name: string): InputError {
  return new InputError('TOO_LARGE', `has more than ${WHOLE_LIMIT / 2 ** 20} MiB; tccl diagnose takes more`, { file: name });
}

/** Pieces as one. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
