import type { Writable } from '#platform/streams';
import { defined } from '../../../defined.js';

/**
 * Frames between the launcher and its agent on another host, through ssh:
 *
 *     bytes of the payload (4)   kind (1)   payload
 *
 * A control message is JSON; the other kinds are bytes of the ranks' streams.
 */
export const frameKinds = { control: 0, input: 1, stdout: 2, stderr: 3 } as const;

const HEADER_BYTES = 5;
/** Longest payload: a control message holds the environment, whose variables the system limits to 128 KiB each. */
const LONGEST_PAYLOAD_BYTES = 64 * 1024 * 1024;

/** Writes a frame as one chunk. */
export function writeFrame(to: Writable, kind: number, ...parts: readonly Uint8Array[]): void {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(parts.reduce((sum, part) => sum + part.length, 0));
  header[4] = kind;
  to.write(Buffer.concat([header, ...parts]));
}

export function writeControl(to: Writable, message: object): void {
  writeFrame(to, frameKinds.control, Buffer.from(JSON.stringify(message)));
}

/** Splits a byte stream into frames. */
export class FrameReader {
  readonly #take: (kind: number, payload: Buffer) => void;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(take: (kind: number, payload: Buffer) => void) {
    this.#take = take;
  }

  /** @throws Error when the bytes are no frames */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= HEADER_BYTES) {
      const joined = this.#first(HEADER_BYTES);
      const bytes = joined.readUInt32BE();
      if (bytes > LONGEST_PAYLOAD_BYTES) throw new Error('what it wrote is not the protocol of tccl run');
      if (this.#bytes < HEADER_BYTES + bytes) return;
      const frame = this.#first(HEADER_BYTES + bytes);
      this.#chunks[0] = frame.subarray(HEADER_BYTES + bytes);
      this.#bytes -= HEADER_BYTES + bytes;
      this.#take(defined(frame[4]), frame.subarray(HEADER_BYTES, HEADER_BYTES + bytes));
    }
  }

  /** The first chunk, which has at least so many bytes. */
  #first(bytes: number): Buffer {
    if ((this.#chunks[0]?.length ?? 0) < bytes) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? Buffer.alloc(0);
  }
}
